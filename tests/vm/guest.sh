# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# guest.sh - functions for scripts that run inside the virtual machine. A script NN-NAME.sh has this form:
#
#	. "$top_srcdir/tests/vm/guest.sh"
#	vm_network
#	relays() { ...; }
#	vm_test "what holds" relays ARGUMENT...
#	vm_program "what it is about" "$top_builddir/tests/conform/PROGRAM"
#	vm_done
#
# Each test is a function that runs in a separate shell under set -e, in a new directory $vm_dir, with a deadline of $vm_limit
# seconds. All processes that it has started end with it. Its output is shown only if it fails; text on descriptor 3 always.
#
# The network: the two ends v0 and v1 of a cable, with a soft-RoCE device rxe0 and rxe1 on each. Only what goes from one device
# to the other travels over the cable. Traffic between two users of one device does not, so netem does not affect it.
vm_limit=60
vm_n=0
vm_failed=0
vm_name=${0##*/} vm_name=${vm_name%.sh}
vm_addresses=([0]=10.99.0.1 [1]=10.99.0.2)
exec 3>&1

# -- tests --

# vm_test WHAT FUNCTION [ARGUMENT...]
vm_test()
{
	local what=$1 pid status log
	shift
	vm_n=$((vm_n + 1))
	vm_dir=$TMPDIR/$vm_name.$vm_n
	log=$vm_dir.log
	rm -rf "$vm_dir" && mkdir -p "$vm_dir"
	set -m
	vm_alone "$@" >"$log" 2>&1 </dev/null &
	pid=$!
	set +m
	timeout "$vm_limit" tail --pid="$pid" -s 0.05 -f /dev/null || echo "no end after $vm_limit s" >>"$log"
	# kills the process group: the test, if it still runs, and the processes that it has left
	kill -KILL -- "-$pid" 2>/dev/null
	wait "$pid" 2>/dev/null
	status=$?
	if [ -s "$vm_dir.skip" ]; then
		echo "ok $vm_n - $what # SKIP $(head -n 1 "$vm_dir.skip")"
	elif [ "$status" -eq 0 ]; then
		echo "ok $vm_n - $what"
	else
		vm_failed=$((vm_failed + 1))
		echo "not ok $vm_n - $what"
		tail -c 8000 "$log" | tail -n 60 | sed 's/^/# /'
		vm_keep "$what"
		netem_clear # in case the test did not reach it
	fi
	rm -rf "$vm_dir" "$log" "$vm_dir.skip"
}

# runs in a separate process
vm_alone()
{
	trap vm_teardown EXIT
	set -eE
	trap 'echo "line $LINENO: status $?: $BASH_COMMAND" >&2' ERR
	"$@"
}

# vm_teardown - called after each test; a script may define its own
vm_teardown()
{
	:
}

# skip REASON - end the calling test as skipped
skip()
{
	echo "$*" >"$vm_dir.skip"
	exit 0
}

# vm_program WHAT PROGRAM [ARGUMENT...] - run a C program by tests/run-unity.sh, and report each of its tests
vm_program()
{
	local what=$1 line
	shift
	if [ ! -x "$1" ]; then
		vm_n=$((vm_n + 1))
		echo "ok $vm_n - $what # SKIP ${1##*/} is not built"
		return
	fi
	while IFS= read -r line; do
		case $line in
		"ok "* | "not ok "*)
			vm_n=$((vm_n + 1))
			[ "${line%% *}" = ok ] || vm_failed=$((vm_failed + 1))
			echo "${line%%ok *}ok $vm_n - $what: ${line#*ok * - }"
			;;
		1..*) ;;
		*) echo "# ${line#\# }" ;;
		esac
	done < <(sh "$top_srcdir/tests/run-unity.sh" timeout -k 5 "$vm_limit" "$@")
}

# vm_keep WHAT - copy the files of a failed test, except large ones, to the host
vm_keep()
{
	local to=$VM_OUT/failed/$vm_name.$vm_n
	mkdir -p "$to"
	cp "$vm_dir.log" "$to/test.log"
	(cd "$vm_dir" && find . -type f -size -4M -exec cp --parents {} "$to" \;)
	echo "# files: failed/$vm_name.$vm_n"
}

# vm_done - print the plan, without which the script counts as failed
vm_done()
{
	echo "1..$vm_n"
	exit $((vm_failed > 0))
}

# await COMMAND... - wait until the command succeeds; the deadline of the test is the limit
await()
{
	until "$@"; do
		read -rt 0.02 <><(:) || :
	done
}

# -- the network --

# vm_network - create the network unless it exists, and undo changes of earlier scripts
vm_network()
{
	if [ ! -e /sys/class/infiniband/rxe1 ]; then
		modprobe -a veth rdma_rxe ib_uverbs rdma_ucm sch_netem &&
			vm_cable >/dev/null && rdma link add rxe0 type rxe netdev v0 && rdma link add rxe1 type rxe netdev v1 &&
			return 0
		echo "Bail out! no soft-RoCE devices"
		exit 1
	fi
	netem_clear
}

vm_cable()
{
	local i
	ip -batch - <<-END || return 1
		link set lo up
		link add v0 mtu 9000 type veth peer name v1 mtu 9000
		addr add ${vm_addresses[0]}/24 dev v0
		addr add ${vm_addresses[1]}/24 dev v1
		link set v0 up
		link set v1 up
	END
	# both ends are on this machine: accept packets from local addresses
	for i in all v0 v1; do
		echo 1 >"/proc/sys/net/ipv4/conf/$i/accept_local"
		echo 0 >"/proc/sys/net/ipv4/conf/$i/rp_filter"
	done
	# soft-RoCE has no flow control: buffers must hold the packets that many lanes have in flight, or packets are lost
	echo 100000 >/proc/sys/net/core/netdev_max_backlog
}

# gid_index DEVICE - print the index of the IPv4 address of its end in the GID table of the device
gid_index()
{
	local file gid
	for file in "/sys/class/infiniband/$1/ports/1/gids"/*; do
		read -r gid <"$file" 2>/dev/null || continue
		[[ $gid != 0000:0000:0000:0000:0000:ffff:* ]] || { echo "${file##*/}"; return; }
	done
	echo "$1 has no GID for IPv4"
	return 1
}

# rdma_count NAME... - print the sum of these hw_counters of both devices
rdma_count()
{
	local name device value sum=0
	for name; do
		for device in rxe0 rxe1; do
			read -r value <"/sys/class/infiniband/$device/ports/1/hw_counters/$name"
			sum=$((sum + value))
		done
	done
	echo "$sum"
}

# rdma_listens ADDRESS:PORT - succeeds if a process listens for RDMA connections at this address
rdma_listens()
{
	rdma resource show cm_id | grep -q "state LISTEN .*src-addr $1 "
}

# tcp_listens PORT - succeeds if a process listens at this port
tcp_listens()
{
	ss -Hltn "sport = :$1" | grep -q .
}

# -- netem: disturbances of the cable, in both directions --

# netem_set WORD... - set netem with the arguments of tc(8)
netem_set()
{
	netem_clear
	tc qdisc add dev v0 root netem limit 100000 "$@"
	tc qdisc add dev v1 root netem limit 100000 "$@"
}

netem_clear()
{
	tc qdisc del dev v0 root 2>/dev/null || :
	tc qdisc del dev v1 root 2>/dev/null || :
}

# netem_dropped - print the packets that netem has dropped since netem_set
netem_dropped()
{
	tc -s qdisc show | sed -n '/qdisc netem/,/dropped/ s/.*(dropped \([0-9]*\),.*/\1/p' | {
		sum=0
		while read -r n; do
			sum=$((sum + n))
		done
		echo "$sum"
	}
}
