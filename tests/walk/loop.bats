#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
# The whole data path in one process, over the transport loop: reads return the written data, and the counters of both ends agree.

setup() {
	. "$BATS_TEST_DIRNAME/lib.sh"
	walk_setup
}

teardown() {
	walk_teardown
}

# The initiator, the gateway and the target saw the same IOs, and the gateway none of their data.
same_counts() {
	holds "$report" 'load.completed == store.ops_done' 'load.completed == bridge.ops_done' \
		'store.ops_failed == 0' 'bridge.ops_failed == 0' 'bridge.double_completions == 0' \
		'store.double_completions == 0' 'bridge.late_replies == 0'
}

well() {
	[ "$status" -eq 0 ] || { cat "$dir/walk.log" "$report"; return 1; }
	sound "$report" load
	same_counts
}

@test "one lane" {
	topology
	walk
	well
	holds "$report" 'load.total.ops == 5000' 'load.verify.checked > 1000' 'front_bytes == 0' \
		'load.counters | .sessions_resumed == 0 and .late_replies == 0' 'load.flushes.ops == 0' \
		'back_bytes == 0' 'load.hops | .gateway.count == 5000 and .target.count == 5000' \
		'load.hops | .gateway.p50_ns >= .target.p50_ns and .target.max_ns > 0' # one thread: all else is a call
}

@test "so fast that IOs share a look at the clock: the hops count each of them" {
	store_backend='type = "null"; size = "16MiB";'
	topology
	walk --set roles.load.workload.verify=none --set roles.load.workload.ops=100000
	well
	holds "$report" 'load.total.ops == 100000' 'load | .reads.latency.count + .writes.latency.count == 100000' \
		'load.hops | .gateway.count == 100000 and .target.count == 100000 and .link.count == 100000'
}

@test "two lanes on shared threads" {
	topology
	walk --set roles.load.lanes=2 --set roles.bridge.lanes=2 --set roles.store.lanes=2
	well
	holds "$report" 'load.total.ops == 5000' '.threads | length == 2'
}

@test "two lanes, each role on threads of its own" {
	topology
	walk --set roles.load.lanes=2 --set roles.bridge.lanes=2 --set roles.store.lanes=2 --set runtime.threads=separate
	well
	holds "$report" '.threads | length == 6' \
		'load.hops | .link.p50_ns > 0 and .gateway.p50_ns > .target.p50_ns and .target.min_ns > 0'
}

@test "four lanes: more threads than most machines that test have processors" {
	topology
	walk --set roles.load.lanes=4 --set roles.bridge.lanes=4 --set roles.store.lanes=4 --set runtime.threads=separate
	well
	holds "$report" '.threads | length == 12' 'load.verify.checked > 1000'
}

@test "the initiator has more lanes than its servers" {
	topology
	walk --set roles.load.lanes=3 --set roles.bridge.lanes=2 --set runtime.threads=separate
	well
}

@test "memory that is not mapped: the data is moved, and counted" {
	device_options='mapped = false;'
	topology
	walk --set roles.load.lanes=2 --set runtime.threads=separate
	well
	holds "$report" 'back_bytes + front_bytes >= 5000 * 4096' \
		'load.hops.data.count > 0'
}

@test "every stage in every role, with no fault switched on" {
	need stats crc trace fault noop
	load_stages='{ type = "stats"; }, { type = "crc"; mode = "generate"; }, { type = "fault"; }, { type = "noop"; }'
	bridge_stages="{ type = \"stats\"; }, { type = \"trace\"; path = \"$dir/trace\"; }, { type = \"fault\"; }"
	store_stages='{ type = "stats"; }, { type = "crc"; mode = "verify"; strict = true; }, { type = "fault"; }'
	topology
	walk --set roles.load.workload.flush_every=50
	well
	holds "$report" 'load.flushes.ops > 10' '.roles.store.stages[1] | .corrupt_ops // 0 | . == 0' \
		'load as $l | .roles.store.stages[0] | .read.done_ops + .write.done_ops + .flush.done_ops == $l.completed'
	[ "$(stat -c %s "$dir/trace")" -eq "$(jq '64 + 2 * 72 * .roles.load.completed' "$report")" ]
	holds "$report" 'load.completed as $n | .roles.bridge.stages[1] | .written_records == 2 * $n and .lost_records == 0'
}

@test "large IOs, small IOs, sequential, FUA and flush" {
	topology
	walk --set roles.load.workload.block=64KiB --set roles.load.workload.size=8MiB --set roles.load.workload.ops=500
	well
	walk --set roles.store.backend.block=512 --set roles.load.workload.block=512 --set roles.load.workload.size=256KiB
	well
	walk --set roles.load.workload.pattern=readwrite --set roles.load.workload.fua=true \
		--set roles.load.workload.flush_every=10
	well
	holds "$report" 'load.flushes.ops > 50'
}

@test "volume in a file" {
	need file
	store_backend="type = \"file\"; path = \"$dir/volume\"; create = true; size = \"8MiB\";"
	topology
	walk --set roles.load.workload.flush_every=100 --set roles.load.lanes=2 --set roles.store.lanes=2
	well
	holds "$report" 'load.hops.backend.count > 0' '.roles.store.backend.type == "file"'
	walk --set roles.store.backend.engine=sync --set roles.load.workload.fua=true --set roles.load.workload.ops=500
	well
}

@test "two targets as one volume; IO that crosses the border becomes two" {
	store_backend='type = "memory"; size = "1020KiB";'
	bridge_connect='( { device = "back"; name = "store"; }, { device = "back"; name = "store2"; } )'
	more_roles='store2 = { role = "target"; listen = { device = "back"; name = "store2"; };
	            backend = { type = "memory"; size = "2MiB"; }; };'
	topology
	# 16 KiB blocks over 1020 KiB: one of them crosses
	walk --set roles.load.workload.block=16KiB --set roles.load.workload.size=2MiB --set roles.load.workload.flush_every=100 \
		--set roles.load.lanes=2 --set roles.bridge.lanes=2
	[ "$status" -eq 0 ] || { cat "$dir/walk.log"; return 1; }
	sound "$report" load
	holds "$report" 'load.completed == bridge.ops_done' 'store.ops_done > 100' \
		'store2.ops_done > 100' \
		'store.ops_done + store2.ops_done > load.completed + load.flushes.ops' \
		'store.ops_failed + store2.ops_failed == 0'
}

@test "two initiators at once through one gateway" {
	more_roles='load2 = { role = "initiator"; connect = { device = "front"; name = "volume"; };
	            workload = { pattern = "randrw"; depth = 8; time = "0s"; ops = 4000; offset = "4MiB"; size = "1MiB";
	                         verify = "stamp"; }; };'
	topology
	walk --set roles.load.lanes=2
	[ "$status" -eq 0 ] || { cat "$dir/walk.log"; return 1; }
	sound "$report" load
	sound "$report" load2
	holds "$report" 'load.completed + .roles.load2.completed == store.ops_done' \
		'bridge.sessions_opened == 2' 'bridge.sessions_lost == 0'
}

@test "without a gateway" {
	topology
	walk --role store --role load --set roles.load.connect.device=back --set roles.load.connect.name=store
	[ "$status" -eq 0 ] || { cat "$dir/walk.log"; return 1; }
	sound "$report" load
	holds "$report" 'load.hops.gateway == null' 'load.hops.target.count == 5000'
}
