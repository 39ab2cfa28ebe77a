#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# 10-conform.sh - runs the transport conformance suite from one soft-RoCE device to the other, and kills peers.
. "$top_srcdir/tests/vm/guest.sh"
vm_network
vm_limit=100
export RIG_HOST=${vm_addresses[0]} RIG_PATIENCE_MS=30000

# suite PROGRAM A B SETTING - run with end a on device A, end b on device B, both with the setting; print the number of passed cases
suite()
{
	local status=0
	[ -x "$top_builddir/tests/conform/$1" ] || skip "$1 was not built"
	RIG_A_SETTINGS="$2 $4" RIG_B_SETTINGS="$3 $4" "$top_builddir/tests/conform/$1" >"$vm_dir/output" 2>&1 || status=$?
	grep -E '^[0-9]+ (Tests|deaths)' "$vm_dir/output" | sed "s/^/# $1 $4: /" >&3
	grep -vE ':(PASS|IGNORE)' "$vm_dir/output"
	return "$status"
}

for data_qp in separate shared; do
	vm_test "rdma-verbs, data_qp = $data_qp" suite verbs ibdev=rxe1 ibdev=rxe0 data_qp=$data_qp
done
vm_test "rxe, with a pre-shared key" suite rxe_secure netdev=v1 netdev=v0 data_qp=separate
vm_test "rdma-verbs, peers that are killed" suite killed_verbs ibdev=rxe1 ibdev=rxe0 data_qp=separate
vm_test "rxe, peers that are killed" suite killed_rxe netdev=v1 netdev=v0 data_qp=shared
vm_done
