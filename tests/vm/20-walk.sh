#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# 20-walk.sh - three processes run verified workloads, and copy an image of a file system, over each leg.
. "$top_srcdir/tests/vm/walk.sh"
vm_network
ops=1000

# verified LEG OPTIONS ARGUMENT... - verified IO: all roles count the same IOs, and no data passes through the gateway
verified()
{
	leg "$1" "$2"
	topology
	serve_all
	load_well --set "roles.load.workload.ops=$ops" "${@:3}"
	stop bridge store
	agree "$(completed load)"
}

# a prefaulted memory volume that the device can register: RDMA moves its data without a bounce buffer
straight()
{
	leg "$1"
	store_backend='type = "memory"; size = "16MiB"; populate = true;'
	topology
	serve_all
	load_well --set "roles.load.workload.ops=$ops" "${@:2}"
	stop bridge store
	agree "$(completed load)"
	holds "$dir/store.json" 'store.sessions_direct == 1'
}

two_initiators()
{
	leg "$1"
	more_roles="load2 = { role = \"initiator\"; connect = { device = \"front${front_far:+_far}\"; $volume_at };
	            workload = { pattern = \"randrw\"; depth = 8; time = \"0s\"; ops = $ops; offset = \"4MiB\"; size = \"1MiB\";
	                         verify = \"stamp\"; }; };"
	topology
	serve_all
	begin load --set "roles.load.workload.ops=$ops"
	begin load2
	finish load
	[ "$status" -eq 0 ]
	finish load2
	[ "$status" -eq 0 ]
	sound "$dir/load.json" load
	sound "$dir/load2.json" load2
	stop bridge store
	agree "$(($(completed load) + $(completed load2)))"
	holds "$dir/bridge.json" 'bridge.sessions_opened == 2'
}

# a file system, created once
image()
{
	[ ! -e "$TMPDIR/in.img" ] || return 0
	mkdir "$TMPDIR/files"
	cp "$GANTRY" "$GANTRY_PLUGINS"/*.so "$top_srcdir"/man/*.[157] "$TMPDIR/files"
	truncate -s 16M "$TMPDIR/new.img"
	mke2fs -q -t ext4 -b 4096 -d "$TMPDIR/files" "$TMPDIR/new.img"
	mv "$TMPDIR/new.img" "$TMPDIR/in.img"
}

copied() # LEG LANES
{
	leg "$1"
	need file
	image
	store_backend="type = \"file\"; path = \"$dir/volume\"; create = true; size = \"16MiB\";"
	topology
	serve_all
	timeout "$vm_limit" "$GANTRY" copy -p "$GANTRY_PLUGINS" -c "$conf" "$TMPDIR/in.img" volume: --set "roles.load.lanes=$2"
	timeout "$vm_limit" "$GANTRY" copy -p "$GANTRY_PLUGINS" -c "$conf" volume: "$dir/out.img" --set "roles.load.lanes=$2"
	stop bridge store
	sum=$(sha256sum <"$TMPDIR/in.img")
	[ "$sum" = "$(sha256sum <"$dir/volume")" ]
	[ "$sum" = "$(sha256sum <"$dir/out.img")" ]
	e2fsck -fn "$dir/out.img"
	holds "$dir/bridge.json" 'front_bytes + back_bytes == 0' 'bridge.ops_failed == 0'
}

# the error that the gateway passes to the initiator if the target may not connect to it
not_connected()
{
	local name
	leg "$1"
	back_device=${back_device%direct_networks*}
	topology
	serve_all
	begin load
	finish load
	cat "$dir"/*.log
	[ "$status" -eq 1 ]
	for name in store bridge load; do
		grep -q "refused.*${vm_addresses[1]}:[0-9]* is not in devices.back.direct_networks\"" "$dir/$name.log"
	done
	stop bridge store
}

# a device that does not exist yet: gantry check reports that and creates nothing, gantry run creates it
made()
{
	local pid at
	leg rxe
	ip link add c0 type veth peer name c1
	ip address add 192.0.2.1/24 dev c0
	ip link set c0 up
	ip link set c1 up
	cat >"$dir/made.conf" <<-'END'
		devices: { nic = { transport = "rxe"; netdev = "c0"; create = true; auth = "none";
		                   services = { disk = "192.0.2.1:0"; }; }; };
		roles: { store = { role = "target"; listen = { device = "nic"; name = "disk"; };
		                   backend = { type = "null"; size = "1MiB"; }; }; };
	END
	"$GANTRY" check -p "$GANTRY_PLUGINS" "$dir/made.conf" >"$dir/made.log" 2>&1
	cat "$dir/made.log"
	grep -q 'gantry run would create it, and not remove it' "$dir/made.log"
	[ ! -e /sys/class/infiniband/rxe_c0 ]
	"$GANTRY" run -v -p "$GANTRY_PLUGINS" "$dir/made.conf" --role store --set "runtime.stat_dir=$dir/stat" \
		>"$dir/made.log" 2>&1 &
	pid=$!
	await test -e /sys/class/infiniband/rxe_c0
	# port 0: the log and the report have the port that was chosen
	await grep -q ' listening ' "$dir/made.log"
	at=$(sed -n 's/.*listening device=nic service=disk address=//p' "$dir/made.log")
	[[ "$at" == 192.0.2.1:[1-9]* ]]
	[ "$("$GANTRY" stat --dir "$dir/stat" --json | jq -r '.. | .store? // empty | .address')" = "$at" ]
	kill -TERM $pid
	wait $pid
	ip link del c0
}

vm_test "rxe: check makes no device, run does" made
vm_legs="rxe rdma-verbs+both" over_legs "three processes, one lane" verified ""
over_legs "four lanes" verified "" --set roles.load.lanes=4
over_legs "blocks of 64 KiB, with flushes" verified "" --set roles.load.workload.block=64KiB \
	--set roles.load.workload.flush_every=50
over_legs "one queue pair for messages and data" verified 'data_qp = "shared";' --set roles.load.lanes=2
over_legs "a volume that the device knows" straight --set roles.load.lanes=2 --set roles.load.workload.flush_every=50
over_legs "two initiators at once" two_initiators
over_legs "the image of a file system, in and out" copied 1
over_legs "the same on four lanes" copied 4
over_legs "a target connects to no address outside direct_networks" not_connected
vm_done
