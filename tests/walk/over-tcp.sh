#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# over-tcp.sh - the tests of three processes, and of killed processes, with both legs over TCP
. "$top_srcdir/tests/tap.sh"
need tcp shm-comch
WALK_TCP="front back" TEST_SECONDS=900 exec sh "$top_srcdir/tests/run-bats.sh" "$top_srcdir/tests/walk/processes.bats" \
	"$top_srcdir/tests/walk/kill.bats"
