#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# over-tcp.sh - tests of three processes, and of killed processes, with both legs over TCP: those that depend on the transport
. "$top_srcdir/tests/tap.sh"
need tcp shm-comch
which='lanes|two |operation|extents|again and again|resumes|SIGTERM once'
WALK_TCP="front back" exec sh "$top_srcdir/tests/run-bats.sh" -f "$which" "$top_srcdir/tests/walk/processes.bats" \
	"$top_srcdir/tests/walk/kill.bats"
