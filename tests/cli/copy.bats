#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
# gantry copy: copies files to a volume that another process serves, and back.

setup() {
	umask 022
	conf=$BATS_TEST_TMPDIR/t.conf
	dir=$BATS_TEST_TMPDIR/run
	pid=
	for plugin in target initiator memory shm-comch; do
		[ -e "$GANTRY_PLUGINS/$plugin.so" ] || skip "built without the plugin $plugin"
	done
	cat >"$conf" <<-END
		runtime = { stat_dir = "$dir"; };
		devices = { d = { transport = "shm-comch"; dir = "$dir"; }; };
		roles = {
		  store = { role = "target"; listen = { device = "d"; name = "v"; };
		            backend = { type = "memory"; size = "8MiB"; }; };
		  load = { role = "initiator"; lanes = 2; connect = { device = "d"; name = "v"; timeout = "2s"; }; };
		};
	END
	head -c 3000000 /dev/urandom >"$BATS_TEST_TMPDIR/in"
}

teardown() {
	[ -z "$pid" ] || kill -KILL "$pid" 2>/dev/null || true
}

gantry() {
	run "$GANTRY" "$@" -p "$GANTRY_PLUGINS"
}

says() {
	[[ "$output" == *"$1"* ]] || { echo "expected: $1"; echo "said: $output"; return 1; }
}

serve() {
	"$GANTRY" run -p "$GANTRY_PLUGINS" "$conf" --role store >"$BATS_TEST_TMPDIR/log" 2>&1 3>&- &
	pid=$!
	local end=$((SECONDS + 60))
	until "$GANTRY" stat --dir "$dir" store >/dev/null 2>&1; do
		kill -0 "$pid" && [ "$SECONDS" -lt "$end" ] || { cat "$BATS_TEST_TMPDIR/log"; return 1; }
	done
}

@test "into the volume and back" {
	serve
	gantry copy "$BATS_TEST_TMPDIR/in" volume: -c "$conf"
	echo "$output"
	[ "$status" -eq 0 ]
	says "copied: 3000000 bytes (2.86MiB) in "
	gantry copy volume:load "$BATS_TEST_TMPDIR/out" -c "$conf"
	[ "$status" -eq 0 ]
	says "copied: 8388608 bytes (8MiB) in "
	[ "$(stat -c %s "$BATS_TEST_TMPDIR/out")" -eq 8388608 ]
	cmp -n 3000000 "$BATS_TEST_TMPDIR/in" "$BATS_TEST_TMPDIR/out"
}

@test "with -v, all values of the report follow" {
	serve
	gantry copy -v volume: "$BATS_TEST_TMPDIR/out" -c "$conf"
	[ "$status" -eq 0 ]
	[[ "$output" == *"copied: 8388608 bytes"*$'\n'"result                    ok"* ]]
}

@test "part of it, with JSON" {
	serve
	gantry copy volume: "$BATS_TEST_TMPDIR/out" -c "$conf" --json --set roles.load.copy.size=1MiB
	[ "$status" -eq 0 ]
	says '"command": "copy"'
	says '"result": "ok"'
	[ "$(stat -c %s "$BATS_TEST_TMPDIR/out")" -eq 1048576 ]
}

@test "a file that is larger than the volume" {
	serve
	gantry copy "$BATS_TEST_TMPDIR/in" volume: -c "$conf"
	truncate -s 9M "$BATS_TEST_TMPDIR/in"
	gantry copy "$BATS_TEST_TMPDIR/in" volume: -c "$conf"
	echo "$output"
	[ "$status" -eq 1 ]
	says "has 9437184 bytes, the volume only 8388608"
}

@test "a file that does not exist" {
	serve
	gantry copy "$BATS_TEST_TMPDIR/absent" volume: -c "$conf"
	[ "$status" -eq 1 ]
	says "$BATS_TEST_TMPDIR/absent: No such file or directory"
}

@test "a full file system: the error is reported once, with the number of bytes copied" {
	serve
	head -c 8388608 /dev/urandom >"$BATS_TEST_TMPDIR/in" # no holes, which need no space
	gantry copy "$BATS_TEST_TMPDIR/in" volume: -c "$conf"
	[ "$status" -eq 0 ]
	mkdir "$BATS_TEST_TMPDIR/small"
	local full='mount -t tmpfs -o size=1m small "$2" || exit 77; shift; exec "$GANTRY" copy -p "$GANTRY_PLUGINS" "${@:2}"'
	[ "$(id -u)" -eq 0 ] || skip "where only root is somebody, / is a stranger's, and plugins below are not loaded"
	run unshare -m bash -c "$full" bash x "$BATS_TEST_TMPDIR/small" -c "$conf" --set roles.load.copy.block=64KiB \
		volume: "$BATS_TEST_TMPDIR/small/out"
	echo "$output"
	[[ "$status" -ne 77 && "$output" != unshare:* ]] || skip "no mount of our own"
	[ "$status" -eq 1 ]
	[ "$(grep -c "cannot write .*/out: No space left on device" <<<"$output")" -eq 1 ]
	[[ "$output" =~ "stopped after: "([0-9]+)" bytes" ]]
	[ "${BASH_REMATCH[1]}" -le 1048576 ]
}

@test "a file that a target serves is not overwritten" {
	[ -e "$GANTRY_PLUGINS/file.so" ] || skip "built without the plugin file"
	local served="type = \"file\"; path = \"$BATS_TEST_TMPDIR/served\"; read_only = true"
	sed -i "s|type = \"memory\"; size = \"8MiB\"|$served|" "$conf"
	head -c 65536 "$BATS_TEST_TMPDIR/in" >"$BATS_TEST_TMPDIR/served"
	serve
	gantry copy volume: "$BATS_TEST_TMPDIR/served" -c "$conf"
	echo "$output"
	[ "$status" -eq 1 ]
	says "$BATS_TEST_TMPDIR/served is in use: by a mount, or by another process"
	cmp -n 65536 "$BATS_TEST_TMPDIR/in" "$BATS_TEST_TMPDIR/served"
}

@test "holes of a file stay holes, and nothing is written for them" {
	serve
	head -c 1000000 /dev/urandom >"$BATS_TEST_TMPDIR/in"
	truncate -s 8M "$BATS_TEST_TMPDIR/in"
	gantry copy "$BATS_TEST_TMPDIR/in" volume: -c "$conf" --json
	[ "$status" -eq 0 ]
	says '"bytes": 1003520'
	gantry copy --verify volume: "$BATS_TEST_TMPDIR/out" -c "$conf"
	[ "$status" -eq 0 ]
	cmp "$BATS_TEST_TMPDIR/in" "$BATS_TEST_TMPDIR/out"
	[ "$(stat -c %b "$BATS_TEST_TMPDIR/out")" -le 4096 ]
}

# limit - let the target serve 4 MiB each second
limit() {
	sed -i 's/backend = /stages = ({ type = "qos"; bandwidth = "4MiB"; burst = "50ms"; }); backend = /' "$conf"
}

# kill_copy WORDS... - start a copy, and kill it after it has recorded a segment
kill_copy() {
	"$GANTRY" copy -p "$GANTRY_PLUGINS" -c "$conf" --state "$BATS_TEST_TMPDIR/state" --verify "$@" \
		--set roles.load.copy.segment=64KiB --set roles.load.copy.block=32KiB >"$BATS_TEST_TMPDIR/copy.log" 2>&1 3>&- &
	local copy=$! end=$((SECONDS + 60))
	until grep -qaP '\x01' <(tail -c +113 "$BATS_TEST_TMPDIR/state" 2>/dev/null); do
		kill -0 "$copy" && [ "$SECONDS" -lt "$end" ] || { cat "$BATS_TEST_TMPDIR/copy.log"; return 1; }
	done
	kill -KILL "$copy"
	wait "$copy" || true
	[ -e "$BATS_TEST_TMPDIR/state" ]
}

@test "a copy that is killed continues" {
	[ -e "$GANTRY_PLUGINS/qos.so" ] || skip "built without the plugin qos"
	head -c 4194304 /dev/urandom >"$BATS_TEST_TMPDIR/in"
	limit
	serve
	local words
	for words in "$BATS_TEST_TMPDIR/in volume:" "volume: $BATS_TEST_TMPDIR/out"; do
		# shellcheck disable=SC2086 # two words
		kill_copy $words
		# shellcheck disable=SC2086
		gantry copy $words -c "$conf" --state "$BATS_TEST_TMPDIR/state" --verify -v
		echo "$output"
		[ "$status" -eq 0 ]
		says "state: continuing (copied="
		[[ "$output" =~ "copied: "([0-9]+)" bytes" ]]
		[ "${BASH_REMATCH[1]}" -gt 0 ]
		[ ! -e "$BATS_TEST_TMPDIR/state" ]
	done
	[ "${BASH_REMATCH[1]}" -lt 8388608 ]
	cmp -n 4194304 "$BATS_TEST_TMPDIR/in" "$BATS_TEST_TMPDIR/out"
	[ "$(stat -c %s "$BATS_TEST_TMPDIR/out")" -eq 8388608 ]
}

@test "a state file that is not one, or that records another copy" {
	serve
	gantry copy volume: "$BATS_TEST_TMPDIR/out" -c "$conf" --state "$BATS_TEST_TMPDIR/in"
	echo "$output"
	[ "$status" -eq 1 ]
	says "in: the state file belongs to another copy (difference=format): remove it to copy everything, or name another file"
	[ "$(stat -c %s "$BATS_TEST_TMPDIR/in")" -eq 3000000 ]
	gantry copy "$BATS_TEST_TMPDIR/in" volume: -c "$conf" --state "$BATS_TEST_TMPDIR/in"
	[ "$status" -eq 2 ]
}

@test "no process serves the volume" {
	gantry copy volume: "$BATS_TEST_TMPDIR/out" -c "$conf" --set roles.load.connect.timeout=50ms
	[ "$status" -eq 1 ]
	says "roles.load: no session: $conf:"
	says "no listener there"
	[[ "$output" != *"stopped after"* ]]
	[ ! -e "$BATS_TEST_TMPDIR/out" ]
}

@test "a configuration without a role that can copy, and a role that cannot" {
	sed -i '/  load = /d' "$conf"
	gantry copy volume: "$BATS_TEST_TMPDIR/out" -c "$conf"
	[ "$status" -eq 2 ]
	says "gantry: $conf has 0 roles that can copy; write volume:ROLE"
	gantry copy volume:store "$BATS_TEST_TMPDIR/out" -c "$conf"
	[ "$status" -eq 2 ]
	says "gantry: $conf: the role \"store\" cannot copy: it is a \"target\"; name an initiator"
	gantry copy volume:Load "$BATS_TEST_TMPDIR/out" -c "$conf"
	[ "$status" -eq 2 ]
	says "gantry: $conf has no role \"Load\""
}

@test "a FIFO is refused at once, with no one at its other end" {
	serve
	mkfifo "$BATS_TEST_TMPDIR/fifo"
	run timeout -s KILL 60 "$GANTRY" copy "$BATS_TEST_TMPDIR/fifo" volume: -c "$conf" -p "$GANTRY_PLUGINS"
	[ "$status" -eq 1 ]
	says "$BATS_TEST_TMPDIR/fifo: only a regular file or a block device can be copied"
}

@test "a volume that only a role of the same process could serve is refused at once" {
	[ -e "$GANTRY_PLUGINS/loop.so" ] || skip "built without the plugin loop"
	sed -i 's/devices = .*/devices = { d = { transport = "loop"; }; };/' "$conf"
	for words in "$BATS_TEST_TMPDIR/in volume:" "volume:load $BATS_TEST_TMPDIR/out"; do
		# shellcheck disable=SC2086 # two words
		gantry copy $words -c "$conf"
		[ "$status" -eq 2 ]
		says 't.conf:6: roles.load connects to "v" on the device "d", which reaches only this process, and no other'
		says "gantry run with --set roles.load.copy.from=FILE, or copy.to, runs all"
	done
	[ ! -e "$BATS_TEST_TMPDIR/out" ]
	gantry run "$conf" --set "roles.load.copy.from=$BATS_TEST_TMPDIR/in"
	[ "$status" -eq 0 ]
}
