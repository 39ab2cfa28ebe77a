#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# 36-kernel-tls.sh - sockets of which the kernel encrypts what they send: streams, the conformance suite of TCP, three processes.
. "$top_srcdir/tests/vm/guest.sh"
modprobe tls || { echo "1..0 # SKIP the kernel has no TLS"; exit 0; }
vm_limit=200
export GANTRY_KERNEL_TLS=real RIG_A_SETTINGS=kernel_tls=true RIG_B_SETTINGS=kernel_tls=true RIG_PATIENCE_MS=30000

# three processes; the kernel encrypts on both legs, as a report says
walk()
{
	grep -qw tls /proc/sys/net/ipv4/tcp_available_ulp
	bats --tap --filter '^kernel TLS' "$top_srcdir/tests/walk/tcp-auth.bats"
}

vm_program "streams" "$top_builddir/tests/unit/secure/kernel_tls"
vm_program "tcp" "$top_builddir/tests/conform/tcp_secure"
vm_test "three processes" walk
vm_done
