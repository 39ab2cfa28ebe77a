#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# 40-faults.sh - cuts the cable, kills a role or stops the gateway. The other roles detect that within a time limit, and each IO
# completes exactly once. While the gateway is stopped, the target still writes data to the initiator.
. "$top_srcdir/tests/vm/walk.sh"
vm_network
soon=2000 # ms

# After a fault: the same servers serve the next initiator, and hold no more resources than before.
all_well() # SERVER...
{
	clean "$@"
	load_well --set roles.load.workload.ops=500
	clean "$@"
	stop bridge store
}

cable_cut()
{
	local start
	leg "$1"
	connect_options='' listen_options=''
	topology
	serve_all
	mark store bridge
	hammer
	netem_set loss 100%
	start=$(now_ms) # the cable is cut now; the time of tc, which is long on an emulated processor, is not measured
	within bridge 'session lost' "$start" "$soon"
	within store 'session lost' "$start" "$soon"
	[ "$(netem_dropped)" -gt 0 ]
	load_lost
	netem_clear
	all_well store bridge
}

killed() # LEG ROLE
{
	leg "$1"
	topology
	serve_all
	case $2 in load) mark store bridge ;; bridge) mark store ;; store) mark bridge ;; esac
	hammer
	slay "$2"
	[ "$2" = load ] || within load 'session lost' "$died" "$soon"
	[ "$2" = bridge ] || within bridge 'session lost' "$died" "$soon"
	[ "$2" = store ] || within store 'session (lost|ended)' "$died" "$soon"
	case $2 in
	load) all_well store bridge ;;
	bridge) load_lost; clean store; serve bridge; all_well store ;;
	store) load_lost; clean bridge; serve store; all_well bridge ;;
	esac
}

# region PID - print the file of the memory that the initiator PID has exported
region()
{
	local place
	place=$(sed -n '/gantry-region/{s/ .*//p;q}' "/proc/$1/maps")
	[ -n "$place" ] && echo "/proc/$1/map_files/$place"
}

stopped() # NAME
{
	grep -q '^State:.T' "/proc/${pids[$1]}/status"
}

# pattern TEXT - create a volume that is filled with TEXT
pattern()
{
	yes "$1" | head -c 1048576 | dd of="$dir/volume" conv=notrunc status=none
}

ask() # DIR ROLE FILTER
{
	"$GANTRY" stat --dir "$1" --json "$2" | jq "$3"
}

# The target is stopped after it has received all messages of the initiator.
relayed()
{
	local sent seen
	sent=$(ask "$dir/stat" load '.processes[0].roles.load | select(.submitted == .completed + 4).submitted')
	seen=$(ask "$dir/stat.bridge" bridge '.processes[0].roles.bridge.stages[0].seen_ops')
	[ -n "$sent" ] && [ "$sent" = "$seen" ]
}

# The gateway has relayed IOs and is then stopped. The target starts these IOs after that: the data of its reads arrives in the
# memory of the initiator, although no completion does.
moved_past_gateway()
{
	local memory
	leg "$1"
	need file fault
	pattern 'as it was before'
	store_backend="type = \"file\"; path = \"$dir/volume\";"
	bridge_stages='{ type = "fault"; }'
	connect_options='heartbeat = "30s";'
	listen_options='heartbeat = "30s";'
	topology
	# a directory for each role: gantry stat waits for all processes of a directory, and a stopped one does not answer
	serve store --set "runtime.stat_dir=$dir/stat.store"
	serve bridge --set "runtime.stat_dir=$dir/stat.bridge"
	begin load --set roles.load.workload.pattern=read --set roles.load.workload.verify=none --set roles.load.workload.ops=0 \
		--set roles.load.workload.depth=4 --set roles.load.workload.rate=10 --set roles.load.workload.deadline=60s
	busy load 10
	# at this rate at most one IO is in the target now; the other three of the depth follow while it is stopped
	kill -STOP "${pids[store]}"
	until_true relayed
	kill -STOP "${pids[bridge]}"
	until_true stopped bridge
	pattern 'passed the gateway by'
	memory=$(region "${pids[load]}")
	grep -q 'as it was before' "$memory"
	run_not grep -q 'passed the gateway by' "$memory"
	kill -CONT "${pids[store]}"
	until_true grep -q 'passed the gateway by' "$memory"
	stopped bridge
	live load '.roles.load | .submitted == .completed + 4'
	kill -CONT "${pids[bridge]}"
	busy load 30
	kill -TERM "${pids[load]}"
	finish load
	[ "$status" -eq 3 ]
	once "$dir/load.json" load
	holds "$dir/load.json" 'load.errors == {}'
	stop bridge store
	agree "$(completed load)"
}

run_not() # COMMAND... - the command must fail
{
	! "$@" || { echo "did not fail: $*"; return 1; }
}

over_legs "the cable is cut: known within $soon ms" cable_cut
for role in load bridge store; do
	over_legs "$role is killed" killed "$role"
done
vm_legs=rxe over_legs "data moves while the gateway is stopped" moved_past_gateway
vm_done
