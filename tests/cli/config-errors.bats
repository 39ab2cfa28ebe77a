#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
# Errors in a configuration: each is reported with file, line, key and remedy, and the exit status is 2.

setup() {
	umask 022
	conf=$BATS_TEST_TMPDIR/t.conf
	for plugin in target gateway initiator memory noop loop; do
		[ -e "$GANTRY_PLUGINS/$plugin.so" ] || skip "built without the plugin $plugin"
	done
}

# Reads the configuration from standard input; run and check must print these messages (without "gantry: FILE:").
wrong() {
	cat >"$conf"
	for command in run check; do
		run timeout 60 "$GANTRY" "$command" --plugin-dir "$GANTRY_PLUGINS" "$conf"
		for text in "$@"; do
			[[ "$output" == *"gantry: $conf:$text"* ]] ||
				{ echo "expected: gantry: $conf:$text"; echo "said: $output"; return 1; }
		done
		[ "$status" -eq 2 ]
	done
}

# A valid topology of one target; $1: inside the role, $2: inside listen.
target() {
	cat <<-END
		devices = { d = { transport = "loop"; }; };
		roles = {
		  store = {
		    role = "target";
		    listen = { device = "d"; name = "v"; $2 };
		    backend = { type = "memory"; size = "1MiB"; };
		    $1
		  };
		};
	END
}

@test "the topology of the other tests has no errors" {
	target >"$conf"
	run "$GANTRY" check --plugin-dir "$GANTRY_PLUGINS" "$conf"
	echo "$output"
	[ "$status" -eq 0 ]
}

@test "no such file" {
	run "$GANTRY" run "$BATS_TEST_TMPDIR/absent.conf"
	[ "$status" -eq 2 ]
	[[ "$output" == *"absent.conf: No such file or directory"* ]]
}

@test "syntax" {
	wrong "2: " <<-END
		devices = { };
		roles = { store = ;
	END
}

@test "no devices, no roles" {
	wrong " there is no \"devices\"; write devices = { NAME = { ... }; };" \
		" there is no \"roles\"; write roles = { NAME = { ... }; };" <<-END
		runtime = { };
	END
	wrong " \"roles\" is empty; there is nothing to run" <<-END
		devices = { }; roles = { };
	END
	wrong "1: devices: is not a group; write devices = { NAME = { ... }; };" <<-END
		devices = 5; roles = { };
	END
}

@test "unknown section, unknown key, with a guess" {
	wrong "1: rols: unknown key; did you mean \"roles\"?" <<-END
		rols = { }; devices = { };
	END
	target "lane = 2;" | wrong "7: roles.store.lane: unknown key; did you mean \"lanes\"?"
	target "" "max_dept = 2;" |
		wrong "5: roles.store.listen.max_dept: unknown key; did you mean \"max_depth\"?"
}

@test "the same name twice" {
	wrong "1: " <<-END
		devices = { d = { transport = "loop"; }; d = { transport = "loop"; }; };
	END
	wrong "4: " <<-END
		devices = { };
		roles = {
		  a = { role = "target"; };
		  a = { role = "target"; };
		};
	END
}

@test "wrong type, out of range, wrong unit" {
	target "lanes = \"two\";" |
		wrong "7: roles.store.lanes: is a string; write a whole number, without quotes"
	target "lanes = 900;" | wrong "7: roles.store.lanes: 900 is out of range; write 1 to 64"
	target "" "heartbeat = \"5 parsec\";" |
		wrong "5: roles.store.listen.heartbeat: \"5 parsec\" is not a time; write "
	target "" "max_region_bytes = \"1 potato\";" |
		wrong "5: roles.store.listen.max_region_bytes: \"1 potato\" is not a size; write "
}

@test "runtime" {
	{ echo 'runtime = { log = "loud"; };'; target; } |
		wrong "1: runtime.log: \"loud\" is unknown; write one of \"error\", \"warn\", \"info\", \"debug\""
	{ echo 'runtime = { threads = "sharedd"; };'; target; } |
		wrong "1: runtime.threads: \"sharedd\" is unknown; did you mean \"shared\"?"
	for cpus in x 0- 1,,2 3-1 "1," 9999999; do
		{ echo "runtime = { cpus = \"$cpus\"; };"; target; } |
			wrong "1: runtime.cpus: is not a list of at most 1024 numbers from 0 to 4095; write such as \"0-3,8\""
	done
}

@test "plugin directories must be absolute" {
	echo 'runtime = { plugin_dirs = [ "here" ]; };' >"$conf"
	target >>"$conf"
	run "$GANTRY" run "$conf"
	[ "$status" -eq 2 ]
	[[ "$output" == *"gantry: $conf:1: runtime.plugin_dirs[0]: is not an absolute path;"* ]]
}

@test "unknown device" {
	wrong "2: roles.store.listen.device: there is no device \"nic7\"; the devices are: d" <<-END
		devices = { d = { transport = "loop"; }; };
		roles = { store = { role = "target"; listen = { device = "nic7"; name = "v"; };
		  backend = { type = "memory"; }; }; };
	END
}

@test "directories of plugins are checked, even if the command line has others" {
	wrong "1: runtime.plugin_dirs: is not a list; write [ \"/absolute/directory\" ]" <<-END
		runtime = { plugin_dirs = "/tmp"; };
		$(target)
	END
	wrong "1: runtime.plugin_dirs[0]: is not an absolute path" <<-END
		runtime = { plugin_dirs = [ "plugins" ]; };
		$(target)
	END
}

@test "a key in capitals, at each level" {
	wrong "1: Runtime: unknown key; did you mean \"runtime\"?" \
		"2: devices.wire.Transport: unknown key; did you mean \"transport\"?" \
		"4: roles.a.Role: unknown key; did you mean \"role\"?" \
		"6: roles.b.listen.Max_Depth: unknown key; did you mean \"max_depth\"?" \
		"7: roles.b.stages[0].TYPE: unknown key; did you mean \"type\"?" \
		"8: roles.b.backend.tpye: unknown key; did you mean \"type\"?" \
		"9: roles.b.LANES: unknown key; did you mean \"lanes\"?" <<-END
		Runtime = { log = "info"; };
		devices = { wire = { Transport = "loop"; }; };
		roles = {
		  a = { Role = "target"; };
		  b = { role = "target";
		    listen = { device = "wire"; name = "v"; Max_Depth = 8; };
		    stages = ( { TYPE = "noop"; } );
		    backend = { tpye = "memory"; };
		    LANES = 1; };
		};
	END
}

@test "missing plugin: what was searched and what is there" {
	wrong "1: devices.d.transport: no plugin \"smoke-signals\" in $GANTRY_PLUGINS; transport plugins there: loop" \
		"2: roles.a.role: no plugin \"targett\" in $GANTRY_PLUGINS; did you mean \"target\"? role plugins there: gateway" \
		"3: roles.b.role: \"../evil\" is not the name of a plugin" \
		"1: devices.e.transport: no plugin \"Loop\" in $GANTRY_PLUGINS; did you mean \"loop\"? transport" <<-END
		devices = { d = { transport = "smoke-signals"; }; e = { transport = "Loop"; }; };
		roles = { a = { role = "targett"; };
		  b = { role = "../evil"; }; };
	END
}

@test "a plugin of another kind" {
	wrong "2: roles.a.role: $GANTRY_PLUGINS/memory.so: is a backend, not a role" <<-END
		devices = { };
		roles = { a = { role = "memory"; }; };
	END
	target "stages = ( { type = \"memory\"; } );" |
		wrong "7: roles.store.stages[0].type: $GANTRY_PLUGINS/memory.so: is a backend, not a stage"
}

@test "a plugin's own options are checked" {
	target "stages = ( { type = \"noop\"; loudness = 11; } );" |
		wrong "7: roles.store.stages[0].loudness: unknown key"
	wrong "2: roles.store.backend.size: \"9999PiB\" is not a size" <<-END
		devices = { d = { transport = "loop"; }; };
		roles = { store = { role = "target"; backend = { type = "memory"; size = "9999PiB"; };
		  listen = { device = "d"; name = "v"; }; }; };
	END
}

# An initiator; $1: its workload, $2: its other settings.
initiator() {
	cat <<-END
		devices = { d = { transport = "loop"; }; };
		roles = { load = { role = "initiator"; connect = { device = "d"; name = "v"; };
		  workload = {
		    $1
		  };
		  $2
		}; };
	END
}

@test "options that exclude each other: the plugin reports them before a device is opened" {
	initiator "block = 1000;" |
		wrong "4: roles.load.workload.block: 1000 is not a multiple of 512; write such as 512 or \"4KiB\""
	initiator 'pattern = "write"; verify = "stamp"; block = 5000;' |
		wrong "4: roles.load.workload.block: 5000 is not a multiple of 512; write such as 4096 or \"4KiB\""
	initiator 'verify = "stamp";' | wrong "4: roles.load.workload.verify: \"stamp\" needs a pattern that writes"
	initiator 'pattern = "write"; verify = "stamp"; block = "6KiB";' |
		wrong "4: roles.load.workload.block: 6144 is not a multiple of 4096, which verify needs; write such as 4096"
	initiator "" 'copy = { from = "a"; }; replay = { path = "b"; };' |
		wrong "6: roles.load.replay.path: set only one of copy.from, copy.to and replay.path"
	for type in memory null file; do
		[ -e "$GANTRY_PLUGINS/$type.so" ] || continue
		wrong "3: roles.a.backend.block: is not a power of two; write such as \"4KiB\"" \
			"5: roles.b.backend.size: is no" <<-END
			devices = { d = { transport = "loop"; }; };
			roles = { a = { role = "target"; listen = { device = "d"; name = "v"; };
			  backend = { type = "$type"; block = 3000; size = "3000"; $([ $type != file ] || echo 'path = "/x";') }; };
			 b = { role = "target"; listen = { device = "d"; name = "w"; };
			  backend = { type = "$type"; size = "5000"; $([ $type != file ] || echo 'path = "/x";') }; }; };
		END
	done
}

@test "stages and transports report such options; an omitted option has the place of its group" {
	for plugin in crc fault shm-comch; do
		[ -e "$GANTRY_PLUGINS/$plugin.so" ] || skip "built without the plugin $plugin"
	done
	target 'stages = ( { type = "crc"; strict = true; }, { type = "fault"; drop_rate = "lots"; } );' |
		wrong "7: roles.store.stages[0].strict: strict needs mode = \"generate\"" \
			"7: roles.store.stages[1].drop_rate: \"lots\" is no rate; write \"1%\" or \"0.01\", from 0% to 100%"
	target | sed '1s/.*/devices = { d = { transport = "shm-comch"; ring_slots = 1000; pci = ""; uids = "me"; }; };/' |
		wrong "1: devices.d.ring_slots: 1000 is not a power of two; write such as 512" "1: devices.d.pci: is empty or" \
			"1: devices.d.uids: is no list of at most 15 numbers; write such as \"0,1000\""
}

@test "sections that a role needs, and those it has no use for" {
	wrong "2: roles.a: the role \"target\" needs \"listen\"; write listen = { device = " \
		"2: roles.a: the role \"target\" needs \"backend\"; write backend = { type = \"NAME\"; };" \
		"3: roles.b: the role \"initiator\" needs \"connect\"" \
		"3: roles.b.backend: the role \"initiator\" does not store anything; remove this section" <<-END
		devices = { };
		roles = { a = { role = "target"; };
		  b = { role = "initiator"; backend = { type = "memory"; }; };
		};
	END
}

@test "a service needs one name" {
	wrong "2: roles.a.listen: \"name\" is missing; it must be given (The service: a name that " <<-END
		devices = { d = { transport = "loop"; }; };
		roles = { a = { role = "target"; listen = { device = "d"; }; backend = { type = "memory"; }; }; };
	END
	wrong "2: roles.a.listen.name: has 64 characters; 1 to 63 are possible" <<-END
		devices = { d = { transport = "loop"; }; };
		roles = { a = { role = "target"; listen = { device = "d"; name = "$(printf '%064d' 0)"; };
		  backend = { type = "memory"; }; }; };
	END
}

@test "a service that the transport cannot read" {
	[ -e "$GANTRY_PLUGINS/shm-comch.so" ] || skip "built without the plugin shm-comch"
	local long
	long=$(printf '/%.0s' {1..63})
	target | sed "1s/loop/shm-comch/; 5s|\"v\"|\"$long\"|" |
		wrong "5: roles.store.listen.name: \"$long\" is too long for a file name"
	[ -e "$GANTRY_PLUGINS/rdma-verbs.so" ] || skip "built without the plugin rdma-verbs"
	target | sed '1s/loop/rdma-verbs/; 5s/name = "v"/name = "192.0.2.7"/' |
		wrong '5: roles.store.listen.name: "192.0.2.7" is no address; write such as 192.0.2.7:4791 or [2001:db8::7]:4791'
	wrong '2: roles.load.connect.name: "volume0" is no address; write ' <<-END
		devices = { d = { transport = "rdma-verbs"; }; };
		roles = { load = { role = "initiator"; connect = { device = "d"; name = "volume0"; }; }; };
	END
}

@test "stages: no list, no group, too many" {
	target "stages = 5;" |
		wrong "7: roles.store.stages: is not a list; write ( { type = \"NAME\"; }, ... )"
	target "stages = ( 5 );" |
		wrong "7: roles.store.stages[0]: is not a group; write { type = \"NAME\"; ... }"
	target "stages = ( { } );" |
		wrong "7: roles.store.stages[0]: \"type\" must be given: the name of a stage plugin, in double quotes"
	local many
	many=$(printf '{ type = "noop"; }%.0s, ' 1 2 3 4 5 6 7 8)
	target "stages = ( $many { type = \"noop\"; } );" |
		wrong "7: roles.store.stages: has 9 stages; a pipeline holds up to 8"
}

@test "all mistakes are reported at once" {
	target "lane = 2;" "heartbeat = 5;" |
		wrong "7: roles.store.lane: unknown key" "5: roles.store.listen.heartbeat: is a number; write a time"
}

@test "a role that does not exist" {
	target >"$conf"
	run "$GANTRY" run -p "$GANTRY_PLUGINS" "$conf" --role load
	[ "$status" -eq 2 ]
	[[ "$output" == *"gantry: --role load: $conf has no such role; it has: store"* ]]
}

@test "mistakes in roles that are not asked for do not count" {
	target >"$conf"
	sed -i '/^roles = {/a other = { role = "from-another-host"; };' "$conf"
	run "$GANTRY" check -p "$GANTRY_PLUGINS" "$conf" --role store
	echo "$output"
	[ "$status" -eq 0 ]
	run "$GANTRY" check -p "$GANTRY_PLUGINS" "$conf"
	[ "$status" -eq 2 ]
}

@test "quotes of a page, and the mark of an editor" {
	cd "$BATS_TEST_TMPDIR"
	target | sed 's/"loop"/“loop”/' >quotes.conf
	wrong '1: “: non-ASCII text outside of strings and comments; quotes are "' <quotes.conf
	[ "${#lines[@]}" -eq 1 ]
	{ printf '\357\273\277'; target; } >mark.conf
	wrong "1: begins with a byte order mark; save it as UTF-8 without one" <mark.conf
	[ "${#lines[@]}" -eq 1 ]
	{ echo '# “fine”'; target | sed 's/"v"/"„v”"/'; } >"$conf"
	run "$GANTRY" check -p "$GANTRY_PLUGINS" "$conf"
	[ "$status" -eq 0 ]
}

@test "CPUs that do not exist" {
	{ echo 'runtime = { cpus = "0,4095"; };'; target "lanes = 2;"; } >"$conf"
	run "$GANTRY" run -p "$GANTRY_PLUGINS" "$conf"
	echo "$output"
	[ "$status" -eq 1 ]
	[[ "$output" == *"$conf:1: runtime.cpus: CPU 4095, of thread 1, does not exist, or is not allowed"* ]]
	run "$GANTRY" check -p "$GANTRY_PLUGINS" "$conf"
	echo "$output"
	[ "$status" -eq 0 ]
	[[ "$output" == *"warning: $conf:1: runtime.cpus: CPU 4095 does not exist"* ]]
}

@test "an override has the type of its option, also where the file has none" {
	target >"$conf"
	check() {
		run "$GANTRY" check -p "$GANTRY_PLUGINS" "$conf" --set "$1"
		echo "$output"
		[ "$status" -eq "$2" ]
	}
	check runtime.cpus=0 0
	check roles.store.listen.name=007 0
	[[ "$output" == *'"007"'* ]] # as it was written
	check runtime.threads=1 2
	[[ "$output" == *"--set: runtime.threads: \"1\" is unknown; write one of"* ]]
	check roles.store.lanes=false 2
	[[ "$output" == *"--set: roles.store.lanes: \"false\" is not a whole number; write 1 to 64"* ]]
}

@test "overrides are checked like the file" {
	target >"$conf"
	run "$GANTRY" check -p "$GANTRY_PLUGINS" "$conf" --set roles.store.lanes=77
	[ "$status" -eq 2 ]
	[[ "$output" == *"gantry: --set: roles.store.lanes: 77 is out of range; write 1 to 64"* ]]
	run "$GANTRY" check -p "$GANTRY_PLUGINS" "$conf" --set roles.stroe.lanes=2
	[ "$status" -eq 2 ]
	[[ "$output" == *'--set: roles.stroe: the file has no such entry; for a new one, "role" must be given'* ]]
	run "$GANTRY" check -p "$GANTRY_PLUGINS" "$conf" --set nonsense
	[ "$status" -eq 2 ]
	[[ "$output" == *"gantry: --set nonsense: write KEY.PATH=VALUE"* ]]
}

@test "queues that a device cannot hold" {
	target "" "max_depth = 65535;" >"$conf"
	run "$GANTRY" check -p "$GANTRY_PLUGINS" "$conf"
	[ "$status" -eq 2 ]
	local text="roles.store.listen.max_depth: 65535 IOs in flight need queues of 131070 entries; the \
device \"d\" supports up to "
	[[ "$output" == *"gantry: $conf:5: ${text}4096; write max_depth = 2048 or less"* ]]
}

@test "two roles at one service" {
	local role='role = "target"; listen = { device = "d"; name = "v"; }; backend = { type = "memory"; };'
	target | sed "/^roles = {/a other = { $role };" |
		wrong "6: roles.store.listen: the role \"other\" ($conf:3) listens at \"v\" of this device already; write "
}

@test "a gateway that leads to one volume twice" {
	local d='device = "d"; name ='
	local text='roles.a.connect[2]: connects to "y" of this device, as connect[0] does: the volume would appear twice; '
	wrong "3: $text" <<-END
		devices = { d = { transport = "loop"; }; e = { transport = "loop"; }; }; roles = {
		a = { role = "gateway"; listen = { $d "x"; };
			connect = ( { $d "y"; }, { $d "z"; }, { $d "y"; }, { device = "e"; name = "y"; } ); };
		};
	END
}

@test "gateways in a circle" {
	gateway() { # NAME SERVICE CONNECT
		echo "$1 = { role = \"gateway\"; listen = { device = \"d\"; name = \"$2\"; }; connect = $3; };"
	}
	local d='device = "d"; name ='
	wrong "2: roles.a.connect: IO would loop: a -> a; connect to a target, or to a gateway that leads to one" <<-END
		devices = { d = { transport = "loop"; }; }; roles = {
		$(gateway a x "{ $d \"x\"; }")
		};
	END
	wrong "4: roles.c.connect[1]: IO would loop: b -> c -> b; " <<-END
		devices = { d = { transport = "loop"; }; }; roles = {
		$(gateway a x "{ $d \"y\"; }")
		$(gateway b y "( { $d \"z\"; }, { $d \"elsewhere\"; } )")
		$(gateway c z "( { $d \"elsewhere\"; }, { $d \"y\"; } )")
		};
	END
	cat >"$conf" <<-END
		devices = { d = { transport = "loop"; }; e = { transport = "loop"; }; }; roles = {
		$(gateway a x "( { $d \"y\"; }, { $d \"z\"; } )")
		$(gateway b y "{ $d \"z\"; }")
		$(gateway c z "{ device = \"e\"; name = \"x\"; }")
		t = { role = "target"; listen = { device = "e"; name = "x"; }; backend = { type = "memory"; size = "1MiB"; }; };
		};
	END
	run "$GANTRY" check -p "$GANTRY_PLUGINS" "$conf"
	echo "$output"
	[ "$status" -eq 0 ]
}

# listeners NUMBER:SESSIONS... - a target for each, on the device "d" with the options $options
listeners() {
	echo "devices = { d = { $options }; };"
	echo "roles = {"
	for pair; do
		echo "r${pair%:*} = { role = \"target\"; backend = { type = \"memory\"; size = \"1MiB\"; };"
		echo "listen = { device = \"d\"; $service${pair%:*}\"; ${pair#*:} }; };"
	done
	echo "};"
}

@test "more sessions than the transport serves" {
	[ -e "$GANTRY_PLUGINS/shm-comch.so" ] || skip "built without the plugin shm-comch"
	options="transport = \"shm-comch\"; dir = \"$BATS_TEST_TMPDIR/run\";" service='name = "v'
	wrong '4: roles.r1.listen.max_sessions: 1025 sessions are more than the 1024 connections that listeners of the device "d" '\
'serve; write max_sessions = 1024 or less' < <(listeners "1:max_sessions = 1025;")
	wrong '6: roles.r2.listen.max_sessions: 30 sessions, 1030 together with those of other roles, are more than the 1024 '\
'connections that listeners of the device "d" serve; write max_sessions = 24 or less' \
		< <(listeners "1:max_sessions = 1000;" "2:max_sessions = 30;")
	# the default counts as well, and the place is the group that lacks the option
	wrong '6: roles.r2.listen.max_sessions: 16 sessions, 1040 together with those of other roles, are more than the 1024 ' \
		< <(listeners "1:max_sessions = 1024;" "2:")
	[[ "$output" == *"serve; use another device for one of these roles"* ]]
	listeners "1:max_sessions = 1000;" "2:max_sessions = 24;" >"$conf"
	run "$GANTRY" check -p "$GANTRY_PLUGINS" "$conf"
	[ "$status" -eq 0 ]
	# in separate processes each role has a separate device
	listeners "1:max_sessions = 1024;" "2:max_sessions = 1024;" >"$conf"
	run "$GANTRY" check -p "$GANTRY_PLUGINS" "$conf" --role r2
	[ "$status" -eq 0 ]
	[ -e "$GANTRY_PLUGINS/rdma-verbs.so" ] || return 0
	options='transport = "rdma-verbs"; ibdev = "none0"; max_connections = 20; auth = "none";' service='name = "192.0.2.7:470'
	wrong '4: roles.r1.listen.max_sessions: 21 sessions are more than the 20 connections that listeners of the device "d" ' \
		< <(listeners "1:max_sessions = 21;")
}

@test "a transport without a limit of connections" {
	target "" "max_sessions = 4096;" >"$conf"
	run "$GANTRY" check -p "$GANTRY_PLUGINS" "$conf"
	[ "$status" -eq 0 ]
}
