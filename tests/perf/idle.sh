#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# idle.sh BUILD [SECONDS [RATE]] - measure the CPU time of a nearly idle topology: target, gateway and initiator as three processes
# with open sessions and RATE IOs per second (1). Prints "idle PERCENT %": of one CPU, all three processes together.
set -u
build=${1:?usage: idle.sh BUILD [SECONDS [RATE]]}
seconds=${2:-5} rate=${3:-1}
here=$(cd "$(dirname "$0")" && pwd) || exit 1
. "$here/cpu.sh"
tmp=$(mktemp -d) || exit 1
pids=
trap 'for p in $pids; do kill -TERM "$p" 2>/dev/null; done; wait; rm -rf "$tmp"' EXIT

cat >"$tmp/idle.conf" <<END
runtime = { stat = false; };
devices = { dpu0 = { transport = "shm-comch"; dir = "$tmp/run"; pci = "03:00.0"; };
	nic0 = { transport = "shm-comch"; dir = "$tmp/run"; pci = "04:00.0"; }; };
roles = {
	store = { role = "target"; listen = { device = "nic0"; name = "store"; };
		backend = { type = "memory"; size = "64MiB"; populate = true; }; };
	bridge = { role = "gateway"; listen = { device = "dpu0"; name = "volume"; };
		connect = { device = "nic0"; name = "store"; }; };
	load = { role = "initiator"; connect = { device = "dpu0"; name = "volume"; };
		workload = { pattern = "randread"; depth = 1; rate = $rate; time = "1h"; }; };
};
END

sum()
{
	local p n=0
	for p in $pids; do
		n=$((n + $(cpu_ns "$p"))) || return 1
	done
	echo "$n"
}

for role in store bridge load; do
	"$build/core/gantry" run -p "$build/plugins/.libs" --json "$tmp/idle.conf" --role $role >"$tmp/$role" 2>"$tmp/$role.log" &
	pids="$pids $!"
done
sleep 1 # lint: allowed, sessions are open and the first spinning has ended by then
before=$(sum)
sleep "$seconds" # lint: allowed, the time that is measured
after=$(sum)
kill -TERM "$!" 2>/dev/null
wait "$!"
ops=$(tr '{,' '\n\n' <"$tmp/load" | awk -F: '/"total"/ { inside = 1 } inside && /"ops"/ { print $2 + 0; exit }')
if [ $((${ops:-0} * 10)) -lt $((seconds * rate * 9)) ]; then
	echo "idle.sh: ${ops:-0} IOs in $seconds seconds, although $rate per second were requested" >&2
	cat "$tmp"/*.log >&2
	exit 1
fi
awk -v used=$((after - before)) -v s="$seconds" 'BEGIN { printf "idle %.3f %%\n", used / s / 1e7 }'
