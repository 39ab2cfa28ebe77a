#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# clients-tcp.sh - nbdkit and fio on a volume behind a gateway and a target, with both legs over TCP: the tests of their files that
# depend on the transport
. "$top_srcdir/tests/tap.sh"
need tcp shm-comch
WALK_TCP="front back" exec sh "$top_srcdir/tests/run-bats.sh" -f 'verified|nbdcopy|hundred connections|with resume' \
	"$top_srcdir/tests/clients/nbdkit.bats" "$top_srcdir/tests/clients/fio.bats"
