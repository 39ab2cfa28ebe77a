#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
# Several paths to one volume: the initiator has two gateways, or a gateway has two paths to the target. A path that is lost costs a
# pause, and no IO. over-tcp.sh runs these tests over TCP.

setup() {
	bats_require_minimum_version 1.5.0
	. "$BATS_TEST_DIRNAME/lib.sh"
	walk_setup
	processes
	# an attempt on a path without a listener ends soon
	connect_options='resume = "30s"; timeout = "300ms";'
}

teardown() {
	walk_teardown
}

more() { # N - wait until the initiator has completed N more IOs
	busy load "$(($("$GANTRY" stat --dir "$dir/stat" --json load | jq '.processes[0].roles.load.completed') + $1))"
}

# End the initiator: each IO succeeded, each read returned what was written last, and it has resumed N times or more.
unharmed() { # N
	kill -TERM "${pids[load]}"
	finish load
	[ "$status" -eq 3 ] || { tail -n 20 "$dir"/*.log; return 1; }
	once "$dir/load.json" load
	holds "$dir/load.json" "$(findings load) == 0" 'load.errors == {}' 'load.quarantined == 0' \
		"load.counters.sessions_resumed >= $1"
}

@test "two gateways: each is killed in turn while the initiator writes" {
	two_gateways
	serve store
	serve bridge
	serve bridge2
	hammer
	for name in bridge bridge2 bridge bridge2 bridge; do
		slay "$name"
		within load 'session resumed' "$died" 3000
		: >"$dir/load.log"
		serve "$name"
		more 500
	done
	unharmed 5
	stop bridge bridge2 store
	holds "$dir/store.json" 'store.double_completions == 0'
}

@test "two gateways: the first does not answer when the initiator starts" {
	two_gateways
	serve store
	serve bridge2
	load_well
	says load 'connect\[0\]: .*: trying connect\[1\]'
	stop bridge2 store
}

# not over TCP: the target accesses the memory of the initiator through the gateway, so it can end the path first
@test "a gateway with two paths: an initiator that is killed is not a failure of the path" {
	two_paths
	serve store
	serve bridge2
	serve bridge
	hammer
	slay load
	logged bridge 'session lost'
	load_well
	run grep 'trying connect' "$dir/bridge.log"
	[ "$status" -eq 1 ]
	stop bridge bridge2 store
}

@test "two gateways: both are lost, and one comes back" {
	two_gateways
	serve store
	serve bridge
	serve bridge2
	hammer
	slay bridge2
	slay bridge
	logged load 'session lost'
	serve bridge2
	logged load 'session resumed'
	unharmed 1
	stop bridge2 store
}

@test "two gateways: neither comes back: the session ends in time" {
	connect_options='resume = "2s"; timeout = "300ms";'
	two_gateways
	serve store
	serve bridge
	serve bridge2
	hammer
	slay bridge2
	slay bridge
	load_lost
	stop store
}

# The stopped gateway holds IOs in its stage: it sends them on when it continues, and the target must not execute them. The
# delayed IOs soon fill the depth of the initiator. The heartbeat of the target is long: only the resumed session ends the old one.
@test "two gateways: a gateway that hangs is superseded" {
	need fault
	connect_options='resume = "30s"; timeout = "300ms"; heartbeat = "200ms";'
	listen_options='heartbeat = "1m";'
	bridge_stages='{ type = "fault"; delay = "20ms"; delay_rate = "10%"; }'
	two_gateways
	serve store
	serve bridge
	serve bridge2
	hammer
	kill -STOP "${pids[bridge]}"
	logged load 'session lost .*no heartbeat for 800 ms'
	logged load 'session resumed'
	more 5000
	kill -CONT "${pids[bridge]}"
	logged bridge 'session lost'
	more 5000
	unharmed 1
	stop bridge bridge2 store
	holds "$dir/store.json" 'store.double_completions == 0'
}

# Such a gateway can write what it received before it was stopped. By then the other path uses the memory of the initiator.
hangs_while_it_copies() {
	connect_options='resume = "30s"; timeout = "300ms"; heartbeat = "200ms";'
	listen_options='heartbeat = "1m";'
	tcp back
	two_gateways
	serve store
	serve bridge
	serve bridge2
	begin load --set roles.load.workload.ops=0 --set roles.load.workload.read_percent=70 --set roles.load.workload.depth=32
	busy load
	kill -STOP "${pids[bridge]}"
	logged load "session waits id=[0-9a-f]{16}: .* .pid=${pids[bridge]}.: end that process, or let it continue"
	run grep 'session resumed' "$dir/load.log"
	[ "$status" -eq 1 ]
}

@test "two gateways that copy data: the session waits until the one that hangs continues" {
	hangs_while_it_copies
	kill -CONT "${pids[bridge]}"
	logged load 'session resumed'
	more 5000
	unharmed 1
	stop bridge bridge2 store
}

@test "two gateways that copy data: the session waits until the one that hangs is killed" {
	hangs_while_it_copies
	slay bridge
	logged load 'session resumed.*path=1'
	more 5000
	unharmed 1
	stop bridge2 store
}

# The same behind a gateway, whose own process does not copy the data.
path_hangs_while_it_copies() {
	connect_options='resume = "30s"; timeout = "300ms"; heartbeat = "200ms"; control_timeout = "4s";'
	tcp back
	two_paths
	sed -i 's/timeout = "300ms"; }/timeout = "300ms"; heartbeat = "200ms"; }/' "$conf"
	serve store
	serve bridge2
	serve bridge3
	serve bridge
	begin load --set roles.load.workload.ops=0 --set roles.load.workload.read_percent=70 --set roles.load.workload.depth=32
	busy load
	kill -STOP "${pids[bridge2]}"
	logged load "session waits id=[0-9a-f]{16}: .* .pid=${pids[bridge2]}.: end that process, or let it continue"
	run grep 'session resumed' "$dir/load.log"
	[ "$status" -eq 1 ]
}

@test "a gateway with two paths that copy data: the session waits until the one that hangs continues" {
	path_hangs_while_it_copies
	kill -CONT "${pids[bridge2]}"
	logged load 'session resumed'
	more 5000
	unharmed 1
	stop bridge bridge2 bridge3 store
}

@test "a gateway with two paths that copy data: the session waits for one that hangs after the gateway was killed" {
	path_hangs_while_it_copies
	slay bridge
	serve bridge
	logged load 'session not started .*a process of the former path still maps the memory'
	run grep 'session resumed' "$dir/load.log"
	[ "$status" -eq 1 ]
	slay bridge2
	logged load 'session resumed'
	more 5000
	unharmed 1
	stop bridge bridge3 store
}

# The gateway bridge still runs, and its process can write to the memory of the initiator. It ends the session and unmaps the
# memory.
@test "two gateways that copy data: one loses its target, and the session resumes on the other path" {
	tcp back
	bridge_connect='{ device = "back"; name = "store2"; timeout = "300ms"; }'
	two_gateways
	more_roles+=' relay = { role = "gateway"; listen = { device = "back"; name = "store2"; };
	              connect = { device = "back"; name = "store"; }; };'
	topology
	serve store
	serve relay
	serve bridge
	serve bridge2
	hammer
	slay relay
	logged load 'session resumed.*path=1'
	more 5000
	unharmed 1
	stop bridge bridge2 store
}

@test "a path to another volume is passed over, and the data stays right" {
	more_stores='store2 = { role = "target"; listen = { device = "back"; name = "store2"; };
	             backend = { type = "memory"; size = "8MiB"; }; };'
	two_gateways
	more_roles="${more_roles/name = \"store\"/name = \"store2\"} $more_stores"
	topology
	serve store
	serve store2
	serve bridge
	serve bridge2
	hammer
	slay bridge
	logged load 'another volume'
	serve bridge
	logged load 'session resumed'
	unharmed 1
	stop bridge bridge2 store store2
	holds "$dir/store2.json" 'store2.ops_done == 0'
}

@test "check names a path to another volume" {
	two_gateways
	more_roles="${more_roles/name = \"store\"/name = \"store2\"} store2 = { role = \"target\";
		listen = { device = \"back\"; name = \"store2\"; }; backend = { type = \"memory\"; size = \"8MiB\"; uuid =
		\"00000000-0000-4000-8000-000000000002\"; }; };"
	store_backend='type = "memory"; size = "8MiB"; uuid = "00000000-0000-4000-8000-000000000001";'
	topology
	run -2 "$GANTRY" check -p "$GANTRY_PLUGINS" "$conf"
	[[ $output == *'roles.load.connect[1]: leads to another volume than connect[0]'* ]]
}

@test "a gateway with two paths: each is killed in turn while the initiator writes" {
	two_paths
	serve store
	serve bridge2
	serve bridge3
	serve bridge
	hammer
	for name in bridge2 bridge3 bridge2; do
		slay "$name"
		within load 'session resumed' "$died" 3000
		: >"$dir/load.log"
		serve "$name"
		more 500
	done
	unharmed 3
	stop bridge bridge2 bridge3 store
	holds "$dir/store.json" 'store.double_completions == 0'
}

@test "a gateway with two paths: the first does not answer" {
	two_paths
	serve store
	serve bridge3
	serve bridge
	load_well
	says bridge 'connect\[0\]: .*: trying connect\[1\]'
	stop bridge bridge3 store
}
