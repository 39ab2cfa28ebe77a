# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# conform.sh - run the transport conformance suite from one soft-RoCE device to the other. For scripts NN-conform*.sh.
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
