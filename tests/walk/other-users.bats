#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
# The server rejects a client of another user with one log line, while a permitted session continues. Needs root to switch users.

setup() {
	. "$BATS_TEST_DIRNAME/lib.sh"
	other_user_setup
}

teardown() {
	other_user_teardown
}

other_user_load() { # [ARGUMENT...] - an initiator of the other user; sets status
	status=0
	as_other_user timeout "$seconds" "$GANTRY" run -p "$GANTRY_PLUGINS" "$conf" --role load --set runtime.stat=false \
		--set roles.load.connect.timeout=100ms "$@" >"$dir/stranger.json" 2>"$dir/stranger.log" 3>&- || status=$?
}

@test "the directory is closed to others" {
	device_options="dir = \"$open/run\";"
	topology
	serve_all
	other_user_load
	cat "$dir/stranger.log"
	[ "$status" -eq 1 ]
	says stranger 'directory .*(belongs to another user|Permission denied)|cannot connect'
	[ "$(stat -c %a "$open/run")" = 700 ]
	stop bridge store
}

@test "a user that the device accepts and the role rejects: one log line, and the other session continues" {
	device_options="dir = \"$open/run\"; uids = \"0,$nobody\";"
	topology
	serve_all
	begin load --set roles.load.workload.ops=0
	busy load
	other_user_load
	[ "$status" -eq 1 ]
	says stranger 'cannot connect to "volume" on device front: the role rejects this user \(listen.uids\) or is stopping'
	logged bridge "connection refused pid=[0-9]+ uid=$nobody reason="
	[ "$(grep -c "refused" "$dir/bridge.log")" -eq 1 ]
	n=$("$GANTRY" stat --dir "$dir/stat" --json load | jq '.processes[0].roles.load.completed')
	busy load "$((n + 1000))"
	kill -TERM "${pids[load]}"
	finish load
	[ "$status" -eq 3 ]
	once "$dir/load.json" load
	holds "$dir/load.json" 'load.errors == {}' "$(findings load) == 0"
	stop bridge store
	holds "$dir/bridge.json" 'bridge.sessions_refused == 1' 'bridge.sessions_opened == 1'
}

@test "vhost-user-blk rejects huge pages of another user" {
	need vhost-user-blk
	as_other_user test -x "$top_builddir/tests/walk/virtio_user" || skip "another user cannot reach the build"
	device_options="dir = \"$open/run\";"
	more_roles="disk = { role = \"vhost-user-blk\"; socket = \"$open/disk.sock\";
		connect = { device = \"front\"; name = \"volume\"; }; };"
	topology
	serve_all
	serve disk
	chown "$nobody" "$open/disk.sock"
	as_other_user timeout "$seconds" "$top_builddir/tests/walk/virtio_user" "$open/disk.sock" huge >"$dir/guest.out" 2>&1 || {
		cat "$dir/guest.out"
		false
	}
	says disk 'guest memory rejected: huge pages of another user'
	stop disk bridge store
}

@test "each device reports the user that its own uids lacks" {
	device_options="dir = \"$open/run\"; uids = \"0,$nobody\";"
	listen_options="uids = \"0,$nobody\";"
	topology
	serve_all
	other_user_load --set "devices.front.uids=\"$nobody\""
	[ "$status" -eq 1 ]
	says stranger '"volume" on device front: uid 0 of the peer is not in devices.front.uids of this process: add it'
	nobody=65533 other_user_load
	[ "$status" -eq 1 ]
	says stranger 'cannot connect to "volume" on device front: uid 65533 is not in devices.front.uids'
	stop bridge store
}

@test "a listed user is accepted" {
	device_options="dir = \"$open/run\"; uids = \"0,$nobody\";"
	listen_options="uids = \"0,$nobody\";"
	topology
	serve_all
	other_user_load --json
	[ "$status" -eq 0 ] || { cat "$dir"/*.log; return 1; }
	sound "$dir/stranger.json" load
	stop bridge store
}
