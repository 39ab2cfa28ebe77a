#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
# A file and the loop devices over it are one store: only one target can serve it. Needs loop devices, and root.

setup() {
	bats_require_minimum_version 1.5.0
	. "$BATS_TEST_DIRNAME/lib.sh"
	walk_setup
	need file
	processes
	truncate -s 16MiB "$dir/disk"
	loops=()
	attach over "$dir/disk"
}

teardown() {
	walk_teardown
	local i
	for ((i = ${#loops[@]}; i-- > 0;)); do
		losetup -d "${loops[i]}" || true
	done
}

attach() { # NAME FILE [OPTION...] - attach a new loop device to the file and link it to $dir/NAME
	local device file=$2 name=$1
	shift 2
	device=$(losetup -f --show "$@" "$file" 2>/dev/null) || skip "no loop device can be attached here"
	loops+=("$device")
	ln -s "$device" "$dir/$name"
}

# Detach the loop device that was attached last. The kernel detaches it when nothing has it open; a target that another test
# starts opens each loop device for a moment.
detach() {
	losetup -d "${loops[-1]}"
	until_true test ! -e "/sys/block/${loops[-1]##*/}/loop"
	unset 'loops[-1]'
}

served() { # PATH [OPTIONS] - serve it by the role `store`
	store_backend="type = \"file\"; path = \"$dir/$1\"; $2"
	topology
	serve store
}

refused() { # PATH TEXT [OPTIONS] - a second target with another service name fails with this text
	local status=0
	store_backend="type = \"file\"; path = \"$dir/$1\"; $3"
	store_at='name = "second";'
	topology
	store_at='name = "store";'
	timeout "$seconds" "$GANTRY" run -p "$GANTRY_PLUGINS" "$conf" --role store >"$dir/second.log" 2>&1 3>&- || status=$?
	[ "$status" -eq 1 ] || { echo "exit status $status"; cat "$dir/second.log"; return 1; }
	says second "$2"
}

@test "the file of a loop device that is served" {
	served over
	refused disk 'disk: in use by another process;'
	stop store
}

@test "a loop device over a file that is served" {
	detach
	rm "$dir/over"
	served disk
	attach over "$dir/disk"
	refused over 'over: in use by another process that uses the backing file of this loop device;'
	stop store
}

@test "two loop devices over one file, and one over a loop device" {
	served over
	attach other "$dir/disk"
	refused other \
		'other: in use by (loop device loop[0-9]+ attached|another process that uses the backing file of this loop device)'
	detach
	attach upper "${loops[0]}"
	refused upper 'upper: in use by another process'
	stop store
}

@test "a loop device is attached to the file, and nothing serves it" {
	refused disk 'disk: in use by loop device loop[0-9]+ attached to this file;'
	detach
	served disk
	stop store
}

@test "read-only targets share a volume" {
	detach
	rm "$dir/over"
	attach over "$dir/disk" -r
	refused disk 'disk: in use by loop device'
	served disk 'read_only = true;'
	stop store
}

@test "the store of a target that has ended or was killed can be served again" {
	served over
	stop store
	served over
	slay store
	served over 'lock_wait = "30s";'
	stop store
	detach
	served disk
	stop store
}

@test "a device is free when its target has ended" {
	local i
	for ((i = 0; i < 20; i++)); do
		served over
		stop store
	done
}
