#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
# uuid and verifier of a volume after its target was killed and restarted.

setup() {
	. "$BATS_TEST_DIRNAME/lib.sh"
	walk_setup
	need file null
	store_backend="type = \"file\"; path = \"$dir/volume\";"
	processes
	topology
	head -c 1048576 /dev/zero >"$dir/volume"
}

teardown() {
	walk_teardown
}

identity() { # KEY - print uuid or verifier of the running volume
	"$GANTRY" stat --dir "$dir/stat" --json store | jq -re ".processes[0].roles.store.volume.$1"
}

remember() { # set uuid and verifier
	uuid=$(identity uuid)
	verifier=$(identity verifier)
	[[ "$uuid" =~ ^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$ ]]
	[[ "$verifier" =~ ^[0-9a-f]{16}$ ]]
}

@test "a file target that is killed and started again has the same UUID and verifier" {
	serve_all
	remember
	begin load --set roles.load.workload.ops=0
	busy load
	slay store
	finish load
	[ "$status" -eq 1 ]
	serve store --set roles.store.backend.lock_wait=30s
	[ "$(identity uuid)" = "$uuid" ]
	[ "$(identity verifier)" = "$verifier" ]
	stop store bridge
}

@test "another file under the same name is another volume" {
	serve store
	remember
	if grep -q 'cannot store a UUID' "$dir/store.log"; then skip "no user attributes in $dir"; fi
	stop store
	mv "$dir/volume" "$dir/old"
	head -c 1048576 /dev/zero >"$dir/volume"
	serve store
	[ "$(identity uuid)" != "$uuid" ]
	[ "$(identity verifier)" != "$verifier" ]
	stop store
	# a copy with the attributes is the same volume, but it may have other data
	cp --preserve=xattr "$dir/old" "$dir/copy"
	mv "$dir/copy" "$dir/volume"
	serve store
	[ "$(identity uuid)" = "$uuid" ]
	[ "$(identity verifier)" != "$verifier" ]
	stop store
}

@test "a memory target that is started again has another verifier, a null target the same" {
	store_backend='type = "memory"; size = "1MiB";'
	topology
	serve store
	remember
	slay store
	serve store
	[ "$(identity uuid)" = "$uuid" ]
	[ "$(identity verifier)" != "$verifier" ]
	stop store
	store_backend='type = "null"; size = "1MiB"; uuid = "0e7a1ed7-5c2c-4f5e-9a53-6d6f1c0f8b11";'
	topology
	serve store
	remember
	[ "$uuid" = 0e7a1ed7-5c2c-4f5e-9a53-6d6f1c0f8b11 ]
	slay store
	serve store
	[ "$(identity verifier)" = "$verifier" ]
	stop store
}

@test "check writes nothing, and names the option that is wrong" {
	before=$(stat -c '%y %z' "$dir/volume")
	"$GANTRY" check -p "$GANTRY_PLUGINS" "$conf" --role store
	[ "$(stat -c '%y %z' "$dir/volume")" = "$before" ]
	run "$GANTRY" check -p "$GANTRY_PLUGINS" "$conf" --role store --set roles.store.backend.uuid=0e7a1ed7
	[ "$status" -ne 0 ]
	[[ "$output" == *uuid*"is not a UUID"*uuidgen* ]]
}
