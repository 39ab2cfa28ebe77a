#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
# gantry devices: the devices that transports find, missing requirements, and the devices of a configuration.

setup() {
	umask 022
	conf=$BATS_TEST_TMPDIR/t.conf
	tiny=$top_builddir/tests/.libs
	for plugin in target memory loop shm-comch; do
		[ -e "$GANTRY_PLUGINS/$plugin.so" ] || skip "built without the plugin $plugin"
	done
	[ -e "$tiny/tiny.so" ] || skip "built without the test plugin tiny"
	export XDG_RUNTIME_DIR=$BATS_TEST_TMPDIR
	pid=
}

teardown() {
	[ -z "$pid" ] || kill -KILL "$pid" 2>/dev/null || true
}

# The list of all transports of the build and of tiny.
devices() {
	run "$GANTRY" devices -p "$tiny" -p "$GANTRY_PLUGINS" "$@"
	echo "$output"
}

says() {
	[[ "$output" == *"$1"* ]] || { echo "expected: $1"; return 1; }
}

# One target; $1: options of its device of the transport tiny
target() {
	cat >"$conf" <<-END
		devices = { small = { transport = "tiny"; auth = "none"; $1 }; other = { transport = "loop"; }; };
		roles = { store = { role = "target"; listen = { device = "small"; name = "v"; max_depth = 8; };
		  backend = { type = "memory"; size = "1MiB"; }; }; };
	END
}

@test "each transport has its part; plugins of other kinds have none" {
	devices
	[ "$status" -eq 0 ]
	says "loop: nothing to find, each process has its own"
	says "shm-comch: nothing found"
	says "tiny: nothing found"
	[[ "$output" != *memory* && "$output" != *target* ]]
	[ -z "$(ls "$BATS_TEST_TMPDIR")" ]
}

@test "a device with a capability whose function its plugin lacks is rejected" {
	target "notes = true;"
	devices "$conf"
	[ "$status" -eq 1 ]
	text="plugin bug: info reports a capability that needs the missing function \"rma_write_imm\""
	says "devices.small: $tiny/tiny.so: $text"
	says "  small  cannot be opened: Operation not supported"
	for command in check run; do
		run "$GANTRY" $command -p "$tiny" -p "$GANTRY_PLUGINS" "$conf"
		echo "$output"
		[ "$status" -eq 1 ]
		says "$tiny/tiny.so: plugin bug: info reports a capability that needs the missing function \"rma_write_imm\""
	done
}

@test "the name of a configuration that JSON cannot hold" {
	target
	mv "$conf" "$BATS_TEST_TMPDIR/"$'\xfc.conf'
	conf=$BATS_TEST_TMPDIR/$'\xfc.conf'
	devices --json "$conf"
	[ "$status" -eq 0 ]
	says "\"config\": \"$BATS_TEST_TMPDIR/?.conf\""
}

@test "found devices are listed with name, state, limits and addresses" {
	GANTRY_TINY=mlx5_0,rxe0 devices
	[ "$status" -eq 0 ]
	says "tiny: 2 found
  mlx5_0  active
    max queue pairs       64
    gids                  fe80::1, ::ffff:192.0.2.7
  rxe0  active"
	GANTRY_TINY=rxe0 devices --json
	[ "$status" -eq 0 ]
	says '"schema": 1,'
	says '"tiny": {'
	says '"name": "rxe0"'
	says '"problems": []'
	[[ "$output" == "{"*"}" ]]
}

@test "the part of a transport, not the log, reports why it finds no devices" {
	GANTRY_TINY="-no RDMA device; load one: modprobe rdma_rxe" devices
	[ "$status" -eq 0 ]
	says "tiny: nothing found
  no RDMA device; load one: modprobe rdma_rxe"
	[[ "$output" != *"error"* ]]
	GANTRY_TINY="-no way" devices --json
	[ "$status" -eq 0 ]
	says '"problems": [
        "no way"
      ]'
}

@test "shm-comch: services in the usual directory, served or left behind, and nothing is touched" {
	target
	sed -i '1s/.*/devices = { small = { transport = "shm-comch"; pci = "03:00.0"; }; };/; s/"v"/"vol a"/' "$conf"
	"$GANTRY" run -p "$GANTRY_PLUGINS" "$conf" >"$BATS_TEST_TMPDIR/out" 2>&1 3>&- &
	pid=$!
	for _ in $(seq 1000); do
		devices | grep -q "vol a  served" && break
		kill -0 "$pid"
	done
	devices
	says "shm-comch: 1 found
  vol a  served
    pci                   03:00.0"
	kill -KILL "$pid"
	wait "$pid" || true
	pid=
	for _ in 1 2; do
		devices
		[ "$status" -eq 0 ]
		says "  vol a  left behind"
	done
	rm -r "$BATS_TEST_TMPDIR/gantry"
	touch "$BATS_TEST_TMPDIR/gantry"
	devices
	says "shm-comch: nothing found
  cannot read directory $BATS_TEST_TMPDIR/gantry: Not a directory; it must be a directory of this user"
}

@test "names from outside do no harm to a terminal" {
	GANTRY_TINY=$'a\033[2J' devices
	says "  a?[2J  active"
}

@test "with a configuration: its devices, used or not, with their limits" {
	target
	devices "$conf"
	[ "$status" -eq 0 ]
	says "devices of $conf:
  small  ready
    transport             tiny"
	says "    can                   rma, locks memory"
	says "    max region            1TiB"
	says "    lane queue pairs      2"
	says "  other  ready"
	devices "$conf" --role store --json
	[ "$status" -eq 0 ]
	says '"small": {'
	says '"connection_memory_bytes": 8192'
	[[ "$output" != *'"other"'* ]]
}

@test "a device that cannot be opened: exit status 1, and the others are shown" {
	target "broken = true;"
	devices "$conf"
	[ "$status" -eq 1 ]
	says "it is broken; repair it"
	says "  small  cannot be opened: No such device"
	says "  other  ready"
}

@test "mistakes of the configuration and of the command line" {
	target "brocken = true;"
	devices "$conf"
	[ "$status" -eq 2 ]
	says "gantry: $conf:1: devices.small.brocken: unknown key"
	devices --set devices.small.broken=true
	[ "$status" -eq 2 ]
	says "gantry: --role and --set need a configuration FILE"
}
