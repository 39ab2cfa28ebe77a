#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
# A process ends even if a stage has lost an IO or does not return: it logs the stage and fails. The stage is a test
# plugin.

setup() {
	bats_require_minimum_version 1.5.0
	. "$BATS_TEST_DIRNAME/lib.sh"
	walk_setup
	need_liar
	processes
}

teardown() {
	walk_teardown
}

faulty() { # LIE - start a store whose first stage has this bug, and a client that triggers the bug
	store_stages="{ type = \"stats\"; }, { type = \"liar\"; lie = \"$1\"; only = \"writes\"; nth = 100; }"
	need stats
	topology
	serve_all
	begin load --set roles.load.workload.ops=0
	until_true live store '.roles.store.stages[1].counters.told > 0'
}

failed() { # NAME - the process ended with exit status 1
	finish "$1"
	[ "$status" -eq 1 ] || { echo "exit status $status"; cat "$dir/$1.log"; return 1; }
}

@test "a stage that loses an IO: the process names it and ends after stop_limit" {
	runtime_options='stop_limit = "300ms";'
	faulty forget
	kill -TERM "${pids[store]}"
	failed store
	says store 'roles.store did not end \(runtime.stop_limit=300 ms\)'
	says store 'roles.store: IOs are not completed: stages\[1\] type=liar holds them or has lost them \(n=.*lane=0\)'
	run ! says store 'stages.0. type=stats holds'
	holds "$dir/store.json" '.result == "failed"'
	[ -z "$(find "$dir/run" -name '*store*' -type s)" ]
}

@test "a stage that loses an IO of a session that ends: stat counts it at the stage, and the process names it" {
	listen_options='control_timeout = "100ms";'
	faulty forget
	until_true live store '.roles.store.stages[1].held_ops > 0'
	kill -KILL "${pids[load]}"
	logged store 'roles.store: session has ended, but IOs are still in flight id=[0-9a-f]* lanes=1'
	logged store 'roles.store: IOs are not completed: stages\[1\] type=liar holds them or has lost them \(n=.*lane=0\)'
	until_true live store '.roles.store.stages[0].held_ops == 0'
}

@test "a stage that does not return: a second signal ends the process" {
	faulty stick
	kill -TERM "${pids[store]}"
	until_true grep -q '^ShdPnd:[[:space:]]*0*$' "/proc/${pids[store]}/status" # two pending signals of one kind are one
	kill -TERM "${pids[store]}"
	finish store
	[ "$status" -eq 3 ]
	says store 'the control thread does not answer'
	says store 'stages\[1\] type=liar holds them or has lost them \(n=.*lane=0'
}

@test "a stage that does not return: stop_limit ends the process" {
	runtime_options='stop_limit = "100ms";'
	faulty stick
	kill -TERM "${pids[store]}"
	failed store
	says store 'stages\[1\] type=liar holds'
}
