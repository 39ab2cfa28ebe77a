#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# 10-conform.sh - runs the transport conformance suite over rdma-verbs, and kills peers; separate queue pairs for data
. "$top_srcdir/tests/vm/conform.sh"
vm_test "rdma-verbs, data_qp = separate" suite verbs ibdev=rxe1 ibdev=rxe0 data_qp=separate
vm_test "rdma-verbs, peers that are killed" suite killed_verbs ibdev=rxe1 ibdev=rxe0 data_qp=separate
vm_done
