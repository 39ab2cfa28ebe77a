#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rbd_mutants.sh - the tests of the rbd backend detect seeded bugs: with each mutant of the plugin one must fail
top=${top_srcdir:-$(cd "$(dirname "$0")/../../.." && pwd)}
build=${top_builddir:-.}
cc=${CC:-cc}
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
plugin=$top/plugins/backend/rbd
tests="$build/tests/unit/backend/rbd $build/tests/unit/backend/rbd-extents"

# file @ sed script @ the bug
mutants=$top/tests/unit/backend/rbd_mutants.txt
libs=$(sed -n 's/^LIBRBD_LIBS = //p; s/^LIBUUID_LIBS = //p' "$build/plugins/Makefile")

# plugin_of DIR - build the plugin in $dir from the sources in DIR
plugin_of()
{
	# shellcheck disable=SC2086 # words
	"$cc" -std=gnu11 -D_GNU_SOURCE -O1 -w -fPIC -shared -include "$build/config.h" -I"$top/include" -o "$dir/rbd.so" \
		"$1"/*.c "$top"/plugins/backend/common/*.c $libs -lpthread
}

# passes SECONDS - run the tests; a test that hangs counts as failed
passes()
{
	for test in $tests; do
		timeout "$1" "$test" >"$dir/out" 2>&1 || return 1
	done
}

# copied - put the sources where they include "../common"
copied()
{
	rm -rf "$dir/backend"
	mkdir -p "$dir/backend/rbd" "$dir/backend/common"
	cp "$plugin"/*.[ch] "$dir/backend/rbd"
	cp "$top"/plugins/backend/common/*.h "$dir/backend/common"
}

if grep -q "^GANTRY_CFLAGS.*fsanitize" "$build/tests/Makefile"; then
	echo "1..0 # SKIP only for builds without sanitizers"
	exit 0
fi
copied
plugin_of "$dir/backend/rbd" 2>"$dir/out" || {
	echo "Bail out! cannot compile the plugin: $(head -n 1 "$dir/out")"
	exit 1
}
TEST_PLUGINDIR=$dir
export TEST_PLUGINDIR
passes 60 || {
	echo "Bail out! the test fails without a bug: $(grep -m 1 FAIL "$dir/out")"
	exit 1
}
echo "1..$(wc -l <"$mutants")"
n=0
while IFS="@" read -r file script what; do
	n=$((n + 1))
	copied
	sed -i "$script" "$dir/backend/rbd/$file"
	if cmp -s "$plugin/$file" "$dir/backend/rbd/$file" || ! plugin_of "$dir/backend/rbd" 2>"$dir/out"; then
		echo "not ok $n - $what (the mutant does not apply)"
		sed 's/^/# /' "$dir/out"
	elif passes 15; then
		echo "not ok $n - $what (not detected)"
	else
		echo "ok $n - $what"
		grep -m 1 ':FAIL' "$dir/out" | sed 's/^[^:]*:/# /'
	fi
done <"$mutants"
