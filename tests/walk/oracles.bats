#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
# Tests of the checks that the other walk tests use: with a bug in the data path, each check fails. The bugs come from the stages
# liar (a test plugin) and fault.

setup() {
	. "$BATS_TEST_DIRNAME/lib.sh"
	walk_setup
	need fault
	need_liar
}

teardown() {
	walk_teardown
}

# The verdict on what was read is KIND, that is an error, and neither `sound` nor the exit status is that of a good run.
found() { # KIND
	[ "$status" -eq 1 ]
	holds "$report" ".roles.load.verify.$1 > 0" "$(findings load) > 0" '.result == "failed"'
	says walk "$1 data at offset [0-9]+: expected a write"
	run ! sound "$report" load
}

@test "a lost write: stale" {
	store_stages='{ type = "liar"; lie = "lose"; nth = 200; }'
	topology
	walk
	found stale
	holds "$report" "load.verify | .wrong_block + .torn + .corrupt + .foreign == 0"
}

@test "a lost first write: missing" {
	store_stages='{ type = "liar"; lie = "lose"; nth = 3; }'
	topology
	walk --set roles.load.workload.pattern=write --set roles.load.workload.ops=256
	found missing
}

@test "a lost write over that of another session: foreign" {
	need file
	store_backend="type = \"file\"; path = \"$dir/volume\"; create = true; size = \"1MiB\";"
	topology
	walk --set roles.load.workload.pattern=write --set roles.load.workload.ops=256
	[ "$status" -eq 0 ]
	store_stages='{ type = "liar"; lie = "lose"; nth = 3; }'
	topology
	walk --set roles.load.workload.pattern=write --set roles.load.workload.ops=256
	found foreign
}

@test "a write to the wrong place, a read from the wrong place: wrong_block" {
	store_stages='{ type = "liar"; lie = "misdirect"; nth = 200; }'
	topology
	walk
	found wrong_block
	store_stages='{ type = "liar"; lie = "misdirect"; only = "reads"; nth = 200; }'
	topology
	walk
	found wrong_block
}

@test "half a write: torn" {
	store_stages='{ type = "liar"; lie = "tear"; nth = 200; }'
	topology
	walk --set roles.load.workload.block=8KiB --set roles.load.workload.size=256KiB
	found torn
}

@test "a bit on the way, in a read or in a write: corrupt" {
	load_stages='{ type = "fault"; only = "read"; corrupt_nth = 200; }'
	topology
	walk
	found corrupt
	load_stages='{ type = "fault"; only = "write"; corrupt_nth = 200; }'
	topology
	walk
	found corrupt
}

@test "an IO that never comes back: the run does not end, and the counts show it" {
	load_stages='{ type = "liar"; lie = "forget"; nth = 100; }'
	topology
	begin load --role store --role bridge
	until_true live load '.roles.load | .submitted > .completed and .progress.done > 0'
	seconds=1
	run ! finish load
	n=$("$GANTRY" stat --dir "$dir/stat" --json | jq '.processes[0].roles.load | .submitted - .completed')
	[ "$n" -gt 0 ]
	kill -KILL "${pids[load]}"
}

@test "an IO that a gateway answers itself: the two ends do not count the same" {
	bridge_stages='{ type = "liar"; lie = "lose"; nth = 100; }'
	topology
	walk
	holds "$report" 'load.completed == bridge.ops_done' 'load.completed > store.ops_done'
}

@test "a second completion: counted, and neither data nor counts suffer" {
	for where in load bridge store; do
		load_stages='' bridge_stages='' store_stages=''
		declare "${where}_stages={ type = \"fault\"; duplicate_nth = 50; }"
		topology
		walk --set roles.load.continue_on_error=true
		once_doubled "$where"
		grep -q "roles.$where: a stage or backend completed .*: check_stages = true names it" "$dir/walk.log"
	done
}

@test "a second completion with check_stages: log and report name the stage" {
	for where in load bridge store; do
		load_stages='' bridge_stages='' store_stages=''
		declare "${where}_stages={ type = \"stats\"; }, { type = \"fault\"; duplicate_nth = 50; }"
		topology
		walk --set roles.load.continue_on_error=true --set roles.load.check_stages=true \
			--set roles.bridge.check_stages=true \
			--set roles.store.check_stages=true
		holds "$report" 'load.completed == store.ops_done' 'load.errors == {}' \
			".roles.$where.stages[1] | .double_completions > 10" \
			".roles.$where.stages[1] | .double_completions == .duplicated_ops" \
			".roles.$where | .counters.double_completions == .stages[1].double_completions" \
			'[.roles[] | (.backend, .connect, .stages[0]) | values | .double_completions] | add == 0'
		[ "$(grep -c 'completed an IO that it does not hold' "$dir/walk.log")" -eq 1 ]
		grep -q "roles.$where: plugin bug: stages\[1\] type=fault completed an IO .* (lane=0)" "$dir/walk.log"
	done
}

once_doubled() { # ROLE
	holds "$report" ".roles.$1.counters.double_completions > 10" ".roles.$1.stages[0].duplicated_ops > 10" \
		".roles.$1.counters.double_completions == .roles.$1.stages[0].duplicated_ops" "$(findings load) == 0" \
		'load.submitted == load.completed' 'load.completed == store.ops_done' 'load.errors == {}'
	[ "$1" != load ] || run ! once "$report" load
}

@test "a descriptor that a server leaves open is seen" {
	processes
	bridge_stages='{ type = "liar"; lie = "leak"; nth = 1000; }'
	topology
	serve_all
	mark bridge store
	begin load
	finish load
	[ "$status" -eq 0 ]
	clean store
	seconds=1
	run ! clean bridge
}

@test "a late notice, a socket left behind: seen" {
	processes
	topology
	serve_all
	begin load --set roles.load.workload.ops=0
	busy load
	kill -KILL "${pids[load]}"
	died=$(now_ms)
	within bridge 'session lost' "$died" 1000
	run ! within bridge 'session lost' "$((died - 5000))" 1000
	kill -KILL "${pids[bridge]}" "${pids[store]}"
	wait
	run ! nothing_left
}

@test "a mapping of the data is seen where there is one" {
	processes
	topology
	serve_all
	begin load --set roles.load.workload.ops=0
	busy load
	grep -q gantry-region "/proc/${pids[store]}/maps"
}
