#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# mutants.sh - the tests of virtqueues detect seeded bugs: each mutant of the source must fail its test
top=${top_srcdir:-$(cd "$(dirname "$0")/../../.." && pwd)}
build=${top_builddir:-.}
cc=${CC:-cc}
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
unity=$(sed -n 's/^UNITY_DIR = //p' "$build/tests/Makefile")
role=plugins/role/vhost-user-blk

# test @ file @ sed script @ the bug
mutants=$top/tests/unit/vhost/mutants.txt

# compile TEST - compile a test, which includes the sources of the role, in the copy of the tree
compile()
{
	"$cc" -std=gnu11 -D_GNU_SOURCE -O1 -w -include "$build/config.h" -I"$top/include" -I"$top/core" -I"$top/tests" \
		-I"$unity" -DUNITY_SUPPORT_64 -o "$dir/test" "$dir/tree/tests/unit/vhost/$1.c" "$build/tests/libunity.a" \
		"$build/core/.libs/libgantry-core.a" -lm
}

if grep -q "^GANTRY_CFLAGS.*\(fsanitize\|fprofile\)" "$build/tests/Makefile"; then
	echo "1..0 # SKIP only for builds without sanitizers"
	exit 0
fi
mkdir -p "$dir/tree/$role" "$dir/tree/tests/unit/vhost"
cp "$top/$role"/*.[ch] "$dir/tree/$role"
cp "$top/tests/unit/vhost"/*.c "$dir/tree/tests/unit/vhost"
for test in packed ring; do
	compile $test 2>"$dir/out" && timeout 60 "$dir/test" >>"$dir/out" 2>&1 || {
		echo "Bail out! $test fails without a bug: $(grep -m 1 'FAIL\|error' "$dir/out")"
		exit 1
	}
done
echo "1..$(wc -l <"$mutants")"
n=0
while IFS="@" read -r test file script what; do
	n=$((n + 1))
	sed "$script" "$top/$role/$file" >"$dir/tree/$role/$file"
	if cmp -s "$top/$role/$file" "$dir/tree/$role/$file" || ! compile "$test" 2>"$dir/out"; then
		echo "not ok $n - $what (the mutant does not apply)"
		sed 's/^/# /' "$dir/out"
	elif MALLOC_PERTURB_=90 timeout 60 "$dir/test" >"$dir/out" 2>&1; then
		echo "not ok $n - $what (not seen by $test)"
	else # a test that hangs counts as failed
		echo "ok $n - $what"
	fi
	cp "$top/$role/$file" "$dir/tree/$role"
done <"$mutants"
