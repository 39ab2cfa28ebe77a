#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
# gantry vm: the options of QEMU. tests/vm/vhost.sh starts QEMU with them.

setup() {
	conf=$BATS_TEST_TMPDIR/disks.conf
	cat >"$conf" <<-'EOF'
	devices = { wire = { transport = "loop"; }; };
	roles = {
		store = {
			role = "target"; listen = { device = "wire"; name = "v"; };
			backend = { type = "null"; size = "1MiB"; };
		};
		root = { role = "vhost-user-blk"; lanes = 4; connect = { device = "wire"; name = "v"; }; socket = "root.sock"; };
		data = { role = "vhost-user-blk"; connect = { device = "wire"; name = "v"; }; socket = "it's a, b.sock"; };
	};
	EOF
}

# vm ARGUMENT...
vm() {
	run "$GANTRY" vm -p "$GANTRY_PLUGINS" "$@"
}

memory() { # SIZE
	echo "-m $1"
	echo "-object memory-backend-memfd,id=gantry-memory,size=$1,share=on,seal=on"
	echo "-numa node,memdev=gantry-memory"
}

@test "memory, and the disk of each role with a queue for each lane" {
	vm "$conf" --role root
	[ "$status" -eq 0 ]
	[ "$output" = "$(memory 1024M)
-chardev socket,id=gantry-root,path=root.sock,reconnect=1
-device vhost-user-blk-pci,chardev=gantry-root,num-queues=4" ]
	vm "$conf" 3GiB --set roles.root.lanes=2
	[ "$status" -eq 0 ]
	[[ "$output" == "$(memory 3072M)"* ]]
	[[ "$output" == *'chardev=gantry-root,num-queues=2'* ]]
	[[ "$output" == *'chardev=gantry-data,num-queues=1'* ]]
}

@test "QEMU gets any path, through a shell or as JSON" {
	local path='path=it'\''s a,, b.sock,reconnect=1' # a comma is written twice
	vm "$conf" --role data
	[ "$status" -eq 0 ]
	eval "set -- $(tr '\n' ' ' <<<"$output")"
	[ "${8}" = "socket,id=gantry-data,$path" ]
	[ $# -eq 10 ]
	vm "$conf" --role data --json
	[ "$(jq -r '.qemu | length' <<<"$output")" -eq 10 ]
	[ "$(jq -r '.qemu[7]' <<<"$output")" = "socket,id=gantry-data,$path" ]
}

@test "what cannot be printed is an error of the command line" {
	local size
	for size in 0 1000 1K 1.5G abc 99999999T; do
		vm "$conf" "$size"
		[ "$status" -eq 2 ]
		[[ "$output" == *"size of memory is not valid (value=$size): state whole MiB"* ]]
	done
	vm "$conf" --role store
	[ "$status" -eq 2 ]
	[[ "$output" == *'disks.conf: no role serves a disk to a virtual machine: add one'* ]]
	vm "$conf" --set roles.root.sockte=1
	[ "$status" -ne 0 ]
	[[ "$output" == *sockte* ]]
	vm
	[ "$status" -eq 2 ]
}
