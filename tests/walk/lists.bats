#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
# A program reads and writes by lists, and gets the extents of the volume; the roles run in its process or in separate ones.

setup() {
	. "$BATS_TEST_DIRNAME/lib.sh"
	walk_setup
	program=$top_builddir/tests/walk/pieces
	[ -x "$program" ] || skip "built without libgantry"
	export GANTRY_PLUGIN_PATH=$GANTRY_PLUGINS
}

teardown() {
	walk_teardown
}

use_memory() {
	store_backend='type = "memory"; size = "16MiB";'
}

use_file() { # a volume of which all is a hole
	need file
	truncate -s 16M "$dir/volume"
	store_backend="type = \"file\"; path = \"$dir/volume\"; direct = false;"
}

use_lists() { # run the program, and check the extents that it prints: behind the first MiB all is a hole
	timeout "$seconds" "$program" "$conf" load "$dir/content" >"$dir/extents" || { cat "$dir"/*.log; return 1; }
	awk '$1 + $2 > 1048576 && $3 != 3 { bad = 1 } END { exit bad || $3 != 3 || $1 + $2 != 16777216 }' "$dir/extents"
	[ ! -e "$dir/volume" ] || cmp -n 1048576 "$dir/content" "$dir/volume"
}

over_loop() { # the roles in the process of the program
	topology
	use_lists
}

over_comch() { # FILTER - a process for each role; the report of the target must satisfy the filter
	processes
	topology
	serve_all
	use_lists
	stop bridge store
	holds "$dir/store.json" "$1" 'store.ops_failed == 0' 'store.sessions_lost == 0'
	holds "$dir/bridge.json" 'bridge.list_bounces_ops == 0'
}

@test "over loop, to memory" {
	use_memory
	over_loop
}

@test "over loop, to a file" {
	use_file
	over_loop
}

@test "over loop that the target cannot map, to memory" {
	use_memory
	device_options='mapped = false;'
	over_loop
}

@test "over loop that the target cannot map, to a file" {
	use_file
	device_options='mapped = false;'
	over_loop
}

@test "over loop, with a checksum" {
	need crc
	use_file
	load_stages='{ type = "crc"; }'
	store_stages='{ type = "crc"; }'
	over_loop
}

@test "over shm-comch, to memory, which takes lists without a buffer" {
	use_memory
	over_comch 'store.list_bounces_ops == 0'
}

@test "over shm-comch, to a file, through a buffer" {
	use_file
	over_comch 'store.list_bounces_ops > 200'
}

@test "over shm-comch that the target cannot map" {
	use_file
	back_device="transport = \"shm-comch\"; dir = \"$dir/run\"; mapped = false;"
	over_comch 'store.list_bounces_ops == 0 and back_bytes > 1048576'
}

@test "to memory behind stages that transform data, through a buffer" {
	[ -e "$top_builddir/tests/.libs/mask.so" ] || skip "built without the test plugin mask"
	extra=(-p "$top_builddir/tests/.libs")
	GANTRY_PLUGIN_PATH=$GANTRY_PLUGIN_PATH:$top_builddir/tests/.libs
	use_memory
	store_stages='{ type = "mask"; }, { type = "mask"; }' # twice: blocks that were never written read as zeroes
	over_comch 'store.list_bounces_ops > 200'
}
