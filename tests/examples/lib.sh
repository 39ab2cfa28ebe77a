# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# lib.sh - functions of the tests of examples. A test builds and runs an example outside the tree, with the commands in the first
# comment of its source, against installed headers. A test begins:
#	. "$(dirname "$0")/lib.sh"
#	example stage throttle.c throttle.conf
# and ends with `done_testing`. Between them it uses `ok` for each case.
. "$top_srcdir/tests/tap.sh"
shown=$tmp/out
umask 022
mkdir -m 700 "$tmp/run" "$tmp/stat"
XDG_RUNTIME_DIR=$tmp/run
export XDG_RUNTIME_DIR
unset MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES PKG_CONFIG_PATH LD_LIBRARY_PATH GANTRY_PLUGIN_PATH

# wrap NAME COMMAND - a program NAME for the commands of the examples
wrap()
{
	printf '#!/bin/sh\nexec %s "$@"\n' "$2" >"$tmp/bin/$1" && chmod +x "$tmp/bin/$1"
}

# example KIND FILE... - go to a directory with these files of examples/KIND; commands there use the gantry of this build, the
# strictest compiler, and the headers that `make install` installs
example()
{
	command -v pkg-config >/dev/null || skip "pkg-config is not installed"
	mkdir "$tmp/bin" "$tmp/pc" "$tmp/work" && cd "$tmp/work" || exit 1
	kind=$1
	shift
	for file in "$@"; do # not with cp: the source tree, with its modes, can be read-only
		cat "$top_srcdir/examples/$kind/$file" >"$file" || exit 1
	done
	touch "$tmp/out"
	wrap gantry "$GANTRY"
	wrap cc "${CC:-cc} -std=c11 -Wall -Wextra -Werror"
	${MAKE:-make} -s -C "$top_builddir/include" install DESTDIR="$tmp/root" >/dev/null || exit 1
	sed -E "s|^includedir=.*|includedir=$(dirname "$(find "$tmp/root" -path '*/include/gantry')")|
		s|^plugindir=.*|plugindir=$GANTRY_PLUGINS|" "$top_builddir/gantry-plugin.pc" >"$tmp/pc/gantry-plugin.pc"
	PKG_CONFIG_LIBDIR=$tmp/pc
	PATH=$tmp/bin:$PATH
	export PKG_CONFIG_LIBDIR PATH
}

# command_of NAME FILE - the command NAME in the comment that follows the SPDX line, with the lines that continue it
command_of()
{
	$AWK -v name="$1" '
	NR > 1 && /\*\// { exit }
	sub(/^ \*     /, "") && index($0, name " ") == 1 { on = 1 }
	on { print }
	on && !/\\$/ { exit }' "$2" | grep . || echo false
}

# build FILE - with the command of its comment
build()
{
	eval "$(command_of cc "$1")"
}

# run FILE [ARGUMENT]... - the command `gantry` of its comment
run()
{
	line=$(command_of gantry "$1")
	shift
	eval "timeout 60 $line \"\$@\""
}

# start FILE [ARGUMENT]... - the same in the background, as process $pid, with its output in $tmp/out. Without --foreground,
# timeout would forward a signal twice, and the second one ends gantry at once.
start()
{
	line=$(command_of gantry "$1")
	shift
	eval "timeout --foreground 60 $line \"\$@\" >\"\$tmp/out\" 2>&1 &"
	pid=$!
}

# interrupted - SIGTERM ends the process $pid before its work is done, and before `timeout` kills it
interrupted()
{
	kill "$pid" && wait "$pid"
	rc=$?
	pid=
	[ $rc -eq 3 ]
}

# run_json FILE [ARGUMENT]... - the command `gantry` of its comment, with a report as JSON in $tmp/out
run_json()
{
	run "$@" --json >"$tmp/out" 2>&1
}

# fails STATUS COMMAND... - it ends with that status, and its output is in $tmp/out
fails()
{
	status=$1
	shift
	"$@" >"$tmp/out" 2>&1
	[ $? -eq "$status" ]
}

# output_has PATTERN - a line of the last output matches
output_has()
{
	grep -qE -e "$1" "$tmp/out"
}

# appears PATTERN COMMAND... - repeat the command until its output has such a line, or the process $pid has ended
appears()
{
	pattern=$1
	shift
	until "$@" 2>/dev/null | grep -qE -e "$pattern"; do
		kill -0 "$pid" || return 1
		sleep 0.01 # lint: allowed, between two looks
	done
}
