#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# other.sh - the conformance suite tests the plugin that the environment names, and detects its defects
n=0

# ok WHAT COMMAND... - the test passes if the command succeeds
ok()
{
	what=$1
	shift
	n=$((n + 1))
	if "$@" >"$tmp/out" 2>&1; then
		echo "ok $n - $what"
	else
		echo "not ok $n - $what"
		sed 's/^/# /' "$tmp/out"
	fi
}

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

tmp=$(mktemp -d "${TMPDIR:-/tmp}/gantry-other.XXXXXX") || exit 1
trap 'rm -rf "$tmp"' EXIT
[ -f "$GANTRY_PLUGINS/loop.so" ] || { echo "1..0 # SKIP the transport loop is not built"; exit 0; }

ok "no plugin, and it says so" says "RIG_PLUGIN names no transport" env -u RIG_PLUGIN "$top_builddir/tests/conform/other"
ok "a transport that conforms" case_of loop remote_read_and_write RIG_ONE_DEVICE=1
ok "services of another kind" case_of loop services_of_all_kinds RIG_ONE_DEVICE=1 RIG_SERVICES="x y:7"
ok "two devices that do not meet are a failure" says ":FAIL" case_of loop connect_reports_the_peer_to_both_ends RIG_PATIENCE_MS=100
ok "a case that does not apply" says "1 Ignored" case_of loop connect_reports_the_peer_to_both_ends \
	RIG_GAPS="x connect_reports_the_peer_to_both_ends"
ok "settings" says "0 Failures" case_of loop import_without_an_address RIG_ONE_DEVICE=1 RIG_A_SETTINGS=mapped=false
echo "1..$n"
