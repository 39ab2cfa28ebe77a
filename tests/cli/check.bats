#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
# gantry check: compares the needs of the roles of a file with the limits of devices and process.

setup() {
	umask 022
	conf=$BATS_TEST_TMPDIR/t.conf
	tiny=$top_builddir/tests/.libs
	for plugin in target gateway initiator memory loop; do
		[ -e "$GANTRY_PLUGINS/$plugin.so" ] || skip "built without the plugin $plugin"
	done
	[ -e "$tiny/tiny.so" ] || skip "built without the test plugin tiny"
	cat >"$conf" <<-'END'
		devices = { nic = { transport = "tiny"; auth = "none"; }; dpu = { transport = "loop"; }; };
		roles = {
		  store = { role = "target"; backend = { type = "memory"; size = "1MiB"; };
		    listen = { device = "nic"; name = "192.0.2.7:4791";
		      max_sessions = 2; max_lanes = 3; max_depth = 2; move_memory = "64KiB"; }; };
		  bridge = { role = "gateway"; connect = { device = "nic"; name = "192.0.2.7:4791"; };
		    listen = { device = "dpu"; name = "volume0";
		      max_sessions = 2; max_lanes = 3; max_depth = 2;
		      max_region_bytes = "256KiB"; }; };
		  load = { role = "initiator"; connect = { device = "nic"; name = "192.0.2.7:4791"; };
		    lanes = 2;
		    workload = { depth = 2; block = "16KiB"; }; };
		};
	END
}

# check KIB OPTION... - run `gantry check -v` in a process that may lock KIB of memory; 0: any amount
check() {
	local limit=$1 drop=
	shift
	[ "$(id -u)" -ne 0 ] || drop="setpriv --inh-caps=-ipc_lock --bounding-set=-ipc_lock"
	[ "$limit" -ne 0 ] || drop=
	[ "$limit" -eq 0 ] || ulimit -S -l "$limit"
	# shellcheck disable=SC2086 # words
	run $drop "$GANTRY" check -v -p "$tiny" -p "$GANTRY_PLUGINS" "$conf" "$@"
	echo "$output"
}

says() {
	[[ "$output" == *"$1"* ]] || { echo "expected: $1"; return 1; }
}

lacks() {
	[[ "$output" != *"$1"* ]] || { echo "not expected: $1"; return 1; }
}

needs_a_limit() {
	ulimit -S -l 4096 2>/dev/null || skip "cannot set RLIMIT_MEMLOCK"
	[ "$(id -u)" -ne 0 ] || setpriv --bounding-set=-ipc_lock true 2>/dev/null || skip "cannot give up CAP_IPC_LOCK"
}

@test "without -v: one line for each role, and ok" {
	[ -e "$GANTRY_PLUGINS/noop.so" ] || skip "built without the plugin noop"
	sed -i 's/lanes = 2;/lanes = 1; stages = ( { type = "noop"; } );/' "$conf"
	run "$GANTRY" check -p "$tiny" -p "$GANTRY_PLUGINS" "$conf"
	echo "$output"
	[ "$status" -eq 0 ]
	[ "$output" = "roles.store: target, 1 lane, listens at \"192.0.2.7:4791\" on device nic, pipeline memory
roles.bridge: gateway, 1 lane, listens at \"volume0\" on device dpu, connects to \"192.0.2.7:4791\" on device nic, pipeline link
roles.load: initiator, 1 lane, connects to \"192.0.2.7:4791\" on device nic, pipeline noop -> link
$conf: ok" ]
	run "$GANTRY" check -p "$tiny" -p "$GANTRY_PLUGINS" "$conf" --set devices.nic.max_depth=3 --role load
	[ "$status" -eq 2 ]
	[ "${lines[0]}" = 'roles.load: initiator, 1 lane, connects to "192.0.2.7:4791" on device nic, pipeline noop -> link' ]
	[[ "${lines[1]}" == "gantry: $conf:12: roles.load.workload.depth: "* ]]
	[ "${#lines[@]}" -eq 2 ]
}

@test "sums of all roles that use a device" {
	needs_a_limit
	check 4096
	[ "$status" -eq 0 ]
	# sessions: 2 of 3 lanes, 2 of 3 lanes, 1 of 2 lanes; a queue pair for each session and two for each lane
	says "    needs
      sessions            5
      lanes               14
      queue pairs         33"
	says "      bounce memory       384KiB"
	says "      region memory       576KiB" # re-exported regions of 2 sessions, and 2 x 2 x 16 KiB
	says "memlock                 4MiB"
	says "memlock applies         yes"
	says "$conf: ok"
	check 4096 --json
	says '"queue_pairs": 33'
	says '"errors": []'
}

@test "the soft limit of open files is raised; the hard one counts" {
	cd "$BATS_TEST_TMPDIR"
	(
		ulimit -S -n 64
		"$GANTRY" check -v -p "$tiny" -p "$GANTRY_PLUGINS" "$conf" | grep "file descriptors allowed *$(ulimit -H -n)$"
	)
	ulimit -n 64
	check 0
	says "file descriptors, this process may have 64; raise \"ulimit -Hn\" (LimitNOFILE=) or lower max_sessions, max_lanes or"
}

@test "a role in a process of its own needs only its own" {
	needs_a_limit
	check 4096 --role load
	[ "$status" -eq 0 ]
	says "      queue pairs         5"
	says "      region memory       64KiB"
	says "      bounce memory       0"
}

@test "queues, regions, queue pairs: which key, the number now, and the number that works" {
	check 0 --set devices.nic.max_depth=3
	[ "$status" -eq 2 ]
	says "gantry: $conf:5: roles.store.listen.max_depth: 2 IOs in flight need queues of 4 entries; the device \"nic\" supports \
up to 3; write max_depth = 1 or less"
	says "gantry: $conf:12: roles.load.workload.depth: 2 IOs in flight need queues of 4 entries; "
	says "gantry: $conf:8: roles.bridge.listen.max_depth: 2 IOs in flight need queues of 4 entries; "
	lacks "$conf: ok"
	says "      queue pairs         33"
	check 0 --set devices.nic.max_region_bytes=60KiB
	[ "$status" -eq 2 ]
	says "gantry: $conf:12: roles.load.workload.block: a session has regions of up to 64KiB; the device \"nic\" supports up to \
60KiB; write block = \"12KiB\" or less"
	says "gantry: $conf:9: roles.bridge.listen.max_region_bytes: a session has regions of up to 256KiB; the device \"nic\" \
supports up to 60KiB; write max_region_bytes = \"60KiB\" or less"
	sed -i '/name = "volume0"/s/$/ max_regions = 16;/' "$conf"
	check 0 --set devices.nic.max_regions=8
	[ "$status" -eq 2 ]
	says "gantry: $conf:7: roles.bridge.listen.max_regions: a session has up to 16 regions; the device \"nic\" supports \
up to 8; write max_regions = 8 or less"
	check 0 --set devices.nic.max_queues=32
	[ "$status" -eq 2 ]
	says "gantry: $conf:5: roles.store.listen.max_sessions: 2 sessions of 3 lanes can need 14 queue pairs, and all roles on \
the device together 33; the device \"nic\" supports up to 32; write max_sessions = 1 or less"
	check 0 --set devices.nic.max_queues=32 --set roles.store.listen.max_sessions=1
	[ "$status" -eq 0 ]
}

@test "limits that the file does not give are lowered to what the devices can do" {
	sed -i 's/max_depth = 2;//' "$conf"
	check 0 --set devices.nic.max_depth=20 --set devices.nic.max_regions=5
	[ "$status" -eq 0 ]
	[ "$(grep -c "      depth               10$" <<<"$output")" -eq 2 ]
	check 0 --set devices.nic.max_depth=1 --role bridge
	[ "$status" -eq 2 ]
	says "      depth               1
"
	says "roles.bridge.connect: each IO in flight needs a queue of 2 entries; the device \"nic\" supports up to 1"
	check 0 --set devices.nic.max_depth=20 --set roles.bridge.listen.max_depth=11
	[ "$status" -eq 2 ]
	says "gantry: --set: roles.bridge.listen.max_depth: 11 IOs in flight need queues of 22 entries; the \
device \"nic\" supports up to 20;"
}

@test "more memory than may be locked: how to allow it, or what to lower" {
	needs_a_limit
	check 1536
	[ "$status" -eq 2 ]
	says "gantry: $conf:8: roles.bridge.listen.max_sessions: 2 sessions of 3 lanes can lock 912KiB of memory on the device \
\"nic\", the whole process 1.85MiB, but the limit of this process is 1.50MiB (RLIMIT_MEMLOCK); \
raise it before the start with \"ulimit -l "
	[[ "$output" =~ "ulimit -l "([0-9]+) ]]
	local kib=${BASH_REMATCH[1]}
	says "or LimitMEMLOCK=${kib}K in a unit of systemd; or write max_sessions = 1 or less"
	check "$((kib - 1))"
	[ "$status" -eq 2 ]
}

@test "the amount that is advised is enough" {
	needs_a_limit
	check 4096 --json
	[[ "$output" =~ '"locked_at_most_bytes": '([0-9]+) ]]
	check "$((BASH_REMATCH[1] / 1024))"
	[ "$status" -eq 0 ]
	check "$((BASH_REMATCH[1] / 1024 - 1))"
	[ "$status" -eq 2 ]
}

@test "a process that may lock any amount, and devices that lock no memory, have no limit" {
	needs_a_limit
	check 64 --set devices.nic.pins=false
	[ "$status" -eq 0 ]
	says "locked at most          0"
	[ "$(id -u)" -eq 0 ] || return 0
	check 0
	says "memlock applies"
	[[ "$output" == *"memlock applies         yes"* ]] || [ "$status" -eq 0 ]
}

@test "regions of a gateway count when the file says how large they are" {
	check 0
	lacks "warning"
	sed -i '/max_region_bytes/s/max_region_bytes = "256KiB";//' "$conf"
	check 0
	[ "$status" -eq 0 ]
	says "warning: $conf:7: roles.bridge.listen: the sum of locked memory does not include the regions that this role \
re-exports on the device \"nic\": set max_region_bytes, the limit for each session, and the sum includes them"
	says "      region memory       64KiB"
}

@test "a device that this machine does not have" {
	[ -e "$GANTRY_PLUGINS/rxe.so" ] || skip "built without the plugin rxe"
	check 0 --set 'devices.nic.transport=rxe' --set devices.nic.netdev=none0
	[ "$status" -eq 0 ]
	says "devices.nic: there is no soft-RoCE device on none0"
	says "devices.nic: this machine does not have it"
	says "detail                not available here"
	says "t.conf: ok"
	run "$GANTRY" run -p "$GANTRY_PLUGINS" "$conf" --role store --set devices.nic.transport=rxe --set devices.nic.netdev=none0
	[ "$status" -eq 1 ]
}

@test "a device that a run would make" {
	check 0 --set devices.nic.made=true
	[ "$status" -eq 0 ]
	says "devices.nic: this machine does not have it yet, so its limits and the memory that it locks were not checked; \
gantry run would create it, and not remove it"
	lacks "cannot be opened"
	says "t.conf: ok"
}

# wrong TEXT SETTING... - with these settings, check reports TEXT for the role load, and a run reports it when it connects
wrong() {
	local text=$1 sets=() set
	shift
	for set; do
		sets+=(--set "roles.$set")
	done
	check 0 "${sets[@]}"
	[ "$status" -eq 2 ]
	says "roles.load.$text"
	lacks "t.conf: ok"
	run "$GANTRY" run -p "$GANTRY_PLUGINS" "$conf" "${sets[@]}"
	[ "$status" -eq 1 ]
	says "roles.load: $text"
}

@test "what a workload asks is compared with the volume that it leads to" {
	cat >"$conf" <<-'END'
		devices = { wire = { transport = "loop"; }; };
		roles = {
		  store = { role = "target"; backend = { type = "memory"; size = "1MiB"; block = "8KiB"; };
		    listen = { device = "wire"; name = "disk"; }; };
		  more = { role = "target"; backend = { type = "memory"; size = "1MiB"; };
		    listen = { device = "wire"; name = "disk2"; }; };
		  bridge = { role = "gateway"; listen = { device = "wire"; name = "volume0"; };
		    connect = ( { device = "wire"; name = "disk2"; }, { device = "wire"; name = "disk"; } ); };
		  load = { role = "initiator"; connect = { device = "wire"; name = "volume0"; };
		    workload = { block = "8KiB"; ops = 10; pattern = "randrw"; }; };
		};
	END
	check 0
	[ "$status" -eq 0 ]
	run "$GANTRY" run -p "$GANTRY_PLUGINS" "$conf"
	[ "$status" -eq 0 ]
	wrong "workload.block: 4096 bytes; write multiples of the volume's block of 8192 bytes, up to 67108864" \
		load.workload.block=4KiB
	wrong "workload.offset: 4096 bytes; write multiples of the volume's block" load.workload.offset=4KiB
	wrong "workload.offset: 2097152 is not inside the volume of 2097152 bytes" load.workload.offset=2MiB
	wrong "workload.size: 3145728 from 0 on is not inside the volume of 2097152 bytes; write up to 2097152" \
		load.workload.size=3MiB
	wrong "workload.block: the 2097152 bytes from 0 on, of the volume of 2097152, are less than one block of 4194304" \
		load.workload.block=4MiB
	check 0 --set roles.more.backend.size=1028KiB
	[ "$status" -eq 2 ]
	says "roles.bridge.connect: target 1 begins at byte 1052672, not at a multiple of the block size 8192"
	# in a separate process check cannot know which target the role connects to
	check 0 --role load --set roles.load.workload.block=4KiB
	[ "$status" -eq 0 ]
	[ -e "$GANTRY_PLUGINS/null.so" ] || return 0
	local third='third = { role = "target"; backend = { type = "memory"; size = "1MiB"; };'
	third+=' listen = { device = "wire"; name = "disk3"; }; };'
	sed -i -e "s/bridge = /$third &/" -e 's/connect = (/& { device = "wire"; name = "disk3"; },/' "$conf"
	sed -i 's/type = "memory"; size = "1MiB"/type = "null"; size = "8387584TiB"/' "$conf"
	check 0
	[ "$status" -eq 2 ]
	says "roles.bridge.connect: the targets together are larger than 2^64 bytes"
}

@test "a copy is compared with its volume, if the options give the size of the volume" {
	[ -e "$GANTRY_PLUGINS/file.so" ] || skip "built without the plugin file"
	cat >"$conf" <<-END
		devices = { wire = { transport = "loop"; }; };
		roles = {
		  store = { role = "target"; backend = { type = "file"; path = "$BATS_TEST_TMPDIR/volume"; };
		    listen = { device = "wire"; name = "disk"; }; };
		  load = { role = "initiator"; connect = { device = "wire"; name = "disk"; };
		    copy = { to = "$BATS_TEST_TMPDIR/out"; size = "3MiB"; }; };
		};
	END
	truncate -s 1MiB "$BATS_TEST_TMPDIR/volume"
	check 0 # the options do not give the size of the file, and check does not read it
	[ "$status" -eq 0 ]
	wrong "copy.size: the volume has 1048576 bytes, less than the 3145728 to be copied" store.backend.size=1MiB
	check 0 --set roles.load.copy.to= --set roles.load.copy.from="$BATS_TEST_TMPDIR/volume" --set roles.load.copy.size=1MiB \
		--set roles.store.backend.read_only=true
	[ "$status" -eq 2 ]
	says "roles.load.copy.from: the volume is read-only"
	[ ! -e "$BATS_TEST_TMPDIR/out" ]
}

# everything - all files below the directory of the test, their content and their times
everything() {
	find "$BATS_TEST_TMPDIR" -printf '%p %y %s %T@ %m\n' | sort
}

@test "check changes nothing on the machine, and reports paths that cannot be created" {
	local before
	for plugin in shm-comch trace; do
		[ -e "$GANTRY_PLUGINS/$plugin.so" ] || skip "built without the plugin $plugin"
	done
	echo "from an earlier run" >"$BATS_TEST_TMPDIR/old.trace"
	cat >"$conf" <<-END
		devices = { dpu = { transport = "shm-comch"; dir = "$BATS_TEST_TMPDIR/run"; }; };
		roles = { load = { role = "initiator"; connect = { device = "dpu"; name = "volume0"; };
		    stages = ( { type = "trace"; path = "$BATS_TEST_TMPDIR/old.trace"; },
		      { type = "trace"; path = "$BATS_TEST_TMPDIR/new.trace"; } ); }; };
	END
	before=$(everything)
	check 0
	[ "$status" -eq 0 ]
	says "detail                $BATS_TEST_TMPDIR/run/00%3A00.0"
	[ "$(everything)" = "$before" ]
	mkdir -m 700 "$BATS_TEST_TMPDIR/run" # a part of the directories exists
	before=$(everything)
	check 0
	[ "$status" -eq 0 ]
	[ "$(everything)" = "$before" ]
	check 0 --set 'roles.load.stages.1.path=/no/such/folder/trace'
	[ "$status" -eq 2 ]
	says "gantry: --set: roles.load.stages[1].path: \"/no/such/folder/trace\": cannot use the directory /no/such/folder: No"
	check 0 --set devices.dpu.dir=/no/such/folder/run
	says "cannot create directory /no/such/folder/run: No such file or directory"
	says "a role that uses it would not start here"
	# a message about a directory from the environment names the variable
	sed -i 's/ dir = "[^"]*";//' "$conf"
	XDG_RUNTIME_DIR=/no/such/folder check 0
	says "cannot create directory /no/such/folder/gantry: No such file or directory; set dir of the device, or XDG_RUNTIME_DIR"
}
