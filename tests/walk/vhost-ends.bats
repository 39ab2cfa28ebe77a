#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
# A disk of vhost-user-blk whose guest, role, target or gateway ends or stalls while the guest uses it.

setup() {
	bats_require_minimum_version 1.5.0
	. "$BATS_TEST_DIRNAME/lib.sh"
	. "$BATS_TEST_DIRNAME/vhost-lib.sh"
	vhost_setup
}

teardown() {
	walk_teardown
}

@test "a guest that is killed leaves nothing" {
	serve_disk
	mark store bridge disk
	"$program" "$disk" run "$dir/end" 3>&- &
	pids[guest]=$!
	until_true live disk '.roles.disk.counters.guest_requests_ops > 300'
	slay guest
	clean store bridge disk
	guest verify
	ended
}

peers_killed() {
	need file
	truncate -s 16M "$dir/volume"
	store_backend="type = \"file\"; path = \"$dir/volume\"; direct = false; lock_wait = \"30s\";"
	connect_options='resume = "30s";'
	serve_disk
	"$program" "$disk" run "$dir/end" >"$dir/guest.out" 2>&1 3>&- &
	pids[guest]=$!
	until_true live disk '.roles.disk.counters.guest_requests_ops > 100'
	slay bridge
	serve bridge
	logged disk 'session resumed.*epoch=2'
	until_true live disk '.roles.disk.counters.guest_requests_ops > 500'
	slay store
	serve store
	logged disk 'session resumed.*epoch=3'
	: >"$dir/end"
	finish guest
	cat "$dir/guest.out"
	[ "$status" -eq 0 ]
	stop disk bridge store
}

@test "target and gateway are killed and started again: IO of the guest pauses, without errors" {
	peers_killed
}

@test "event index: target and gateway are killed and started again: IO of the guest pauses, without errors" {
	event_index peers_killed
}

@test "packed ring: target and gateway are killed and started again: IO of the guest pauses, without errors" {
	packed peers_killed
}

survives() { # COMMAND - end the role five times by COMMAND while requests are in flight, and start it again
	store_stages='{ type = "fault"; delay = "20ms"; delay_nth = 3; }'
	need fault
	serve_disk
	"$program" "$disk" survive "$dir/end" >"$dir/guest.out" 2>&1 3>&- &
	pids[guest]=$!
	for _ in 1 2 3 4 5; do
		until_true live disk '.roles.disk.counters.guest_requests_ops > 60' || { cat "$dir/guest.out"; return 1; }
		"$1" disk
		begin disk
		logged disk " front end connected" || { cat "$dir/guest.out"; return 1; }
	done
	: >"$dir/end"
	finish guest
	cat "$dir/guest.out"
	[ "$status" -eq 0 ]
	grep -q ' [1-9][0-9]* writes of zeroes, 6 devices$' "$dir/guest.out"
	stop disk bridge store
}

@test "the role is killed and started again: requests in flight are answered once" {
	survives slay
}

@test "event index: the role is killed and started again: requests in flight are answered once" {
	event_index survives slay
}

@test "packed ring: the role is killed and started again: requests in flight are answered once" {
	packed survives slay
}

@test "packed ring, event index: the role is killed and started again: requests in flight are answered once" {
	packed event_index survives slay
}

@test "memory that is not sealed is copied: target and gateway are killed and started again" {
	copies peers_killed
}

@test "memory that is not sealed is copied: the role is killed and started again" {
	copies survives slay
}

@test "the role is stopped and started again: requests in flight are answered once" {
	survives stop
}

@test "event index: the role is stopped and started again: requests in flight are answered once" {
	event_index survives stop
}

@test "packed ring: the role is stopped and started again: requests in flight are answered once" {
	packed survives stop
}

@test "packed ring, event index: the role is stopped and started again: requests in flight are answered once" {
	packed event_index survives stop
}

lost_writes() {
	need file
	truncate -s 16M "$dir/volume"
	store_backend="type = \"file\"; path = \"$dir/volume\"; direct = false;"
	serve_disk
	if grep -q 'cannot store a UUID' "$dir/store.log"; then skip "no user attributes in $dir"; fi
	"$program" "$disk" lost-writes "$dir/begun" >"$dir/guest.out" 2>&1 3>&- &
	pids[guest]=$!
	until_true test -e "$dir/begun"
	stop disk bridge store
	# a copy with the attributes is the same volume with another verifier
	cp --preserve=xattr "$dir/volume" "$dir/copy"
	mv "$dir/copy" "$dir/volume"
	serve_all
	begin disk
	finish guest
	cat "$dir/guest.out"
	[ "$status" -eq 0 ]
	stop disk bridge store
}

@test "the role is started again, and the target may have lost writes: the next flush fails" {
	lost_writes
}

@test "packed ring: the role is started again, and the target may have lost writes: the next flush fails" {
	packed lost_writes
}

away() { # COMMAND - a front end executes it; end all roles meanwhile
	need file
	truncate -s 16M "$dir/volume"
	store_backend="type = \"file\"; path = \"$dir/volume\"; direct = false; block = \"512\";"
	serve_disk
	"$program" "$disk" "$1" "$dir/begun" >"$dir/guest.out" 2>&1 3>&- &
	pids[guest]=$!
	until_true test -e "$dir/begun"
	stop disk bridge store
}

@test "the role is started again, and the volume has grown: it reports the size until the front end reads it" {
	away new-size
	truncate -s 32M "$dir/volume"
	serve_all
	begin disk
	finish guest
	cat "$dir/guest.out"
	[ "$status" -eq 0 ]
	stop disk bridge store
}

@test "the role is started again, and the disk has another block size: no queue starts" {
	away lost-writes
	serve store --set roles.store.backend.block=4096
	serve bridge
	begin disk
	finish guest
	[ "$status" -ne 0 ]
	says disk 'front end: the guest knows the disk with another block size, or with other limits: restore the volume'
	stop disk bridge store
}

@test "a role that is stopped keeps its socket until it has returned all requests" {
	store_stages='{ type = "fault"; delay = "3s"; delay_nth = 1; }'
	need fault
	serve_disk
	"$program" "$disk" drain "$dir/begun" >"$dir/guest.out" 2>&1 3>&- &
	pids[guest]=$!
	until_true test -e "$dir/begun"
	kill -TERM "${pids[disk]}"
	run timeout "$seconds" "$GANTRY" run -p "$GANTRY_PLUGINS" "$conf" --role disk 3>&-
	[ "$status" -eq 1 ]
	[[ "$output" = *"cannot listen"*"Address already in use"* ]]
	finish guest
	cat "$dir/guest.out"
	[ "$status" -eq 0 ]
	finish disk
	[ "$status" -eq 0 ]
	[ ! -e "$disk" ]
	stop bridge store
}

@test "a stage that loses a request ends the role" {
	need fault
	disk_options='stages = ( { type = "fault"; error = "session_lost"; error_nth = 40; } );'
	serve_disk
	"$program" "$disk" many "$dir/end" >"$dir/guest.out" 2>&1 3>&- &
	pids[guest]=$!
	finish disk
	[ "$status" -eq 1 ]
	says disk 'request lost, although the session runs'
	finish guest
	[ "$status" -eq 0 ]
	stop bridge store
}

stalled() { # LEG - the role connects to the target over this device
	disk_options='drain_timeout = "300ms";'
	connect_options='resume = "60s"; heartbeat = "20s";'
	store_stages='{ type = "fault"; delay = "100ms"; delay_nth = 3; }'
	need fault
	machine
	more_roles=${more_roles/device = \"front\"; name = \"volume\"/device = \"back\"; name = \"store\"}
	topology
	serve store
	begin disk
	logged disk ' listening \(socket'
	guest stall "${pids[store]}"
	cat "$dir/guest.out"
}

@test "a target that is stopped does not delay answers to the front end" {
	tcp back
	stalled
	says disk 'requests in flight are not completed in time \(drain_timeout=300 ms\): they are submitted again'
	says disk 'session resumed'
	stop disk store
}

@test "event index: a target that is stopped does not delay answers to the front end" {
	tcp back
	event_index stalled
	stop disk store
}

@test "packed ring: a target that is stopped does not delay answers to the front end" {
	tcp back
	packed stalled
	stop disk store
}

@test "a queue whose request was lost does not stop: the connection ends" {
	need fault
	disk_options='stages = ( { type = "fault"; error = "session_lost"; error_nth = 1; } );'
	serve_disk
	"$program" "$disk" lost-request
	finish disk
	[ "$status" -eq 1 ]
	stop bridge store
}
