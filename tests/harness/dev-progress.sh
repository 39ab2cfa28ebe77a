#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# dev-progress.sh - the progress of ./dev: lines while a command runs, its exit status, and what the lines say
. "$top_srcdir/tests/tap.sh"
. "$top_srcdir/tests/dev/progress.sh"
cd "$tmp" || exit 1
mkfifo go || exit 1

# wait_for_go STATUS - a command that ends after the first line of progress
wait_for_go()
{
	echo "must not be seen"
	cat go
	return "$1"
}

# let_go - the state of that command: ends it
let_go()
{
	[ -e gone ] || { : >gone; echo >go; }
	echo "7 of 9"
}

progress_period=0.1
with_progress "compiling" let_go wait_for_go 3 >out
is "the exit status is that of the command" 3 $?
is "a line says what runs, how long, and its state" "   compiling: N s, 7 of 9" "$(head -n 1 out | sed 's/[0-9]* s/N s/')"
is "the command prints nothing between them" 0 "$(grep -c seen out)"
is "without a terminal no line is overwritten" 0 "$(grep -c "$(printf '\r')" out)"

progress_period=0.001
lost=0
for _ in $(seq 60); do
	with_progress "short" "" sleep 0.00$((RANDOM % 10)) >out || # lint: allowed, the command itself
		lost=$((lost + 1))
done
is "the status is not lost when a command ends just as a line is due" 0 "$lost"

progress_period=60
lost=0
for _ in $(seq 300); do
	with_progress "short" "" true >out || lost=$((lost + 1))
done
is "a command that ends at once prints no line" "0 0" "$lost $(wc -l <out)"
with_progress "short" "" false >out
is "its failure is not lost" 1 $?
with_progress "killed" "" sh -c 'kill -KILL $$' >out 2>&1
is "a command that is killed fails" 137 $?

printf 'checking for gcc... yes\nchecking for libuuid... ' >log
is "configure: what it looks for" "checking for libuuid" "$(last_check log)"
printf '  CC       a.lo\nwarning\n  CC       b.lo\n' >log
is "make: files that are compiled, of all" "2 of 5 files" "$(count_lines '^  CC ' log 5 files)"
is "all are not known" "2 files" "$(count_lines '^  CC ' log 0 files)"
is "there is no log yet" "0 of 5 files" "$(count_lines '^  CC ' none 5 files)"
done_testing
