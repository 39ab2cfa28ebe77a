#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
# gantry stat --openmetrics: a parser of the format reads the metrics of a running process.

setup() {
	dir=$BATS_TEST_TMPDIR/stat
	conf=$BATS_TEST_TMPDIR/t.conf
	pid=
	for plugin in target gateway initiator memory stats loop; do
		[ -e "$GANTRY_PLUGINS/$plugin.so" ] || skip "built without the plugin $plugin"
	done
	cat >"$conf" <<-END
		runtime = { stat_dir = "$dir"; };
		devices = { d = { transport = "loop"; }; };
		roles = {
		  store = { role = "target"; listen = { device = "d"; name = "v"; };
		            backend = { type = "memory"; size = "1MiB"; }; };
		  bridge = { role = "gateway"; listen = { device = "d"; name = "f"; };
		             connect = { device = "d"; name = "v"; }; stages = ( { type = "stats"; } ); };
		  load = { role = "initiator"; connect = { device = "d"; name = "f"; };
		           workload = { pattern = "randrw"; time = "600s"; depth = 4; }; };
		};
	END
}

teardown() {
	[ -z "$pid" ] || kill -KILL "$pid" 2>/dev/null || true
}

# metrics - start the roles, and save the metrics as soon as IOs have completed
metrics() {
	local end=$((SECONDS + 60))
	"$GANTRY" run -p "$GANTRY_PLUGINS" "$conf" >/dev/null 2>&1 3>&- &
	pid=$!
	until "$GANTRY" stat --dir "$dir" --openmetrics 2>/dev/null >"$BATS_TEST_TMPDIR/metrics" &&
		grep -q '^gantry_done_ops_total.*role="load".* [1-9]' "$BATS_TEST_TMPDIR/metrics"; do
		[ "$SECONDS" -lt "$end" ]
	done
}

@test "the parser of the Prometheus client reads all families" {
	/usr/bin/python3 -c 'import prometheus_client.openmetrics.parser' 2>/dev/null || skip "no parser is installed"
	metrics
	run /usr/bin/python3 - "$BATS_TEST_TMPDIR/metrics" <<-'END'
		import sys
		from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse
		for family in parse(open(sys.argv[1]).read()):
		    print(family.type, family.name, len(family.samples))
	END
	echo "$output"
	[ "$status" -eq 0 ]
	[ "${#lines[@]}" -eq "$(grep -c '^# TYPE' "$BATS_TEST_TMPDIR/metrics")" ]
	[[ "$output" == *"histogram gantry_io_latency_seconds "[1-9]* ]]
}

@test "promtool finds nothing to object to" {
	command -v promtool >/dev/null || skip "promtool is not installed"
	metrics
	# it checks the older format, in which the name of a counter has its suffix, and there are no units
	awk '
	$2 == "EOF" || $2 == "UNIT" { next }
	$2 == "TYPE" { suffix = $4 == "counter" ? "_total" : "" }
	/^#/ { $3 = $3 suffix }
	{ print }' "$BATS_TEST_TMPDIR/metrics" >"$BATS_TEST_TMPDIR/older"
	run promtool check metrics <"$BATS_TEST_TMPDIR/older"
	echo "$output"
	[ "$status" -eq 0 ]
}

@test "only one form of output can be chosen, and none without a process" {
	run "$GANTRY" stat --openmetrics --json
	[ "$status" -eq 2 ]
	run "$GANTRY" stat --openmetrics --dir "$BATS_TEST_TMPDIR"
	[ "$status" -eq 1 ]
}
