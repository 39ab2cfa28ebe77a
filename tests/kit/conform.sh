#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# conform.sh - all plugins of the tree that need no device pass gantry conform, and each seeded bug fails exactly the cases that
# are meant for it. conform/other.sh has the cases of transports.
. "$top_srcdir/tests/tap.sh"
mkdir -m 700 "$tmp/run"
XDG_RUNTIME_DIR=$tmp/run
export XDG_RUNTIME_DIR
truncate -s 4MiB "$tmp/volume"

# passes PLUGIN [ARGUMENT...] - gantry conform has no failed case
passes()
{
	plugin=$1
	shift
	[ -e "$GANTRY_PLUGINS/$plugin.so" ] || { skipped "$plugin" "built without it"; return; }
	ok "$plugin passes" "$GANTRY" conform "$@" "$GANTRY_PLUGINS/$plugin.so"
}

# finds KIND BUG CASE... - the cases that fail for this bug are these
finds()
{
	kind=$1 bug=$2
	shift 2
	"$GANTRY" conform --limit 30 --set bug="$bug" "$top_builddir/tests/.libs/broken-$kind.so" >"$tmp/out" 2>"$tmp/err"
	rc=$?
	sed -n 's/^not ok [0-9]* - //p' "$tmp/out" | sort | xargs >"$tmp/failed"
	{ [ $# -gt 0 ] && [ $rc -eq 1 ]; } || { [ $# -eq 0 ] && [ $rc -eq 0 ]; }
	rc=$?
	[ "$(cat "$tmp/failed")" = "$(printf '%s\n' "$@" | sort | xargs)" ] && [ $rc -eq 0 ]
	verdict $? "$kind: ${bug#\"} fails ${*:-no case}" "$tmp/out" "$tmp/err"
}

# number NAME - the number of a bug of unit/backend/kit.h, as a string of a configuration
number()
{
	sed -n '/^enum kit_bug/,/}/s/^\t\(KIT_[A-Z_]*\).*/\1/p' "$top_srcdir/tests/unit/backend/kit.h" |
		$AWK -v name="$1" '$0 == name { print "\"" NR - 1 "\"" }'
}

# finds_rule BUG CASE... - a bug of the backend
finds_rule()
{
	bug=$(number "$1")
	shift
	finds backend "$bug" "$@"
}

passes loop
passes shm-comch --set dir="$tmp/run"
passes crc
passes fault
passes noop
passes stats
passes trace --set path="$tmp/trace"
passes memory
passes null --discards
passes file --set path="$tmp/volume"
passes initiator
passes gateway
passes target

if grep -q -e -fsanitize "$top_builddir/core/Makefile"; then
	skipped "seeded bugs" "not with sanitizers"
	done_testing
	exit
fi

# these need that allocations fail and are counted, which a sanitizer prevents
counts=yes
"$GANTRY" conform --case failed_allocations_are_reported "$top_builddir/tests/.libs/broken-stage.so" | grep -q SKIP && counts=

finds stage none
finds stage loses completed_descriptors_are_as_submitted every_io_completes_once
finds stage completes-twice every_io_completes_once
finds stage keeps-a-change completed_descriptors_are_as_submitted
finds stage completes-early io_of_the_next_hop_is_left_alone drain_cancels_what_the_stage_holds teardown_under_load_leaves_nothing
finds stage keeps-a-rejected-io rejected_io_stays_with_the_caller
finds stage hides-a-rejection failed_submit_is_reported
finds stage hides-an-error errors_are_passed_back
finds stage drains-nothing drain_cancels_what_the_stage_holds
if [ -n "$counts" ]; then
	finds stage leaks-in-drain teardown_under_load_leaves_nothing
	finds stage leaks-without-memory failed_allocations_are_reported
	finds stage rejects-late limits_of_options_open_or_are_rejected
fi

finds observer none
finds observer divides-by-zero progress_without_a_known_end
finds observer keeps-a-pointer arguments_are_not_kept
finds observer crashes-at-the-end progress_with_a_known_end close_after_progress_leaves_nothing
[ -z "$counts" ] || finds observer leaks close_after_progress_leaves_nothing

finds role none
finds role hides-a-failed-io failed_io_fails_the_role
finds role gives-up-a-rejected-io rejected_io_is_submitted_again
finds role counts-twice second_completion_is_ignored
finds role hides-a-lost-session lost_session_fails_the_role
finds role ignores-stop stop_ends_the_work
finds role ignores-an-early-stop stop_before_the_session
finds role ignores-a-failed-open session_that_cannot_be_opened
finds role ignores-a-failed-export region_that_cannot_be_exported
finds role leaks-a-region work_ends_once close_after_work_leaves_nothing

finds_rule KIT_SOUND
finds_rule KIT_GEOMETRY geometry
finds_rule KIT_REFUSES_FUA every_operation
finds_rule KIT_LOSES once_each every_operation next_life
finds_rule KIT_TWICE once_each
finds_rule KIT_CHANGES once_each
finds_rule KIT_BEYOND data_at_its_place
finds_rule KIT_READS_BEYOND data_at_its_place
finds_rule KIT_HIDES extents
finds_rule KIT_UNKNOWN identity next_life
finds_rule KIT_RESTLESS identity
finds_rule KIT_RENAMED next_life
finds_rule KIT_STALE next_life
finds_rule KIT_NEVER_AT_REST rest_is_rest newer_write_wins a_round_ends
done_testing
