#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# crowd.sh BUILD [SESSIONS [SECONDS]] - measure the cost of idle sessions for their gateway. Prints
#	crowd_cpu PERCENT %     CPU time of the sessions: with them, less that of the same gateway without a session
#	crowd_memory KIB KiB    proportional share of memory (PSS), for each session
# The gateway sends each session a keepalive request every 13/16 s. SECONDS should be four times that (3.25) or much longer, because
# within one second some sessions receive one request and some two.
set -u
build=${1:?usage: crowd.sh BUILD [SESSIONS [SECONDS]]}
sessions=${2:-256} seconds=${3:-3.25}
here=$(cd "$(dirname "$0")" && pwd) || exit 1
. "$here/cpu.sh"
tmp=$(mktemp -d) || exit 1
pids=
trap 'exec 9>&-; for p in $pids; do kill -TERM "$p" 2>/dev/null; done; wait; rm -rf "$tmp"' EXIT
export GANTRY_PLUGIN_PATH=$build/plugins/.libs
ulimit -n "$(ulimit -H -n)"

cat >"$tmp/conf" <<END
runtime = { stat = false; };
devices = { dpu0 = { transport = "shm-comch"; dir = "$tmp/run"; pci = "03:00.0"; };
	nic0 = { transport = "shm-comch"; dir = "$tmp/run"; pci = "04:00.0"; }; };
roles = {
	store = { role = "target"; listen = { device = "nic0"; name = "store"; max_sessions = $sessions; };
		backend = { type = "null"; size = "64MiB"; }; };
	bridge = { role = "gateway"; listen = { device = "dpu0"; name = "volume"; max_sessions = $sessions; };
		connect = { device = "nic0"; name = "store"; }; };
	load = { role = "initiator"; connect = { device = "dpu0"; name = "volume"; }; };
};
END

# pss PID - KiB
pss()
{
	awk '/^Pss:/ { print $2 }' "/proc/$1/smaps_rollup"
}

# used PID - CPU time in ns during the next $seconds seconds
used()
{
	local before
	before=$(cpu_ns "$1") || return 1
	sleep "$seconds" # lint: allowed, the time that is measured
	echo $(($(cpu_ns "$1") - before))
}

for role in store bridge; do
	"$build/core/gantry" run "$tmp/conf" --role $role >/dev/null 2>"$tmp/$role.log" &
	pids="$pids $!"
done
gateway=$!
sleep 1 # lint: allowed, both processes have started and ended their first spinning by then
alone_ns=$(used "$gateway") && alone_kib=$(pss "$gateway") || { cat "$tmp"/*.log >&2; exit 1; }
mkfifo "$tmp/hold" "$tmp/ready"
"$build/tests/perf/crowd" "$tmp/conf" load "$sessions" <"$tmp/hold" >"$tmp/ready" 2>"$tmp/crowd.log" &
pids="$pids $!"
exec 9>"$tmp/hold"
read -r -t 50 word <"$tmp/ready"
if [ "${word:-}" != ready ]; then
	cat "$tmp"/*.log >&2
	exit 1
fi
sleep 1 # lint: allowed, the spinning after the last session is over
crowd_ns=$(used "$gateway") && crowd_kib=$(pss "$gateway") || exit 1
awk -v ns=$((crowd_ns - alone_ns)) -v s="$seconds" -v kib=$((crowd_kib - alone_kib)) -v n="$sessions" 'BEGIN {
	printf "crowd_cpu %.3f %%\ncrowd_memory %.4g KiB\n", ns / s / 1e7, kib / n
}'
