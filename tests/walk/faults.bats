#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
# Faults of every kind in every role: each IO completes exactly once, with the status of its fault, and every wrong read is
# detected.

setup() {
	. "$BATS_TEST_DIRNAME/lib.sh"
	walk_setup
	need fault
	ops=2000
}

teardown() {
	walk_teardown
}

# Run with a fault in one role; the workload continues after errors.
trouble() { # ROLE OPTIONS [ARGUMENT...]
	local where=$1 what=$2
	shift 2
	load_stages='' bridge_stages='' store_stages=''
	declare "${where}_stages={ type = \"fault\"; $what }"
	topology
	walk --set roles.load.continue_on_error=true --set roles.load.workload.ops="$ops" --set roles.load.lanes=2 "$@"
	holds "$report" 'load.submitted == load.completed' 'load.submitted >= '"$ops" 'load.verify.checked > 100' \
		"$where == null or .roles.$where.stages[0].seen_ops > 0"
}

right() { # no read returned wrong data
	holds "$report" "$(findings load) == 0"
}

everywhere() { # FUNCTION - call it with each role
	local where
	for where in load bridge store; do
		"$1" "$where" || { echo "in $where"; return 1; }
	done
}

@test "delay" {
	delay() {
		trouble "$1" 'delay = "2ms"; delay_rate = "1%";'
		[ "$status" -eq 0 ]
		right
		holds "$report" 'load.errors == {}' ".roles.$1.stages[0].delayed_ops > 5" 'load.completed == store.ops_done'
	}
	everywhere delay
}

@test "error: the initiator gets the status that the fault stage sets" {
	made() {
		trouble "$1" "error = \"$2\"; error_nth = 100;"
		right
		holds "$report" "load.errors | keys == [\"$3\"]" "load.errors.$3 == .roles.$1.stages[0].failed_ops" \
			"load.errors.$3 > 10"
	}
	error() {
		made "$1" io IO
		made "$1" nospc NOSPC
	}
	everywhere error
	made store range RANGE
	made store access ACCESS
	made store read_only READ_ONLY
	made bridge nomem NOMEM
	made store unsupported UNSUPPORTED
}

@test "error without continue_on_error: it stops, says which, and exits with 1" {
	store_stages='{ type = "fault"; error = "nospc"; error_nth = 500; }'
	topology
	walk
	[ "$status" -eq 1 ]
	once "$report" load
	right
	holds "$report" 'load.errors.NOSPC >= 1' 'load.errors | keys == ["NOSPC"]' '.result == "failed"' 'store.ops_failed >= 1'
}

@test "drop: TIMEOUT at the deadline, the buffer is never used again" {
	lost() {
		trouble "$1" 'drop_nth = 300;' --set roles.load.workload.deadline=2s
		right
		holds "$report" 'load.errors | keys == ["TIMEOUT"]' 'load.errors.TIMEOUT >= 4' \
			'load.quarantined == load.errors.TIMEOUT' ".roles.$1.stages[0].dropped_ops == load.errors.TIMEOUT" \
			'.quarantined_bytes == 0'
	}
	everywhere lost
}

@test "short: half of the IO is executed, and its status is IO" {
	ops=1000
	cut() {
		trouble "$1" 'short_nth = 100;' --set roles.load.workload.block=16KiB
		right
		holds "$report" 'load.errors | keys == ["IO"]' "load.errors.IO == .roles.$1.stages[0].shortened_ops" \
			'load.errors.IO >= 8'
	}
	everywhere cut
}

@test "a flipped bit is found by the stamp" {
	flipped() {
		[ "$1" != bridge ] || return 0 # the gateway has no data that could be flipped
		trouble "$1" 'corrupt_nth = 100;'
		[ "$status" -eq 1 ]
		holds "$report" 'load.verify.corrupt > 10' "$(findings load) == load.verify.corrupt" 'load.errors == {}'
	}
	everywhere flipped
	trouble bridge 'corrupt_nth = 100;'
	[ "$status" -eq 0 ]
	right
}

@test "a flipped bit is found by the checksum before the data is used" {
	need crc
	# on the way down, below the stage that computes the checksums and above the stage that checks them
	load_stages='{ type = "crc"; mode = "generate"; }, { type = "fault"; only = "write"; corrupt_nth = 50; }'
	store_stages='{ type = "crc"; mode = "verify"; strict = true; }'
	topology
	walk --set roles.load.continue_on_error=true
	holds "$report" 'load.submitted == load.completed' 'load.errors | keys == ["CORRUPT"]' 'load.errors.CORRUPT > 10' \
		"$(findings load) == 0" 'load.errors.CORRUPT == .roles.load.stages[1].corrupted_ops'
	# on the way up
	load_stages='{ type = "crc"; mode = "generate"; }, { type = "fault"; only = "read"; corrupt_nth = 50; }'
	topology
	walk --set roles.load.continue_on_error=true
	holds "$report" 'load.submitted == load.completed' 'load.errors | keys == ["CORRUPT"]' 'load.errors.CORRUPT > 10' \
		"$(findings load) == 0"
}

@test "disconnect: all that follows is SESSION_LOST, once each" {
	for where in load bridge store; do
		load_stages='' bridge_stages='' store_stages=''
		declare "${where}_stages={ type = \"fault\"; disconnect_after = 700; }"
		topology
		walk --set roles.load.workload.ops=2000
		[ "$status" -eq 1 ]
		once "$report" load
		right
		holds "$report" 'load.errors | keys - ["SESSION_LOST", "refused"] == []' 'load.errors.SESSION_LOST >= 1' \
			'load.completed < 1900' ".roles.$where.stages[0].lost_ops >= 1"
	done
}

@test "several kinds of faults at once, with many lanes" {
	ops=5000
	trouble bridge 'seed = 5; delay = "1ms"; delay_rate = "2%"; error_rate = "1%"; duplicate_rate = "1%";
		short_rate = "1%";' \
		--set roles.load.lanes=4 --set roles.bridge.lanes=2 --set roles.store.lanes=3 --set runtime.threads=separate
	right
	holds "$report" 'load.errors | keys == ["IO"]' \
		'load.errors.IO == (.roles.bridge.stages[0] | .failed_ops + .shortened_ops)' \
		'bridge.double_completions == .roles.bridge.stages[0].duplicated_ops' 'bridge.double_completions > 10'
}

@test "the same seed gives the same faults, another seed gives others" {
	seen() { # SEED
		store_stages="{ type = \"fault\"; seed = $1; error_rate = \"5%\"; delay_rate = \"2%\"; delay = \"10us\"; }"
		topology
		walk --set roles.load.continue_on_error=true --set roles.load.workload.verify=none \
			--set roles.load.workload.pattern=randread
		jq -c '.roles.store.stages[0] | [.failed_ops, .delayed_ops, .seen_ops]' "$report"
	}
	first=$(seen 3)
	[ "$first" = "$(seen 3)" ]
	[ "$first" != "$(seen 4)" ]
}
