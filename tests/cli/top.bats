#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
# gantry top: screens as text, and in a terminal of tmux. One process, connected by the transport loop.

setup() {
	. "$BATS_TEST_DIRNAME/lib.sh"
	umask 022
	conf=$BATS_TEST_TMPDIR/t.conf
	dir=$BATS_TEST_TMPDIR/stat
	pid=
	other=
	tmux_dir=
	need target gateway initiator memory stats loop
	cat >"$conf" <<-END
		runtime = { stat_dir = "$dir"; };
		devices = { d = { transport = "loop"; }; };
		roles = {
		  store = { role = "target"; listen = { device = "d"; name = "v"; };
		            backend = { type = "memory"; size = "1MiB"; }; };
		  bridge = { role = "gateway"; listen = { device = "d"; name = "f"; };
		             connect = { device = "d"; name = "v"; };
		             stages = ( { type = "stats"; } ); };
		  load = { role = "initiator"; connect = { device = "d"; name = "f"; };
		           workload = { pattern = "randrw"; time = "600s"; depth = 4; rate = 1000; }; };
		};
	END
}

teardown() {
	close_terminal
	for process in $pid $other; do
		kill -KILL "$process" 2>/dev/null || true
	done
}

answers() {
	"$GANTRY" stat --dir "$dir" >/dev/null 2>&1
}

begin() { # ARGUMENT... - start gantry in the background, and wait until it answers
	"$GANTRY" run -p "$GANTRY_PLUGINS" "$conf" "$@" >"$BATS_TEST_TMPDIR/out" 2>"$BATS_TEST_TMPDIR/err" 3>&- &
	pid=$!
	until_true answers
}

finish() {
	kill -TERM "$pid"
	wait "$pid" || true
	pid=
}

heads="    PID ROLE              KIND          IOPS    BYTES/S      P50      P99    P99.9 FLIGHT CREDIT"
heads+=" SHARES         ERR   CPU/IO STATE"

# -- text --

@test "batch: screens of an interval, with all columns" {
	begin
	run "$GANTRY" top --dir "$dir" --batch -n 2
	echo "$output"
	[ "$status" -eq 0 ]
	[ "$(grep -cFx -- "$heads" <<<"$output")" -eq 2 ]
	[ "$(grep -cE '^[0-9:]{8}  [0-9.]+k? IOPS  [0-9.]+[KMG]?i?B?/s  1 process, 3 roles, [0-9] sessions?$' <<<"$output")" -eq 2 ]
	[ "$(grep -cE '^over [0-9]+\.[0-9] s, every 1 s, sorted by PID$' <<<"$output")" -eq 2 ]
	grep -qE "^ +$pid store +target +[0-9]+ +- +- +- +- +[0-9]+ +[0-9]+ +0 +[0-9.]+[mu]s 1 session$" <<<"$output"
	grep -qE "^ +[0-9a-f]+ +[0-9]+ +[0-9.]+[KM]iB( +[0-9.]+[num]s){3} .* running" <<<"$output"
	grep -qE "^ +$pid bridge +gateway +[0-9]+ +[0-9.]+[KM]iB +[0-9.]+[num]s " <<<"$output"
	grep -qE "^ +$pid load +initiator +[0-9]+ +[0-9.]+[KM]iB( +[0-9.]+[num]s){3}( +[0-9]+){2} [LGTBD]{12} +0 " <<<"$output"
	run "$GANTRY" top --dir "$dir" -b -n 1 load
	[ "$status" -eq 0 ]
	[[ "$output" == *" load "* ]]
	[[ "$output" != *" store "* ]]
	run "$GANTRY" top -c "$conf" -b -n 1
	[[ "$output" == *" store "* ]]
	finish
}

@test "batch: ends with the last process, and by a signal" {
	begin
	watch 1 "$heads" "$GANTRY" top --dir "$dir" --batch
	[ "$(grep -cFx -- "$heads" <<<"$output")" -ge 1 ]
	"$GANTRY" top --dir "$dir" --batch >"$BATS_TEST_TMPDIR/top" 2>&1 3>&- &
	local top=$!
	until_true grep -q IOPS "$BATS_TEST_TMPDIR/top"
	finish
	status=0
	wait "$top" || status=$?
	[ "$status" -eq 1 ]
	[ "$(tail -n 1 "$BATS_TEST_TMPDIR/top")" = "gantry: no gantry process runs in $dir: start one with gantry run" ]
}

# over_shm - lets the device d reach other processes
over_shm() {
	need shm-comch
	sed -i "s|transport = \"loop\"|transport = \"shm-comch\"; dir = \"$BATS_TEST_TMPDIR/shm\"|" "$conf"
}

rows() { # PATTERN - a screen of the running processes has a matching line
	"$GANTRY" top --dir "$dir" -b -n 1 2>/dev/null | grep -qE -- "$1"
}

@test "batch: a session that waits for its peer, then runs" {
	over_shm
	begin --role load --set roles.load.connect.timeout=600s
	until_true rows '^ +>f .* waiting [1-9][0-9]*s$'
	rows " load +initiator .* waiting [0-9]+s\$"
	"$GANTRY" run -p "$GANTRY_PLUGINS" "$conf" --role store --role bridge >/dev/null 2>&1 3>&- &
	other=$!
	until_true rows '^ +>f .* running [0-9]+s$'
	finish
}

@test "what cannot be shown is refused in one line" {
	run "$GANTRY" top --dir "$BATS_TEST_TMPDIR" --batch
	[ "$status" -eq 1 ]
	[ "$output" = "gantry: no gantry process runs in $BATS_TEST_TMPDIR: start one with gantry run" ]
	run "$GANTRY" top --dir "$BATS_TEST_TMPDIR" </dev/null
	[ "$status" -eq 2 ]
	[[ "$output" == "gantry: standard input or output is not a terminal: use --batch" ||
		"$output" == "gantry: built without ncurses, which draws the screen: use --batch" ]]
	run "$GANTRY" top -n 3
	[ "$status" -eq 2 ]
	[ "$output" = "gantry: --count can be used only with --batch" ]
	run "$GANTRY" top --json
	[ "$status" -eq 2 ]
	[ "$output" = "gantry: top has no JSON: use gantry stat --json" ]
	run "$GANTRY" top --batch -d 0
	[ "$status" -eq 2 ]
	[ "$output" = "gantry: --interval: not a number of seconds from 1 to 3600 (value=0)" ]
	run "$GANTRY" top --batch -n many
	[ "$status" -eq 2 ]
	[ "$output" = "gantry: --count: not a number from 1 to 1000000000 (value=many)" ]
}

# -- terminal --

in_tmux() {
	TMUX_TMPDIR=$tmux_dir command tmux -L top -f /dev/null "$@" 3>&-
}

screen() {
	in_tmux capture-pane -p
}

shows() { # PATTERN - a line of the screen matches
	screen | grep -qE -- "$1"
}

hides() { # PATTERN - no line of the screen matches
	[ -z "$(screen | grep -E -- "$1")" ]
}

# terminal WIDTH HEIGHT [SETTING...] - open gantry top in a terminal, with these variables of the environment. A shell there saves
# the settings of the terminal before and after.
terminal() {
	command -v tmux >/dev/null || skip "tmux is not installed"
	"$GANTRY" top </dev/null 2>&1 | grep -q "built without ncurses" && skip "built without ncurses"
	tmux_dir=$(mktemp -d /tmp/gantry-top-XXXXXX) # the path of a socket is short
	local width=$1 height=$2
	shift 2
	rm -f "$BATS_TEST_TMPDIR"/{before,after,top_pid}
	cat >"$BATS_TEST_TMPDIR/shell" <<-END
		cd "$BATS_TEST_TMPDIR"
		stty -g >before
		trap : INT # Ctrl-C is for gantry top
		sh -c 'echo \$\$ >top_pid; exec "\$@"' sh env $* "$GANTRY" top --dir "$dir"
		echo "status=\$?"
		stty -g >after
		exec cat
	END
	in_tmux new-session -d -x "$width" -y "$height" sh "$BATS_TEST_TMPDIR/shell"
}

close_terminal() {
	[ -n "$tmux_dir" ] || return 0
	in_tmux kill-server || true
	rm -rf "$tmux_dir"
	tmux_dir=
}

press() {
	in_tmux send-keys "$@"
}

# ended STATUS - gantry top has ended with it, and left the settings of the terminal as they were
ended() {
	until_true test -s "$BATS_TEST_TMPDIR/after"
	until_true shows "^status=$1\$"
	cmp "$BATS_TEST_TMPDIR/before" "$BATS_TEST_TMPDIR/after"
	[ "$(in_tmux display-message -p '#{alternate_on} #{cursor_flag} #{keypad_flag}')" = "0 1 0" ]
}

@test "terminal: roles and sessions; sort, open, pause, help, interval, quit" {
	begin
	terminal 150 24
	until_true shows "^ +$pid load +initiator +[0-9]+ "
	screen
	shows '^[0-9:]{8}  .* IOPS  .*  1 process, 3 roles, '
	[ "$(screen | sed -n 3p)" = "$heads" ]
	shows '^q quit  h help '
	press N
	until_true shows 'sorted by ROLE$'
	[ "$(screen | grep -oE '(bridge|load|store) ' | xargs)" = "bridge load store" ]
	press r
	until_true shows 'sorted by ROLE reversed$'
	[ "$(screen | grep -oE '(bridge|load|store) ' | xargs)" = "store load bridge" ]
	press '>'
	until_true shows 'sorted by KIND$'
	press '<' '<'
	until_true shows 'sorted by PID$'
	press +
	until_true shows 'every 2 s'
	press -
	until_true shows 'every 1 s'
	press Home Down Enter # the first session
	until_true shows '^id  +[0-9a-f]+$'
	shows '^depth  +4$'
	press Escape
	until_true shows " $pid bridge "
	press h
	until_true shows '^Enter Right +show all values of the selected role or session$'
	press '?'
	until_true shows " $pid bridge "
	press Space
	until_true shows '^paused$'
	press Space
	until_true shows '^over '
	press q
	ended 0
	hides IOPS
	finish
}

@test "terminal: another size" {
	begin
	terminal 60 12
	until_true shows " $pid load +[0-9]+ "
	shows 'PID ROLE +IOPS +BYTES/S +P99 +ERR$'
	in_tmux resize-window -x 150 -y 20
	until_true shows 'STATE$'
	in_tmux resize-window -x 40 -y 10
	until_true shows '^ROLE +IOPS +BYTES/S$'
	in_tmux resize-window -x 39 -y 10
	until_true shows '^40x10 needed$'
	hides IOPS
	in_tmux resize-window -x 10 -y 3
	until_true shows '^40x10 need$'
	in_tmux resize-window -x 80 -y 24
	until_true shows " $pid load +[0-9]+ "
	press q
	ended 0
	finish
}

@test "terminal: processes come and go" {
	terminal 80 20
	until_true shows "^no gantry process runs in "
	begin --role store
	until_true shows " $pid store "
	local old=$pid
	kill -STOP "$pid"
	until_true shows " silent$" # for two seconds
	press h                     # keys work meanwhile
	until_true shows '^q +quit$'
	press h
	kill -CONT "$pid"
	until_true hides " silent$"
	finish
	until_true shows "^process $old has ended$"
	press q
	ended 0
}

@test "terminal: restored after SIGTERM, SIGINT and Ctrl-C" {
	begin --role store
	local signal
	for signal in TERM INT HUP key; do
		terminal 80 20
		until_true shows " $pid store "
		if [ "$signal" = key ]; then press C-c; else kill -"$signal" "$(cat "$BATS_TEST_TMPDIR/top_pid")"; fi
		ended 0
		hides IOPS
		close_terminal
	done
	finish
}

@test "terminal: without colours, and of an unknown type" {
	begin --role store
	local setting
	for setting in NO_COLOR=1 TERM=vt100; do
		terminal 80 20 "$setting"
		until_true shows " $pid store "
		press q
		ended 0
		close_terminal
	done
	terminal 80 20 TERM=none
	ended 2
	shows 'gantry: unknown type of terminal \(TERM=none\): set TERM, or use --batch'
	finish
}
