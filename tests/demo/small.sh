#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# small.sh - runs the demo with small sizes: it succeeds, fails if a step fails, and leaves no files or processes
. "$top_srcdir/tests/tap.sh"
for tool in mke2fs e2fsck; do
	PATH=$PATH:/usr/sbin:/sbin command -v $tool >/dev/null || skip "$tool is missing"
done
need shm-comch target gateway initiator file stats
mkdir -m 700 "$tmp/demo"
shown=$tmp/out
export TMPDIR="$tmp/demo" DEMO_SIZE=64 DEMO_SECONDS=1

# demo [ENVIRONMENT...]
demo()
{
	env "$@" sh "$top_srcdir/tests/demo/demo.sh" "$top_builddir" >"$tmp/out" 2>&1
}

# demo_tcp - the demo over TCP
demo_tcp()
{
	sh "$top_srcdir/tests/demo/demo.sh" "$top_builddir" --tcp >"$tmp/out" 2>&1
}

no_namespace()
{
	! ip netns list 2>/dev/null | grep gantry-demo
}

says()
{
	grep -q "$1" "$tmp/out"
}

empty()
{
	[ -z "$(ls -A "$tmp/demo")" ]
}

fails()
{
	! "$@"
}

ok "the demo ends well" demo
ok "all copies are the same" says "read back: the same"
ok "the file system is whole" says "clean"
ok "no data passed through the gateway" says "passed through the gateway: 0"
ok "it leaves nothing behind" empty
if [ -e "$GANTRY_PLUGINS/tcp.so" ]; then
	ok "the demo over TCP ends well" demo_tcp
	ok "it says where the target runs" says "the target runs .*:4791"
	ok "all copies are the same there" says "read back: the same"
	ok "it leaves no file" empty
	ok "and no network namespace" no_namespace
fi
ok "a failure is a failure" fails demo GANTRY=false
ok "and says what failed" says "FAILED: copy in"
ok "and leaves nothing behind" empty
done_testing
