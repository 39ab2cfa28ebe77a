#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
# TCP between gateway and target over a network that fails: the target is in a network namespace of its own, behind a veth pair. The
# initiator verifies stamps: no write may be lost, torn or doubled. Needs root; the tests of bad links need sch_netem.
# Times have the limits that gantry-tcp(7) promises: dead_time (2 s) and one second.

setup() {
	. "$BATS_TEST_DIRNAME/lib.sh"
	walk_setup
	[ "$(id -u)" -eq 0 ] || skip "only root can make network namespaces"
	near=gantry-$BASHPID-near far=gantry-$BASHPID-far
	ip netns add "$near" 2>/dev/null && ip netns add "$far" || skip "no network namespaces"
	ip link add wire0 netns "$near" type veth peer name wire0 netns "$far" || skip "no veth"
	for ns in "$near" "$far"; do
		on "$ns" ip link set lo up
		on "$ns" ip link set wire0 up
	done
	on "$near" ip addr add 10.77.0.1/24 dev wire0
	on "$far" ip addr add 10.77.0.2/24 dev wire0
	processes
	need tcp
	relays=true
	where[store]=$far where[bridge]=$near where[load]=$near
	back_device='transport = "tcp"; auth = "none"; services = { store = "10.77.0.2:4791"; };'
	connect_options='resume = "60s";'
	store_backend="type = \"file\"; path = \"$dir/volume\"; create = true; size = \"16MiB\";"
	store_backend+=' lock_wait = "30s";' # the killed target may hold the lock for a moment
	topology
}

teardown() {
	walk_teardown
	ip netns del "$near" 2>/dev/null || true
	ip netns del "$far" 2>/dev/null || true
}

on() { # NAMESPACE COMMAND...
	ip netns exec "$@"
}

# Each direction of the link gets these properties.
bad_link() { # ARGUMENT... - of tc-netem
	on "$near" tc qdisc replace dev wire0 root netem "$@" 2>/dev/null || skip "sch_netem is missing"
	on "$far" tc qdisc replace dev wire0 root netem "$@"
}

works() { # ARGUMENT... - of the initiator; all IOs complete, once, with the right data
	serve_all
	load_well --set roles.load.lanes=2 "$@"
	stop bridge store
	agree "$(completed load)"
}

cable() { # up | down
	on "$near" ip link set wire0 "$1"
	now_ms
}

@test "loss of one packet in a hundred" {
	bad_link loss 1%
	works --set roles.load.workload.ops=500
}

@test "packets out of order" {
	bad_link delay 2ms 1ms reorder 25% 50%
	works --set roles.load.workload.ops=2000
}

@test "a delay of 20 ms" {
	bad_link delay 10ms 2ms distribution normal
	works --set roles.load.workload.ops=1000
}

@test "packets that arrive twice, or damaged" {
	bad_link duplicate 5% corrupt 1%
	works --set roles.load.workload.ops=1000
}

@test "a rate of 20 Mbit/s" {
	bad_link rate 20mbit
	works --set roles.load.workload.ops=500 --set roles.load.workload.block=64KiB --set roles.load.workload.size=4MiB
}

@test "the MTU changes under load" {
	local mtu
	serve_all
	hammer
	for mtu in 576 9000 1280 1500; do
		on "$near" ip link set wire0 mtu "$mtu"
		on "$far" ip link set wire0 mtu "$mtu"
		busy load $(($("$GANTRY" stat --dir "$dir/stat" --json load | jq '.processes[0].roles.load.completed') + 500))
	done
	recovers
}

@test "the cable is cut and plugged in again: both ends detect it in time, and the session resumes" {
	local cut
	serve_all
	hammer
	cut=$(cable down)
	within store 'session lost' "$cut" 3500
	within bridge 'session lost' "$cut" 3500
	cable up
	logged load 'session resumed .*epoch=[2-9]'
	recovers
}

@test "a cut of half a second is not noticed" {
	serve_all
	hammer
	cable down
	read -rt 0.5 <><(:) || : # lint: allowed, the length of the cut
	cable up
	recovers
	[ "$(grep -c 'session lost' "$dir/store.log")" -eq 0 ]
}

@test "the target is killed behind the network and comes again" {
	serve_all
	hammer
	slay store
	within bridge 'session lost' "$died" 1000
	serve store
	logged load 'session resumed .*epoch=[2-9]'
	recovers
}

@test "the gateway is killed before the network and comes again" {
	serve_all
	hammer
	slay bridge
	within store 'session lost' "$died" 1000
	serve bridge
	logged load 'session resumed .*epoch=[2-9]'
	recovers
}

# A process that is stopped for less than dead_time keeps its session.
pauses() { # NAME
	serve_all
	hammer
	kill -STOP "${pids[$1]}"
	read -rt 0.8 <><(:) || : # lint: allowed, the length of the pause
	kill -CONT "${pids[$1]}"
	recovers
}

@test "the target is stopped for a while" {
	pauses store
}

@test "the gateway is stopped for a while" {
	pauses bridge
}

@test "the initiator is stopped for a while" {
	pauses load
}

@test "the gateway is stopped for longer than dead_time: the target logs the cause, and the session resumes" {
	local halt
	serve_all
	hammer
	halt=$(now_ms)
	kill -STOP "${pids[bridge]}"
	within store 'link to 10.77.0.1:[0-9]+: no answer .* dead_time=2000 ms\): the peer is stopped or overloaded' "$halt" 3500
	kill -CONT "${pids[bridge]}"
	logged load 'session resumed .*epoch=[2-9]'
	recovers
}
