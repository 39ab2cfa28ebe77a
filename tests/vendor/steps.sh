#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# steps.sh - the commands of a case of a list of programs; tests/doca/programs.list describes them
#
# run.sh reads this file. A command returns non-zero if it fails; `reason` is the cause. The current directory is that of the case.
# The process LABEL has its output in LABEL.out and its input in the FIFO LABEL.in.

reason=""
deadline=0                                          # value of SECONDS at which the case ends
declare -A process=() input=() status=() permitted=() # by label
wrapper=()                                          # command and arguments before each program
exec {never}<> <(:)                                 # reading it waits

# pause - wait a moment between two checks
pause()
{
	read -rt 0.02 -u "$never"
	return 0
}

# fail TEXT... - set the reason
fail()
{
	reason=$*
	return 1
}

# text_of LABEL TEXT - true if the program has printed the text
text_of()
{
	grep -qF -e "$2" "$1.out"
}

# over LABEL - true if the program has ended; sets its status. A zombie has ended: bash 5.2 can stop to reap its children, because
# `read -t` leaves SIGCHLD blocked.
over()
{
	local stat=""
	[ -z "${status[$1]:-}" ] || return 0
	{ read -r stat <"/proc/${process[$1]}/stat"; } 2>/dev/null
	[ -z "$stat" ] || [[ $stat == *") Z "* ]] || return 1
	wait "${process[$1]}" 2>/dev/null # bash would print that a signal ended it
	status[$1]=$?
}

# ending LABEL - print how a program has ended
ending()
{
	if [ "${status[$1]}" -gt 128 ]; then
		echo "ended by signal $((status[$1] - 128))"
	else
		echo "exit status ${status[$1]}"
	fi
}

# run_program SIDE PROGRAM [ARGUMENT]... - replace this process with the program; its output appears line by line
run_program()
{
	# shellcheck source=/dev/null
	. "$out/env.$1"
	shift
	exec setsid stdbuf -oL "${wrapper[@]}" "$@"
}

step_start()
{
	local label=$1 side=$2 program fd
	program=$(find_program "$side" "$3")
	shift 3
	: >"$label.out"
	mkfifo "$label.in" || fail "$label: no FIFO" || return
	exec {fd}<>"$label.in"
	input[$label]=$fd
	run_program "$side" "$program" "$@" <"$label.in" >"$label.out" 2>&1 &
	process[$label]=$!
}

step_until()
{
	local label=$1 ended
	shift
	until text_of "$label" "$*"; do
		over "$label" && ended=yes || ended=""
		# the text may have come between the two looks
		[ -z "$ended" ] || text_of "$label" "$*" || fail "$label: $(ending "$label") before \"$*\"" || return
		[ "$SECONDS" -lt "$deadline" ] || fail "$label: time over before \"$*\"" || return
		pause
	done
}

# the Comch server NAME has its socket; the pause lets it listen
step_listens()
{
	until [ -n "$(find "$XDG_RUNTIME_DIR" -name "*$1*.sock" -print -quit 2>/dev/null)" ]; do
		[ "$SECONDS" -lt "$deadline" ] || fail "time over before the server $1 listens" || return
		pause
	done
	pause
}

step_enter()
{
	echo >&"${input[$1]}"
}

step_errors()
{
	local label=$1
	shift
	permitted[$label]+="$*"$'\n'
}

# wrong_lines LABEL - print the lines of the level error that are not permitted
wrong_lines()
{
	if [ -n "${permitted[$1]:-}" ]; then
		grep -F -e '[ERR]' -e '[CRT]' "$1.out" | grep -vF -f <(printf '%s' "${permitted[$1]}")
	else
		grep -F -e '[ERR]' -e '[CRT]' "$1.out"
	fi
}

step_ends()
{
	local label=$1 wrong
	shift
	until over "$label"; do
		[ "$SECONDS" -lt "$deadline" ] || fail "$label: time over" || return
		pause
	done
	[ "${status[$label]}" -eq 0 ] || fail "$label: $(ending "$label")" || return
	step_prints "$label" "$*" || return
	wrong=$(wrong_lines "$label" | head -n 1)
	[ -z "$wrong" ] || fail "$label: $wrong"
}

step_prints()
{
	local label=$1
	shift
	text_of "$label" "$*" || fail "$label: \"$*\" is not printed"
}

step_file()
{
	local name=$1
	shift
	yes "$*" | head -n 1000 >"$name"
}

step_run()
{
	bash -c "$*" >run.out 2>&1 || fail "$*: $(tail -n 1 run.out)"
}

# crashed LABEL - true if a program that has ended crashed. `gantry doca check` exits with 3 then, or if it hangs.
crashed()
{
	[ "${status[$1]}" -gt 128 ] || { [[ " ${wrapper[*]} " == *" check "* ]] && [ "${status[$1]}" -eq 3 ]; }
}

# find_crash - set the reason to a program that crashed: others may have failed only because of it
find_crash()
{
	local label
	for label in "${!process[@]}"; do
		over "$label" && crashed "$label" && reason="$label: $(ending "$label")"
	done
}

# gave_up - true if a program has ended, and none crashed: it may not expect the trouble that it met, and others may have waited
# for it in vain
gave_up()
{
	local label ended=no
	for label in "${!process[@]}"; do
		over "$label" || continue
		! crashed "$label" || return 1
		ended=yes
	done
	[ $ended = yes ]
}

# end_processes - end what still runs, and close the inputs
end_processes()
{
	local label fd
	for label in "${!process[@]}"; do
		# the process may not have become the leader of its session yet; the session may have several groups
		over "$label" || kill -KILL "${process[$label]}" 2>/dev/null
		pkill -KILL -s "${process[$label]}"
		wait "${process[$label]}" 2>/dev/null
		fd=${input[$label]}
		exec {fd}>&-
	done
	process=() input=() status=() permitted=()
} 2>/dev/null # bash prints that a signal ended a process
