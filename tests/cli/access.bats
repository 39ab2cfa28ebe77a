#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
# Who may open the volume of a listener: gantry check and gantry run reject a rule that the transport cannot enforce.
#
# The test plugin tiny stands for a transport from elsewhere: its flags say nothing about its peers.

setup() {
	umask 022
	conf=$BATS_TEST_TMPDIR/t.conf
	tiny=$top_builddir/tests/.libs
	for plugin in target memory loop; do
		[ -e "$GANTRY_PLUGINS/$plugin.so" ] || skip "built without the plugin $plugin"
	done
	[ -e "$tiny/tiny.so" ] || skip "built without the test plugin tiny"
}

# target TRANSPORT OPTIONS - a target that listens on a device of that transport, with these options of `listen`
target() {
	cat >"$conf" <<-END
		devices = { d = { transport = "$1"; }; };
		roles = { store = { role = "target"; backend = { type = "memory"; size = "1MiB"; };
		  listen = { device = "d"; address = "192.0.2.7:7471";
		    $2 }; }; };
	END
}

gantry() {
	run timeout 60 "$GANTRY" "$1" -p "$tiny" -p "$GANTRY_PLUGINS" "$conf" "${@:2}"
	echo "$output"
}

# wrong TEXT... - check and run print these messages, without "gantry: FILE:", and fail with status 2
wrong() {
	for command in run check; do
		gantry $command
		for text in "$@"; do
			[[ "$output" == *"gantry: $conf:$text"* ]] || { echo "expected: $text"; return 1; }
		done
		[ "$status" -eq 2 ]
	done
}

good() {
	gantry check "$@"
	[ "$status" -eq 0 ]
}

@test "users on a device that does not report them" {
	local text="4: roles.store.listen.uids: the transport of the device does not report the user of a peer (device=d, "
	target tiny 'uids = "0,1000";'
	wrong "$text""transport=tiny): leave uids out"
	target tiny 'uids = "";' # only the user that runs this
	wrong "$text"
}

@test "users on a device that reports them" {
	target loop 'uids = "0,1000";'
	good
	[ -e "$GANTRY_PLUGINS/shm-comch.so" ] || skip "built without the plugin shm-comch"
	target shm-comch 'uids = "0,1000";'
	good --set "devices.d.dir=$BATS_TEST_TMPDIR/run"
}

@test "users over RDMA" {
	for plugin in rdma-verbs rxe; do
		[ -e "$GANTRY_PLUGINS/$plugin.so" ] || skip "built without the plugin $plugin"
		target $plugin 'uids = "0";'
		wrong "4: roles.store.listen.uids: the transport of the device does not report the user of a peer (device=d, transport=$plugin)"
	done
}
