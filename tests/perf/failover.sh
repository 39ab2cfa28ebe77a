#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# failover.sh BUILD [KILLS [TRANSPORT]] - measure how long IO pauses when the gateway that a session uses is killed: a program with
# two gateways to one target, over shm-comch or tcp. failover.c says what is measured and printed.
set -u
build=${1:?usage: failover.sh BUILD [KILLS [TRANSPORT]]}
kills=${2:-200} transport=${3:-shm-comch}
tmp=$(mktemp -d) || exit 1
pid=
trap '[ -z "$pid" ] || kill -TERM "$pid" 2>/dev/null; wait; rm -rf "$tmp"' EXIT
trap 'exit 130' INT TERM
export GANTRY_PLUGIN_PATH=$build/plugins/.libs:$build/tests/.libs # the second for a seeded bug in STAGES
address=127.$((1 + $$ % 254)).$((1 + $$ / 254 % 254)).1
device="dir = \"$tmp/run\";"
if [ "$transport" = tcp ]; then
	device="auth = \"none\"; services = { left = \"$address:4791\"; right = \"$address:4792\"; store = \"$address:4793\"; };"
fi

gateway() # NAME
{
	echo "$1 = { role = \"gateway\"; listen = { device = \"wire\"; name = \"$1\"; };" \
		"connect = { device = \"wire\"; name = \"store\"; }; };"
}

cat >"$tmp/conf" <<END
runtime = { stat = false; log = "info"; };
devices = { wire = { transport = "$transport"; $device }; };
roles = {
	store = { role = "target"; listen = { device = "wire"; name = "store"; }; stages = ( ${STAGES:-} );
		backend = { type = "memory"; size = "16MiB"; populate = true; }; };
	$(gateway left)
	$(gateway right)
	load = { role = "initiator"; connect = (
		{ device = "wire"; name = "left"; resume = "60s"; timeout = "300ms"; },
		{ device = "wire"; name = "right"; timeout = "300ms"; } ); };
};
END
: >"$tmp/log"
"$build/core/gantry" run "$tmp/conf" --role store --json >"$tmp/report" 2>"$tmp/log" &
pid=$!
timeout 20 tail -n +1 -s 0.02 -f --pid=$pid "$tmp/log" 2>/dev/null | grep -q -m 1 ' listening ' || { cat "$tmp/log" >&2; exit 1; }
"$build/tests/perf/failover" "$build/core/gantry" "$tmp/conf" load "$kills" left right 2>"$tmp/errors" ||
	{ grep -v '^gantry: warn' "$tmp/errors" | tail -n 5 >&2; exit 1; }
kill -TERM "$pid"
wait "$pid"
pid=
# each kill must end exactly one session at the target
lost=$(sed -n 's/.*"sessions_lost": *\([0-9]*\).*/\1/p' "$tmp/report" | head -n 1)
[ "${lost:-0}" -eq "$kills" ] || { echo "failover: $kills kills ended ${lost:-0} sessions" >&2; exit 1; }
