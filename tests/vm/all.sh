#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# all.sh [PATTERN] - in the virtual machine, run environment.sh, then each script NN-NAME.sh of this directory whose name matches
# the regular expression, as one stream of TAP. If the environment is broken, no other script runs.
set -u
shopt -s nullglob
here=$(cd "$(dirname "$0")" && pwd) || exit 1
pattern=${1:-.}
limit=${VM_SCRIPT_LIMIT:-900} # seconds, of one script
n=0
failed=0

# took NAME START - log the duration of a script: milliseconds since START, which is in microseconds
took()
{
	echo "$(((${EPOCHREALTIME/./} - $2) / 1000)) $1" >>"${VM_OUT:-/tmp}/milliseconds"
}

# say ok|"not ok" TEXT - print a TAP result that no script printed
say()
{
	n=$((n + 1))
	[ "$1" = ok ] || failed=$((failed + 1))
	echo "$1 $n - $2"
}

# relay NAME - convert standard input: the output of the script, and then `status N`
relay()
{
	local line plan='' count=0 bad=$failed status='' start=${EPOCHREALTIME/./}
	while IFS= read -r line; do
		case $line in
		"ok "* | "not ok "*) took "$1: ${line#*ok * - }" "$start"; start=${EPOCHREALTIME/./} ;;
		esac
		case $line in
		"ok "*) count=$((count + 1)); say ok "$1: ${line#ok * - }" ;;
		"not ok "*) count=$((count + 1)); say "not ok" "$1: ${line#not ok * - }" ;;
		1..*) plan=${line#1..} ;;
		"status "*) status=${line#status } ;;
		*) echo "# ${line#\# }" ;;
		esac
	done
	case $plan in
	"0 # SKIP"*) say ok "$1 # SKIP ${plan#0 # SKIP }" ;;
	"$count") [ "$bad" -ne "$failed" ] || [ "$status" = 0 ] || say "not ok" "$1: exit status $status" ;;
	*) say "not ok" "$1: ran to its end (exit status $status, ${plan:-no} tests planned, $count seen)" ;;
	esac
}

# run SCRIPT - run the script, and end the processes that it has left
run()
{
	local pid
	timeout -k 5 "$limit" bash "$1" </dev/null &
	pid=$!
	wait "$pid"
	echo "status $?"
	kill -KILL -- "-$pid" 2>/dev/null
}

one()
{
	local name=${1##*/} start=${EPOCHREALTIME/./}
	name=${name%.sh}
	relay "$name" < <(run "$1" 2> >(tee -a "${VM_OUT:-/tmp}/$name.stderr" >&2))
	took "$name" "$start"
}

one "$here/environment.sh"
broken=$failed
for script in "$here"/[0-9][0-9]-*.sh; do
	name=${script##*/}
	[[ $name =~ $pattern ]] || continue
	if [ "$broken" -eq 0 ]; then
		one "$script"
	else
		say ok "${name%.sh} # SKIP the environment is broken"
	fi
done
echo "1..$n"
exit $((failed > 0))
