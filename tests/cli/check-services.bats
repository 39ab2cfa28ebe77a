#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
# gantry check: connects to services that no role of the file serves.

setup() {
	umask 022
	conf=$BATS_TEST_TMPDIR/t.conf
	for plugin in target gateway initiator memory loop shm-comch; do
		[ -e "$GANTRY_PLUGINS/$plugin.so" ] || skip "built without the plugin $plugin"
	done
}

comch="transport = \"shm-comch\"; dir = \"$BATS_TEST_TMPDIR/run\";"

# topology DEVICES CONNECT [LISTEN] - a target on line 3, an initiator on line 5
topology() {
	cat >"$conf" <<-END
		devices = { $1 };
		roles = {
		  store = { role = "target"; backend = { type = "memory"; size = "1MiB"; };
		    listen = { ${3:-device = \"d\"; name = \"volume0\";} }; };
		  load = { role = "initiator"; workload = { ops = 1; }; connect = { $2 }; };
		};
	END
}

check() { # STATUS [ARGUMENT]...
	run "$GANTRY" check -p "$GANTRY_PLUGINS" "$conf" "${@:2}"
	echo "$output"
	[ "$status" -eq "$1" ]
}

says() {
	[[ "$output" == *"$1"* ]] || { echo "expected: $1"; return 1; }
}

quiet() {
	[[ "$output" != *"roles.load.connect"* ]]
}

@test "inside the process" {
	topology 'd = { transport = "loop"; };' 'device = "d"; name = "volume0";'
	check 0
	quiet
	check 0 --role store
	check 2 --set roles.load.connect.name=volume1
	says 'gantry: '"$conf"':5: roles.load.connect: no role of this file listens at "volume1" of the device "d", which reaches '\
'only this process; did you mean "volume0"?'
	run "$GANTRY" run -p "$GANTRY_PLUGINS" "$conf" --set roles.load.connect.name=volume1 # does not wait for a listener
	echo "$output"
	[ "$status" -eq 2 ]
	says 'which reaches only this process; did you mean "volume0"?'
	check 2 --set roles.load.connect.name=other --role load
	says 'roles.load.connect: no role of this file listens at "other" of the device "d", which reaches only this process; '\
'write one of: volume0'
	# the service is in the file, but not in this process
	check 0 --role load
	says "warning: $conf:5: roles.load.connect: connects to \"volume0\" on the device \"d\", which reaches only this process, \
and no role that this process runs listens there"
	# no role of the file listens on the device
	topology 'd = { transport = "loop"; }; e = { transport = "loop"; };' 'device = "e"; name = "volume0";'
	check 2
	says 'roles.load.connect: no role of this file listens at "volume0" of the device "e", which reaches only this process: '\
'add a role that listens there'
}

@test "between processes" {
	topology "d = { $comch };" 'device = "d"; name = "volume0";'
	check 0
	quiet
	check 0 --role load # another process serves it
	quiet
	check 2 --set roles.load.connect.name=volme0
	says 'roles.load.connect: no role of this file listens at "volme0" of the device "d"; did you mean "volume0"?'
	check 2 --set roles.load.connect.name=volme0 --role load
	check 2 --set roles.load.connect.name=elsewhere
	says 'listens at "elsewhere" of the device "d"; write one of: volume0'
	[ "$(grep -c '^gantry: ' <<<"$output")" -eq 1 ]
}

@test "each of several connects has its place" {
	cat >"$conf" <<-END
		devices = { d = { $comch }; };
		roles = {
		  store = { role = "target"; backend = { type = "memory"; size = "1MiB"; };
		    listen = { device = "d"; name = "left"; }; };
		  bridge = { role = "gateway"; listen = { device = "d"; name = "both"; };
		    connect = (
		      { device = "d"; name = "left"; },
		      { device = "d"; name = "rihgt"; } ); };
		};
	END
	check 2
	says "gantry: $conf:8: roles.bridge.connect[1]: no role of this file listens at \"rihgt\" of the device \"d\"; \
write one of: left"
	[[ "$output" != *"connect[0]"* ]]
}

@test "a file for clients only, and one for a gateway only" {
	cat >"$conf" <<-END
		devices = { d = { $comch }; };
		roles = {
		  load = { role = "initiator"; workload = { ops = 1; };
		    connect = { device = "d"; name = "volume0"; }; };
		};
	END
	check 0
	says "warning: $conf:4: roles.load.connect: no role of this file listens on the device \"d\": another process \
must serve \"volume0\""
	cat >"$conf" <<-END
		devices = { d = { $comch }; };
		roles = {
		  bridge = { role = "gateway"; listen = { device = "d"; name = "volume1"; };
		    connect = { device = "d"; name = "volume0"; }; };
		};
	END
	check 0
	says "warning: $conf:4: roles.bridge.connect: no other role of this file listens on the device \"d\": another process must"
}

@test "a device for each end" {
	topology "d = { $comch }; e = { $comch };" 'device = "e"; name = "volume0";'
	check 0
	quiet
	check 0 --set roles.load.connect.name=volume9
	says 'warning: '"$conf"':5: roles.load.connect: no role of this file listens on the device "e"'
	# each card has its own directory
	topology "d = { $comch pci = \"03:00.0\"; }; e = { $comch pci = \"04:00.0\"; };" 'device = "e"; name = "volume0";'
	check 0
	says 'roles.load.connect: no role of this file listens on the device "e": another process must serve "volume0"'
	# a service of another transport is not checked
	topology "d = { transport = \"loop\"; }; e = { $comch };" 'device = "e"; name = "volume0";'
	check 0
	says 'roles.load.connect: no role of this file listens on the device "e": another process must serve "volume0"'
}

@test "addresses" {
	[ -e "$GANTRY_PLUGINS/rxe.so" ] || skip "built without the plugin rxe"
	nic='d = { transport = "rxe"; netdev = "none0"; auth = "none"; };'
	topology "$nic" 'device = "d"; name = "192.0.2.7:4791";' 'device = "d"; name = "192.0.2.7:4791";'
	check 0
	quiet
	# the file has this address, but not this port
	check 2 --set roles.load.connect.name=192.0.2.7:4792
	says 'roles.load.connect: no role of this file listens at "192.0.2.7:4792" of the device "d"; '\
'did you mean "192.0.2.7:4791"?'
	# a role on another machine can be in another configuration file
	check 0 --set roles.load.connect.name=192.0.2.77:4791
	says 'no role of this file listens at "192.0.2.77:4791": another process must serve it'
	# all addresses of the machine
	check 0 --set roles.store.listen.name=0.0.0.0:4791
	quiet
	check 0 --set roles.store.listen.name=0.0.0.0:4792
	says 'no role of this file listens at "192.0.2.7:4791": another'
	# each machine has a separate device
	topology "$nic e = { transport = \"rxe\"; netdev = \"none1\"; auth = \"none\"; };" \
		'device = "e"; name = "192.0.2.7:4791";' 'device = "d"; name = "192.0.2.7:4791";'
	check 0
	quiet
}

@test "names that the device maps to addresses" {
	[ -e "$GANTRY_PLUGINS/rxe.so" ] || skip "built without the plugin rxe"
	nic='transport = "rxe"; netdev = "none0"; auth = "none";'
	topology "d = { $nic services = { disk = \"192.0.2.7:4791\"; other = \"192.0.2.7:4792\"; }; };" \
		'device = "d"; name = "disk";' 'device = "d"; name = "disk";'
	check 0
	quiet
	# a name and the address of another name
	check 0 --set roles.load.connect.name=192.0.2.7:4791
	quiet
	check 2 --set roles.load.connect.name=other
	says 'roles.load.connect: no role of this file listens at "192.0.2.7:4792" of the device "d"; '\
'did you mean "192.0.2.7:4791"?'
	check 2 --set roles.load.connect.name=absent
	says 'roles.load.connect.name: "absent" is no address; write such as 192.0.2.7:4791 or [2001:db8::7]:4791, '\
'or map the name in services of the device "d"'
	check 2 --set devices.d.services.disk=here
	says 'devices.d.services.disk: "here" is no address; write such as'
	topology "d = { $nic services = { disk = 5; }; };" 'device = "d"; name = "disk";' 'device = "d"; name = "disk";'
	check 2
	says 'devices.d.services.disk: is not a string of 1 to 63 characters'
	topology "d = { $nic services = 5; };" 'device = "d"; name = "disk";' 'device = "d"; name = "disk";'
	check 2
	says 'devices.d.services: is not a group; write { NAME = "ADDRESS"; ... }'
}

@test "names of hosts over tcp" {
	[ -e "$GANTRY_PLUGINS/tcp.so" ] || skip "built without the plugin tcp"
	topology 'd = { transport = "tcp"; auth = "none"; services = { disk = "host.example:4791"; }; };' \
		'device = "d"; name = "disk";' 'device = "d"; name = "disk";'
	check 0 # looks up no name
	quiet
	check 0 --set 'devices.d.services.disk="[2001:db8::7]:4791"'
	quiet
	check 2 --set devices.d.services.disk=host.example
	says 'devices.d.services.disk: "host.example" is no address; write such as 192.0.2.7:4791, [2001:db8::7]:4791 or '\
'host.example:4791'
	check 2 --set roles.load.connect.name=absent
	says 'roles.load.connect.name: "absent" is no address; write such as 192.0.2.7:4791, [2001:db8::7]:4791 or '\
'host.example:4791, or map the name in services of the device "d"'
	check 2 --set devices.d.services.disk=host.example:99999
	says 'devices.d.services.disk: "host.example:99999" is no address'
}

@test "beside other errors" {
	topology "d = { $comch };" 'device = "d"; name = "volme0";'
	check 2 --set roles.load.lanes=0
	says 'roles.load.lanes: 0 is out of range'
	says 'roles.load.connect: no role of this file listens at "volme0"'
}
