#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# progress.sh - shows that a long step of ./dev, which reads this file, is alive
#
# On a terminal one line changes each second. Elsewhere a line is printed each 5 seconds, and after a minute each 30 seconds.

progress_period="" # for tests: seconds between two lines

# show_progress LINE - print a line of progress; on a terminal, in place of the line before
show_progress()
{
	if [ -t 1 ]; then
		printf '\r\033[K   %s' "$1"
	else
		printf '   %s\n' "$1"
	fi
}

# with_progress TEXT STATE COMMAND... - run COMMAND in a subshell. Meanwhile print lines with TEXT, the seconds that COMMAND has
# run, and what the command STATE (words) prints. COMMAND must not print anything. Returns its exit status.
with_progress()
{
	local text=$1 state=$2 start=$SECONDS elapsed=0 ended command
	shift 2
	# the pipe has no data; its end ends the wait. The time limit of read could split a status that COMMAND sent through it.
	exec {ended}< <("$@" >/dev/null; exit)
	command=$!
	until read -r -t "${progress_period:-$([ -t 1 ] && echo 1 || echo $((elapsed < 60 ? 5 : 30)))}" -u "$ended"; do
		[ $? -gt 128 ] || break
		elapsed=$((SECONDS - start))
		show_progress "$text: $elapsed s${state:+, $($state)}"
	done
	exec {ended}<&-
	[ ! -t 1 ] || printf '\r\033[K'
	wait "$command"
}

# last_check LOG - print what configure, which writes this log, looks for
last_check()
{
	tail -n 1 "$1" 2>/dev/null | sed 's/\.\.\..*//'
}

# count_lines PATTERN LOG TOTAL WHAT - print how many lines of the log match, as "N of TOTAL WHAT"; TOTAL may be 0, if unknown
count_lines()
{
	local n
	n=$(grep -cE "$1" "$2" 2>/dev/null)
	[ "$3" -eq 0 ] && echo "${n:-0} $4" || echo "${n:-0} of $3 $4"
}
