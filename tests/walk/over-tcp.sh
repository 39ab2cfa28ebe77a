#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# over-tcp.sh - tests of three processes, of killed processes, and of the disk of a virtual machine, with both legs over TCP: those
# that depend on the transport
. "$top_srcdir/tests/tap.sh"
need tcp shm-comch
which='lanes|two (lanes|initiators|targets|gateways: )|operation|extents|again and again|resumes|SIGTERM once'
which="$which|^reads, writes, flushes|few slots|grows|zeroes$|no pages|replaced while|^a guest that is killed"
which="$which|^target and gateway are killed"
which="$which|^the role is (killed|stopped)|^a lane whose|^the session is lost while"
which="$which|^a gateway with two paths: (each|the first)"
WALK_TCP="front back" exec sh "$top_srcdir/tests/run-bats.sh" -f "$which" "$top_srcdir/tests/walk/processes.bats" \
	"$top_srcdir/tests/walk/kill.bats" "$top_srcdir/tests/walk/failover.bats" \
	"$top_srcdir/tests/walk/vhost.bats" "$top_srcdir/tests/walk/vhost-ends.bats"
