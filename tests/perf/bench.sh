#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# bench.sh BUILD [--doca|--clients|--tcp|--vhost|--failover] [--quick] [--json FILE] [--svg FILE] - compare gantry with the limits
# of the machine and with other programs of the same purpose, measured in the same run.
# --doca: compare the library for DOCA programs with the transport below it. --clients: compare fio and nbdkit on a gantry volume
# with the alternatives of these programs. --tcp: compare the path over TCP with bare sockets and with NBD over TCP.
# --vhost: compare the disk of a virtual machine with the export of qemu-storage-daemon. --tunables [TEXT]: measure the tables of
# gantry-performance(7) again, all or those that contain the text.
# --failover [KILLS]: measure how long IO pauses when a gateway is killed (default 200 kills; --quick: 20), with failover.sh.
#
# storage.sh has the measures and their goals, peers.sh and clients.sh the other programs, limits/ the limits of the machine.
#
# Verdicts depend only on ratios within undisturbed rounds (see measure.sh). On a busy machine the verdict is "not measured". The
# exit status reports whether all programs ran, not whether gantry was fast.
set -u
export LC_ALL=C
here=$(cd "$(dirname "$0")" && pwd) || exit 1
. "$here/measure.sh"

usage()
{
	echo "usage: ./dev bench [--doca|--clients|--tcp|--vhost] [--quick] [--json FILE] [--svg FILE]"
	echo "       ./dev bench [--quick] --tunables [TEXT]"
	echo "       ./dev bench [--quick] --failover [KILLS]"
	exit "$1"
}

# failover KILLS - measure the pause at the kill of a gateway over each transport; non-zero: a program failed
failover()
{
	local transport rc=0
	[ -z "$json$svg" ] || usage 2 >&2
	for transport in shm-comch tcp; do
		if [ -e "$build/plugins/.libs/$transport.so" ]; then
			echo "$transport, $1 kills of the gateway in use; goal: failover_p99 below 1000 ms"
			bash "$here/failover.sh" "$build" "$1" $transport || rc=1
		else
			echo "omitted, because it is missing: $transport"
		fi
	done
	return $rc
}

build=${1:?usage: bench.sh BUILD [ARGUMENTS OF ./dev bench]}
shift
pairs=5 ms=200 io_time=300ms budget=480000 idle_s=5 quick=false json="" svg="" what=storage text=""
while [ $# -gt 0 ]; do
	case $1 in
	--doca) what=doca ;;
	--clients) what=clients ;;
	--tcp) what=tcp ;;
	--vhost) what=vhost ;;
	--tunables) what=tunables io_time=150ms ;;
	--failover) what=failover ;;
	--quick) pairs=3 ms=50 io_time=100ms budget=75000 idle_s=1 quick=true ;;
	--json) json=${2:?--json FILE}; shift ;;
	--svg) svg=${2:?--svg FILE}; shift ;;
	-h | --help) usage 0 ;;
	*) [ $what = tunables ] || [ $what = failover ] || usage 2 >&2; text=$1 ;;
	esac
	shift
done
perf=$build/tests/perf
make -s -C "$build/tests" perf-programs >/dev/null || { echo "bench: make perf-programs failed in $build/tests" >&2; exit 1; }

tmp=$(mktemp -d) || exit 1
group=$(awk '{ print $3 }' /proc/self/autogroup 2>/dev/null)
cleanup()
{
	[ -z "$group" ] || echo "$group" 2>/dev/null >/proc/self/autogroup
	rm -rf "$tmp" "/dev/shm/gantry-bench.$$"
}
trap cleanup EXIT
trap 'exit 130' INT TERM

# Raise the priority as far as permitted. With autogroup, nice has an effect only within the session of this shell.
renice -n -20 $$ >/dev/null 2>&1
[ -z "$group" ] || echo -20 2>/dev/null >/proc/self/autogroup

# the first CPUs that this process may use; a third one is for three processes, a fourth one for two lanes
# shellcheck disable=SC2034 # used by the files below
read -r cpu0 cpu1 cpu2 cpu3 < <(awk '/^Cpus_allowed_list/ {
	n = split($2, part, ",")
	for (i = 1; i <= n; i++) {
		split(part[i], range, "-")
		for (c = range[1]; c <= (range[2] == "" ? range[1] : range[2]); c++) printf "%d ", c
	}
	print ""
}' /proc/self/status | cut -d" " -f1-4)

if [ -z "$cpu1" ]; then
	echo "bench: not measured: this needs two CPUs"
	exit 0
fi
[ -f "$build/plugins/.libs/shm-comch.so" ] || { echo "bench: not measured: there is no plugin shm-comch"; exit 0; }

if [ $what = failover ]; then
	$quick && kills=20 || kills=200
	failover "${text:-$kills}"
	exit
fi
. "$here/storage.sh"
[ $what != tunables ] || { . "$here/tunables.sh"; tunables "$text"; exit; }
. "$here/clients.sh"
. "$here/peers.sh"
. "$here/tcp.sh"
. "$here/vhost.sh"
find_peers
[ $what = storage ] || : >"$tmp/absent" # the other kinds have their own lists
"${what}_list" >"$tmp/list"
sed 's/^/omitted, because it is missing: /' "$tmp/absent"

# judge NAME TEXT UNIT SCORE GOAL PEER-GOAL [FAILED] - judge the rounds of a measure: one line of $tmp/results, and of the table
judge()
{
	awk -v head="$1|$2|$3" -v kind="$4" -v goal="$5" -v peer_goal="$6" -v want=$(((pairs + 1) / 2)) -v failed="${7:-}" \
		-f "$here/judge.awk" "$tmp/$1.pairs" >>"$tmp/results"
	tail -n 1 "$tmp/results" | awk -f "$here/table.awk"
}

# once NAME COMMAND - measure a command once, without rounds; its value is judged without a limit
once()
{
	local value
	value=$($2)
	echo "0 ${value:-0} cores" >"$tmp/$1.pairs"
	[ -n "$value" ]
}

# written FORMAT FILE - write all results to FILE by FORMAT.awk
written()
{
	awk -v quick=$quick -v version="$("$build/core/gantry" version | head -n 1)" -v cpus="$cpu0,$cpu1" \
		-v absent="$(paste -sd';' "$tmp/absent")" -f "$here/$1.awk" "$tmp/results" >"$2" ||
		{ echo "bench: cannot write $2: check that its directory exists and is writable" >&2; failures=$((failures + 1)); }
}

failures=0
: >"$tmp/results"
end=$(($(now_ms) + budget))
left=$(grep -vc '|once_' "$tmp/list")
awk -v head=1 -f "$here/table.awk" /dev/null
while IFS='|' read -r name text unit limit ours score goal others peer_goal; do
	failed=
	case $ours in
	once_*) once "$name" "$ours" || failed=1; wanted=$pairs pairs=1 ;;
	*) measure "$name" $(((end - $(now_ms)) / left)) "$limit" "$ours" "$others" || failed=1; left=$((left - 1)) wanted=$pairs ;;
	esac
	failures=$((failures + ${failed:-0}))
	judge "$name" "$text" "$unit" "$score" "$goal" "$peer_goal" "$failed"
	pairs=$wanted
done <"$tmp/list"

echo "score: ours to the limit, median of the rounds, or in the unit of the goal where a value is judged (a stage: for each of"
echo "four); then ours to the best peer. rounds: used / all. Less is better with s, ns, us, x, KiB and %, otherwise more."
echo "t: the CPUs were threads of one core. Dropped rounds: busy, others used a CPU; regime, from cores to threads or back."
case $what in
clients | vhost) echo "limit: the alternative that ours is compared to." ;;
tcp) echo "limit: bare sockets, tests/perf/limits/tcpfloor or tlsfloor; or as the text says." ;;
*) echo "limit: cache line, ring, memcpy or bare storage path of tests/perf/limits, or as the text says." ;;
esac
echo "It took $SECONDS s."
[ ! -s "$tmp/peer-errors" ] || sort -u "$tmp/peer-errors"
[ -z "$json" ] || written json "$json"
[ -z "$svg" ] || written svg "$svg"
if [ $failures -ne 0 ]; then
	echo "bench: $failures measures failed" >&2
	sort "$tmp/errors" 2>/dev/null | uniq | head -n 20 >&2
	exit 1
fi
