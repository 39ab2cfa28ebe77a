#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# 60-doca.sh - programs written for DOCA use RDMA from one soft-RoCE device to the other. make check runs the same tests over
# shared memory.
. "$top_srcdir/tests/vm/guest.sh"
vm_network
vm_limit=200
export GANTRY_DOCA_CONF=$TMPDIR/doca.conf RDMA_TEST_IBDEV=rxe1 RDMA_TEST_PEER_IBDEV=rxe0

# devices TRANSPORT OPTIONS-OF-ONE OPTIONS-OF-THE-OTHER OPTIONS-OF-BOTH
devices()
{
	cat >"$GANTRY_DOCA_CONF" <<-END
		doca = { functions = "none"; };
		devices = {
			dpu = { transport = "$1"; pci = "03:00.0"; ibdev = "rxe1"; profile = "dpu"; auth = "none"; $2 $4 };
			host = { transport = "$1"; pci = "b1:00.0"; ibdev = "rxe0"; profile = "host"; auth = "none"; $3 $4 };
		};
	END
}

# programs WHAT PROGRAM... - run these programs of tests/doca
programs()
{
	local program
	for program in "${@:2}"; do
		vm_program "$1" "$top_builddir/tests/doca/$program"
	done
}

devices rdma-verbs '' '' 'inline = "1024";'
programs "rdma-verbs" rdma rdma_conns rdma_events rdma_remote rdma_revoke rdma_rules
devices rxe 'netdev = "v1";' 'netdev = "v0";' 'data_qp = "shared";'
programs "rxe, one queue pair" rdma rdma_revoke
vm_done
