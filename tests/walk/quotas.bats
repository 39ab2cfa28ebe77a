#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
# One user takes a bounded part of a listener, so another user can always connect. Needs root, to become another user.

setup() {
	. "$BATS_TEST_DIRNAME/lib.sh"
	knock=$top_builddir/tests/walk/knock
	other_user_setup "$knock"
	device_options="dir = \"$open/run\"; uids = \"0,$nobody\";"
	back_device="transport = \"shm-comch\"; dir = \"$open/back\"; uids = \"0,$nobody\";"
	listen_options="uids = \"0,$nobody\";"
	connect_options='timeout = "20s";'
	as=()
}

teardown() {
	other_user_teardown
}

flood() { # N silent|greet hold|again - by the other user, until the end of the test
	local name=knock${#pids[@]}
	mkfifo "$dir/$name.in"
	: >"$dir/$name.log" # before `logged` opens it
	exec {flood_in}<>"$dir/$name.in"
	as_other_user "$knock" "$open/run/00%3A00.0/volume.sock" "$@" <"$dir/$name.in" >"$dir/$name.log" 3>&- {flood_in}>&- &
	pids[$name]=$!
	logged "$name" ready
}

begin_load() { # NAME [ARGUMENT...] - another initiator, which only reads
	local name=$1
	shift
	: >"$dir/$name.log"
	"${as[@]}" "$GANTRY" run -p "$GANTRY_PLUGINS" "$conf" --role load --json --set runtime.stat=false \
		--set roles.load.workload.pattern=randread --set roles.load.workload.verify=none "$@" \
		>"$dir/$name.json" 2>>"$dir/$name.log" 3>&- &
	pids[$name]=$!
}

other_user_begin() { # NAME [ARGUMENT...] - the same, of the other user
	local as=(setpriv --reuid="$nobody" --regid="$nobody" --clear-groups)
	begin_load "$@"
}

three_times() { # root opens the volume and does IO, three times of three
	for _ in 1 2 3; do
		load_well --set roles.load.workload.ops=500
	done
}

@test "200 connections of one user without a frame: another user gets in, 3 of 3" {
	topology
	serve_all
	flood 200 silent again
	three_times
}

@test "200 connections of one user without a session: another user gets in, 3 of 3" {
	topology
	serve_all
	flood 200 greet again
	three_times
}

@test "a user has used up its half-open connections: it gets the reason, another user is accepted" {
	topology
	serve_all
	flood 200 greet hold
	other_user_begin other --set roles.load.connect.timeout=100ms
	finish other
	[ "$status" -eq 1 ]
	says other "cannot connect to .*: busy: listen.max_half_open=64 reached by uid $nobody: raise it or close connections"
	live bridge ".roles.bridge.peers | any(.peer == \"uid $nobody\" and .half_open == 64 and .sessions == 0)"
	three_times
	says bridge "connection refused pid=[0-9]+ peer=\"uid $nobody\" reason=\"busy: listen.max_half_open=64 reached"
}

@test "one user takes all sessions that it can have: another one gets in" {
	topology
	serve store
	serve bridge --set roles.bridge.listen.max_sessions=4
	for i in 1 2 3; do
		other_user_begin "other$i" --set roles.load.workload.ops=0
	done
	until_true live bridge ".roles.bridge.peers | any(.peer == \"uid $nobody\" and .sessions == 3)"
	other_user_begin other --set roles.load.connect.timeout=100ms
	finish other
	[ "$status" -eq 1 ]
	says other "refused at hello: busy: listen.max_peer_sessions=3 reached by uid $nobody: raise it or close connections"
	three_times
	begin_load first --set roles.load.workload.ops=0
	until_true live bridge '.roles.bridge.peers | any(.peer == "uid 0" and .sessions == 1)'
	begin_load second --set roles.load.connect.timeout=100ms
	finish second
	[ "$status" -eq 1 ]
	says second 'refused at hello: busy: listen.max_sessions=4 reached by all peers together: raise it or close connections'
}

@test "a user that is busy gets in when a session of it ends" {
	topology
	serve store
	serve bridge --set roles.bridge.listen.max_sessions=2
	other_user_begin first --set roles.load.workload.ops=0
	until_true live bridge ".roles.bridge.peers | any(.peer == \"uid $nobody\" and .sessions == 1)"
	other_user_begin second --set roles.load.workload.ops=500
	until_true refused_some
	kill -TERM "${pids[first]}"
	finish first
	finish second
	[ "$status" -eq 0 ] || { cat "$dir/second.log"; return 1; }
}

refused_some() { # the bridge has turned a session away
	live bridge 'bridge.sessions_refused > 0'
}

@test "region bytes of one user are bounded, another one works" {
	topology
	serve store
	serve bridge --set roles.bridge.listen.max_peer_region_bytes=20MiB
	other_user_begin first --set roles.load.workload.ops=0 --set roles.load.workload.block=1MiB
	until_true live bridge ".roles.bridge.peers | any(.peer == \"uid $nobody\" and .region_bytes >= 16777216)"
	other_user_begin second --set roles.load.workload.block=1MiB
	finish second
	[ "$status" -eq 1 ]
	says second "refused at export: busy: listen.max_peer_region_bytes=20971520 reached by uid $nobody .used=[0-9]+, asked="
	load_well --set roles.load.workload.ops=500 --set roles.load.workload.block=1MiB
}

@test "queue memory of one user is bounded, another one works" {
	topology
	serve store
	serve bridge --set roles.bridge.listen.max_peer_queue_memory=64KiB
	other_user_begin other --set roles.load.lanes=4 --set roles.load.workload.depth=128
	finish other
	[ "$status" -eq 1 ]
	says other "refused at queues: listen.max_peer_queue_memory=65536 exceeded by uid $nobody .used=0, asked="
	three_times
}

@test "a user that opens and closes sessions in a loop: another one works throughout" {
	topology
	serve_all
	flood 100 greet again
	for _ in 1 2 3; do
		other_user_begin other --set roles.load.workload.ops=1 --set roles.load.connect.timeout=100ms
		load_well --set roles.load.workload.ops=500
		finish other
	done
	stop bridge store
}
