#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
# gantry doca: the commands for programs written for DOCA, in the build tree and after installation.

setup() {
	[ -x "$top_builddir/doca/gantry-doca" ] || skip "built with --disable-doca"
}

@test "the help names the commands, and each command its options" {
	run "$GANTRY" doca --help
	[ "$status" -eq 0 ]
	[[ "$output" == *"  run "* ]]
	run "$GANTRY" doca run --help
	[ "$status" -eq 0 ]
	[[ "$output" == *"--thread-start-shim"* ]]
}

@test "an unknown command, an unknown option and a missing program are rejected" {
	run "$GANTRY" doca walk
	[ "$status" -eq 2 ]
	[[ "$output" == *'unknown command "walk"'* ]]
	run "$GANTRY" doca run --nothing -- true
	[ "$status" -eq 2 ]
	[[ "$output" == *"unknown option --nothing"* ]]
	run "$GANTRY" doca run --
	[ "$status" -eq 2 ]
	[[ "$output" == *"no program given"* ]]
	run "$GANTRY" doca run -- ./absent
	[ "$status" -eq 2 ]
	[[ "$output" == *"./absent: cannot run the program: No such file"* ]]
}

@test "run ends with the exit status of the program, which gets its arguments" {
	run "$GANTRY" doca run -- sh -c 'echo "$1"; exit 7' sh --thread-start-shim
	[ "$status" -eq 7 ]
	[ "$output" = --thread-start-shim ]
}

@test "run does not let the program ignore SIGPIPE" {
	run "$GANTRY" doca run -- sh -c 'kill -PIPE $$; echo ignored'
	[[ "$output" != *ignored* ]]
}

@test "without the shim, threads start before the handle is stored" {
	run "$top_builddir/tests/cli/thread_start"
	[ "$status" -eq 0 ]
	[[ "$output" =~ ^early:\ [1-9][0-9]*$ ]]
}

@test "with it, none does, and each thread starts" {
	run timeout 60 "$GANTRY" doca run --thread-start-shim -- "$top_builddir/tests/cli/thread_start"
	[ "$status" -eq 0 ]
	[ "$output" = "early: 0" ]
}

@test "libraries that LD_PRELOAD names already stay" {
	! grep -q -e -fsanitize "$top_builddir/doca/Makefile" || skip "not with sanitizers"
	LD_PRELOAD=libc.so.6 run "$GANTRY" doca run --thread-start-shim -- env
	[[ "$output" == *"LD_PRELOAD=$(cd "$top_builddir" && pwd -P)/doca/.libs/libgantry-doca-thread-start.so:libc.so.6"* ]]
}

@test "a run that hangs or is interrupted leaves no process behind" {
	# the shell cannot load a layer that needs the library of a sanitizer
	! grep -q -e -fsanitize "$top_builddir/doca/Makefile" || skip "not with sanitizers"
	cat >"$BATS_TEST_TMPDIR/waits" <<-'EOF'
	#!/bin/sh
	sleep 1000 & # lint: allowed, the run ends it
	echo $! >"$1"
	wait
	EOF
	chmod +x "$BATS_TEST_TMPDIR/waits"
	run timeout 60 "$GANTRY" doca check --timeout 1 -- "$BATS_TEST_TMPDIR/waits" "$BATS_TEST_TMPDIR/first"
	[ "$status" -eq 3 ]
	[[ "$output" == *"hung: killed at the time limit"* ]]
	run kill -0 "$(cat "$BATS_TEST_TMPDIR/first")"
	[ "$status" -ne 0 ]

	TMPDIR=$BATS_TEST_TMPDIR "$GANTRY" doca check -- "$BATS_TEST_TMPDIR/waits" "$BATS_TEST_TMPDIR/second" 3>&- 2>/dev/null &
	local pid=$!
	until [ -s "$BATS_TEST_TMPDIR/second" ]; do :; done
	kill -TERM "$pid"
	status=0
	wait "$pid" || status=$?
	[ "$status" -eq 3 ]
	run kill -0 "$(cat "$BATS_TEST_TMPDIR/second")"
	[ "$status" -ne 0 ]
	[ -z "$(find "$BATS_TEST_TMPDIR" -name 'gantry-doca-*')" ]
}
