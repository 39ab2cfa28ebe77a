#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# other.sh - the conformance suite tests the plugin that the environment names, skips what it does not have, and says what is wrong
. "$top_srcdir/tests/tap.sh"

# conform ARGUMENT... - gantry conform, about a plugin of the build
conform()
{
	"$GANTRY" conform "$@"
}

# fails STATUS TEXT ARGUMENT... - gantry conform ends with this status, and prints the text
fails()
{
	status=$1 text=$2
	shift 2
	"$GANTRY" conform "$@" >"$tmp/said" 2>&1
	[ $? -eq "$status" ] && grep -qF -e "$text" "$tmp/said"
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

loop=$GANTRY_PLUGINS/loop.so
cp "$loop" "$tmp/rope.so"
printf x >"$tmp/empty.so"
ok "a transport that conforms" says "ok 1 - remote_read_and_write" conform --case remote_read_and_write "$loop"
ok "the cases have names" says "region_that_was_not_imported_can_be_revoked" conform --list "$loop"
ok "services of another kind" says "ok 1 - services_of_all_kinds" \
	conform --case services_of_all_kinds --service "x y:7" "$loop"
ok "settings of one end" says "ok 1 - import_without_an_address" \
	conform --case import_without_an_address --connector mapped=false "$loop"
ok "settings of both ends" says "SKIP skipped: the device has no mapped regions" \
	conform --case both_see_the_same_memory --set mapped=false "$loop"
ok "a case that does not exist" fails 2 "there is no such case (case=none)" --case none "$loop"
ok "an option that does not exist" fails 2 'plugin.no: unknown key' --set no=1 "$loop"
ok "a value that is not valid" fails 2 'plugin.mapped: ' --set mapped=maybe "$loop"
ok "no plugin" fails 2 "usage: gantry conform" --list
ok "a file that does not exist" fails 2 "cannot load the plugin: " "$tmp/none.so"
ok "a directory that does not exist" fails 2 "cannot find the plugin" "$tmp/none/none.so"
ok "a file that is not a plugin" fails 2 "cannot load the plugin: " "$tmp/empty.so"
ok "a plugin with another name" fails 2 "cannot load the plugin: " "$tmp/rope.so"
ok "a name that is not that of a plugin" fails 2 "name a file NAME.so" "$tmp/said"
ok "a limit that is not a number" fails 2 "--limit: not a number of seconds" --limit x "$loop"
ok "an option of the program that does not exist" fails 2 "unknown option --no" --no "$loop"
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
ok "a protocol error without a warning" says "\`closed\` with -EPROTO: expected a warning" \
	wrong silent disconnect_is_reported_to_the_peer
done_testing
