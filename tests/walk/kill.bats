#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
# A role is killed with verified writes in flight: the other roles detect it at once, every IO completes once, new sessions work.
# over-tcp.sh runs these tests over TCP.

setup() {
	. "$BATS_TEST_DIRNAME/lib.sh"
	walk_setup
	processes
	topology
}

teardown() {
	walk_teardown
}

@test "the initiator is killed" {
	serve_all
	mark store bridge
	hammer
	slay load
	within bridge 'session lost' "$died" 1000
	within store 'session (lost|ended)' "$died" 1000
	clean store bridge
	load_well
	clean store bridge
	stop bridge store
	nothing_left
	holds "$dir/bridge.json" 'bridge.sessions_lost == 1 and bridge.sessions_opened == 2 and bridge.double_completions == 0'
}

@test "the initiator is killed while stages hold its IO for an hour: no role waits for the IO" {
	need fault
	bridge_stages='{ type = "fault"; delay = "1h"; delay_rate = "50%"; }'
	store_stages='{ type = "fault"; delay = "1h"; delay_rate = "100%"; }'
	topology
	serve_all
	mark store bridge
	begin load
	logged load 'session started'
	until_true live bridge '.roles.bridge.stages[0].delayed_ops > 0'
	until_true live store '.roles.store.stages[0].delayed_ops > 0'
	slay load
	within bridge 'session lost' "$died" 1000
	clean store bridge
	stop bridge store
	nothing_left
}

@test "the gateway is killed" {
	serve_all
	mark store
	hammer
	slay bridge
	within store 'session lost' "$died" 1000
	within load 'session lost' "$died" 1000
	load_lost
	clean store
	serve bridge
	load_well
	clean store
	stop bridge store
	nothing_left
	holds "$dir/store.json" 'store.sessions_lost == 1 and store.sessions_opened == 2 and store.double_completions == 0'
}

@test "the gateway is killed and comes again: the initiator resumes, and nothing is lost" {
	connect_options='resume = "60s";'
	topology
	serve_all
	mark store
	hammer
	slay bridge
	serve bridge
	logged load 'session resumed .*epoch=[2-9]'
	done=$("$GANTRY" stat --dir "$dir/stat" --json load | jq '.processes[0].roles.load.completed')
	busy load $((done + 1000))
	kill -TERM "${pids[load]}"
	finish load
	[ "$status" -eq 3 ]
	once "$dir/load.json" load
	holds "$dir/load.json" "$(findings load) == 0" 'load.errors == {}' 'load.quarantined == 0'
	holds "$dir/load.json" '.roles.load.counters.sessions_resumed >= 1'
	stop bridge
	clean store
	stop store
	nothing_left
}

@test "an initiator that waits for its gateway can be stopped" {
	connect_options='resume = "1h";'
	topology
	serve_all
	hammer
	slay bridge
	logged load 'session lost'
	kill -TERM "${pids[load]}"
	finish load
	[ "$status" -ne 0 ]
	once "$dir/load.json" load
	holds "$dir/load.json" "$(findings load) == 0" 'load.errors | keys - ["SESSION_LOST", "refused"] == []'
	stop store
}

@test "the target is killed" {
	serve_all
	mark bridge
	hammer
	slay store
	within bridge 'session lost' "$died" 1000
	within load 'session lost' "$died" 1000
	load_lost
	clean bridge
	serve store
	load_well
	clean bridge
	stop bridge store
	nothing_left
	holds "$dir/bridge.json" 'bridge.sessions_opened == 2 and bridge.double_completions == 0'
}

@test "the target is killed while a stage there holds IO: all of it comes back as lost" {
	need fault
	store_stages='{ type = "fault"; delay = "1h"; delay_nth = 1500; }'
	topology
	serve_all
	hammer
	until_true live store '.roles.store.stages[0].delayed_ops > 0'
	slay store
	load_lost
	holds "$dir/load.json" 'load.errors.SESSION_LOST > 0'
	stop bridge
}

@test "the target is killed while a second initiator is connected: both initiators report the loss" {
	more_roles='load2 = { role = "initiator"; connect = { device = "front"; name = "volume"; };
	            workload = { pattern = "randrw"; depth = 8; time = "0s"; offset = "4MiB"; size = "1MiB";
	                         verify = "stamp"; }; };'
	topology
	serve_all
	begin load2
	busy load2
	hammer
	slay store
	within load 'session lost' "$died" 1000
	within load2 'session lost' "$died" 1000
	load_lost
	finish load2
	[ "$status" -eq 1 ]
	once "$dir/load2.json" load2
	stop bridge
}

@test "an initiator is killed: the session of another initiator continues" {
	more_roles='load2 = { role = "initiator"; connect = { device = "front"; name = "volume"; };
	            workload = { pattern = "randrw"; depth = 8; time = "0s"; offset = "4MiB"; size = "1MiB";
	                         verify = "stamp"; }; };'
	topology
	serve_all
	begin load2
	busy load2
	hammer
	slay load
	within bridge 'session lost' "$died" 1000
	n=$("$GANTRY" stat --dir "$dir/stat" --json load2 | jq '.processes[0].roles.load2.completed')
	busy load2 "$((n + 1000))"
	kill -TERM "${pids[load2]}"
	finish load2
	[ "$status" -eq 3 ]
	once "$dir/load2.json" load2
	holds "$dir/load2.json" 'load2.errors == {}'
	stop bridge store
}

@test "the gateway stops answering: both peers detect it by the heartbeat" {
	connect_options='heartbeat = "250ms";'
	listen_options='heartbeat = "250ms";'
	topology
	serve_all
	mark store
	hammer
	died=$(now_ms)
	kill -STOP "${pids[bridge]}"
	within store 'session lost .*no heartbeat for 1000 ms' "$died" 2000
	within load 'session lost .*no heartbeat for 1000 ms' "$died" 2000
	load_lost
	clean store
	# when it continues, it detects that both have ended, and serves the next client
	kill -CONT "${pids[bridge]}"
	logged bridge 'session lost'
	load_well
	stop bridge store
	nothing_left
}

@test "SIGTERM once: it stops, with a summary, and the servers see an orderly end" {
	serve_all
	mark store bridge
	hammer
	kill -TERM "${pids[load]}"
	finish load
	[ "$status" -eq 3 ]
	once "$dir/load.json" load
	holds "$dir/load.json" '.result == "interrupted"' 'load.errors == {}' 'load.writes.latency.p99_ns > 0'
	says load 'Terminated: stopping'
	logged bridge 'session ended'
	logged store 'session ended'
	clean store bridge
	load_well
	stop bridge store
	nothing_left
	holds "$dir/bridge.json" 'bridge.sessions_lost == 0'
}

@test "SIGTERM twice: it ends at once, although the gateway does not answer" {
	serve_all
	hammer
	kill -STOP "${pids[bridge]}"
	kill -TERM "${pids[load]}"
	logged load 'Terminated: stopping'
	died=$(now_ms)
	kill -TERM "${pids[load]}"
	finish load
	[ "$status" -eq 3 ]
	[ "$(($(now_ms) - died))" -lt 3000 ] # the time limit of an answer is longer
	kill -CONT "${pids[bridge]}"
	within bridge 'session lost' "$died" 4000
	load_well
	stop bridge store
	nothing_left
}

@test "SIGTERM to the gateway with IO in flight: all end well, the initiator says that it was cut off" {
	serve_all
	mark store
	hammer
	kill -TERM "${pids[bridge]}"
	finish bridge
	[ "$status" -eq 0 ]
	finish load
	[ "$status" -eq 1 ]
	once "$dir/load.json" load
	holds "$dir/load.json" "$(findings load) == 0"
	clean store
	serve bridge
	load_well
	stop bridge store
	nothing_left
}

# Wait until the started initiator reaches this point.
moment() { # 0 .. 5
	case $1 in
	0) ;;
	1) until_true test -S "$dir/stat/${pids[load]}.stat.sock" ;;
	2) logged store 'session started' ;;
	3) logged load 'session started' ;;
	4) busy load 1 ;;
	5) busy load 3000 ;;
	esac
}

again_and_again() { # VICTIM SURVIVOR...
	local victim=$1 when
	shift
	connect_options='timeout = "300ms";'
	topology
	serve_all
	mark "$@"
	for when in 0 1 2 3 4 5 0 1 2 3; do
		: >"$dir/store.log"
		begin load --set roles.load.lanes=2 --set roles.load.workload.ops=0
		moment "$when"
		slay "$victim"
		if [ "$victim" != load ]; then
			finish load
			[ "$status" -eq 1 ] || { echo "moment $when: $status"; tail -n 20 "$dir"/*.log; return 1; }
			holds "$dir/load.json" 'load.submitted == load.completed' "$(findings load) == 0"
			serve "$victim"
		fi
		[ -n "${pids[bridge]:-}" ] && [ -n "${pids[store]:-}" ]
	done
	load_well
	clean "$@"
	stop bridge store
	nothing_left
}

@test "the initiator is killed again and again, at each step of a session" {
	again_and_again load store bridge
}

@test "the gateway is killed again and again, at each step of a session" {
	again_and_again bridge store
}

@test "the target is killed again and again, at each step of a session" {
	again_and_again store bridge
}

past() { # STAMP MS - more than MS ms have passed since STAMP
	[ "$(($(now_ms) - $1))" -gt "$2" ]
}

# When the gateway has ended, each lane holds IOs that were in flight, or one that was never sent, or both. Their deadlines pass
# before the resume: those that were in flight complete with TIMEOUT, the others with CANCELED.
@test "an IO times out while the gateway is away: the initiator ends, and IOs of the other lane are submitted again" {
	local held lost
	connect_options='resume = "30s";'
	topology
	serve_all
	begin load --set roles.load.lanes=2 --set roles.load.workload.ops=0 --set roles.load.workload.depth=32 \
		--set roles.load.workload.deadline=1s
	busy load
	slay bridge
	logged load 'session lost'
	until_true live load 'load.lane_held_ops | all(. > 0)'
	held=$(now_ms)
	until_true past "$held" 1100
	serve bridge
	finish load
	[ "$status" -eq 1 ]
	once "$dir/load.json" load
	lost=$(sed -n 's/.* \([0-9]*\) IOs submitted again$/\1/p' "$dir/load.log")
	holds "$dir/load.json" "$(findings load) == 0" 'load.errors | keys - ["CANCELED", "TIMEOUT"] == []' \
		"(load.errors.TIMEOUT // 0) >= $lost" 'load.counters.sessions_resumed == 1'
	stop bridge store
}
