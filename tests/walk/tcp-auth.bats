#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
# The walk over TCP with authenticated peers: auth = "psk" on one leg or both. The links are encrypted.

setup() {
	. "$BATS_TEST_DIRNAME/lib.sh"
	walk_setup
	recorder=
	# the files of keys are of this user, and only this user reads them
	keys=$dir/keys
	mkdir -m 700 "$keys"
	key front load 1111111111111111111111111111111122222222222222222222222222222222
	key back bridge 3333333333333333333333333333333344444444444444444444444444444444
	key wrong load 1111111111111111111111111111111122222222222222222222222222222223
}

teardown() {
	[ -z "$recorder" ] || kill "$recorder" 2>/dev/null || true
	walk_teardown
}

key() { # FILE IDENTITY KEY
	(umask 077 && printf '%s:%s\n' "$2" "$3" >>"$keys/$1")
}

with_keys() { # LEG IDENTITY - peers of this leg prove that they have the keys
	local device=${1}_device
	printf -v "$device" %s "${!device/'auth = "none"'/"auth = \"psk\"; auth_identity = \"$2\"; auth_keys = \"$keys/$1\""}"
}

# secure LEG... - these legs over TCP, with keys
secure() {
	tcp "$@"
	with_keys front load
	with_keys back bridge
}

# one, two and four lanes, one after the other, through the same servers of two lanes
lanes() { # ARGUMENT... - of the initiator
	local lanes n=0
	topology
	serve store --set roles.store.lanes=2
	serve bridge --set roles.bridge.lanes=2
	for lanes in 1 2 4; do
		load_well --set roles.load.lanes=$lanes "$@"
		n=$((n + $(completed load)))
	done
	stop bridge store
	agree "$n"
}

@test "back leg: one, two and four lanes" {
	secure back
	lanes
}

@test "both legs: one, two and four lanes" {
	secure front back
	lanes
}

@test "both legs: blocks of 256 KiB, which the gateway relays in pieces, with flushes" {
	secure front back
	lanes --set roles.load.workload.block=256KiB --set roles.load.workload.size=8MiB --set roles.load.workload.ops=500 \
		--set roles.load.workload.flush_every=50
}

@test "both legs: small socket buffers and a small table of accesses" {
	secure front back
	front_device="$front_device socket_buffer = \"16KiB\"; max_depth = 64;"
	back_device="$back_device socket_buffer = \"16KiB\"; max_depth = 64;"
	listen_options='max_depth = 64;'
	lanes --set roles.load.workload.block=64KiB --set roles.load.workload.ops=500
}

@test "both legs, and a target that connects to the initiator: no data passes through the gateway" {
	secure front back
	front_device="$front_device direct = true;"
	back_device="$back_device direct = true; direct_networks = \"127.0.0.0/8\";"
	relays=
	lanes --set roles.load.workload.block=64KiB --set roles.load.workload.ops=1000
}

@test "a secret of a region does not pass from an encrypted leg to one in clear: the gateway relays" {
	tcp front back
	with_keys front load
	front_device="$front_device direct = true;"
	back_device="$back_device direct = true; direct_networks = \"127.0.0.0/8\";"
	lanes --set roles.load.workload.ops=1000
}

# one_line ROLE PATTERN - the only warning in the log of the role has this pattern
one_line() {
	local lines
	lines=$(grep ' warn ' "$dir/$1.log")
	[ "$(wc -l <<<"$lines")" -eq 1 ] || { echo "$lines"; return 1; }
	grep -q "$2" <<<"$lines" || { echo "$lines"; return 1; }
}

@test "a wrong key opens nothing, and others go on" {
	secure front back
	topology
	serve_all
	begin load --set "devices.front.auth_keys=$keys/wrong"
	finish load
	[ "$status" -eq 1 ]
	one_line bridge ' warn devices.front: .* of 127\.[0-9.:]*: .*identity=load, reason=wrong key$'
	one_line load ' warn devices.front: .* of 127\.[0-9.:]*: .*identity=load, reason=the peer rejects this end'
	load_well
	stop bridge store
	holds "$dir/store.json" "store.ops_done == $(completed load)" 'store.ops_failed == 0'
}

# The initiator resumes its session when the killed server has started again.
resumes() { # SERVER
	connect_options='resume = "60s";'
	need file
	store_backend="type = \"file\"; path = \"$dir/volume\"; create = true; size = \"16MiB\"; lock_wait = \"10s\";"
	secure front back
	topology
	serve_all
	hammer
	slay "$1"
	serve "$1"
	logged load 'session resumed .*epoch=[2-9]'
	recovers
}

@test "both legs: the gateway is killed and comes again" {
	resumes bridge
}

@test "both legs: the target is killed and comes again, with its file" {
	resumes store
}

@test "both legs: the initiator is killed" {
	secure front back
	topology
	serve_all
	mark store bridge
	hammer
	slay load
	within bridge 'session lost' "$died" 1000
	clean store bridge
	load_well
	stop bridge store
	nothing_left
}

# by_kernel - the kernel encrypts what the devices send, if it has TLS; if not, each of them warns, and encrypts itself
by_kernel() {
	local role
	for role in load bridge store; do
		if grep -qw tls /proc/sys/net/ipv4/tcp_available_ulp; then
			[ "$(grep -c kernel_tls "$dir/$role.log")" -eq 0 ]
		else
			grep -q ' warn devices\.[a-z_]*: kernel_tls: this kernel has no TLS' "$dir/$role.log"
		fi
	done
	! grep -qw tls /proc/sys/net/ipv4/tcp_available_ulp ||
		holds "$dir/store.json" '.devices.back.counters.kernel_tls_sockets > 0'
}

@test "kernel TLS: both legs, with large blocks" {
	secure front back
	front_device="$front_device kernel_tls = true;"
	back_device="$back_device kernel_tls = true;"
	topology
	serve_all
	load_well --set roles.load.lanes=2 --set roles.load.workload.block=64KiB --set roles.load.workload.size=8MiB \
		--set roles.load.workload.ops=500 --set roles.load.workload.flush_every=50
	stop bridge store
	agree "$(completed load)"
	by_kernel
}

# stamps - run a workload through a recorder on the back leg, and print how many magic numbers of stamps it has seen
stamps() {
	local program=$top_builddir/tests/walk/recorder address
	[ -x "$program" ] || skip "built without the recorder"
	address=$(sed -n 's/.*store = "\(127[^:]*\):.*/\1/p' <<<"$back_device")
	"$program" 127.0.0.1 "$address" 4792 "$dir/capture" >"$dir/recorder" 3>&- &
	recorder=$!
	until_true grep -q listening "$dir/recorder"
	back_far=${back_device//"$address"/127.0.0.1}
	topology
	serve_all
	load_well --set roles.load.workload.ops=2000 >&2
	stop bridge store >&2
	kill "$recorder"
	wait "$recorder" || true
	recorder=
	back_far=
	[ "$(stat -c %s "$dir/capture")" -gt 4000000 ]
	n_stamps=$(LC_ALL=C grep -a -o STMP "$dir/capture" | wc -l)
}

@test "who sees the bytes of a leg sees no data" {
	tcp back
	stamps
	[ "$n_stamps" -gt 1000 ] # in clear
	with_keys back bridge
	stamps
	[ "$n_stamps" -lt 3 ] # random bytes have four such bytes in 4 GiB
	[ "$(grep -c -a -F bridge "$dir/capture")" -gt 0 ] # the identity goes in clear
}

@test "kernel TLS: who sees the bytes of a leg sees no data" {
	tcp back
	with_keys back bridge
	back_device="$back_device kernel_tls = true;"
	stamps
	[ "$n_stamps" -lt 3 ]
}
