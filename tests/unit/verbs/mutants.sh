#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# mutants.sh - the tests of the data path over RDMA detect seeded bugs: each mutant of the source must fail its test
top=${top_srcdir:-$(cd "$(dirname "$0")/../../.." && pwd)}
build=${top_builddir:-.}
cc=${CC:-cc}
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
plugin=$top/plugins/transport/verbs-common

# file @ sed script @ test that must fail @ the bug
mutants=$top/tests/unit/verbs/mutants.txt
isal=$(sed -n 's/^LIBISAL_LIBS = //p' "$build/tests/Makefile")

# compile FILE - compile FILE to $dir/mutant.o
compile()
{
	"$cc" -std=gnu11 -D_GNU_SOURCE -O1 -w -include "$build/config.h" -I"$top/include" -I"$plugin" -I"$plugin/../common" -c \
		-o "$dir/mutant.o" "$1"
}

# link TEST - link the test with the mutant before the archive that has the original object
link()
{
	# shellcheck disable=SC2086 # words
	"$cc" -o "$dir/test" "$build/tests/unit/verbs/$1-$1.o" "$build/tests/libends.a" "$dir/mutant.o" \
		"$build/plugins/.libs/libverbs-common.a" "$build/tests/.libs/libfakeverbs.a" "$build/tests/libfake.a" \
		"$build/core/.libs/libgantry-core.a" "$build/tests/libunity.a" $isal -lpthread -ldl -lm
}

if grep -q "^GANTRY_CFLAGS.*fsanitize" "$build/tests/Makefile"; then
	echo "1..0 # SKIP only for builds without sanitizers"
	exit 0
fi
compile "$plugin/vb_pipe.c" 2>"$dir/out" && link traffic 2>>"$dir/out" || {
	echo "Bail out! cannot compile the plugin: $(head -n 1 "$dir/out")"
	exit 1
}
timeout 60 "$dir/test" >"$dir/out" 2>&1 || {
	echo "Bail out! traffic fails without a bug: $(grep -m 1 FAIL "$dir/out")"
	exit 1
}
echo "1..$(wc -l <"$mutants")"
n=0
while IFS="@" read -r file script test what; do
	n=$((n + 1))
	mutant=$dir/${file##*/}
	sed "$script" "$plugin/$file" >"$mutant"
	if cmp -s "$plugin/$file" "$mutant" || ! compile "$mutant" 2>"$dir/out" || ! link "$test" 2>"$dir/out"; then
		echo "not ok $n - $what (the mutant does not apply)"
		sed 's/^/# /' "$dir/out"
	elif MALLOC_PERTURB_=90 timeout 10 "$dir/test" >"$dir/out" 2>&1; then
		echo "not ok $n - $what (not seen by $test)"
	else # a test that hangs counts as failed
		echo "ok $n - $what"
	fi
done <"$mutants"
