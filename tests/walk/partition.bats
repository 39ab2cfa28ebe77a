#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
# The stages partition and readonly: clients see a range of the volume, or a volume that they cannot write.

setup() {
	bats_require_minimum_version 1.5.0
	. "$BATS_TEST_DIRNAME/lib.sh"
	walk_setup
	need file
	[ -e "$GANTRY_PLUGINS/partition.so" ] || skip "built without the plugin partition"
	head -c 4194304 /dev/urandom >"$dir/volume"
	cp "$dir/volume" "$dir/before"
	store_backend="type = \"file\"; path = \"$dir/volume\"; direct = false;"
}

teardown() {
	walk_teardown
}

range() { # FILE OFFSET BYTES - print a part of a file
	tail -c +$(($2 + 1)) "$1" | head -c "$3"
}

# The workload has written all of the partition of 1 MiB at 2 MiB, and nothing else.
only_the_partition_has_changed() {
	cmp -n 2097152 "$dir/volume" "$dir/before"
	range "$dir/volume" 3145728 1048576 | cmp - <(range "$dir/before" 3145728 1048576)
	run cmp -s <(range "$dir/volume" 2097152 1048576) <(range "$dir/before" 2097152 1048576)
	[ "$status" -eq 1 ]
}

@test "a partition in a gateway: only its range changes" {
	bridge_stages='{ type = "partition"; offset = "2MiB"; length = "1MiB"; }'
	topology
	walk --set roles.load.workload.size=0 --set roles.load.lanes=2 --set roles.bridge.lanes=2
	[ "$status" -eq 0 ] || { cat "$dir/walk.log"; return 1; }
	sound "$report" load
	holds "$report" '.roles.store.volume.size_bytes == 4194304'
	only_the_partition_has_changed
}

@test "a partition of a partition in a target" {
	store_stages='{ type = "partition"; offset = "1MiB"; length = "1MiB"; }, { type = "partition"; offset = "1MiB"; }'
	topology
	walk --set roles.load.workload.size=0
	[ "$status" -eq 0 ] || { cat "$dir/walk.log"; return 1; }
	sound "$report" load
	only_the_partition_has_changed
}

@test "IO beyond the end of the partition is rejected" {
	bridge_stages='{ type = "partition"; offset = "2MiB"; length = "1MiB"; }'
	topology
	walk --set roles.load.workload.size=2MiB
	[ "$status" -ne 0 ]
	cmp "$dir/volume" "$dir/before"
}

@test "a partition outside the volume is rejected with the sizes" {
	bridge_stages='{ type = "partition"; offset = "2MiB"; length = "3MiB"; }'
	topology
	walk
	[ "$status" -ne 0 ]
	grep -q 'outside the volume (offset=2097152, length=3145728, size=4194304)' "$dir/walk.log"
	grep -q 'a stage rejects the volume; see the log of the server' "$dir/walk.log"
}

@test "check reports a partition outside the volume, also through a gateway" {
	store_backend='type = "memory"; size = "4MiB";'
	store_stages='{ type = "partition"; length = "2MiB"; }'
	bridge_stages='{ type = "partition"; offset = "2MiB"; }'
	topology
	run -2 "$GANTRY" check -p "$GANTRY_PLUGINS" "$conf"
	[[ $output == *'outside the volume (offset=2097152, length=0, size=2097152)'* ]]
	[[ $output == *'a stage rejects the volume; see the message before'* ]]
	run -0 "$GANTRY" check -p "$GANTRY_PLUGINS" "$conf" --set roles.bridge.stages.0.offset=1MiB
}

@test "an initiator has no clients: check names a role that listens" {
	load_stages='{ type = "partition"; offset = "2MiB"; }'
	topology
	run -2 "$GANTRY" check -p "$GANTRY_PLUGINS" "$conf"
	[[ $output == *'the stage "partition" changes the volume, and this role has no clients: use it in a role that listens'* ]]
}

@test "a partition without a length grows with the volume, one with a length does not" {
	processes
	bridge_stages='{ type = "partition"; offset = "2MiB"; }'
	topology
	serve_all
	begin load --set roles.load.workload.ops=0 --set roles.load.workload.pattern=randread \
		--set roles.load.workload.verify=none
	busy load 100
	truncate -s 8M "$dir/volume"
	logged load 'size of the volume changed id=[0-9a-f]* bytes=6291456'
	kill -TERM "${pids[load]}"
	finish load
	stop bridge
	serve bridge --set roles.bridge.stages.0.length=1MiB
	begin load --set roles.load.workload.ops=0 --set roles.load.workload.pattern=randread \
		--set roles.load.workload.verify=none
	busy load 100
	truncate -s 16M "$dir/volume"
	logged bridge 'bytes=16777216'
	run -1 grep 'size of the volume changed' "$dir/load.log"
	kill -TERM "${pids[load]}"
	finish load
	stop bridge store
}

@test "readonly: reads pass, writes are rejected" {
	bridge_stages='{ type = "readonly"; }'
	topology
	walk --set roles.load.workload.pattern=randread --set roles.load.workload.verify=none
	[ "$status" -eq 0 ] || { cat "$dir/walk.log"; return 1; }
	holds "$report" 'load.completed == 5000'
	walk
	[ "$status" -ne 0 ]
	grep -q 'read-only' "$dir/walk.log"
	cmp "$dir/volume" "$dir/before"
}
