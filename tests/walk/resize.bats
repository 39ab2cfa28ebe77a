#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
# The file of a volume grows and shrinks while IO runs: each role learns the new size, and IO beyond the end fails with RANGE.

setup() {
	bats_require_minimum_version 1.5.0
	. "$BATS_TEST_DIRNAME/lib.sh"
	walk_setup
	need file
	truncate -s 4M "$dir/volume"
	store_backend="type = \"file\"; path = \"$dir/volume\"; direct = false;"
}

teardown() {
	walk_teardown
}

forever() { # start the initiator, which reads the first MiB of the volume without an end
	begin load --set roles.load.workload.ops=0 --set roles.load.workload.pattern=randread \
		--set roles.load.workload.verify=none --set roles.load.continue_on_error=true
	busy load 100
}

end_load() {
	kill -TERM "${pids[load]}"
	finish load
}

@test "growth and shrinkage reach the gateway and the initiator, over shm-comch" {
	processes
	topology
	serve_all
	forever
	truncate -s 8M "$dir/volume"
	logged store 'size of the volume has changed from 4194304 to 8388608 bytes'
	logged bridge 'size of the volume changed id=[0-9a-f]* bytes=8388608'
	logged load 'size of the volume changed id=[0-9a-f]* bytes=8388608'
	live load '.roles.load.errors == {}'
	until_true live store '.roles.store.volume.size_bytes == 8388608'
	truncate -s 512K "$dir/volume"
	logged load 'size of the volume changed id=[0-9a-f]* bytes=524288'
	until_true live load '.roles.load.errors.RANGE > 10'
	before=$("$GANTRY" stat --dir "$dir/stat" --json load | jq '.processes[0].roles.load.completed')
	busy load $((before + 1000))
	truncate -s 8M "$dir/volume"
	end_load
	stop bridge store
	holds "$dir/store.json" 'store.sessions_lost == 0'
	holds "$dir/load.json" '.roles.load.errors | keys - ["IO", "RANGE"] == []'
}

@test "a size of 0 is not applied" {
	processes
	topology
	serve_all
	forever
	truncate -s 0 "$dir/volume"
	logged store 'sessions keep their size of 4194304 bytes: the new size of 0 bytes is 0 or not a multiple'
	live load '.roles.load.completed > 0'
	end_load
	stop bridge store
}

paths_learn_it() { # FIRST - growth is reported on the first path, and on the other path after FIRST was killed
	forever
	truncate -s 8M "$dir/volume"
	logged load 'size of the volume changed id=[0-9a-f]* bytes=8388608'
	slay "$1"
	logged load 'session resumed'
	truncate -s 12M "$dir/volume"
	logged load 'size of the volume changed id=[0-9a-f]* bytes=12582912'
	end_load
	holds "$dir/load.json" 'load.errors == {}'
}

@test "growth reaches an initiator with two gateways on each path" {
	connect_options='resume = "30s"; timeout = "300ms";'
	processes
	two_gateways
	serve_all
	serve bridge2
	paths_learn_it bridge
	stop bridge2 store
}

@test "growth reaches an initiator behind a gateway with two paths on each path" {
	connect_options='resume = "30s"; timeout = "300ms";'
	processes
	two_paths
	serve store
	serve bridge2
	serve bridge3
	serve bridge
	paths_learn_it bridge2
	logged bridge 'size of the volume changed id=[0-9a-f]* bytes=12582912'
	stop bridge bridge3 store
}

two_targets() { # MODE - start a gateway with the target of the file, and another one
	need memory
	processes
	more_roles="store2 = { role = \"target\"; listen = { device = \"back\"; name = \"other\"; };
		backend = { type = \"memory\"; size = \"4MiB\"; }; };"
	bridge_connect='( { device = "back"; name = "store"; }, { device = "back"; name = "other"; } )'
	topology
	serve store2
	serve store
	serve bridge --set "roles.bridge.mode=$1"
}

two_targets_ignore_it() { # MODE
	two_targets "$1"
	forever
	truncate -s 8M "$dir/volume"
	logged bridge 'target 0: the new size of 8388608 bytes is ignored: the volume has several targets'
	live load '.roles.load.errors == {}'
	run ! says load 'size of the volume changed'
	end_load
	stop bridge store store2
}

@test "a gateway with two targets ignores it, and names the target" {
	two_targets_ignore_it concat
}

@test "a gateway that stripes two targets ignores it, and names the target" {
	two_targets_ignore_it stripe
}

@test "a session ends if the first of two targets has grown when it resumes" {
	connect_options='resume = "30s"; timeout = "300ms";'
	two_targets concat
	forever
	truncate -s 8M "$dir/volume"
	logged bridge 'target 0: the new size of 8388608 bytes is ignored'
	slay bridge
	serve bridge
	finish load
	[ "$status" -eq 1 ]
	says load 'another volume \(uuid='
	holds "$dir/load.json" '.roles.load.errors.STALE > 0'
	stop bridge store store2
}
