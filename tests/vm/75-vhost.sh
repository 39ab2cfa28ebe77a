#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# 75-vhost.sh - the disk of a virtual machine over RDMA: a front end of tests/walk takes the place of QEMU. The device registers the
# whole memory of the guest, and moves data between it and the target.
. "$top_srcdir/tests/vm/walk.sh"
vm_network
vm_limit=240
seconds=100
program=$top_builddir/tests/walk/virtio_user

disk_over() # LEG - all roles, a process for each
{
	leg "$1"
	need vhost-user-blk file
	disk=$dir/disk.sock
	truncate -s 16M "$dir/volume"
	store_backend="type = \"file\"; path = \"$dir/volume\"; direct = false; lock_wait = \"60s\";"
	connect_options="$connect_options resume = \"90s\";"
	more_roles="disk = { role = \"vhost-user-blk\"; socket = \"$disk\"; depth = 16;
		connect = { device = \"front${front_far:+_far}\"; $volume_at $connect_options }; };"
	topology
	serve_all
	begin disk
	logged disk ' listening \(socket'
}

guest() # COMMAND [ARGUMENT]
{
	timeout "$seconds" "$program" "$disk" "$@" >"$dir/guest.out" 2>&1 || { cat "$dir/guest.out"; return 1; }
}

writer() # start a front end that writes and verifies until the file `end` exists
{
	"$program" "$disk" "$1" "$dir/end" >"$dir/guest.out" 2>&1 3>&- &
	pids[guest]=$!
	until_true live disk '.roles.disk.counters.guest_requests_ops > 100'
}

writer_ends()
{
	: >"$dir/end"
	finish guest
	cat "$dir/guest.out"
	[ "$status" -eq 0 ]
}

verified()
{
	disk_over "$1"
	guest verify
	guest zeroes
	stop disk bridge store
	holds "$dir/store.json" 'store.sessions_lost == 0' 'store.ops_failed == 0'
	holds "$dir/bridge.json" 'bridge.sessions_lost == 0' 'front_bytes + back_bytes == 0'
	holds "$dir/disk.json" '.roles.disk.counters.guest_lists_ops > 100' '.roles.disk.counters.guest_bounced_ops == 0'
	nothing_left
}

replaced()
{
	disk_over "$1"
	mark store bridge disk
	guest replace
	clean store bridge disk
	stop disk bridge store
}

servers_killed()
{
	disk_over "$1"
	writer run
	slay bridge
	serve bridge
	logged disk 'session resumed.*epoch=2'
	until_true live disk '.roles.disk.counters.guest_requests_ops > 300'
	slay store
	serve store
	logged disk 'session resumed.*epoch=3'
	writer_ends
	stop disk bridge store
}

role_killed()
{
	store_stages='{ type = "fault"; delay = "20ms"; delay_nth = 3; }'
	disk_over "$1"
	need fault
	writer survive
	for _ in 1 2; do
		slay disk
		begin disk
		logged disk ' front end connected'
		until_true live disk '.roles.disk.counters.guest_requests_ops > 60'
	done
	writer_ends
	stop disk bridge store
}

over_legs "reads, writes, discards and writes of zeroes, past the gateway" verified
over_legs "the guest memory is replaced while the queue runs" replaced
over_legs "target and gateway are killed and started again" servers_killed
over_legs "the role is killed and started again" role_killed
vm_done
