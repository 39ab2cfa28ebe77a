#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
# The stage qos: IOs over a limit wait, complete once, and follow a change of the limit. unit/stage/qos checks the rates.

setup() {
	. "$BATS_TEST_DIRNAME/lib.sh"
	walk_setup
	[ -e "$GANTRY_PLUGINS/qos.so" ] || skip "built without the plugin qos"
}

teardown() {
	walk_teardown
}

delays='.stages[0].delayed_ops > 0'

@test "verified IO over the limits of target and gateway, on two lanes" {
	# a burst has less than 4 KiB, so the first IO waits
	store_stages='{ type = "qos"; iops = 4000; session_bandwidth = "2MiB"; burst = "1ms"; }'
	bridge_stages='{ type = "qos"; session_iops = 4000; bandwidth = "3MiB"; burst = "1ms"; }'
	topology
	walk --set roles.load.lanes=2 --set roles.bridge.lanes=2 --set roles.store.lanes=2 --set roles.load.workload.ops=500 \
		--set roles.load.workload.flush_every=50
	[ "$status" -eq 0 ] || { cat "$dir/walk.log"; return 1; }
	sound "$report" load
	holds "$report" 'load.completed >= 500' 'store.ops_failed == 0' ".roles.store$delays" ".roles.bridge$delays" \
		'.roles.store.stages[0] | .expired_ops == 0 and .canceled_ops == 0'
}

@test "two sessions, each with its limit" {
	processes
	store_stages='{ type = "qos"; session_bandwidth = "3MiB"; burst = "1ms"; }'
	more_roles='load2 = { role = "initiator"; connect = { device = "front"; name = "volume"; };
		workload = { pattern = "randrw"; depth = 4; time = "0s"; ops = 400;
			offset = "2MiB"; size = "1MiB"; verify = "stamp"; }; };'
	bridge_stages='{ type = "qos"; session_bandwidth = "3MiB"; burst = "1ms"; }'
	topology
	serve_all
	begin load2
	load_well --set roles.load.workload.ops=400
	finish load2
	[ "$status" -eq 0 ]
	sound "$dir/load2.json" load2
	stop bridge store
	agree $(($(completed load) + $(completed load2)))
	holds "$dir/bridge.json" '.roles.bridge.stages[0].delayed_ops >= 2'
}

changed() { # OPTION VALUE
	"$GANTRY" ctl --dir "$dir/stat" --pid "${pids[store]}" set "roles.store.stages[0].$1" "$2"
}

is_held() {
	live store '.roles.store.stages[0].delayed_ops > 0'
}

@test "IOs that wait pass when the limit is changed" {
	processes
	store_stages='{ type = "qos"; iops = 1; burst = "1ms"; }'
	topology
	serve_all
	begin load
	until_true is_held
	changed iops 0
	finish load
	[ "$status" -eq 0 ]
	sound "$dir/load.json" load
	stop bridge store
	agree "$(completed load)"
}

@test "an IO that waits until its deadline fails, and a session that ends leaves nothing behind" {
	processes
	store_stages='{ type = "qos"; iops = 1; burst = "1ms"; }'
	topology
	serve_all
	begin load --set roles.load.workload.deadline=300ms --set roles.load.continue_on_error=false
	finish load
	[ "$status" -eq 1 ]
	once "$dir/load.json" load
	stop bridge store
	holds "$dir/store.json" '.roles.store.stages[0] | .expired_ops + .canceled_ops > 0' 'store.double_completions == 0'
}

@test "a role that is stopped cancels the IOs that wait" {
	store_stages='{ type = "qos"; bandwidth = 1; burst = "1ms"; }'
	processes
	topology
	serve_all
	begin load
	until_true is_held
	stop store
	holds "$dir/store.json" '.roles.store.stages[0].canceled_ops > 0' 'store.double_completions == 0'
	finish load
	once "$dir/load.json" load
}
