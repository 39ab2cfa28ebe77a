#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# 50-hostile.sh - hostile peers over RDMA: each gets the documented error, while an honest client continues its IO.
. "$top_srcdir/tests/vm/walk.sh"
vm_network
vm_limit=280
export RIG_HOST=${vm_addresses[0]} RIG_FROM=${vm_addresses[1]} RIG_PATIENCE_MS=30000
export RIG_A_SETTINGS=ibdev=rxe1 RIG_B_SETTINGS=ibdev=rxe0

# A peer attacks a target that serves a client. The client sees no error, and the target ends without leaked resources.
target_attacked()
{
	local program=$top_builddir/tests/conform/verbs_attack before
	[ -x "$program" ] || skip "verbs_attack is not built"
	leg rdma-verbs
	listen_options='heartbeat = "2s";'
	topology
	serve_all
	hammer
	mark store
	"$program" "${vm_addresses[1]}" 7471 "${vm_addresses[0]}" || { cat "$dir/store.log"; return 1; }
	before=$(completed_now)
	busy load $((before + 500))
	clean store
	kill -TERM "${pids[load]}"
	finish load
	[ "$status" -eq 3 ]
	once "$dir/load.json" load
	holds "$dir/load.json" 'load.errors == {}' "$(findings load) == 0" 'load.verify.checked > 0' 'load.quarantined == 0'
	stop bridge store
	grep -E '^[^ ]+ (warn|error) | refusing ' "$dir/store.log"
	warned_in_bounds "$dir/store.log"
}

# warned_in_bounds LOG - the log has a warning for each attack, but not more than the limit
#
# The listener logs one warning when it starts. The attacks make nine connections, and seven of them attack. For each of these the
# role logs one line, and the transport at most three.
warned_in_bounds()
{
	local lines
	lines=$(grep -cE '^[^ ]+ (warn|error) ' "$1")
	[ "$lines" -ge 8 ] && [ "$lines" -le 37 ] || { echo "$lines warnings and errors in the log"; return 1; }
}

completed_now()
{
	"$GANTRY" stat --dir "$dir/stat" --json load | jq '.processes[0].roles.load.completed'
}

vm_test "a target is attacked while it serves" target_attacked
vm_program "an end of the rig" "$top_builddir/tests/conform/verbs_hostile"
vm_done
