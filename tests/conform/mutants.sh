#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# mutants.sh - the tests of the transports detect seeded bugs: each mutant of the source must fail its test
top=${top_srcdir:-$(cd "$(dirname "$0")/../.." && pwd)}
tests=${top_builddir:-.}/tests
cc=${CC:-cc}
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
chmod 711 "$dir" # some peers in the tests have another uid

# plugin @ file @ sed script @ test that must fail, or TEST/CASE @ the bug
mutants=$top/tests/conform/mutants.txt

# build PLUGIN FILE... - compile these files of a plugin, and link them with the existing objects of its other files
build()
{
	plugin=$1
	shift
	for file; do
		"$cc" -std=gnu11 -D_GNU_SOURCE -O0 -fPIC -fvisibility=hidden -w -I"$top/include" \
			-I"$top/plugins/transport/$plugin" -c -o "$dir/$plugin-${file##*/}.o" "$file" || return 1
	done
	so=$plugin libraries=
	[ "$plugin" = verbs-common ] && so=rdma-verbs libraries="-lrdmacm -libverbs"
	# shellcheck disable=SC2086 # one word each
	"$cc" -shared -o "$dir/$so.so" "$dir/$plugin"-*.o $libraries
}

# try_test TEST SECONDS PATIENCE - run the test with the plugins in $dir, with a time limit; it waits PATIENCE ms for an event
try_test()
{
	case $1 in
	*/*) RIG_CASE=${1#*/} && export RIG_CASE ;;
	*) unset RIG_CASE ;;
	esac
	TMPDIR=$dir TEST_PLUGINDIR=$dir RIG_PATIENCE_MS=$3 timeout "$2" "$tests/conform/${1%/*}" 2>&1
	echo "exit status $?"
}

# failed - whether standard input, the output of a test, shows a failure; a test that hangs counts as failed
failed()
{
	grep -qE ':FAIL|^exit status [1-9]'
}

# caught TEST - whether the test fails
caught()
{
	seconds=3
	case $1 in death | killed) seconds=10 ;; esac
	try_test "$1" "$seconds" 300 | failed
}

if grep -q "^GANTRY_CFLAGS.*fsanitize" "$tests/Makefile"; then
	echo "1..0 # SKIP only for builds without sanitizers"
	exit 0
fi
for plugin in loop shm-comch; do
	build "$plugin" "$top/plugins/transport/$plugin"/*.c "$top/plugins/transport/common"/*.c ||
		{ echo "Bail out! cannot compile plugins"; exit 1; }
done
verbs=1
[ -x "$tests/conform/verbs_fake" ] && build verbs-common "$top"/plugins/transport/verbs-common/*.c \
	"$top"/plugins/transport/common/*.c "$top/plugins/transport/rdma-verbs/rdma-verbs.c" || verbs=0
tcp=1
[ -x "$tests/conform/tcp_hostile" ] && build tcp "$top"/plugins/transport/tcp/*.c "$top"/plugins/transport/common/*.c || tcp=0
echo "1..$(($(wc -l <"$mutants") + 1))"
n=1
good=loop
[ $verbs -eq 0 ] || good="loop verbs_fake verbs_late verbs_hostile_fake verbs_filter verbs_sealed"
[ $tcp -eq 0 ] || good="$good tcp"
for test in $good; do
	try_test "$test" 300 30000
done >"$dir/out"
if failed <"$dir/out"; then
	echo "not ok 1 - without a bug the tests pass"
	sed 's/^/# /' "$dir/out"
else
	echo "ok 1 - without a bug the tests pass"
fi
while IFS="@" read -r plugin file script test what; do
	n=$((n + 1))
	if [ "$plugin" = verbs-common ] && [ $verbs -eq 0 ]; then
		echo "ok $n - $what # SKIP rdma-verbs is not built"
		continue
	fi
	if [ "$plugin" = tcp ] && [ $tcp -eq 0 ]; then
		echo "ok $n - $what # SKIP tcp is not built"
		continue
	fi
	source=$top/plugins/transport/$plugin/$file object=$dir/$plugin-$file.o
	cp "$object" "$dir/kept"
	sed "$script" "$source" >"$dir/$file"
	if cmp -s "$source" "$dir/$file" || ! build "$plugin" "$dir/$file" 2>"$dir/out"; then
		echo "not ok $n - $what (the mutant does not apply)"
		sed 's/^/# /' "$dir/out"
	elif caught "$test"; then
		echo "ok $n - $what"
	else
		echo "not ok $n - $what (not detected by $test)"
	fi
	mv "$dir/kept" "$object"
done <"$mutants"
