#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
# A role exports and unexports a region while its session runs, and its IO in another region continues.

setup() {
	. "$BATS_TEST_DIRNAME/lib.sh"
	walk_setup
	[ -e "$top_builddir/tests/.libs/exporter.so" ] || skip "built without the test plugin exporter"
	extra=(-p "$top_builddir/tests/.libs")
	more_roles="swap = { role = \"exporter\"; connect = { device = \"front\"; name = \"volume\"; }; };"
}

teardown() {
	walk_teardown
}

together() { # [ARGUMENT...] - the roles in one process
	topology
	walk --role store --role bridge --role swap "$@"
	[ "$status" -eq 0 ] || { cat "$dir/walk.log" "$report"; return 1; }
	holds "$report" '.roles.swap.rounds == 20' 'store.ops_done > 1280' 'bridge.sessions_lost == 0' \
		'store.sessions_lost == 0'
}

apart() { # a process for each role
	processes
	topology
	serve_all
	begin swap
	finish swap
	[ "$status" -eq 0 ] || { tail -n 20 "$dir"/*.log; return 1; }
	stop bridge store
	holds "$dir/swap.json" '.roles.swap.rounds == 20'
	holds "$dir/store.json" 'store.sessions_lost == 0' 'store.ops_done > 1280'
	holds "$dir/bridge.json" 'bridge.sessions_lost == 0'
}

@test "over loop, on one thread" {
	together
	holds "$report" 'store.list_bounces_ops == 0'
}

@test "over loop, each role on a thread of its own" {
	together --set runtime.threads=separate
}

@test "over loop, to a file, whose target gathers and scatters the data of lists" {
	need file
	truncate -s 16M "$dir/volume"
	store_backend="type = \"file\"; path = \"$dir/volume\"; direct = false;"
	together --set runtime.threads=separate
	holds "$report" 'store.list_bounces_ops > 300' 'bridge.list_bounces_ops == 0'
}

@test "over loop, regions that the target cannot map" {
	back_device='transport = "loop"; mapped = false;'
	together --set runtime.threads=separate
}

@test "over loop, a target that delays IO" {
	store_stages='{ type = "fault"; delay = "2ms"; delay_nth = 3; }'
	together --set runtime.threads=separate
}

@test "over shm-comch, a process for each role" {
	apart
}

@test "over shm-comch, regions that the target cannot map" {
	back_device="transport = \"shm-comch\"; dir = \"$dir/run\"; mapped = false;"
	apart
}

@test "over shm-comch, to two targets as one volume" {
	processes
	bridge_connect="( { device = \"back\"; name = \"store\"; }, { device = \"back\"; name = \"store2\"; } )"
	store_backend='type = "memory"; size = "16KiB";' # the IO of the role is in both
	more_roles="$more_roles
		store2 = { role = \"target\"; listen = { device = \"back\"; name = \"store2\"; };
		           backend = { type = \"memory\"; size = \"16MiB\"; }; };"
	topology
	serve store
	serve store2
	serve bridge
	begin swap
	finish swap
	[ "$status" -eq 0 ] || { tail -n 20 "$dir"/*.log; return 1; }
	stop bridge store2 store
	holds "$dir/store.json" 'store.sessions_lost == 0' 'store.ops_done > 100'
	holds "$dir/store2.json" 'store2.sessions_lost == 0' 'store2.ops_done > 100'
}
