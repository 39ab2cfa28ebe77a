#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# nvme-guest.sh - the backend file on a device of NVMe over Fabrics that the kernel reaches by two paths, as gantry-file(7)
# describes: one path is lost, all paths are lost, the device is removed, another namespace takes its place. nvme.sh boots it.
#
# The kernel is the client and the server. The server has its ports in a network namespace, behind two cables; a file is its
# namespace. The commands of the manual page connect the client.
. "$top_srcdir/tests/vm/walk.sh"
vm_limit=200
portal=gantry-portal
addresses=(192.0.2.1 198.51.100.1) # in the commands of the page
nqn=nqn.2026-11.org.example:volume0
uuid=7d3c8a52-0f64-4c1e-9b1d-5a2f60c7e811
other_uuid=0b6b1f3e-64a7-4f0c-8c52-1f2a9e0d4c22
nvmet=/sys/kernel/config/nvmet
subsystem=$nvmet/subsystems/$nqn

# -- the server --

# in_portal COMMAND... - run the command in the network namespace of the ports
in_portal()
{
	nsenter --net="/run/netns/$portal" "$@"
}

cables()
{
	local i
	ip netns add $portal
	for i in 0 1; do
		ip link add path$i type veth peer name path$i netns $portal
		ip addr add "${addresses[i]%.1}.2/24" dev path$i
		ip link set path$i up
		in_portal ip addr add "${addresses[i]}/24" dev path$i
		in_portal ip link set path$i up
	done
}

# namespace FILE UUID - make the file the namespace 1
namespace()
{
	truncate -s 16M "$1"
	mkdir "$subsystem/namespaces/1"
	echo "$1" >"$subsystem/namespaces/1/device_path"
	echo 1 >"$subsystem/namespaces/1/buffered_io"
	echo "$2" >"$subsystem/namespaces/1/device_uuid"
	echo 1 >"$subsystem/namespaces/1/enable"
}

no_namespace()
{
	echo 0 >"$subsystem/namespaces/1/enable"
	rmdir "$subsystem/namespaces/1"
}

server()
{
	local i
	modprobe -a nvmet-tcp nvme-tcp veth || skip "the kernel has no NVMe over TCP"
	[ "$(cat /sys/module/nvme_core/parameters/multipath)" = Y ] || skip "the kernel has no native multipath"
	command -v nvme >/dev/null || skip "nvme is not installed (Debian: nvme-cli)"
	mountpoint -q /sys/kernel/config || mount -t configfs none /sys/kernel/config
	[ -s /etc/nvme/hostnqn ] || { mkdir -p /etc/nvme && nvme gen-hostnqn >/etc/nvme/hostnqn; }
	cables
	mkdir "$subsystem"
	echo 1 >"$subsystem/attr_allow_any_host"
	namespace "$dir/disk" $uuid
	for i in 0 1; do
		mkdir $nvmet/ports/$i
		echo tcp >$nvmet/ports/$i/addr_trtype
		echo ipv4 >$nvmet/ports/$i/addr_adrfam
		echo "${addresses[i]}" >$nvmet/ports/$i/addr_traddr
		echo 4420 >$nvmet/ports/$i/addr_trsvcid
		port_up $i
	done
}

# The server closes the connections of a port that goes down, and refuses new ones. A cable that is cut loses each packet.
port_up() { in_portal ln -s "$subsystem" "$nvmet/ports/$1/subsystems/$nqn"; }
port_down() { rm "$nvmet/ports/$1/subsystems/$nqn"; }
cable_up() { in_portal ip link set "path$1" up; }
cable_down() { in_portal ip link set "path$1" down; }

vm_teardown()
{
	[ -z "${conf:-}" ] || walk_teardown
	{
		nvme disconnect -n $nqn
		rm $nvmet/ports/*/subsystems/*
		rmdir $nvmet/ports/*
		no_namespace
		rmdir "$subsystem"
		ip netns del $portal
	} >/dev/null 2>&1 || :
}

# -- the client --

# commands NAME - print the commands of the page after the mark NAME
commands()
{
	sed -n "/^\\.\\\\\" run $1\$/,/^\\.Ed/{/^\\./d; s/^# //; s/\\\\e\$/\\\\/; p}" "$top_srcdir/man/gantry-file.7"
}

# connect [OPTION] - connect both paths by the commands of the page, with a further option of nvme connect
connect()
{
	eval "$(commands nvme-connect | sed "s/^nvme connect /&${1:-} /")"
	back
	until_true found $uuid
	set_times reconnect_delay 1 # saves time
}

controller() # PATH - print its directory in sysfs
{
	grep -l "traddr=${addresses[$1]}," /sys/class/nvme/nvme*/address 2>/dev/null | sed 's,/address,,'
}

# state PATH STATE - whether the controller of the path is in this state
state()
{
	[ "$(cat "$(controller "$1")/state" 2>/dev/null)" = "$2" ]
}

lost() { ! state "$1" live; }

both() # FUNCTION
{
	"$1" 0
	"$1" 1
}

# back - wait until both paths are live
back()
{
	until_true state 0 live
	until_true state 1 live
}

# down - take both ports down, and wait until the kernel has lost both paths
down()
{
	both port_down
	until_true lost 0
	until_true lost 1
}

set_times() # FILE VALUE... - set times of both controllers
{
	local i
	while [ $# -gt 0 ]; do
		for i in 0 1; do
			echo "$2" >"$(controller $i)/$1"
		done
		shift 2
	done
}

# found UUID - set disk to the device of the namespace, and make the link that udev makes
found()
{
	local wwid
	for wwid in /sys/block/nvme*/wwid; do
		[ "$(cat "$wwid" 2>/dev/null)" = "uuid.$1" ] || continue
		disk=${wwid#/sys/block/} disk=/dev/${disk%%/*}
		[ -b "$disk" ] || continue # a path
		mkdir -p /dev/disk/by-id
		ln -sfn "$disk" "/dev/disk/by-id/nvme-uuid.$1"
		return 0
	done
	return 1
}

# gone - no device of the first namespace is left
gone()
{
	! grep -qsx "uuid.$uuid" /sys/block/nvme*/wwid
}

# -- the volume --

# served [OPTIONS] - serve the device by its link, with these options of the backend
served()
{
	leg shm-comch
	need file
	server
	connect "${nvme_option:-}"
	runtime_options="$runtime_options stop_limit = \"2s\";"
	store_backend="type = \"file\"; path = \"/dev/disk/by-id/nvme-uuid.$uuid\"; ${1:-}"
	load_connect="{ device = \"back\"; $store_at $connect_options }"
	topology
	serve store
	live store '.roles.store.backend.engine == "uring" and .roles.store.backend.direct'
}

endless() # ARGUMENT... - start a verified load without an end
{
	begin load --set roles.load.workload.ops=0 "$@"
	busy load 100
}

more() # N - wait until the load has completed N more IOs
{
	local before
	before=$("$GANTRY" stat --dir "$dir/stat" --json load | jq '.processes[0].roles.load.completed')
	busy load $((before + $1))
}

# ended FILTER... - stop the load, which found no wrong data, and whose report satisfies each filter
ended()
{
	kill -TERM "${pids[load]}"
	finish load
	[ "$status" -eq 3 ]
	once "$dir/load.json" load
	holds "$dir/load.json" "$(findings load) == 0" 'load.quarantined == 0' "$@"
}

# passes - a new session writes and reads
passes()
{
	load_well --set roles.load.workload.ops=300
}

# fails STATUS - a new session opens, and each IO ends with this status
fails()
{
	begin load --set roles.load.workload.ops=20 --set roles.load.continue_on_error=true
	finish load
	once "$dir/load.json" load
	holds "$dir/load.json" "load.errors == { \"$1\": load.completed }"
}

# stable STATUS - a write with FUA ends with this status
stable()
{
	begin load --set roles.load.workload.pattern=write --set roles.load.workload.fua=true --set roles.load.workload.ops=1 \
		--set roles.load.workload.depth=1
	finish load
	[ "$status" -eq 1 ]
	holds "$dir/load.json" "load.errors == { \"$1\": 1 }"
}

# refused - the target refuses a new session, because the device has no block left
refused()
{
	begin load
	finish load
	[ "$status" -eq 1 ]
	says load 'session not started .*: its size is 0'
}

# stopped NAME - stop the target; $dir/NAME has UUID and verifier of its volume
stopped()
{
	stop store
	jq -r '.roles.store.volume | .uuid, .verifier' "$dir/store.json" >"$dir/$1"
}

# same LINE - whether UUID (1) or verifier (2) are those of the volume before
same()
{
	[ "$(sed -n "$1p" "$dir/before")" = "$(sed -n "$1p" "$dir/after")" ]
}

# -- tests --

one_path()
{
	local i
	served
	endless --set roles.load.workload.flush_every=20
	for i in 0 1; do
		port_down $i
		until_true lost $i
		more 300
		port_up $i
		until_true state $i live
		more 300
	done
	ended 'load.errors == {}' 'load.verify.checked > 100'
	stop store
	holds "$dir/store.json" 'store.ops_failed == 0' '.roles.store.backend.error_ops == 0'
}

cut_path()
{
	nvme_option=--keep-alive-tmo=1
	served
	endless --set roles.load.workload.flush_every=20 --set roles.load.workload.deadline=120s
	cable_down 1
	until_true lost 1
	more 300
	cable_up 1
	until_true state 1 live
	more 300
	ended 'load.errors == {}' 'load.verify.checked > 100'
	stop store
}

all_paths()
{
	served
	set_times fast_io_fail_tmo 1
	endless --set roles.load.continue_on_error=true
	both port_down
	until_true live load '.roles.load.errors.IO > 10'
	ended 'load.errors | keys == ["IO"]'
	fails IO
	both port_up
	back
	passes
	stop store
	holds "$dir/store.json" '.roles.store.backend.failed == false' 'store.sessions_lost == 0'
}

failed_flush()
{
	served
	passes
	set_times fast_io_fail_tmo 1
	down
	stable IO
	logged store 'sync failed: .*; read-only until restart'
	both port_up
	back
	stable READ_ONLY
	stopped before
	serve store
	passes
	stopped after
	same 1
}

removed()
{
	served
	set_times fast_io_fail_tmo 1 ctrl_loss_tmo 2
	endless --set roles.load.continue_on_error=true
	both port_down
	until_true gone
	more 100
	logged store 'sessions keep their size of 16777216 bytes: the new size of 0 bytes'
	ended 'load.errors | keys - ["IO", "NOSPC"] == []' '([load.errors[]] | add) > 100'
	refused
	both port_up
	connect
	refused
	stopped before
	serve store
	passes
	stopped after
	same 1
	! same 2
}

replaced()
{
	local i
	served
	passes
	down
	no_namespace
	namespace "$dir/other" $other_uuid
	both port_up
	back
	until_true gone
	refused
	for i in 0 1; do
		nvme ns-rescan "/dev/$(basename "$(controller $i)")"
	done
	until_true found $other_uuid
	refused
	stopped before
	cmp -n 16777216 "$dir/other" /dev/zero
	store_backend="type = \"file\"; path = \"/dev/disk/by-id/nvme-uuid.$other_uuid\";"
	topology
	serve store
	passes
	stopped after
	! same 1
}

# unbounded - serve the device while no path is left, and neither fast_io_fail_tmo nor ctrl_loss_tmo ends the IOs of a load
unbounded()
{
	served
	set_times fast_io_fail_tmo -1
	begin load --set roles.load.workload.ops=0 --set roles.load.continue_on_error=true --set roles.load.workload.deadline=5s
	busy load 100
	both port_down
	finish load
	[ "$status" -eq 1 ]
	holds "$dir/load.json" 'load.errors == { "TIMEOUT": 16 }'
	live store '.roles.store.backend.held_ops == 16'
}

waits()
{
	unbounded
	both port_up
	back
	until_true live store '.roles.store.backend.held_ops == 0'
	passes
	stop store
}

ended_early()
{
	unbounded
	kill -TERM "${pids[store]}"
	finish store
	[ "$status" -eq 1 ]
	says store 'IOs held|holds'
	begin store
	finish store
	[ "$status" -eq 1 ]
	says store 'in use by another process'
	begin store --set roles.store.backend.lock_wait=100s
	both port_up
	logged store ' listening '
	passes
	stop store
}

# traced OPTIONS - write the commands that the server gets for ten writes with FUA, and for writes with flushes, to $dir/trace
traced()
{
	local tracing=/sys/kernel/tracing
	mountpoint -q $tracing || mount -t tracefs none $tracing
	served "$1"
	echo 1 >$tracing/events/nvmet/nvmet_req_init/enable
	load_well --set roles.load.workload.pattern=write --set roles.load.workload.ops=10 --set roles.load.workload.fua=true
	load_well --set roles.load.workload.pattern=write --set roles.load.workload.ops=20 --set roles.load.workload.flush_every=5
	echo 0 >$tracing/events/nvmet/nvmet_req_init/enable
	cp $tracing/trace "$dir/trace"
	: >$tracing/trace
	stop store
	grep -q 'cmd=(nvme_cmd_write,' "$dir/trace"
}

flushes()
{
	traced ''
	[ "$(grep -c 'cmd=(nvme_cmd_write, .*ctrl=0x4000' "$dir/trace")" -eq 10 ]
	grep -q 'cmd=(nvme_cmd_flush' "$dir/trace"
}

no_flushes()
{
	traced 'fsync = false;'
	! grep 'nvme_cmd_flush\|ctrl=0x4000' "$dir/trace"
}

overwritten()
{
	served
	endless
	port_down 0
	until_true lost 0
	dd if=/dev/urandom of="$dir/disk" bs=64k count=16 conv=notrunc status=none
	more 300
	kill -TERM "${pids[load]}"
	finish load
	[ "$status" -eq 1 ]
	holds "$dir/load.json" "$(findings load) > 0" 'load.errors == {}'
	stop store
}

vm_test "one path is lost and comes back, then the other" one_path
vm_test "a path is cut: the keepalive detects it" cut_path
vm_test "all paths are lost: IO fails, and new sessions work when they are back" all_paths
vm_test "a write with FUA fails while all paths are lost: read-only until restart" failed_flush
vm_test "the device is removed: the target refuses sessions until it is restarted" removed
vm_test "another namespace takes the place of the first: the device is removed" replaced
vm_test "IO waits without bound: clients time out, the target answers" waits
vm_test "a target ends while IO waits: the kernel keeps the device in use" ended_early
vm_test "flush and FUA reach the server" flushes
vm_test "seeded bug: a target that ignores flush and FUA sends none" no_flushes
vm_test "seeded bug: the namespace is overwritten while a path is lost" overwritten
vm_done
