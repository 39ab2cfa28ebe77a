#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# heckle.sh BUILD [TIME] - compare the IOPS of a client during an attack with its IOPS beside a program that uses the same CPU time.
# The attacks of heckle.c are on the control socket of its target, on gantry metrics, if that is built, and by runs whose report
# cannot be written. Prints for each
#	NAME RATIO x
set -u
build=${1:?usage: heckle.sh BUILD [TIME]}
time=${2:-500ms}
tmp=$(mktemp -d) || exit 1
mkdir -m 700 "$tmp/stat"
pids=
trap 'for p in $pids $served; do kill -TERM "$p" 2>/dev/null; done; wait; rm -rf "$tmp"' EXIT
served=
gantry=("$build/core/gantry" run -p "$build/plugins/.libs" "$tmp/conf")

cat >"$tmp/conf" <<END
runtime = { stat_dir = "$tmp/stat"; };
devices = { nic0 = { transport = "shm-comch"; dir = "$tmp/run"; pci = "03:00.0"; }; };
roles = {
	store = { role = "target"; listen = { device = "nic0"; name = "store"; sessions = 0; };
		backend = { type = "memory"; size = "64MiB"; populate = true; }; };
	load = { role = "initiator"; connect = { device = "nic0"; name = "store"; };
		workload = { pattern = "randread"; block = "4KiB"; depth = 8; time = "$time"; ramp = "100ms"; }; };
};
END

# iops - run the client, and print its IOs per second
iops()
{
	"${gantry[@]}" --role load --json --set runtime.stat=false >"$tmp/load" 2>>"$tmp/errors" || return 1
	tr '{,' '\n\n' <"$tmp/load" | awk -F: '/"total"/ { inside = 1 } inside && /"iops"/ { print $2 + 0; exit }'
}

# beside COMMAND... - the IOs of the client while the command runs; its output goes to the file used
beside()
{
	local pid value
	"$@" >"$tmp/used" &
	pid=$!
	pids="$store $pid"
	value=$(iops) || return 1
	kill -TERM $pid
	wait $pid
	pids=$store
	echo "$value"
}

# attack NAME - run an attack until SIGTERM
attack()
{
	case $1 in
	control_*) exec "$build/tests/perf/heckle" "$tmp/stat/$store.stat.sock" "${1#control_}" ;;
	metrics_*) exec "$build/tests/perf/heckle" "$tmp/metrics" "${1#metrics_}" ;;
	report_path) exec "$build/tests/perf/heckle" - repeat "${gantry[@]}" --role load --report "$tmp/none/run.html" ;;
	esac
}

# once NAME - print the ratio of one pair
once()
{
	local attacked baseline percent
	attacked=$(beside attack "$1") || return 1
	percent=$(awk -v used="$(cat "$tmp/used")" 'BEGIN { print (used > 99 ? 99 : used) }')
	baseline=$(beside "$build/tests/perf/heckle" - burn "$percent") || return 1
	awk -v a="$attacked" -v b="$baseline" 'BEGIN { printf "%.3f\n", a / b }'
}

"${gantry[@]}" --role store >/dev/null 2>>"$tmp/errors" &
store=$!
pids=$store
until [ -S "$tmp/stat/$store.stat.sock" ]; do
	kill -0 "$store" || { cat "$tmp/errors" >&2; exit 1; }
	sleep 0.1 # lint: allowed, polls for an event of another process
done
attacks="control_stat control_garbage control_stall report_path"
if [ -x "$build/core/gantry-metrics" ]; then
	"$build/core/gantry" metrics --dir "$tmp/stat" --listen "unix:$tmp/metrics" >/dev/null 2>>"$tmp/errors" &
	served=$!
	until [ -S "$tmp/metrics" ]; do
		kill -0 "$served" || { cat "$tmp/errors" >&2; exit 1; }
		sleep 0.1 # lint: allowed, polls for an event of another process
	done
	attacks="$attacks metrics_half metrics_unread"
fi
for attack in $attacks; do
	ratios=$(for _ in 1 2 3; do once "$attack" || exit 1; done) || { cat "$tmp/errors" >&2; exit 1; }
	echo "$attack $(sort -g <<<"$ratios" | sed -n 2p) x"
done
