#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# 30-netem.sh - verified IO while packets are lost, reordered, duplicated or corrupted: slower, but without errors.
. "$top_srcdir/tests/vm/walk.sh"
vm_network
ios=600 # each is six packets or more

counts() # prints packets sent, packets received, and packets received out of order or twice
{
	echo "$(rdma_count sent_pkts) $(rdma_count rcvd_pkts)" \
		"$(rdma_count out_of_seq_request duplicate_request completer_retry_err)"
}

# disturbed KIND SENT RECEIVED ODD - whether netem has caused that kind of disturbance since these counts; otherwise the test proves
# nothing. The counts were taken while no process sent packets, and none does now.
disturbed()
{
	local sent received odd
	read -r sent received odd < <(counts)
	sent=$((sent - $2)) received=$((received - $3)) odd=$((odd - $4))
	echo "# $1: $sent packets sent, $received received, $odd odd, $(netem_dropped) dropped" >&3
	case $1 in
	loss) [ "$(netem_dropped)" -gt 0 ] ;;
	corrupt) [ "$sent" -gt "$received" ] ;;
	duplicate | reorder) [ "$odd" -gt 0 ] ;; # on a busy machine, lost and duplicated packets may balance each other
	esac && return 0
	echo "netem has changed nothing"
	return 1
}

rough() # LEG KIND WORD...
{
	local kind=$2 before completed
	leg "$1"
	topology
	serve_all
	before=$(counts)
	begin load --set roles.load.workload.ops=0 --set roles.load.lanes=2
	busy load 10
	completed=$("$GANTRY" stat --dir "$dir/stat" --json load | jq '.processes[0].roles.load.completed')
	netem_set "${@:3}"
	busy load $((completed + ios))
	kill -TERM "${pids[load]}"
	finish load
	# shellcheck disable=SC2086 # three numbers
	disturbed "$kind" $before
	netem_clear
	[ "$status" -eq 3 ]
	once "$dir/load.json" load
	holds "$dir/load.json" 'load.errors == {}' "$(findings load) == 0" 'load.verify.checked > 0' 'load.quarantined == 0'
	stop bridge store
	agree "$(completed load)"
}

over_legs "1 % lost" rough loss loss 1%
over_legs "5 % lost" rough loss loss 5%
over_legs "a quarter overtakes" rough reorder delay 1ms reorder 25%
over_legs "5 % twice" rough duplicate duplicate 5%
over_legs "1 % damaged" rough corrupt corrupt 1%
over_legs "all of it" rough loss delay 200us reorder 25% loss 1% duplicate 2% corrupt 1%
vm_done
