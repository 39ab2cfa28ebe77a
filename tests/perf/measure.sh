# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# measure.sh - rounds of runs on a machine that has other things to do. Sourced by bench.sh (bash).
#
# A limit of the machine, our own figure and those of peers are measured one right after the other, several times, and only the
# ratios within such a round are judged. A round is dropped when it was disturbed:
#	busy     others used more than 6 % of a CPU meanwhile (/proc/stat less what we used ourselves)
#	regime   the ping-pong before and after differ by more than 30 %, or one is under 70 ns: then the two CPUs are
#	         threads of one core, and nothing can be compared with other runs
# Needs: tmp, perf (folder of the programs), pairs (how many are wanted).

tick_ms=$((1000 / $(getconf CLK_TCK)))

now_ms()
{
	local t=${EPOCHREALTIME/[.,]/}
	echo $((t / 1000))
}

# add_times "0m1.234s 0m0.005s" - add that to $own_ms
add_times()
{
	local word min sec
	for word in $1; do
		min=${word%%m*} sec=${word#*m}
		sec=${sec%s}
		own_ms=$((own_ms + min * 60000 + 10#${sec/./}))
	done
}

# cpu_times - set $busy_ms, what all CPUs have done so far, and $own_ms, this shell and the children it waited for
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

# watch_end - set $foreign: percent of a CPU that others used since watch_begin
watch_end()
{
	local wall
	wall=$(($(now_ms) - watch_ms))
	cpu_times
	foreign=$(((busy_ms - watch_busy - own_ms + watch_own) * 100 / (wall > 0 ? wall : 1)))
	[ "$foreign" -ge 0 ] || foreign=0
}

# wait_quiet MS - until others leave the CPUs alone, or so long
wait_quiet()
{
	local end
	end=$(($(now_ms) + $1))
	while :; do
		watch_begin
		sleep 0.1 # lint: allowed, the window in which others are watched
		watch_end
		[ "$foreign" -lt 10 ] || [ "$(now_ms)" -ge "$end" ] && return
	done
}

# value NAME - out of lines "NAME VALUE UNIT"
value()
{
	awk -v name="$1" '$1 == name { print $2 }'
}

stamp()
{
	"$perf/limits/pingpong" 50 | value pingpong
}

# verdict_of_pair BEFORE AFTER - why the pair does not count, or "ok"
verdict_of_pair()
{
	awk -v a="$1" -v b="$2" -v foreign="$foreign" 'BEGIN {
		if (foreign > 6) print "busy"
		else if (a < 70 || b < 70 || a > 1.3 * b || b > 1.3 * a) print "regime"
		else print "ok"
	}'
}

# peers_of NAME "PEER=COMMAND ..." - set $beside: " PEER=VALUE" for each; one that fails is left out, and $tmp/peer-errors has it
peers_of()
{
	local pair number
	beside=
	for pair in $2; do
		if number=$(${pair#*=}) && [ -n "$number" ]; then
			beside="$beside ${pair%%=*}=$number"
		else
			echo "${pair%%=*} failed beside $1: left out" >>"$tmp/peer-errors"
		fi
	done
}

# measure NAME MS LIMIT OURS "PEER=COMMAND ..." - rounds of the commands LIMIT and OURS and those of the peers, each of which
# prints one number, for at most MS. Lines "LIMIT OURS VERDICT BEFORE AFTER FOREIGN [PEER=VALUE...]" go to $tmp/NAME.pairs.
# Returns non-zero when LIMIT or OURS failed.
measure()
{
	local name=$1 end good=0 patience before after limit ours verdict beside
	patience=$(($2 / pairs / 3))
	end=$(($(now_ms) + $2))
	: >"$tmp/$name.pairs"
	while [ "$good" -lt "$pairs" ]; do
		[ ! -s "$tmp/$name.pairs" ] || [ "$(now_ms)" -lt "$end" ] || break
		wait_quiet "$patience"
		watch_begin
		before=$(stamp) && limit=$($3) && ours=$($4) && peers_of "$name" "${5:-}" && after=$(stamp) || return 1
		watch_end
		[ -n "$limit" ] && [ -n "$ours" ] || return 1
		verdict=$(verdict_of_pair "$before" "$after")
		echo "$limit $ours $verdict $before $after $foreign$beside" >>"$tmp/$name.pairs"
		[ "$verdict" != ok ] || good=$((good + 1))
	done
}
