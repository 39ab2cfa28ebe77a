#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# stage.sh - the example of a stage delays IO without a change of it, and cancels what it holds when its role stops
. "$(dirname "$0")/lib.sh"
need loop memory initiator target
example stage throttle.c throttle.conf

ok "it is built" build throttle.c
ok "gantry check accepts the configuration" gantry check throttle.conf --plugin-dir . --plugin-dir "$GANTRY_PLUGINS"
ok "it runs" run_json throttle.c
ok "it has delayed IOs" output_has '"delayed_ops": [1-9]'
ok "the data is right" output_has '"checked": [1-9]'
ok "a rate of 0 is rejected" fails 2 run throttle.c --set roles.load.stages.0.rate=0
ok "the message names the option" output_has 'rate'
start throttle.c --json --set runtime.stat_dir="$tmp/stat" --set roles.load.stages.0.rate=4KiB \
	--set roles.load.workload.block=1MiB --set roles.load.continue_on_error=true
ok "it holds IOs" appears '"delayed_ops": [1-9]' gantry stat --dir "$tmp/stat" --json
ok "it ends at once when the role stops" interrupted
ok "it has canceled them" output_has '"CANCELED": [1-9]'
done_testing
