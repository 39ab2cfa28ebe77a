#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
# A gateway with mode "stripe": chunks of one volume alternate between two targets.

setup() {
	. "$BATS_TEST_DIRNAME/lib.sh"
	walk_setup
	need file
	store_backend="type = \"file\"; path = \"$dir/left\"; create = true; size = \"2MiB\";"
	bridge_connect='( { device = "back"; name = "store"; }, { device = "back"; name = "store2"; } )'
	more_roles="store2 = { role = \"target\"; listen = { device = \"back\"; name = \"store2\"; };
	            backend = { type = \"file\"; path = \"$dir/right\"; create = true; size = \"2MiB\"; }; };"
	topology
	striped=(--set roles.bridge.mode=stripe)
}

teardown() {
	walk_teardown
}

chunks() { # FILE CHUNK PARITY - print each second chunk of a file
	local n=$(($(stat -c %s "$1") / $2)) i
	for ((i = $3; i < n; i += 2)); do
		dd if="$1" bs="$2" skip="$i" count=1 status=none
	done
}

transfer() { # from|to FILE [ARGUMENT...] - copy a file to the volume, or the volume to a file, in one process
	local way=$1 file=$2
	shift 2
	sed '/workload =/d' "$conf" >"$dir/copy.conf"
	timeout 30 "$GANTRY" run -p "$GANTRY_PLUGINS" "$dir/copy.conf" --set "roles.load.copy.$way=$file" "${striped[@]}" "$@" \
		>"$dir/log" 2>&1
}

@test "verified reads and writes, with IOs of several chunks" {
	walk "${striped[@]}" --set roles.bridge.chunk=4KiB --set roles.load.workload.block=16KiB \
		--set roles.load.workload.size=4MiB --set roles.load.workload.flush_every=100 --set roles.load.lanes=2 \
		--set roles.bridge.lanes=2
	[ "$status" -eq 0 ] || { cat "$dir/walk.log"; return 1; }
	sound "$report" load
	# two chunks of each IO on each target
	holds "$report" 'load.completed == bridge.ops_done' 'store.ops_done == store2.ops_done' \
		'store.ops_failed + store2.ops_failed == 0' 'store.ops_done >= 2 * (load.completed - load.flushes.ops)'
}

@test "each chunk is on its target" {
	head -c 4194304 /dev/urandom >"$dir/in"
	transfer from "$dir/in" --set roles.bridge.chunk=32KiB
	chunks "$dir/in" 32768 0 | cmp - "$dir/left"
	chunks "$dir/in" 32768 1 | cmp - "$dir/right"
	transfer to "$dir/out" --set roles.bridge.chunk=32KiB
	cmp "$dir/in" "$dir/out"
}

@test "targets in another order, or another chunk size, are another volume: uuid rejects them" {
	head -c 4194304 /dev/urandom >"$dir/in"
	transfer from "$dir/in" --set roles.bridge.uuid=00000000-0000-4000-8000-000000000001 && return 1
	grep -q 'expected=00000000-0000-4000-8000-000000000001): check connect and chunk' "$dir/log"
	uuid=$(sed -n 's/.*(uuid=\([0-9a-f-]*\),.*/\1/p' "$dir/log" | head -n 1)
	transfer from "$dir/in" --set roles.bridge.uuid="$uuid"
	transfer to "$dir/out" --set roles.bridge.uuid="$uuid"
	cmp "$dir/in" "$dir/out"
	transfer to "$dir/out2" --set roles.bridge.uuid="$uuid" --set roles.bridge.chunk=32KiB && return 1
	grep -q "expected=$uuid" "$dir/log"
	bridge_connect='( { device = "back"; name = "store2"; }, { device = "back"; name = "store"; } )'
	topology
	transfer to "$dir/out2" --set roles.bridge.uuid="$uuid" && return 1
	grep -q "expected=$uuid" "$dir/log"
}

@test "a chunk that is no multiple of the block size is rejected" {
	walk "${striped[@]}" --set roles.bridge.chunk=4352
	[ "$status" -ne 0 ]
	grep -q 'chunk is not a multiple of the block size' "$dir/walk.log"
}
