# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# measure.sh - rounds of measurements on a machine with other load. Sourced by bench.sh (bash).
#
# A round measures a limit of the machine, gantry and the peers, one right after the other. There are several rounds, and only the
# ratios within a round are judged. A disturbed round is dropped:
#	busy     other processes used more than 6 % of a CPU during the round (/proc/stat less the use of this shell)
#	regime   the ping-pongs before, between and after its runs differ by more than 30 %. There are none (0) if the name of LIMIT
#	         begins with turn_: then both figures come from one run, which alternates between them
# An undisturbed round has one of two kinds, which are never mixed:
#	cores    the two CPUs are two cores
#	threads  they are threads of one core, which the host of a virtual machine can change; limits/siblings detects it
# Needs: here, tmp, perf (directory of the programs), pairs (wanted number of rounds).

tick_ms=$((1000 / $(getconf CLK_TCK)))

now_ms()
{
	local t=${EPOCHREALTIME/[.,]/}
	echo $((t / 1000))
}

# add_times "0m1.234s 0m0.005s" - add these times to $own_ms
add_times()
{
	local word min sec
	for word in $1; do
		min=${word%%m*} sec=${word#*m}
		sec=${sec%s}
		own_ms=$((own_ms + min * 60000 + 10#${sec/./}))
	done
}

# cpu_times - set $busy_ms, the busy time of all CPUs so far, and $own_ms, the time of this shell and its reaped children
cpu_times()
{
	local user nice system irq softirq steal shell children
	read -r _ user nice system _ _ irq softirq steal _ </proc/stat
	busy_ms=$(((user + nice + system + irq + softirq + steal) * tick_ms))
	times >"$tmp/times"
	{ read -r shell && read -r children; } <"$tmp/times"
	own_ms=0
	add_times "$shell"
	add_times "$children"
}

watch_begin()
{
	cpu_times
	watch_ms=$(now_ms) watch_busy=$busy_ms watch_own=$own_ms
}

# watch_end - set $foreign: percent of a CPU that other processes used since watch_begin
watch_end()
{
	local wall
	wall=$(($(now_ms) - watch_ms))
	cpu_times
	foreign=$(((busy_ms - watch_busy - own_ms + watch_own) * 100 / (wall > 0 ? wall : 1)))
	[ "$foreign" -ge 0 ] || foreign=0
}

# wait_quiet MS - wait at most MS until other processes leave the CPUs idle
wait_quiet()
{
	local end
	end=$(($(now_ms) + $1))
	while :; do
		watch_begin
		sleep 0.1 # lint: allowed, the window in which other processes are watched
		watch_end
		[ "$foreign" -lt 10 ] || [ "$(now_ms)" -ge "$end" ] && return
	done
}

# value NAME - print the value of NAME from lines "NAME VALUE UNIT"
value()
{
	awk -v name="$1" '$1 == name { print $2 }'
}

# stamp - a short ping-pong: $low and $high are the extremes of this round
stamp()
{
	local line
	line=$("$perf/limits/pingpong" 20 | value pingpong) && [ -n "$line" ] || return 1
	read -r low high < <(echo "$line ${low:-$line} ${high:-$line}" | awk '{ print ($1 < $2 ? $1 : $2), ($1 > $3 ? $1 : $3) }')
}

# verdict_of_round SIBLINGS - print the kind of the round, cores or threads, or why it is dropped
verdict_of_round()
{
	awk -v siblings="$1" -v low="$low" -v high="$high" -v foreign="$foreign" 'BEGIN {
		if (foreign > 6) print "busy"
		else if (high > 1.3 * low) print "regime"
		else print siblings < 1.6 ? "threads" : "cores"
	}'
}

# enough NAME N - whether there are N undisturbed rounds
enough()
{
	[ "$(awk -v head='||' -v want="$2" -f "$here/judge.awk" "$tmp/$1.pairs" | cut -d'|' -f11)" -ge "$2" ]
}

# time_left NAME END - whether there is time for another round: until END, or twice as long if there is no verdict yet
time_left()
{
	local now
	now=$(now_ms)
	[ ! -s "$tmp/$1.pairs" ] || [ "$now" -lt "$2" ] || { [ "$now" -lt $(($2 + share)) ] && ! enough "$1" $(((pairs + 1) / 2)); }
}

# peers_of NAME "PEER=COMMAND ..." - set $beside: " PEER=VALUE" for each, with a $stamp after it; failed peers in $tmp/peer-errors
peers_of()
{
	local pair number
	beside=
	for pair in $2; do
		if number=$(${pair#*=}) && [ -n "$number" ]; then
			beside="$beside ${pair%%=*}=$number"
			$stamp
		else
			echo "${pair%%=*} failed beside $1: omitted" >>"$tmp/peer-errors"
		fi
	done
}

# measure NAME MS LIMIT OURS "PEER=COMMAND ..." - run rounds of the commands LIMIT, OURS and those of the peers, for about MS, at
# most twice that. Each command prints one number. Writes lines "LIMIT OURS VERDICT LOW HIGH FOREIGN [PEER=VALUE...]", with the
# extremes of the ping-pong, to $tmp/NAME.pairs. Returns non-zero if LIMIT or OURS failed.
measure()
{
	local name=$1 share=$2 end patience low high siblings limit ours verdict beside stamp=stamp
	case $3 in turn_*) stamp=: ;; esac
	patience=$((share / pairs / 3))
	end=$(($(now_ms) + share))
	: >"$tmp/$name.pairs"
	until enough "$name" "$pairs"; do
		time_left "$name" "$end" || break
		wait_quiet "$patience"
		watch_begin
		low="" high=""
		siblings=$("$perf/limits/siblings" 5 | value siblings)
		$stamp && limit=$($3) && $stamp && ours=$($4) && $stamp && peers_of "$name" "${5:-}" || return 1
		watch_end
		[ -n "$limit" ] && [ -n "$ours" ] || return 1
		verdict=$(verdict_of_round "${siblings:-2}")
		echo "$limit $ours $verdict ${low:-0} ${high:-0} $foreign$beside" >>"$tmp/$name.pairs"
	done
}
