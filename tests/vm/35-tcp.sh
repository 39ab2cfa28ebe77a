#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# 35-tcp.sh - the tests of tests/walk/tcp-network.bats that need sch_netem: TCP between namespaces, over links that lose, delay,
# reorder, double and damage packets.
set -o pipefail
. "$top_srcdir/tests/vm/guest.sh"
command -v bats >/dev/null || { echo "1..0 # SKIP bats is not installed"; exit 0; }
modprobe -a veth sch_netem
bats --tap --filter '^(loss|packets|a delay|a rate)' "$top_srcdir/tests/walk/tcp-network.bats" </dev/null |
	sed -uE 's/^((not )?ok [0-9]+) /\1 - /'
