# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# vhost-lib.sh - functions of tests with a front end of vhost-user-blk; a test file sources lib.sh before

vhost_setup() {
	walk_setup
	need vhost-user-blk
	program=$top_builddir/tests/walk/virtio_user
	disk=$dir/disk.sock
	disk_options=
	disk_connect=
}

event_index() { # COMMAND [ARGUMENT] - the front end negotiates the event index
	export VIRTIO_EVENT_IDX=1
	"$@"
}

packed() { # COMMAND [ARGUMENT] - the front end negotiates packed rings
	export VIRTIO_PACKED=1
	"$@"
}

machine() { # the roles of a test: a disk besides the others of the topology
	more_roles="disk = { role = \"vhost-user-blk\"; socket = \"$disk\"; $disk_options
		connect = ${disk_connect:-{ device = \"front\"; name = \"volume\"; $connect_options \}}; };"
	topology
}

serve_disk() { # all roles, a process for each
	processes
	machine
	serve_all
	begin disk
	logged disk ' listening \(socket'
}

guest() { # COMMAND [ARGUMENT]
	timeout "$seconds" "$program" "$disk" "$@" >"$dir/guest.out" 2>&1 </dev/null || {
		cat "$dir/guest.out"
		tail -n 20 "$dir"/*.log
		return 1
	}
}

ended() { # all roles end in order; the target and the gateway saw no error
	stop disk bridge store
	holds "$dir/store.json" 'store.sessions_lost == 0' 'store.ops_failed == 0'
	holds "$dir/bridge.json" 'bridge.sessions_lost == 0' 'bridge.list_bounces_ops == 0' "$(passed)"
	nothing_left
}

copies() { # COMMAND [ARGUMENT] - the role copies the memory of a front end like user-mode Linux
	export VIRTIO_UML=1
	disk_options="$disk_options memory = \"copy\";"
	"$@"
}
