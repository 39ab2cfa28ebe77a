#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# observer.sh - the example of an observer logs the progress and the end of a role, at each step once
. "$(dirname "$0")/lib.sh"
need loop memory initiator target
example observer milestone.c milestone.conf

ok "it is built" build milestone.c
ok "gantry check accepts the configuration" gantry check milestone.conf --plugin-dir . --plugin-dir "$GANTRY_PLUGINS"
ok "it runs" fails 0 run milestone.c
ok "it logs the end of the role" output_has 'load is done: 10000 of 10000 ops'
ok "it logs no step twice" [ "$(grep -c 'load is working' "$tmp/out")" -le 4 ]
ok "a failed role" fails 1 run milestone.c --set roles.load.connect.timeout=10ms --set roles.load.connect.name=nowhere \
	--set devices.wire.transport=shm-comch --role load
ok "it logs the failure" output_has 'load is failed'
ok "a number of steps that is too large is rejected" fails 2 run milestone.c --set observers.0.steps=1001
ok "the message names the option" output_has 'observers\[0\].steps'
done_testing
