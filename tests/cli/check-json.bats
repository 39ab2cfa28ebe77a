#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
# gantry check --json: prints one document with one object for each error and warning, for every kind of error.

setup() {
	umask 022
	cd "$BATS_TEST_TMPDIR" || return
	for plugin in target gateway initiator memory loop; do
		[ -e "$GANTRY_PLUGINS/$plugin.so" ] || skip "built without the plugin $plugin"
	done
	command -v jq >/dev/null || skip "jq is not installed"
}

# good - write a configuration without errors to t.conf
good() {
	cat >t.conf <<-'END'
		devices = { d = { transport = "loop"; }; };
		roles = {
		  store = { role = "target"; backend = { type = "memory"; size = "1MiB"; };
		    listen = { device = "d"; name = "v"; }; };
		  load = { role = "initiator"; connect = { device = "d"; name = "v"; };
		    workload = { ops = 1; }; };
		};
	END
}

# check STATUS [ARGUMENT]... - check t.conf; the standard error has a line for each error, which ends with its place and message
check() {
	local status=0
	"$GANTRY" check -p "$GANTRY_PLUGINS" --json t.conf "${@:2}" >out 2>err || status=$?
	cat out err
	[ "$status" -eq "$1" ]
	jq -es 'length == 1' out >/dev/null
	jq -r '.errors[] | (if .line then .file + ":\(.line): " else "" end) + (if .key then .key + ": " else "" end) + .message' \
		out >texts
	sed -n 's/^gantry: //p' err | paste -d '\n' texts - | while read -r text && read -r line; do
		[ "${line%"$text"}" != "$line" ] || { echo "not at the end of a line: $text"; return 1; }
	done
	[ "$(grep -c '^gantry: ' err)" -eq "$(jq '.errors | length' out)" ]
	jq -e '(.errors | length) == .errors_total and all(.errors[], .warnings[];
		(keys == ["file", "key", "line", "message", "severity"]) and (.message | type == "string"))' out >/dev/null
	jq -e 'all(.errors[]; .severity == "error") and all(.warnings[]; .severity == "warning")' out >/dev/null
}

# error FILTER - exactly one error has these fields, "{line: 3}"
error() {
	jq -e "[.errors[] | select(contains($1))] | length == 1" out >/dev/null || { echo "no error $1"; return 1; }
}

n_errors() {
	[ "$(jq '.errors | length' out)" -eq "$1" ]
}

@test "no errors" {
	good
	check 0
	jq -e '.schema == 2 and .config == "t.conf" and .errors == [] and .warnings == [] and .errors_total == 0' out
	jq -e '.devices.d.transport == "loop" and .roles.store and .process.threads == 1' out
}

@test "no such file, and what is no file" {
	rm -f t.conf
	check 2
	error '{file: "t.conf", line: null, key: null, message: "cannot open t.conf: No such file"}'
	n_errors 1
	mkdir t.conf
	check 2
	error '{file: "t.conf", message: "is a directory"}'
}

@test "syntax" {
	printf 'devices = { };\nroles = { store = ;\n' >t.conf
	check 2
	error '{file: "t.conf", line: 2, key: null, message: "unterminated bracket"}'
	printf 'devices = { };\nroles = { };\nx y;\n' >t.conf
	check 2
	error '{file: "t.conf", line: 3, message: "syntax error"}'
	printf 'devices = { };\n\ndevices = { };\n' >t.conf
	check 2
	error '{file: "t.conf", line: 3, message: "duplicate setting name"}'
	printf 'a = 99999999999;\nb = "x;\n' >t.conf
	check 2
	error '{line: 1, message: "does not fit into 32 bits"}'
	error '{line: 2, message: "unterminated string"}'
	n_errors 2
}

@test "an included file" {
	good
	echo 'x y;' >more.conf
	printf '\n@include "more.conf"\n' >>t.conf
	check 2
	error '{file: "more.conf", line: 1, message: "syntax error"}'
	rm more.conf
	check 2
	error '{file: "t.conf", line: 9, message: "cannot open more.conf: No such file"}'
}

@test "types, unknown keys, missing keys and values: all of them" {
	cat >t.conf <<-'END'
		runtime = { log = "loud"; spin = 3; };
		devices = { d = { transport = "loop"; max_depth = "many"; }; e = { };
		  f = 3; };
		roles = {
		  store = { role = "target"; backend = { size = "1MiB"; };
		    listen = { device = "d"; name = "v"; max_sessions = 0; max_lanes = "two"; sesions = 1; }; };
		  load = { role = "initiator"; connect = { device = "none"; name = "v"; };
		    workload = { block = true; }; lanes = 99; };
		  odd = 7;
		  nobody = { role = "absent"; };
		};
	END
	check 2
	error '{line: 1, key: "runtime.log", message: "\"loud\" is unknown"}'
	error '{line: 1, key: "runtime.spin", message: "is a number; write a time"}'
	error '{line: 2, key: "devices.d.max_depth", message: "is a string"}'
	error '{line: 2, key: "devices.e", message: "\"transport\" must be given"}'
	error '{line: 3, key: "devices.f", message: "is not a group"}'
	error '{line: 5, key: "roles.store.backend", message: "\"type\" must be given"}'
	error '{line: 6, key: "roles.store.listen.max_sessions", message: "0 is out of range"}'
	error '{line: 6, key: "roles.store.listen.max_lanes", message: "is a string"}'
	error '{line: 6, key: "roles.store.listen.sesions", message: "did you mean \"sessions\""}'
	error '{line: 7, key: "roles.load.connect.device", message: "there is no device \"none\""}'
	error '{line: 8, key: "roles.load.workload.block", message: "is a bool"}'
	error '{line: 8, key: "roles.load.lanes", message: "99 is out of range"}'
	error '{line: 9, key: "roles.odd", message: "is not a group"}'
	error '{line: 10, key: "roles.nobody.role", message: "no plugin \"absent\""}'
	n_errors 14
}

@test "an unknown device beside other errors of the same group" {
	good
	sed -i 's/listen = { device = "d";/listen = { device = "x"; max_lanes = 0;/' t.conf
	check 2
	error '{line: 4, key: "roles.store.listen.max_lanes"}'
	error '{line: 4, key: "roles.store.listen.device", message: "there is no device \"x\""}'
}

@test "many errors: none is left out of the list, the text ends with their number" {
	good
	for i in $(seq 300); do echo "unknown_$i = 1;"; done >>t.conf
	"$GANTRY" check -p "$GANTRY_PLUGINS" --json t.conf >out 2>err && return 1
	n_errors 300
	error '{line: 307, key: "unknown_300"}'
	grep -q '^gantry: and 236 more$' err
}

@test "--set and --role" {
	good
	check 2 --set roles.load.lanes=99 --set roles.store.listen.max_lanes=0
	error '{file: "--set", line: null, key: "roles.load.lanes", message: "99 is out of range"}'
	error '{file: "--set", key: "roles.store.listen.max_lanes"}'
	check 2 --set nonsense --set roles.load=3
	error '{file: "--set", message: "nonsense: write KEY.PATH=VALUE"}'
	error '{file: "--set", message: "roles.load=3: this is a group or a list"}'
	check 2 --role nobody
	error '{message: "t.conf has no such role; it has: store, load"}'
}

@test "warnings have places, too" {
	good
	sed -i '1s/^/runtime = { cpus = "0,4095"; }; /' t.conf
	check 0
	jq -e '.warnings | any(.line == 1 and .key == "runtime.cpus" and .file == "t.conf")' out
}

@test "errors that need the limits of opened devices" {
	good
	check 2 --set devices.d.max_depth=2 --set roles.load.workload.depth=4
	error '{file: "--set", key: "roles.load.workload.depth", message: "4 IOs in flight need queues of 8 entries"}'
	jq -e '.devices.d.needs and .roles.load' out
}

@test "devices that cannot be opened: all are listed, and the exit status is that of a failed device" {
	[ -e "$GANTRY_PLUGINS/shm-comch.so" ] || skip "built without the plugin shm-comch"
	good
	mkdir open closed
	chmod 777 open closed # other users could replace the sockets there
	cat >t.conf <<-END
		devices = { d = { transport = "shm-comch"; dir = "$PWD/open"; };
		  e = { transport = "shm-comch"; dir = "$PWD/closed"; }; };
		roles = {
		  a = { role = "target"; backend = { type = "memory"; }; listen = { device = "d"; name = "w"; }; };
		  b = { role = "target"; backend = { type = "memory"; }; listen = { device = "e"; name = "w"; }; };
		};
	END
	check 1
	error '{line: 1, key: "devices.d", message: "cannot be opened: Permission denied"}'
	error '{line: 2, key: "devices.e", message: "cannot be opened: Permission denied"}'
}

@test "text that is no UTF-8" {
	good
	printf 'bad_\351 = 1;\n' >>t.conf
	"$GANTRY" check -p "$GANTRY_PLUGINS" --json t.conf >out 2>err && return 1
	[ "$(jq '.errors | length' out)" -ge 1 ]
}
