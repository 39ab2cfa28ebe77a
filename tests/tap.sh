# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# tap.sh - functions of tests that are scripts: the private directory $tmp, and lines of TAP. A test begins:
#	. "$top_srcdir/tests/tap.sh"
# and ends with `done_testing`. At the end of the script, the process $pid is killed, and $tmp is removed.
tmp=$(mktemp -d "${TMPDIR:-/tmp}/gantry-$(basename "$0" .sh).XXXXXX") || exit 1
n=0 pid='' shown=''
trap '[ -z "$pid" ] || kill "$pid" 2>/dev/null; rm -rf "$tmp" "$tmp.log"' EXIT
trap 'exit 1' INT TERM HUP

# skip REASON - skip the whole test
skip()
{
	echo "1..0 # SKIP $*"
	exit 0
}

# need PLUGIN... - skip the test if the build lacks one
need()
{
	for plugin in "$@"; do
		[ -e "$GANTRY_PLUGINS/$plugin.so" ] || skip "built without the plugin $plugin"
	done
}

# verdict STATUS WHAT [FILE...] - a case passes if STATUS is 0. If it fails, these files and those of $shown are printed
verdict()
{
	n=$((n + 1))
	[ "$1" -eq 0 ] && echo "ok $n - $2" && return
	echo "not ok $n - $2 (exit status $1)"
	shift 2
	# shellcheck disable=SC2086 # words
	cat "$@" $shown </dev/null | sed 's/^/# /'
}

# ok WHAT COMMAND... - the command succeeds
ok()
{
	what=$1
	shift
	"$@" >"$tmp.log" 2>&1
	verdict $? "$what" "$tmp.log"
}

# is WHAT TEXT TEXT - the texts are equal
is()
{
	printf '%s\n' "$2" "is not:" "$3" >"$tmp.log"
	[ "$2" = "$3" ]
	verdict $? "$1" "$tmp.log"
}

# none WHAT FILE - the file is empty
none()
{
	! [ -s "$2" ]
	verdict $? "$1" "$2"
}

# skipped WHAT REASON - a case that cannot run
skipped()
{
	n=$((n + 1))
	echo "ok $n - $1 # SKIP $2"
}

done_testing()
{
	echo "1..$n"
}
