#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# small.sh - runs the demo with small sizes: it succeeds, fails if a step fails, and leaves no files or processes
for tool in mke2fs e2fsck; do
	PATH=$PATH:/usr/sbin:/sbin command -v $tool >/dev/null || { echo "1..0 # SKIP $tool is missing"; exit 0; }
done
for plugin in shm-comch target gateway initiator file stats; do
	[ -e "$GANTRY_PLUGINS/$plugin.so" ] || { echo "1..0 # SKIP built without the plugin $plugin"; exit 0; }
done
tmp=$(mktemp -d "${TMPDIR:-/tmp}/gantry-small.XXXXXX") || exit 1
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' INT TERM HUP
chmod 700 "$tmp"
export TMPDIR="$tmp" DEMO_SIZE=64 DEMO_SECONDS=1
n=0

# is WHAT COMMAND... - one line of TAP
is()
{
	n=$((n + 1))
	what=$1
	shift
	if "$@"; then
		echo "ok $n - $what"
	else
		echo "not ok $n - $what"
		sed 's/^/# /' "$tmp.out"
	fi
}

# demo [ENVIRONMENT...]
demo()
{
	env "$@" sh "$top_srcdir/tests/demo/demo.sh" "$top_builddir" >"$tmp.out" 2>&1
}

says()
{
	grep -q "$1" "$tmp.out"
}

empty()
{
	[ -z "$(ls -A "$tmp")" ]
}

fails()
{
	! "$@"
}

trap 'rm -rf "$tmp" "$tmp.out"' EXIT
echo "1..8"
is "the demo ends well" demo
is "all copies are the same" says "read back: the same"
is "the file system is whole" says "clean"
is "no data passed through the gateway" says "passed through the gateway: 0"
is "it leaves nothing behind" empty
is "a failure is a failure" fails demo GANTRY=false
is "and says what failed" says "FAILED: copy in"
is "and leaves nothing behind" empty
