#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
# The command line: help, errors, exit status.

gantry() {
	run "$GANTRY" "$@"
}

says() {
	[[ "$output" == *"$1"* ]] || { echo "expected: $1"; echo "said: $output"; return 1; }
}

mistake() { # TEXT ARGUMENT... - gantry exits with 2 and prints the text
	local text=$1
	shift
	gantry "$@"
	[ "$status" -eq 2 ]
	says "$text"
}

@test "help lists every command and the exit status" {
	gantry --help
	[ "$status" -eq 0 ]
	for word in run check copy plugins options stat top version "Exit status:"; do says "$word"; done
	says "
  0  success
  1  an IO, a session or a device failed
  2  the command line or the configuration is wrong
  3  a signal ended the process before its work was done
"
	gantry help
	[ "$status" -eq 0 ]
	says "Commands:"
}

@test "each command has help of its own" {
	for command in run check copy plugins options stat top version; do
		gantry "$command" --help
		[ "$status" -eq 0 ]
		says "Usage: gantry $command"
	done
}

@test "-v logs listeners and sessions, twice control messages" {
	for plugin in target initiator memory loop; do
		[ -e "$GANTRY_PLUGINS/$plugin.so" ] || skip "built without the plugin $plugin"
	done
	cat >"$BATS_TEST_TMPDIR/t.conf" <<-'END'
		runtime = { stat = false; };
		devices = { d = { transport = "loop"; }; };
		roles = {
		  store = { role = "target"; listen = { device = "d"; name = "v"; };
		    backend = { type = "memory"; size = "1MiB"; }; };
		  load = { role = "initiator"; connect = { device = "d"; name = "v"; }; workload = { ops = 10; }; };
		};
	END
	gantry run -p "$GANTRY_PLUGINS" "$BATS_TEST_TMPDIR/t.conf"
	[ "$status" -eq 0 ]
	[[ "$output" != *"session started"* ]]
	gantry run -p "$GANTRY_PLUGINS" "$BATS_TEST_TMPDIR/t.conf" -v
	[ "$status" -eq 0 ]
	says "info roles.store: listening device=d service=v"
	says "info roles.load: session started id="
	[[ "$output" != *" debug "* ]]
	gantry run -p "$GANTRY_PLUGINS" "$BATS_TEST_TMPDIR/t.conf" -v -v
	[ "$status" -eq 0 ]
	says "debug session: sent hello session="
	says "debug session: received bye session="
}

@test "a kernel that is too old" {
	[ "$(setarch --uname-2.6 uname -r 2>/dev/null | cut -c 1-4)" = 2.6. ] || skip "setarch --uname-2.6 does not work here"
	for plugin in target null loop; do
		[ -e "$GANTRY_PLUGINS/$plugin.so" ] || skip "built without the plugin $plugin"
	done
	cat >"$BATS_TEST_TMPDIR/t.conf" <<-'END'
		devices = { d = { transport = "loop"; }; };
		roles = { store = { role = "target"; listen = { device = "d"; name = "v"; };
		  backend = { type = "null"; size = "1MiB"; }; }; };
	END
	for command in run check; do
		run timeout 60 setarch --uname-2.6 "$GANTRY" "$command" -p "$GANTRY_PLUGINS" "$BATS_TEST_TMPDIR/t.conf"
		echo "$output"
		[ "$status" -eq 1 ]
		says "gantry: Linux 2.6."
		says " is too old (minimum=5.14): run a newer kernel"
		[[ "$output" != *": ok"* ]]
	done
	gantry check -p "$GANTRY_PLUGINS" "$BATS_TEST_TMPDIR/t.conf"
	[ "$status" -eq 0 ]
}

@test "the version, as text and as JSON" {
	gantry version
	[ "$status" -eq 0 ]
	[[ "$output" =~ ^"gantry "[0-9]+\.[0-9]+\.[0-9]+" (plugin ABI "[0-9]+\.[0-9]+")"$ ]]
	gantry --version
	[ "$status" -eq 0 ]
	gantry version --json
	[ "$status" -eq 0 ]
	says '"schema": 1'
	says '"abi_major": 0'
}

@test "no command" {
	mistake "gantry: no command given; see gantry --help"
}

@test "a value for an option that takes none" {
	mistake "gantry: option --json takes no value; see gantry version --help" version --json=3
	mistake "gantry: option --verbose takes no value; see gantry --help" --verbose=1 version
	mistake "gantry: unknown option --nix=3; see gantry version --help" version --nix=3
}

@test "unknown command" {
	mistake "gantry: unknown command \"frob\"; see gantry --help" frob
	mistake "gantry: unknown command \"Run\"; did you mean \"run\"?" Run
	mistake "gantry: unknown command \"plugin\"; did you mean \"plugins\"?" plugin
	mistake "gantry: usage: gantry version [OPTION]...; see gantry version --help" version 1
}

@test "a file is no command" {
	touch "$BATS_TEST_TMPDIR/a.conf"
	mistake "gantry: unknown command \"$BATS_TEST_TMPDIR/a.conf\"; to run that file: gantry run $BATS_TEST_TMPDIR/a.conf" \
		"$BATS_TEST_TMPDIR/a.conf"
}

@test "unknown option before the command" {
	mistake "gantry: unknown option --frob; see gantry --help" --frob run x
}

@test "unknown option behind the command" {
	mistake "gantry: unknown option --frob; see gantry run --help" run x --frob
	mistake "gantry: unknown option -x; see gantry run --help" run -x y
}

@test "an option of another command" {
	mistake "unknown option --dir" run --dir /tmp x
}

@test "an option without its value" {
	mistake "gantry: option --role needs a value; see gantry run --help" run x --role
}

@test "too few and too many arguments" {
	mistake "gantry: usage: gantry run [OPTION]... FILE; see gantry run --help" run
	mistake "gantry: usage: gantry run [OPTION]... FILE" run a b
	mistake "gantry: usage: gantry version" version a
	mistake "gantry: usage: gantry copy [OPTION]... SRC DST" copy a
}

@test "copy needs a configuration, a volume and a file" {
	mistake "gantry: copy needs a configuration: write -c FILE" copy volume: /tmp/x
	mistake "one of SRC and DST must be" copy -c x a b
	mistake "one of SRC and DST must be" copy -c x volume: volume:a
	mistake "copy runs one role" copy -c x volume:a f --role b
	mistake "is not a valid file name" copy -c x volume:a 'a"b'
}

@test "options may stand before the command, and behind its arguments" {
	gantry --json version
	[ "$status" -eq 0 ]
	says '"schema": 1'
	gantry version -v -j
	[ "$status" -eq 0 ]
	says '"schema": 1'
}

@test "stat reports the directory that it searched if no process answers" {
	gantry stat --dir "$BATS_TEST_TMPDIR"
	[ "$status" -eq 1 ]
	says "gantry: no running gantry process answers in $BATS_TEST_TMPDIR; use --dir DIR to search another directory"
	gantry stat --dir "$BATS_TEST_TMPDIR" load
	says "no running gantry process with a role \"load\" answers"
	gantry stat --dir "$BATS_TEST_TMPDIR/nix"
	[ "$status" -eq 1 ]
	says "answers in $BATS_TEST_TMPDIR/nix (No such file or directory); use --dir DIR to search another directory"
}

@test "a full disk is a failure" {
	[ -c /dev/full ] || skip "no /dev/full"
	run sh -c '"$GANTRY" version >/dev/full'
	[ "$status" -eq 1 ]
	says "gantry: cannot write the output: No space left on device"
	for command in version options plugins devices "env host"; do
		# shellcheck disable=SC2016,SC2086 # the inner shell's; two words
		run sh -c '"$GANTRY" "$@" --json -p "$GANTRY_PLUGINS" >/dev/full' sh $command
		[ "$status" -eq 1 ]
		[[ "$output" == *"build and install gantry without --disable-doca"* ]] ||
			says "gantry: cannot write the output: No space left on device"
	done
}
