#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
# Things that happen at the same time in one process; worth most where the thread sanitizer is built in.

setup() {
	. "$BATS_TEST_DIRNAME/lib.sh"
	walk_setup
	lanes=(--set roles.load.lanes=2 --set roles.bridge.lanes=2 --set roles.store.lanes=2 --set runtime.threads=separate)
}

teardown() {
	walk_teardown
}

@test "an initiator reports while it runs, and stops on SIGTERM" {
	need stats fault
	load_stages='{ type = "stats"; }'
	bridge_stages='{ type = "stats"; }, { type = "fault"; delay = "100us"; delay_nth = 50; }'
	topology
	begin load --role store --role bridge "${lanes[@]}" --set roles.load.workload.ops=0
	busy load 5000
	for _ in 1 2 3 4 5; do
		live load '.roles | has("load") and has("bridge") and has("store")'
	done
	kill -TERM "${pids[load]}"
	finish load
	[ "$status" -eq 3 ] || { cat "$dir/load.log"; return 1; }
	once "$dir/load.json" load
	holds "$dir/load.json" 'load.errors == {}' 'load.completed == store.ops_done' "$(findings load) == 0"
}

@test "a session is lost with all lanes busy" {
	need fault
	bridge_stages='{ type = "fault"; disconnect_after = 2000; }'
	topology
	walk "${lanes[@]}"
	[ "$status" -eq 1 ] || { cat "$dir/walk.log"; return 1; }
	once "$report" load
	holds "$report" 'load.errors.SESSION_LOST > 0'
}

@test "a race between lanes is seen by the thread sanitizer" {
	need_liar
	grep -q __tsan_init "$GANTRY" || skip "built without the thread sanitizer"
	bridge_stages='{ type = "liar"; lie = "race"; }'
	topology
	walk "${lanes[@]}"
	[ "$status" -eq 66 ]
	says walk 'data race'
}
