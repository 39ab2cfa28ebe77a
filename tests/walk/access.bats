#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
# Rows of listen.allow for users of this machine: rights, and their withdrawal by a reload.

setup() {
	. "$BATS_TEST_DIRNAME/lib.sh"
	walk_setup
	processes
	me=$(id -u)
}

teardown() {
	walk_teardown
}

allow() { # ROW... - rows of both listeners
	listen_options="allow = ( $* );"
	topology
}

# replace_rows ROW... - edit the rows in the file, and let the gateway reload it
replace_rows() {
	sed -i "s/allow = ( .* );/allow = ( $* );/" "$conf"
	"$GANTRY" ctl --dir "$dir/stat" --pid "${pids[bridge]}" reload
}

@test "a row permits its user everything" {
	allow "{ uid = $me; }"
	serve_all
	load_well
	stop bridge store
	agree "$(completed load)"
}

@test "access ro: reads work, a workload that writes is refused before its first IO" {
	allow "{ uid = $me; access = \"ro\"; }"
	serve_all
	begin load --set roles.load.workload.pattern=randread --set roles.load.workload.verify=none
	finish load
	[ "$status" -eq 0 ]
	holds "$dir/load.json" 'load.errors == {}'
	begin load
	finish load
	[ "$status" -eq 1 ]
	says load 'does not support the workload: it is read-only'
	logged store 'session started .* access=ro'
	stop bridge store
}

@test "a user without a row cannot connect" {
	allow "{ uid = $((me + 1)); }"
	serve_all
	begin load --set roles.load.connect.timeout=100ms
	finish load
	[ "$status" -eq 1 ]
	logged bridge "connection refused pid=[0-9]+ uid=$me reason=\"its user is not allowed \(listen.allow\)\""
	stop bridge store
}

@test "a reload that removes a row ends its sessions" {
	allow "{ uid = $me; }"
	serve_all
	begin load --set roles.load.workload.ops=0
	busy load
	replace_rows "{ uid = $((me + 1)); }"
	logged bridge "access was withdrawn: session ends id=[0-9a-f]+ identity= uid=$me"
	finish load
	[ "$status" -eq 1 ]
	stop bridge store
}

# rows - the rows of the gateway, as gantry ctl config shows them, on one line
rows() {
	"$GANTRY" ctl --dir "$dir/stat" --pid "${pids[bridge]}" config | jq -r .text | sed -n '/bridge/,/connect/p' | xargs
}

# has_uids UID... - the rows have these uids
has_uids() {
	local uids=$*
	[ "$(rows | grep -o 'uid = [0-9]*' | xargs)" = "uid = ${uids// / uid = }" ]
}

@test "after a reload, the configuration shows the rows in force" {
	allow "{ uid = $me; }"
	serve_all
	has_uids "$me"
	replace_rows "{ uid = $((me + 1)); access = \"ro\"; sessions = 2; volumes = ( \"volume0\" ); }, { uid = $((me + 2)); }"
	has_uids $((me + 1)) $((me + 2))
	[[ "$(rows)" == *'access = ro; sessions = 2; volumes = ( volume0 );'* ]]
	# a change of another setting, and a reload by the signal
	"$GANTRY" ctl --dir "$dir/stat" --pid "${pids[bridge]}" set runtime.log debug
	has_uids $((me + 1)) $((me + 2))
	sed -i "s/allow = ( .* );/allow = ( { uid = $me; } );/" "$conf"
	kill -HUP "${pids[bridge]}"
	until_true has_uids "$me"
	load_well
	stop bridge store
}

@test "a reload that changes nothing for a peer leaves its session alone" {
	allow "{ uid = $me; }"
	serve_all
	begin load --set roles.load.workload.ops=0
	busy load
	replace_rows "{ uid = $((me + 1)); }, { uid = $me; }"
	recovers
}
