#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
# The observer launcher sends the progress of a copy over the session bus.

setup() {
	bats_require_minimum_version 1.5.0
	. "$BATS_TEST_DIRNAME/lib.sh"
	walk_setup
	need launcher
	command -v dbus-test-tool >/dev/null || skip "dbus-test-tool is not installed (Debian: dbus-tests)"
	launcher=(--set observers.0.type=launcher --set observers.0.desktop=copy.desktop)
}

teardown() {
	walk_teardown
}

# on_bus COMMAND... - run the command on a bus of its own; signals has what a launcher would read. libunity sends only if a
# launcher has its name on the bus. The monitor has subscribed when its log has the name that the bus gave to it.
on_bus() {
	# libunity and GLib keep memory until the process exits
	local -x ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0
	# shellcheck disable=SC2016 # the inner shell expands
	timeout "$seconds" dbus-run-session -- bash -c '
		until_true() { until "$@"; do sleep 0.01; done; } # lint: allowed, between two checks
		owned() {
			dbus-send --print-reply --dest=org.freedesktop.DBus / org.freedesktop.DBus.NameHasOwner \
				string:com.canonical.Unity | grep -q true
		}
		dbus-test-tool black-hole --name=com.canonical.Unity &
		dbus-monitor "interface=com.canonical.Unity.LauncherEntry" >"$0" &
		until_true owned
		until_true grep -q NameAcquired "$0"
		"$@"
		status=$?
		until_true grep -q "boolean false" "$0"
		kill $(jobs -p)
		exit $status' "$dir/signals" "$@" 3>&-
}

# values NAME - the values of a property, in the order of the signals
values() {
	awk -v name="\"$1\"" '
	$1 == "string" { found = $2 == name }
	found && $1 == "variant" { print $3; found = 0 }' "$dir/signals"
}

@test "a launcher reads growing progress, and the bar disappears at the end" {
	topology
	on_bus "$GANTRY" run -p "$GANTRY_PLUGINS" "$conf" "${launcher[@]}" \
		--set roles.load.workload.ops=0 --set roles.load.workload.time=2500ms
	grep -q 'string "application://copy.desktop"' "$dir/signals"
	[ "$(values progress-visible | head -n 1)" = true ]
	[ "$(values progress-visible | tail -n 1)" = false ]
	diff <(values progress) <(values progress | sort -g)
	[ "$(values progress | sort -gu | wc -l)" -ge 3 ]
	[ "$(values progress | tail -n 1)" = 1 ]
	[ "$(values urgent | grep -c true)" -eq 0 ]
}

@test "a failed role marks the icon as urgent" {
	need fault
	load_stages='{ type = "fault"; error_nth = 10; }'
	topology
	run on_bus "$GANTRY" run -p "$GANTRY_PLUGINS" "$conf" "${launcher[@]}"
	[ "$status" -eq 1 ]
	[ "$(values urgent | grep -c true)" -ge 1 ]
}

@test "without a session bus the work continues" {
	topology
	DBUS_SESSION_BUS_ADDRESS=unix:path=/nowhere walk "${launcher[@]}" --set roles.load.workload.ops=10
	[ "$status" -eq 0 ]
	grep -q 'observers\[0\]: no progress is shown: no session bus: ' "$dir/walk.log"
}
