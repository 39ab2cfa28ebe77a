#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
# Access to the volume of a listener: gantry check and gantry run reject a rule that the transport cannot enforce, and a
# listener on a network without an explicit statement.
#
# The test plugin tiny represents a third-party transport: its flags make no statement about its peers.

setup() {
	umask 022
	conf=$BATS_TEST_TMPDIR/t.conf
	tiny=$top_builddir/tests/.libs
	for plugin in target memory loop; do
		[ -e "$GANTRY_PLUGINS/$plugin.so" ] || skip "built without the plugin $plugin"
	done
	[ -e "$tiny/tiny.so" ] || skip "built without the test plugin tiny"
}

# target TRANSPORT [OPTIONS [DEVICE-OPTIONS]] - a target that listens on a device of that transport, with these options of
# `listen` and of the device
target() {
	cat >"$conf" <<-END
		devices = { d = { transport = "$1"; $3 }; };
		roles = { store = { role = "target"; backend = { type = "memory"; size = "1MiB"; };
		  listen = { device = "d"; name = "192.0.2.7:7471";
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

# start_and_stop - run the target until it serves; then its log is in $output
start_and_stop() {
	local log=$BATS_TEST_TMPDIR/log pid
	: >"$log"
	"$GANTRY" run -v -p "$tiny" -p "$GANTRY_PLUGINS" "$conf" --set "runtime.stat_dir=$BATS_TEST_TMPDIR/stat" \
		>/dev/null 2>"$log" 3>&- &
	pid=$!
	timeout 60 tail -n +1 -s 0.02 -f --pid=$pid "$log" 2>/dev/null | grep -m 1 ' listening '
	kill -TERM $pid
	wait $pid || true
	output=$(cat "$log")
	echo "$output"
}

good() {
	gantry check "$@"
	[ "$status" -eq 0 ]
}

@test "users on a device that does not report them" {
	local text="4: roles.store.listen.uids: the transport of the device does not report the user of a peer (device=d, "
	target tiny 'uids = "0,1000";' 'auth = "none";'
	wrong "$text""transport=tiny): omit uids"
	target tiny 'uids = "";' 'auth = "none";' # only the user of this process
	wrong "$text"
}

# shm OPTIONS - the same on shm-comch, with a directory of the test
shm() {
	[ -e "$GANTRY_PLUGINS/shm-comch.so" ] || skip "built without the plugin shm-comch"
	target shm-comch "$1"
	sed -i "s|\"shm-comch\";|& dir = \"$BATS_TEST_TMPDIR/run\"; ${2:-}|" "$conf"
}

# warns TEXT - check prints this warning and no other, without "warning: FILE:", and succeeds
warns() {
	good
	[[ "$output" == *"warning: $conf:$1"* ]] || { echo "expected: $1"; return 1; }
	[ "$(grep -c '^warning: ' <<<"$output")" -eq 1 ]
}

no_warning() {
	good
	[[ "$output" != *"warning: $conf:"* ]]
}

@test "users on a device that reports them" {
	target loop 'uids = "0,1000";'
	good
	shm 'uids = "0,1000";' 'uids = "0,1000";'
	good
	shm "uids = \"$(id -u)\";" # the device accepts its own user
	good
}

@test "users that the device rejects" {
	local line="4: roles.store.listen.uids: the device rejects a user of this list (uid="
	shm "uids = \"$(id -u),54321\";"
	wrong "$line"'54321, devices.d.uids=""): add 54321 there, or omit it here'
	shm 'uids = "4320-4323";' 'uids = "4320,4321,4323,432";'
	wrong "$line"'4322, devices.d.uids="4320,4321,4323,432"): add 4322 there'
	sed -i 's/4323,432"/4323,4322"/' "$conf"
	good
}

@test "limits that are not reached because of another one" {
	local text="4: roles.store.listen."
	target loop 'max_sessions = 4; max_peer_sessions = 5;'
	warns "$text""max_peer_sessions: is never reached (max_peer_sessions=5, limit max_sessions=4): write 4 or less"
	target loop 'max_sessions = 4; max_peer_sessions = 4;'
	no_warning
	target loop 'max_region_bytes = "2MiB"; max_peer_region_bytes = "1MiB";'
	warns "$text""max_region_bytes: is never reached (max_region_bytes=2097152, limit max_peer_region_bytes=1048576): write"
	target loop 'max_peer_region_bytes = "1MiB";' # the default of max_region_bytes is not reserved
	no_warning
	target loop 'move_memory = "1MiB"; max_peer_queue_memory = "64KiB";'
	warns "$text""move_memory: is never reached (move_memory=1048576, limit max_peer_queue_memory=65536): write 65536"
	shm 'max_half_open = 1025;'
	warns "$text""max_half_open: is never reached (max_half_open=1025, limit connections of the device=1024): write 1024"
	shm 'max_half_open = 1024;'
	no_warning
}

@test "a limit that is not reached is reported beside an error" {
	target tiny 'max_sessions = 4; max_peer_sessions = 5;'
	gantry check
	[ "$status" -eq 2 ]
	[[ "$output" == *"4: roles.store.listen.max_peer_sessions: is never reached"* ]]
}

@test "users over a network" {
	for plugin in rdma-verbs rxe tcp; do
		[ -e "$GANTRY_PLUGINS/$plugin.so" ] || skip "built without the plugin $plugin"
		target $plugin 'uids = "0";' 'auth = "none";'
		wrong "4: roles.store.listen.uids: the transport of the device does not report the user of a peer (device=d, \
transport=$plugin)"
	done
}

@test "a device on a network says how its peers prove who they are" {
	local missing='1: devices.d: does not say how peers on the network prove who they are (transport=tiny): write auth = "psk"'
	target tiny
	wrong "$missing"
	target tiny '' 'auth = "unset";'
	wrong "$missing"
	target tiny '' 'auth = "psk";'
	wrong '1: devices.d: "auth_keys" is missing; auth needs it to listen'
	target tiny '' 'auth = "x509"; auth_certificate = "c"; auth_private_key = "k";'
	wrong '1: devices.d: "auth_authorities" is missing; auth needs it to listen'
	target tiny '' 'auth = "none";'
	good
	target tiny 'uids = "0";' # both errors at once
	wrong "$missing" "4: roles.store.listen.uids: "
}

@test "listeners over a network" {
	for plugin in rdma-verbs rxe tcp; do
		[ -e "$GANTRY_PLUGINS/$plugin.so" ] || skip "built without the plugin $plugin"
		target $plugin
		wrong "1: devices.d: does not say how peers on the network prove who they are (transport=$plugin)"
		target $plugin '' 'auth = "none";'
		good
	done
}

@test "a device that no selected role uses needs no statement" {
	[ -e "$GANTRY_PLUGINS/initiator.so" ] || skip "built without the plugin initiator"
	target tiny
	sed -i -e '1s/devices = {/& e = { transport = "tiny"; auth = "none"; };/' \
		-e '2s/roles = {/& load = { role = "initiator"; connect = { device = "e"; name = "192.0.2.7:7471"; }; };/' "$conf"
	good --role load
	gantry check --role store
	[ "$status" -eq 2 ]
}

@test "one warning for each listener on a network, at its start" {
	target tiny '' 'auth = "none";'
	sed -i 's/"tiny";/& listens = true;/' "$conf"
	start_and_stop
	[ "$(grep -c ' warn ' <<<"$output")" -eq 1 ]
	[[ "$output" == *" warn roles.store: the listener accepts unauthenticated peers (device=d, \
service=192.0.2.7:7471): every host that reaches it can read and write the volume (devices.d.auth=none)"* ]]
}

@test "on local transports auth = none is accepted and changes nothing" {
	target loop '' 'auth = "none";'
	good
	start_and_stop
	[[ "$output" != *" warn "* ]]
}

@test "on local transports keys are an error" {
	target loop '' 'auth = "psk"; auth_keys = "keys";'
	wrong "1: devices.d.auth: has no effect, because the kernel reports the peers of this transport (transport=loop): omit it"
}

@test "rows of allow that the transport cannot enforce" {
	target tiny 'allow = ( { identity = "host-a"; } );' 'auth = "none";'
	wrong '4: roles.store.listen.allow: the peers of the device are not authenticated (device=d, auth=none): write'
	target tiny 'allow = ( { uid = 1000; } );' 'auth = "psk"; auth_keys = "keys";'
	wrong "4: roles.store.listen.allow[0]: wrong kind of peer for the transport of the device (device=d, \
transport=tiny): write identity"
	target shm-comch 'allow = ( { identity = "host-a"; } );'
	wrong "4: roles.store.listen.allow[0]: wrong kind of peer for the transport of the device (device=d, \
transport=shm-comch): write user, uid or group"
	target shm-comch 'allow = ( { uid = 1000; } ); uids = "1000";'
	wrong "4: roles.store.listen.allow: stands beside uids, which it replaces: omit uids"
}

@test "rows of allow with mistakes" {
	target shm-comch 'allow = 1;'
	wrong '4: roles.store.listen.allow: must be a list of at most 4096 groups: ( { identity = "NAME"; }, ... )'
	target shm-comch 'allow = ( { access = "ro"; } );'
	wrong "4: roles.store.listen.allow[0]: must name one peer: write one of identity, user, uid, group"
	target shm-comch 'allow = ( { uid = 1; user = "root"; } );'
	wrong "4: roles.store.listen.allow[0]: must name one peer"
	target shm-comch 'allow = ( { user = "nobody-of-that-name"; } );'
	wrong "4: roles.store.listen.allow[0].user: this machine has no such user (user=nobody-of-that-name): create it"
	target shm-comch 'allow = ( { group = "no-such-group"; } );'
	wrong "4: roles.store.listen.allow[0].group: this machine has no such group (group=no-such-group): create it"
	target shm-comch 'allow = ( { uid = 1; access = "rx"; } );'
	wrong "4: roles.store.listen.allow[0].access: "
	target shm-comch 'allow = ( { uid = 1; volumes = "disk"; } );'
	wrong '4: roles.store.listen.allow[0].volumes: must be a list of names: [ "NAME", ... ]'
	target tiny 'allow = ( { identity = "host a"; } );' 'auth = "psk"; auth_keys = "keys";'
	wrong '4: roles.store.listen.allow[0].identity: "host a" is no identity; write 1 to 63 letters'
}

@test "networks of direct connections that are none" {
	for plugin in rdma-verbs rxe; do
		[ -e "$GANTRY_PLUGINS/$plugin.so" ] || skip "built without the plugin $plugin"
		target $plugin '' 'auth = "none";'
		sed -i 's/'"\"$plugin\";/& direct_networks = \"192.0.2.0\/24, 10.0.0.1\/8\";/" "$conf"
		wrong "1: devices.d.direct_networks: \"10.0.0.1/8\" has bits after its prefix; write them as 0"
		sed -i 's/10.0.0.1/10.0.0.0/' "$conf"
		good
	done
}

@test "weights of peers" {
	target tiny 'weights = " host 192.0.2.7 = 2,host [2001:db8::7]=64";' 'auth = "none";'
	good
	target tiny 'weights = "uid 1000=4";' 'auth = "none";'
	wrong '4: roles.store.listen.weights: wrong kind of peer for the transport of the device (peer=uid 1000, device=d'
	target loop 'weights = "uid 0=4, uid 1000=2";'
	good
	for text in "uid 1000" "uid 1000=" "uid 1000=0" "uid 1000=65" "uid 1000=-1" "uid 1000=1x" "uid 1000=100000000001" \
		"uid x=2" "uid =2" "1000=2" "=2" "uid 1=2," "uid 1=2,,uid 2=1" "uid 1=2 uid 2=1" "host =1"; do
		target loop "weights = \"$text\";"
		wrong "4: roles.store.listen.weights: \"$text\" is not a list of at most 64 weights of 1 to 64"
	done
}
