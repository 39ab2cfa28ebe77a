#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
# The walk through three processes, over shared memory: the gateway passes descriptors on and never has the data. over-tcp.sh runs
# these tests over TCP.

setup() {
	. "$BATS_TEST_DIRNAME/lib.sh"
	walk_setup
	processes
}

teardown() {
	walk_teardown
}

@test "three processes, one lane" {
	topology
	serve_all
	load_well
	holds "$dir/load.json" 'load.total.ops == 5000' 'load.hops | .gateway.count == 5000 and .target.count == 5000' \
		'load.hops | .link.p50_ns > 0 and .gateway.p50_ns > .target.p50_ns and .target.min_ns > 0'
	stop bridge store
	agree "$(completed load)"
}

@test "two lanes, then four, then one after the other through the same servers" {
	topology
	serve store --set roles.store.lanes=2
	serve bridge --set roles.bridge.lanes=2
	load_well --set roles.load.lanes=2
	n=$(completed load)
	load_well --set roles.load.lanes=4
	n=$((n + $(completed load)))
	load_well
	n=$((n + $(completed load)))
	stop bridge store
	agree "$n"
	holds "$dir/bridge.json" 'bridge.sessions_opened == 3'
}

@test "every stage in every role" {
	need stats crc trace fault noop
	load_stages='{ type = "stats"; }, { type = "crc"; mode = "generate"; }, { type = "fault"; }, { type = "noop"; }'
	bridge_stages="{ type = \"stats\"; }, { type = \"trace\"; path = \"$dir/trace\"; }, { type = \"fault\"; }"
	store_stages='{ type = "stats"; }, { type = "crc"; mode = "verify"; strict = true; }, { type = "fault"; }'
	topology
	serve_all
	load_well --set roles.load.lanes=2 --set roles.load.workload.flush_every=50
	stop bridge store
	agree "$(completed load)"
	[ "$(stat -c %s "$dir/trace")" -eq "$((64 + 2 * 72 * $(completed load)))" ]
	holds "$dir/bridge.json" ".roles.bridge.stages[1] | .written_records == 2 * $(completed load) and .lost_records == 0"
}

@test "the gateway never has the data in its address space, the target has" {
	[ -z "$relays" ] || skip "over TCP the data passes through the gateway"
	topology
	serve_all
	begin load --set roles.load.workload.ops=0
	busy load
	grep -q gantry-region "/proc/${pids[load]}/maps"
	grep -q gantry-region "/proc/${pids[store]}/maps"
	run ! grep gantry-region "/proc/${pids[bridge]}/maps"
	live bridge 'front_bytes + back_bytes == 0'
	kill -TERM "${pids[load]}"
	finish load
	[ "$status" -eq 3 ]
	once "$dir/load.json" load
	run ! grep gantry-region "/proc/${pids[store]}/maps"
	stop bridge store
}

@test "memory that is not mapped: the target moves the data, the gateway does not" {
	device_options="$device_options mapped = false;"
	topology
	serve_all
	load_well --set roles.load.lanes=2
	stop bridge store
	agree "$(completed load)"
	holds "$dir/store.json" 'back_bytes == store.ops_done * 4096' # every byte once, and nothing but data
}

@test "two initiators at once" {
	more_roles='load2 = { role = "initiator"; connect = { device = "front"; name = "volume"; };
	            workload = { pattern = "randrw"; depth = 8; time = "0s"; ops = 4000; offset = "4MiB"; size = "1MiB";
	                         verify = "stamp"; }; };'
	topology
	serve_all
	begin load --set roles.load.workload.ops=20000
	begin load2 --set roles.load2.workload.ops=20000
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

@test "two targets in two processes; IO that crosses the border becomes two" {
	store_backend='type = "memory"; size = "1020KiB";'
	bridge_connect='( { device = "back"; name = "store"; }, { device = "back"; name = "store2"; } )'
	more_roles='store2 = { role = "target"; listen = { device = "back"; name = "store2"; };
	            backend = { type = "memory"; size = "2MiB"; }; };'
	topology
	serve store2
	serve_all
	load_well --set roles.load.workload.block=16KiB --set roles.load.workload.size=2MiB \
		--set roles.load.workload.flush_every=100
	stop bridge store store2
	jq -s '{roles: (.[0].roles * .[1].roles * .[2].roles)}' "$dir"/load.json "$dir"/store.json "$dir"/store2.json >"$report"
	holds "$report" 'store.ops_done > 100' 'store2.ops_done > 100' 'store.ops_failed + store2.ops_failed == 0' \
		'store.ops_done + store2.ops_done > load.completed + load.flushes.ops'
}

@test "volume in a file: what was written is there for the next target" {
	need file
	store_backend="type = \"file\"; path = \"$dir/volume\"; create = true; size = \"4MiB\";"
	topology
	head -c 4194304 /dev/urandom >"$dir/in"
	serve_all
	timeout 20 "$GANTRY" copy -p "$GANTRY_PLUGINS" -c "$conf" "$dir/in" volume:
	stop bridge store
	cmp "$dir/in" "$dir/volume"
	serve_all
	timeout 20 "$GANTRY" copy -p "$GANTRY_PLUGINS" -c "$conf" volume: "$dir/out" --set roles.load.lanes=2
	stop bridge store
	[ "$(sha256sum <"$dir/in")" = "$(sha256sum <"$dir/out")" ]
}

@test "a trace, played again, gives the same count" {
	need trace
	load_stages="{ type = \"trace\"; path = \"$dir/trace\"; }"
	topology
	serve_all
	load_well --set roles.load.workload.flush_every=20
	n=$(completed load)
	f=$(jq .roles.load.flushes.ops "$dir/load.json")
	[ "$f" -gt 10 ]
	cp "$dir/trace" "$dir/again"
	load_well --set roles.load.replay.path="\"$dir/again\"" --set roles.load.replay.speed=fast
	[ "$(completed load)" -eq "$n" ]
	[ "$(jq .roles.load.flushes.ops "$dir/load.json")" -eq "$f" ]
	[ "$(stat -c %s "$dir/trace")" -eq "$(stat -c %s "$dir/again")" ]
	stop bridge store
	agree "$((2 * n))"
}

@test "every operation goes through: read, write, FUA, flush, write zeroes, discard" {
	need file stats
	store_backend="type = \"file\"; path = \"$dir/volume\"; create = true; size = \"1MiB\";"
	store_stages='{ type = "stats"; }'
	topology
	head -c 1048576 /dev/urandom >"$dir/in"
	cp "$dir/in" "$dir/volume"
	cp "$dir/in" "$dir/expect"
	dd if=/dev/zero of="$dir/expect" bs=4096 seek=3 count=2 conv=notrunc status=none
	# a trace by hand: operation, flags, offset, length; the third and the last but one change the volume
	"$top_builddir/tests/walk/maketrace" "$dir/trace" 1 0 0 4096 3 0 0 0 4 0 12288 8192 1 0 12288 8192 5 0 65536 65536 3 0 0 0
	serve_all
	load_well --set roles.load.replay.path="\"$dir/trace\"" --set roles.load.replay.speed=fast --set roles.load.replay.depth=1
	holds "$dir/load.json" 'load | .reads.ops == 2 and .flushes.ops == 2 and .others.ops == 2' 'load.writes.ops == 0'
	"$top_builddir/tests/walk/maketrace" "$dir/trace" 2 1 131072 4096 2 0 135168 4096
	load_well --set roles.load.replay.path="\"$dir/trace\"" --set roles.load.replay.speed=fast --set roles.load.replay.depth=1
	holds "$dir/load.json" 'load.writes.ops == 2'
	stop bridge store
	holds "$dir/store.json" '.roles.store.stages[0] | .read.done_ops == 2 and .write.done_ops == 2 and .flush.done_ops == 2' \
		'.roles.store.stages[0] | .write_zeroes.done_ops == 1 and .discard.done_ops == 1'
	cmp -n 65536 "$dir/expect" "$dir/volume"
	run ! cmp -s -i 131072 -n 4096 "$dir/in" "$dir/volume"
	run ! cmp -s -i 135168 -n 4096 "$dir/in" "$dir/volume"
	cmp -i 139264 "$dir/in" "$dir/volume"
}

# extents DEVICE - a trace by hand with three requests for extents, of which one is longer than max_io, passes through the gateway
extents() {
	need stats
	device_options="$device_options $1"
	store_stages='{ type = "stats"; }'
	topology
	"$top_builddir/tests/walk/maketrace" "$dir/trace" 6 0 0 4096 2 0 4096 4096 6 0 4096 8192 6 0 0 8388608
	serve_all
	load_well --set roles.load.replay.path="\"$dir/trace\"" --set roles.load.replay.speed=fast --set roles.load.replay.depth=1
	holds "$dir/load.json" 'load | .others.ops == 3 and .writes.ops == 1'
	stop bridge store
	agree 4
	holds "$dir/store.json" '.roles.store.stages[0].extents.done_ops == 3'
}

@test "extents go through a gateway" {
	extents ""
}

@test "extents go through a gateway to memory that is not mapped" {
	extents "mapped = false;"
	holds "$dir/store.json" 'back_bytes == 3 * 4096 + 4096'
}
