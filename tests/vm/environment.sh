#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# environment.sh - checks the soft-RoCE devices with third-party programs, in the same boot as all other scripts, and before them.
# A failure here means that the environment is broken, not gantry.
. "$top_srcdir/tests/vm/guest.sh"
vm_network

need_tool() # PROGRAM PACKAGE
{
	command -v "$1" >/dev/null || skip "$1 is not installed (Debian: $2)"
}

# travels COMMAND... - the command succeeds, and its packets pass the cable
travels()
{
	local before
	before=$(cat /sys/class/net/v0/statistics/tx_packets)
	"$@"
	[ $(($(cat /sys/class/net/v0/statistics/tx_packets) - before)) -ge 5 ]
}

active()
{
	local device
	for device in rxe0 rxe1; do
		grep -q ACTIVE "/sys/class/infiniband/$device/ports/1/state"
		gid_index "$device"
	done
}

# ping COUNT - send from rxe1 to rxe0 and back, by the connection manager, and compare the data
ping()
{
	need_tool rping rdmacm-utils
	rping -s -a "${vm_addresses[0]}" -C "$1" >"$vm_dir/server" 2>&1 &
	await rdma_listens "${vm_addresses[0]}:7174"
	rping -c -I "${vm_addresses[1]}" -a "${vm_addresses[0]}" -C "$1" -V
	wait $!
}

# perf PROGRAM ARGUMENT... - run a program of perftest at both ends, connected over TCP
perf()
{
	need_tool "$1" perftest
	"$1" -d rxe0 -x "$(gid_index rxe0)" "${@:2}" >"$vm_dir/server" 2>&1 &
	await tcp_listens 18515
	"$1" -d rxe1 -x "$(gid_index rxe1)" "${@:2}" 127.0.0.1
	wait $!
}

# lossy COMMAND... - the command succeeds while packets are lost, and some are lost
lossy()
{
	local before
	before=$(rdma_count completer_retry_err out_of_seq_request)
	netem_set loss 2%
	"$@"
	[ "$(netem_dropped)" -gt 0 ] || { echo "netem has dropped nothing"; return 1; }
	[ "$(rdma_count completer_retry_err out_of_seq_request)" -gt "$before" ] || { echo "nothing was sent again"; return 1; }
	netem_clear
}

vm_test "two devices, active, with an address" active
vm_test "rping over the cable" travels ping 10
vm_test "ib_send_lat over the cable" travels perf ib_send_lat -n 100
vm_test "ib_write_bw over the cable" travels perf ib_write_bw -n 100 -s 65536
vm_test "ib_read_lat over the cable" travels perf ib_read_lat -n 100
vm_test "ib_write_bw survives loss, and the loss is real" lossy perf ib_write_bw -n 50 -s 65536
vm_done
