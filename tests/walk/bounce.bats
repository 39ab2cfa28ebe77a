#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
# A stage that transforms data has bounce buffers of its own: the store has the transformed bytes, the program its own.

setup() {
	bats_require_minimum_version 1.5.0
	. "$BATS_TEST_DIRNAME/lib.sh"
	walk_setup
	need file
	[ -e "$top_builddir/tests/.libs/mask.so" ] || skip "built without the test plugin mask"
	extra=(-p "$top_builddir/tests/.libs")
	truncate -s 1M "$dir/volume"
	store_backend="type = \"file\"; path = \"$dir/volume\"; direct = false;"
}

teardown() {
	walk_teardown
}

# Write the volume through the stages $1 of the store, and read and verify it again.
masked() { # STAGES
	store_stages=$1
	topology
	walk --set roles.load.workload.pattern=write
	[ "$status" -eq 0 ] || { cat "$dir/walk.log" "$report"; return 1; }
	sound "$report" load
	walk --set roles.load.workload.pattern=randrw --set roles.load.workload.verify=none
	[ "$status" -eq 0 ]
}

@test "the store has the transformed data, and the initiator reads its own" {
	masked ''
	cp "$dir/volume" "$dir/plain"
	masked '{ type = "mask"; }'
	run ! cmp -s "$dir/plain" "$dir/volume"
}

@test "two such stages of a chain have different buffers: XOR twice is the plain data" {
	masked '{ type = "mask"; }, { type = "mask"; }'
}

@test "regions that the target cannot map" {
	back_device='transport = "loop"; mapped = false;'
	masked '{ type = "mask"; }'
}

@test "with check_stages, and IO that the backend rejects for now" {
	store_stages='{ type = "mask"; }'
	topology
	walk --set roles.store.check_stages=true --set roles.load.workload.depth=64
	[ "$status" -eq 0 ] || { cat "$dir/walk.log" "$report"; return 1; }
	sound "$report" load
}

@test "roles that do not store reject it, also check" {
	for where in load bridge; do
		load_stages='' bridge_stages=''
		declare "${where}_stages={ type = \"mask\"; }"
		topology
		run "$GANTRY" check -p "$GANTRY_PLUGINS" "${extra[@]}" "$conf"
		[ "$status" -ne 0 ]
		[[ $output == *'the stage "mask" transforms data, and this role does not store data'* ]]
	done
}
