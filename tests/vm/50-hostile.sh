#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# 50-hostile.sh - peers that speak RDMA and mean harm: what is due to each, while an honest one goes on.
. "$top_srcdir/tests/vm/walk.sh"
vm_network
vm_limit=280
export RIG_HOST=${vm_addresses[0]} RIG_FROM=${vm_addresses[1]} RIG_PATIENCE_MS=30000
export RIG_A_SETTINGS=ibdev=rxe1 RIG_B_SETTINGS=ibdev=rxe0

vm_program "an end of the rig" "$top_builddir/tests/conform/verbs_hostile"
vm_done
