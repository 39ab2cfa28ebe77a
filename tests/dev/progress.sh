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
	local text=$1 state=$2 start=$SECONDS elapsed=0 ended part rc status=""
	shift 2
	# The pipe has the status: `wait` loses it if the process has ended before, and $? is then -1. At its time limit, read has
	# stored what it has read so far, so the parts are joined.
	exec {ended}< <("$@" >/dev/null; echo $?)
	while true; do
		read -r -t "${progress_period:-$([ -t 1 ] && echo 1 || echo $((elapsed < 60 ? 5 : 30)))}" -u "$ended" part
		rc=$?
		status+=$part
		[ $rc -gt 128 ] || break
		elapsed=$((SECONDS - start))
		show_progress "$text: $elapsed s${state:+, $($state)}"
	done
	exec {ended}<&-
	[ ! -t 1 ] || printf '\r\033[K'
	return "${status:-1}"
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
