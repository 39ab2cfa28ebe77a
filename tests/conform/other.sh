#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# other.sh - the conformance suite tests the plugin that the environment names, skips what it does not have, and says what is wrong
. "$top_srcdir/tests/tap.sh"

# case_of PLUGIN CASE [VARIABLE=VALUE...] - run the case; fails if the suite fails
case_of()
{
	plugin=$1 case=$2
	shift 2
	env TEST_PLUGINDIR="$GANTRY_PLUGINS" RIG_PLUGIN="$plugin" RIG_CASE="$case" "$@" "$top_builddir/tests/conform/other"
}

# says TEXT COMMAND... - the command prints the text
says()
{
	text=$1
	shift
	"$@" >"$tmp/said" 2>&1
	cat "$tmp/said"
	grep -qF "$text" "$tmp/said"
}

# wrong CHANGE [CASE] - the suite, or one case, over loop with a change of wrong.c
wrong()
{
	env TEST_PLUGINDIR="$GANTRY_PLUGINS" RIG_WRONG="$1" ${2:+RIG_PATIENCE_MS=2000 RIG_CASE="$2"} \
		"$top_builddir/tests/conform/wrong"
}

need loop

ok "no plugin, and it says so" says "RIG_PLUGIN names no transport" env -u RIG_PLUGIN "$top_builddir/tests/conform/other"
ok "a transport that conforms" case_of loop remote_read_and_write
ok "services of another kind" case_of loop services_of_all_kinds RIG_SERVICES="x y:7"
ok "settings" says "0 Failures" case_of loop import_without_an_address RIG_A_SETTINGS=mapped=false
ok "a device without a descriptor conforms" wrong polled
ok "a device without remote access conforms" wrong mapped_only
ok "its cases of remote access are skipped" \
	says "skipped: the device has no remote read and write" wrong mapped_only
ok "a transport without data queues conforms" wrong no_data_queues
ok "the cases of messages with data are skipped" says "skipped: the device has no data queues" wrong no_data_queues
ok "fd() is -1, and wake_ns() is 0" says "with 0 the host never calls progress()" wrong unreachable device_reports_its_limits
ok "the wait for its event gives a hint" says "with fd() -1 and wake_ns() 0 the host never calls progress()" \
	wrong unreachable disconnect_is_reported_to_the_peer
ok "the fd is never readable" says "the host does not know that it must call progress()" \
	wrong unsignalled disconnect_is_reported_to_the_peer
ok "a capability without its slot" says "needs the slot rma_write_imm" wrong cap_without_slot device_reports_its_limits
ok "a capability that is not provided" \
	says "addr after import_region with GANTRY_IMPORT_MAP on a device with GANTRY_CAP_MAPPED" \
	wrong cap_not_provided both_see_the_same_memory
ok "the wrong errno" says "import_region of a revoked export: expected -ENOENT, got -EINVAL" \
	wrong wrong_errno revoke_waits_for_release
ok "a read-only export can be written" says "mapping of a read-only export: expected" \
	wrong writable read_only_export_cannot_be_written
ok "an event never comes" says "waiting for the event \`revoked\` at end a, which follows revoke_region()" \
	wrong no_event region_that_was_not_imported_can_be_revoked
ok "a message never comes" says "waiting for poll_recv() to return a message that send() accepted" \
	wrong no_message immediate_data_of_all_sizes
done_testing
