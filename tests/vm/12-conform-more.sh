#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# 12-conform-more.sh - runs the conformance suite over rdma-verbs with shared queue pairs, and over rxe with a pre-shared key; kills
# peers over rxe
. "$top_srcdir/tests/vm/conform.sh"
vm_test "rdma-verbs, data_qp = shared" suite verbs ibdev=rxe1 ibdev=rxe0 data_qp=shared
vm_test "rxe, with a pre-shared key" suite rxe_secure netdev=v1 netdev=v0 data_qp=separate
vm_test "rxe, peers that are killed" suite killed_rxe netdev=v1 netdev=v0 data_qp=shared
vm_done
