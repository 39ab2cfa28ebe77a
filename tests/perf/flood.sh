#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# flood.sh BUILD [TIME] - the 99th percentile of the reads of a quiet client while another client floods the same lane. Prints
#	flood_alone US us          quiet client alone: 4 KiB at depth 1
#	flood_NAME US us           the same beside a flood; NAME: block_operation
#	flood_NAME_rate N MB/s     throughput of the flood meanwhile
# The quiet client starts when the flood has completed IO, since the flood first faults in its memory for seconds.
set -u
build=${1:?usage: flood.sh BUILD [TIME]}
time=${2:-500ms}
tmp=$(mktemp -d) || exit 1
mkdir -m 700 "$tmp/stat"
pids=
trap 'for p in $pids; do kill -TERM "$p" 2>/dev/null; done; wait; rm -rf "$tmp"' EXIT
gantry=("$build/core/gantry" run -p "$build/plugins/.libs" "$tmp/conf")

cat >"$tmp/conf" <<END
runtime = { stat_dir = "$tmp/stat"; };
devices = { nic0 = { transport = "shm-comch"; dir = "$tmp/run"; pci = "03:00.0"; max_bytes = "4GiB"; }; };
roles = {
	store = { role = "target"; listen = { device = "nic0"; name = "store"; sessions = 0; };
		backend = { type = "memory"; size = "1GiB"; populate = true; }; };
	quiet = { role = "initiator"; connect = { device = "nic0"; name = "store"; };
		workload = { pattern = "randread"; block = "4KiB"; depth = 1; time = "$time"; ramp = "100ms"; }; };
	flood = { role = "initiator"; connect = { device = "nic0"; name = "store"; };
		workload = { pattern = "randread"; block = "4KiB"; depth = 1; time = "60s"; }; };
};
END

# field NAME FILE - print the first NAME after "total", or of a latency after "reads", in a report in JSON
field()
{
	tr '{,' '\n\n' <"$2" | awk -F: -v name="\"$1\"" 'index($0, name) && $2 + 0 > 0 { print $2 + 0; exit }'
}

# quiet_us - run the quiet client, and print its 99th percentile
quiet_us()
{
	"${gantry[@]}" --role quiet --json >"$tmp/quiet" 2>>"$tmp/errors" || return 1
	field p99_ns "$tmp/quiet" | awk '{ printf "%.5g\n", $1 / 1000 }'
}

# flows - true if the flood has completed IO
flows()
{
	"$build/core/gantry" stat --dir "$tmp/stat" --json flood >"$tmp/stat.json" 2>/dev/null || return 1
	[ -n "$(field completed "$tmp/stat.json")" ]
}

# flood NAME PATTERN BLOCK DEPTH
flood()
{
	local us pid rate
	"${gantry[@]}" --role flood --set "roles.flood.workload.pattern=$2" --set "roles.flood.workload.block=$3" \
		--set "roles.flood.workload.depth=$4" --json >"$tmp/flood" 2>>"$tmp/errors" &
	pid=$!
	pids="$pids $pid"
	until flows || ! kill -0 $pid 2>/dev/null; do
		sleep 0.1 # lint: allowed, polls for an event of another process
	done
	us=$(quiet_us) || return 1
	kill -TERM $pid
	wait $pid
	rate=$(field bytes_per_second "$tmp/flood")
	[ -n "$rate" ] || return 1
	echo "flood_$1 $us us"
	echo "flood_$1_rate $(echo "$rate" | awk '{ printf "%.0f\n", $1 / 1e6 }') MB/s"
}

"${gantry[@]}" --role store >/dev/null 2>>"$tmp/errors" &
pids=$!
alone=$(quiet_us) || { cat "$tmp/errors" >&2; exit 1; }
echo "flood_alone $alone us"
while read -r name block depth; do
	flood "${name}_read" randread "$block" "$depth" && flood "${name}_write" randwrite "$block" "$depth" ||
		{ cat "$tmp/errors" >&2; exit 1; }
done <<'END'
4k 4KiB 256
1m 1MiB 256
16m 16MiB 64
64m 64MiB 48
END
