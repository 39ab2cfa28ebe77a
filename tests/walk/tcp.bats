#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
# The walk over TCP: only the leg between gateway and target, or both legs. All data passes through the gateway.

setup() {
	. "$BATS_TEST_DIRNAME/lib.sh"
	walk_setup
}

teardown() {
	walk_teardown
}

# one, two and four lanes, one after the other, through the same servers of two lanes
lanes() { # ARGUMENT... - of the initiator
	local lanes n=0
	topology
	serve store --set roles.store.lanes=2
	serve bridge --set roles.bridge.lanes=2
	for lanes in 1 2 4; do
		load_well --set roles.load.lanes=$lanes "$@"
		n=$((n + $(completed load)))
	done
	stop bridge store
	agree "$n"
}

@test "back leg: one, two and four lanes" {
	tcp back
	lanes
}

@test "back leg: blocks of 256 KiB, with flushes" {
	tcp back
	lanes --set roles.load.workload.block=256KiB --set roles.load.workload.size=8MiB --set roles.load.workload.ops=500 \
		--set roles.load.workload.flush_every=50
}

@test "both legs: blocks of 256 KiB, which the gateway relays in pieces, with flushes" {
	tcp front back
	lanes --set roles.load.workload.block=256KiB --set roles.load.workload.size=8MiB --set roles.load.workload.ops=500 \
		--set roles.load.workload.flush_every=50
}

@test "both legs: small socket buffers and a small table of accesses" {
	tcp front back
	front_device="$front_device socket_buffer = \"16KiB\"; max_depth = 64;"
	back_device="$back_device socket_buffer = \"16KiB\"; max_depth = 64;"
	listen_options='max_depth = 64;'
	lanes --set roles.load.workload.block=64KiB --set roles.load.workload.ops=500
}

@test "both legs, and a target that connects to the initiator: no data passes through the gateway" {
	tcp front back
	front_device="$front_device direct = true;"
	back_device="$back_device direct = true; direct_networks = \"127.0.0.0/8\";"
	relays=
	lanes --set roles.load.workload.block=64KiB --set roles.load.workload.ops=1000
}

@test "two gateways in a row over TCP" {
	tcp front back
	more_roles='second = { role = "gateway"; listen = { device = "back"; name = "other"; };
	            connect = { device = "back"; name = "store"; }; };'
	bridge_connect='{ device = "back"; name = "other"; }'
	topology
	serve store
	serve second
	serve bridge
	load_well --set roles.load.lanes=2 --set roles.load.workload.block=16KiB
	stop bridge second store
	agree "$(completed load)"
}

@test "only TCP leads on from a gateway that TCP reaches: the initiator gets the reason" {
	tcp front
	topology
	serve_all
	begin load
	finish load
	[ "$status" -eq 1 ]
	says load 'refused at export: region 1 .* cannot be re-exported: memory not reachable by the next device: use one transport'
	stop bridge store
}

@test "back leg: the initiator is killed" {
	tcp back
	topology
	serve_all
	mark store bridge
	hammer
	slay load
	within bridge 'session lost' "$died" 1000
	within store 'session (lost|ended)' "$died" 1000
	clean store bridge
	load_well
	stop bridge store
	nothing_left
}

# The initiator resumes its session when the killed server has started again.
resumes() { # SERVER
	local before
	connect_options='resume = "60s";'
	topology
	serve_all
	hammer
	slay "$1"
	serve "$1"
	logged load 'session resumed .*epoch=[2-9]'
	before=$("$GANTRY" stat --dir "$dir/stat" --json load | jq '.processes[0].roles.load.completed')
	busy load $((before + 1000))
	kill -TERM "${pids[load]}"
	finish load
	[ "$status" -eq 3 ]
	once "$dir/load.json" load
	holds "$dir/load.json" "$(findings load) == 0" 'load.errors == {}' 'load.quarantined == 0'
	stop bridge store
	nothing_left
}

@test "back leg: the gateway is killed and comes again" {
	tcp back
	resumes bridge
}

@test "back leg: the target is killed and comes again, with its file" {
	tcp back
	need file
	store_backend="type = \"file\"; path = \"$dir/volume\"; create = true; size = \"16MiB\"; lock_wait = \"10s\";"
	resumes store
}

@test "both legs: the target is killed and comes again, with its file" {
	tcp front back
	need file
	store_backend="type = \"file\"; path = \"$dir/volume\"; create = true; size = \"16MiB\"; lock_wait = \"10s\";"
	resumes store
}

@test "names of hosts" {
	tcp back
	back_device='transport = "tcp"; auth = "none"; services = { store = "localhost:0"; };'
	topology
	serve store
	store_at="name = \"localhost:$(sed -n 's/.*listening .*address=.*:\([0-9]*\)$/\1/p' "$dir/store.log")\";"
	topology
	serve bridge
	load_well
	stop bridge store
	agree "$(completed load)"
}

# lists LEG... - a program reads and writes by lists, and gets extents
lists() {
	local program=$top_builddir/tests/walk/pieces
	[ -x "$program" ] || skip "built without libgantry"
	tcp "$@"
	topology
	serve_all
	GANTRY_PLUGIN_PATH=$GANTRY_PLUGINS timeout "$seconds" "$program" "$conf" load "$dir/content" >"$dir/extents" ||
		{ cat "$dir"/*.log; return 1; }
	stop bridge store
	holds "$dir/store.json" 'store.list_bounces_ops == 0' 'store.ops_failed == 0' 'store.sessions_lost == 0'
	holds "$dir/bridge.json" 'bridge.list_bounces_ops == 0' "$(passed)"
}

@test "back leg: lists" {
	lists back
}

@test "both legs: lists" {
	lists front back
}

@test "both legs: the volume grows and shrinks" {
	need file
	tcp front back
	truncate -s 4M "$dir/volume"
	store_backend="type = \"file\"; path = \"$dir/volume\"; direct = false;"
	topology
	serve_all
	begin load --set roles.load.workload.ops=0 --set roles.load.workload.pattern=randread \
		--set roles.load.workload.verify=none --set roles.load.continue_on_error=true
	busy load 100
	truncate -s 8M "$dir/volume"
	logged bridge 'size of the volume changed id=[0-9a-f]* bytes=8388608'
	logged load 'size of the volume changed id=[0-9a-f]* bytes=8388608'
	live load '.roles.load.errors == {}'
	truncate -s 512K "$dir/volume"
	logged load 'size of the volume changed id=[0-9a-f]* bytes=524288'
	until_true live load '.roles.load.errors.RANGE > 10'
	kill -TERM "${pids[load]}"
	finish load
	stop bridge store
	holds "$dir/store.json" 'store.sessions_lost == 0'
}
