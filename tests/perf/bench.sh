#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# bench.sh BUILD [--doca|--clients] [--quick] [--json FILE] - gantry beside the limits of the machine, measured in the same
# run; with --doca the library for programs that are written for DOCA, beside the transport below it; with --clients fio and
# nbdkit on a gantry volume, beside what else they can use.
#
# Only ratios are judged, and only those of undisturbed pairs (measure.sh says which); on a busy machine the verdict is "not
# measured". The exit status says whether everything ran, not whether it was fast.
set -u
export LC_ALL=C
here=$(cd "$(dirname "$0")" && pwd) || exit 1
. "$here/measure.sh"

usage()
{
	echo "usage: ./dev bench [--doca|--clients] [--quick] [--json FILE]"
	exit "$1"
}

build=${1:?usage: bench.sh BUILD [--doca|--clients] [--quick] [--json FILE]}
shift
pairs=5 ms=300 io_time=500ms budget=240000 idle_s=5 quick=false json="" what=storage
while [ $# -gt 0 ]; do
	case $1 in
	--doca) what=doca ;;
	--clients) what=clients ;;
	--quick) pairs=3 ms=100 io_time=200ms budget=45000 idle_s=2 quick=true ;;
	--json) json=${2:?--json FILE}; shift ;;
	-h | --help) usage 0 ;;
	*) usage 2 >&2 ;;
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
	rm -rf "$tmp"
}
trap cleanup EXIT
trap 'exit 130' INT TERM

# As far as we may, we go first. Where sessions share the CPUs (autogroup), nice means nothing outside of our own.
renice -n -20 $$ >/dev/null 2>&1
[ -z "$group" ] || echo -20 2>/dev/null >/proc/self/autogroup

# the first CPUs that we may use; the third one, where there is one, is for three processes
read -r cpu0 cpu1 cpu2 < <(awk '/^Cpus_allowed_list/ {
	n = split($2, part, ",")
	for (i = 1; i <= n; i++) {
		split(part[i], range, "-")
		for (c = range[1]; c <= (range[2] == "" ? range[1] : range[2]); c++) printf "%d ", c
	}
	print ""
}' /proc/self/status | cut -d" " -f1-3)

# --- gantry itself ---

# configuration NAME DEPTH BACKEND STAGES TRANSPORT - write $tmp/NAME.conf
configuration()
{
	cat >"$tmp/$1.conf" <<-END
	runtime = { stat = false; cpus = "$cpu0"; };
	devices = { dpu0 = { transport = "$5"; }; nic0 = { transport = "$5"; }; };
	roles = {
		store = { role = "target"; listen = { device = "nic0"; name = "store"; sessions = 1; };
			stages = ( $4 ); backend = { $3 }; };
		bridge = { role = "gateway"; listen = { device = "dpu0"; name = "volume"; sessions = 1; };
			connect = { device = "nic0"; name = "store"; }; };
		load = { role = "initiator"; connect = { device = "nic0"; name = "store"; };
			workload = { pattern = "randread"; block = "4KiB"; depth = $2; time = "$io_time"; ramp = "50ms"; }; };
	};
	END
}

memory='type = "memory"; size = "256MiB"; populate = true;'
noop='{ type = "noop"; }'
shm="shm-comch\"; dir = \"$tmp/run\"; pci = \"03:00.0"
configuration two32 32 "$memory" "" "$shm"
configuration two1 1 "$memory" "" "$shm"
sed -e '/nic0 = {/s/\(nic0.*pci = "\)03/\104/' -e '/load = /s/nic0"; name = "store"/dpu0"; name = "volume"/' \
	"$tmp/two32.conf" >"$tmp/three32.conf"
configuration null 32 'type = "null"; size = "1GiB";' "" loop
configuration noop0 32 'type = "null"; size = "1GiB";' "" loop
configuration noop4 32 'type = "null"; size = "1GiB";' "$noop, $noop, $noop, $noop" loop
configuration one 32 "$memory" "" loop

gantry=("$build/core/gantry" run -p "$build/plugins/.libs")

# iops - thousands of IOs a second out of a report in JSON
iops()
{
	tr '{,' '\n\n' | awk -F: '/"total"/ { inside = 1 } inside && /"iops"/ { printf "%.5g\n", $2 / 1000; exit }'
}

# processes NAME [ROLE CPU]... - servers with their CPUs in the background, the initiator on our first CPU
processes()
{
	local conf=$tmp/$1.conf servers="" rc=0
	shift
	while [ $# -gt 0 ]; do
		"${gantry[@]}" "$conf" --role "$1" --set "runtime.cpus=$2" >/dev/null 2>>"$tmp/errors" &
		servers="$servers $!"
		shift 2
	done
	"${gantry[@]}" "$conf" --role load --json >"$tmp/report" 2>>"$tmp/errors" || rc=1
	# shellcheck disable=SC2086 # process numbers
	[ $rc -eq 0 ] || kill -TERM $servers 2>/dev/null
	# shellcheck disable=SC2086
	wait $servers
	[ $rc -ne 0 ] || iops <"$tmp/report"
	return $rc
}

# alone NAME - target and initiator in one process, on one CPU
alone()
{
	"${gantry[@]}" "$tmp/$1.conf" --role store --role load --json >"$tmp/report" 2>>"$tmp/errors" && iops <"$tmp/report"
}

# --- the commands of the pairs: each prints one number ---

none() { echo 0; }
limit_line() { "$perf/limits/pingpong" $ms | value pingpong; }
limit_ring() { "$perf/limits/ring" $ms 1024 | value ring_1024; }
limit_copy_4096() { "$perf/limits/memcpy" 50 4096 | value memcpy_4096; }
limit_copy_65536() { "$perf/limits/memcpy" 50 65536 | value memcpy_65536; }
limit_copy_1048576() { "$perf/limits/memcpy" 50 1048576 | value memcpy_1048576; }
limit_io_32() { "$perf/limits/iofloor" $ms 32 | value iofloor_32; }
limit_io_1() { "$perf/limits/iofloor" $ms 1 | value iofloor_1; }
message() { "$perf/msgbench" shm-comch "$1" $ms "dir=$tmp/run" | value "$1"; }
ours_rtt() { message rtt; }
ours_single() { message single; }
ours_batch() { message batch; }
ours_4096() { message 4096; }
ours_65536() { message 65536; }
ours_1048576() { message 1048576; }
ours_two_32() { processes two32 store "$cpu1"; }
ours_two_1() { processes two1 store "$cpu1"; }
ours_three() { processes three32 store "$cpu1" bridge "$cpu1"; }
ours_null() { alone null; }
ours_one() { alone one; }
per_io() { awk '{ printf "%.5g\n", 1e6 / $1 }'; }
noop_0() { kiops=$(alone noop0) && echo "$kiops" | per_io; }
noop_4() { kiops=$(alone noop4) && echo "$kiops" | per_io; }
transport_rtt() { message inline:64; }
transport_single() { message inlines:64; }
doca() { GANTRY_PLUGIN_PATH=$build/plugins/.libs GANTRY_RUNDIR=$tmp/run "$perf/docabench" "$1" $ms | value "$1"; }
doca_rtt() { doca rtt; }
doca_single() { doca single; }
doca_dma() { doca dma:65536; }
doca_idle() { doca idle; }
ours_idle() { bash "$here/idle.sh" "$build" $idle_s | value idle; }

# NAME|TEXT|UNIT|LIMIT|OURS|SCORE|GOAL. Score of a pair, with l and o: ratio o/l; enough o/min(20, l/5); stage (o-l)/4;
# value o. Goal: <N, >N or nothing.
cat >"$tmp/storage.list" <<'END'
rtt|message there and back, 64 B|ns|limit_line|ours_rtt|ratio|<4.0
single|messages one way, one by one|M/s|limit_ring|ours_single|enough|>1
batch|messages one way, batches of 32|M/s|limit_ring|ours_batch|ratio|
data_4k|4 KiB of a region, and answer|ns|limit_copy_4096|ours_4096|ratio|
data_64k|64 KiB of a region, and answer|ns|limit_copy_65536|ours_65536|ratio|
data_1m|1 MiB of a region, and answer|ns|limit_copy_1048576|ours_1048576|ratio|
two_32|4 KiB random read, 2 processes, depth 32|kIO/s|limit_io_32|ours_two_32|ratio|>0.5
two_1|4 KiB random read, 2 processes, depth 1|kIO/s|limit_io_1|ours_two_1|ratio|
three_32|4 KiB random read, with gateway, depth 32|kIO/s|limit_io_32|ours_three|ratio|
one_32|4 KiB random read, 1 process, depth 32|kIO/s|none|ours_one|value|
null_32|4 KiB of nothing, 1 process, depth 32|kIO/s|none|ours_null|value|
stage|a noop stage: 0 and 4 of them|ns/IO|noop_0|noop_4|stage|<10
END
cat >"$tmp/doca.list" <<'END'
doca_rtt|consumer and producer there and back, 64 B|ns|transport_rtt|doca_rtt|ratio|<1.3
doca_single|consumer and producer one way, 64 B|M/s|transport_single|doca_single|ratio|>0.5
doca_dma|a DMA task of 64 KiB|ns|limit_copy_65536|doca_dma|ratio|<1.11
doca_idle|progress of an idle engine|ns|none|doca_idle|value|<30
END
if [ $what = clients ]; then
	. "$here/clients.sh"
	client_list >"$tmp/clients.list"
fi
mv "$tmp/$what.list" "$tmp/list"

# judge NAME TEXT UNIT LIMIT OURS SCORE GOAL [FAILED] - one measure's pairs to a line of $tmp/results
judge()
{
	awk -v head="$1|$2|$3" -v kind="$6" -v goal="$7" -v want=$(((pairs + 1) / 2)) -v failed="$8" \
		-f "$here/judge.awk" "$tmp/$1.pairs" >>"$tmp/results"
}

show()
{
	awk -F'|' '{
		printf "%-42s %-6s %8s  %8s /%8s /%8s  %8s %6s  %-10s %d/%d\n", $2, $3, ($4 ? $4 : "-"), $5, $6, $7,
			($4 ? $8 : "-"), $9, $10, $11, $12
	}'
}

write_json()
{
	awk -v quick=$quick -v version="$("$build/core/gantry" version | head -n 1)" -v cpus="$cpu0,$cpu1" \
		-f "$here/json.awk" "$tmp/results" >"$json"
}

if [ -z "$cpu1" ]; then
	echo "bench: not measured: this needs two CPUs"
	exit 0
fi
[ -f "$build/plugins/.libs/shm-comch.so" ] || { echo "bench: not measured: there is no plugin shm-comch"; exit 0; }

failures=0
: >"$tmp/results"
end=$(($(now_ms) + budget))
left=$(($(wc -l <"$tmp/list") + 1))
printf '%-42s %-6s %8s  %8s /%8s /%8s  %8s %6s  %-10s %s\n' measure unit limit min ours max ratio goal verdict pairs
while IFS='|' read -r name text unit limit ours score goal; do
	failed=
	measure "$name" $(((end - $(now_ms)) / left)) "$limit" "$ours" || { failed=1; failures=$((failures + 1)); }
	left=$((left - 1))
	judge "$name" "$text" "$unit" "$limit" "$ours" "$score" "$goal" "$failed"
	tail -n 1 "$tmp/results" | show
done <"$tmp/list"

if [ $what = storage ]; then
	idle=$(ours_idle) || failures=$((failures + 1))
	echo "0 ${idle:-0} ok" >"$tmp/idle.pairs"
	pairs=1
	judge idle "three idle processes, of one CPU" "%" none ours_idle value "<1" "$([ -n "$idle" ] || echo 1)"
	tail -n 1 "$tmp/results" | show
fi
echo "pairs: undisturbed / all. ratio: ours to the limit, median of the pairs; for one by one, to min(20 M/s, limit / 5);"
case $what in
clients) echo "limit: what ours is compared to." ;;
*) echo "for a stage, nanoseconds for each IO. limit: ping-pong, ring, memcpy or bare storage path of tests/perf/limits." ;;
esac
[ -z "$json" ] || write_json
if [ $failures -ne 0 ]; then
	echo "bench: $failures measures failed" >&2
	sort "$tmp/errors" 2>/dev/null | uniq | head -n 20 >&2
	exit 1
fi
