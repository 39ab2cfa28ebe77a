#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
# gantry run: exit status, reports, signals, gantry stat. One process, connected by the transport loop.

setup() {
	. "$BATS_TEST_DIRNAME/lib.sh"
	umask 022
	conf=$BATS_TEST_TMPDIR/t.conf
	dir=$BATS_TEST_TMPDIR/stat
	pid=
	need target gateway initiator memory stats fault loop
	cat >"$conf" <<-END
		runtime = { stat_dir = "$dir"; };
		devices = { d = { transport = "loop"; }; };
		roles = {
		  store = { role = "target"; listen = { device = "d"; name = "v"; };
		            backend = { type = "memory"; size = "1MiB"; }; };
		  bridge = { role = "gateway"; listen = { device = "d"; name = "f"; };
		             connect = { device = "d"; name = "v"; };
		             stages = ( { type = "stats"; } ); };
		  load = { role = "initiator"; connect = { device = "d"; name = "f"; timeout = "50ms"; };
		           workload = { pattern = "randrw"; ops = 1000; depth = 4; verify = "stamp"; }; };
		};
	END
}

teardown() {
	[ -z "$pid" ] || kill -KILL "$pid" 2>/dev/null || true
}

gantry() {
	run "$GANTRY" "$@"
}

says() {
	[[ "$output" == *"$1"* ]] || { echo "expected: $1"; echo "said: $output"; return 1; }
}

answers() {
	"$GANTRY" stat --dir "$dir" >/dev/null 2>&1 || ! kill -0 "$pid"
}

reports() { # PATTERN - the report of the started process has a matching line
	"$GANTRY" stat --dir "$dir" --json 2>/dev/null | grep -qE "$1"
}

begin() { # ARGUMENT... - start gantry in the background, with SIGINT not ignored, and wait until it answers
	env --default-signal=INT "$GANTRY" run -p "$GANTRY_PLUGINS" "$conf" "$@" \
		>"$BATS_TEST_TMPDIR/out" 2>"$BATS_TEST_TMPDIR/err" 3>&- &
	pid=$!
	until_true answers
	kill -0 "$pid" || { cat "$BATS_TEST_TMPDIR/out" "$BATS_TEST_TMPDIR/err"; return 1; }
}

finish() { # wait for its end; set status and output
	status=0
	wait "$pid" || status=$?
	pid=
	output=$(cat "$BATS_TEST_TMPDIR/out" "$BATS_TEST_TMPDIR/err")
}

@test "ends by itself when the work is done, and reports it" {
	gantry run -p "$GANTRY_PLUGINS" "$conf"
	echo "$output"
	[ "$status" -eq 0 ]
	says "result ok, elapsed "
	says $'\n'"load: initiator, lanes 1, depth 4, block 4KiB, elapsed "
	[[ "$output" =~ $'\n'" "+ops" "+IOPS" "+bytes/s" "+p50" "+p99" "+p99.9" "+max$'\n'"  reads " ]]
	[[ "$output" =~ $'\n'"  total "+1000" " ]]
	[ -z "$(grep -E '^.{81}' <<<"$output")" ]
}

@test "with -v, the report has all values" {
	gantry run -v -p "$GANTRY_PLUGINS" "$conf"
	[ "$status" -eq 0 ]
	says "result                    ok"
	says "p99.99"
	says "threads 0"
	[[ "$output" =~ total$'\n'" "+ops" "+1000 ]]
}

@test "a device maps the names of services" {
	sed -i 's/transport = "loop";/& services = { v = "first place"; f = "second"; };/' "$conf"
	grep -q services "$conf"
	gantry run -v -p "$GANTRY_PLUGINS" "$conf"
	echo "$output"
	[ "$status" -eq 0 ]
	[ "$(grep -c "service=v address=first place" <<<"$output")" -ge 2 ] # at both ends
	says "listening device=d service=v address=first place"
	says "    address               first place"
	gantry check -v -p "$GANTRY_PLUGINS" "$conf"
	says "service             v"
	says "address             first place"
}

@test "a report that is lost is a failure" {
	[ -c /dev/full ] || skip "no /dev/full"
	run sh -c '"$GANTRY" run -p "$GANTRY_PLUGINS" "$1" >/dev/full' sh "$conf"
	echo "$output"
	[ "$status" -eq 1 ]
	says "gantry: cannot write the output"
	for command in check "run --json" "check --json"; do
		# shellcheck disable=SC2016,SC2086 # the inner shell's; two words
		run sh -c '"$GANTRY" "$@" >/dev/full' sh $command -p "$GANTRY_PLUGINS" "$conf"
		echo "$output"
		[ "$status" -eq 1 ]
		says "gantry: cannot write the output: No space left on device"
	done
}

@test "without standard streams, none of its files takes their place" {
	"$GANTRY" run -p "$GANTRY_PLUGINS" "$conf" --role store <&- >&- 2>&- 3>&- &
	pid=$!
	until_true answers
	for n in 0 1 2; do
		readlink "/proc/$pid/fd/$n"
		[ "$(readlink "/proc/$pid/fd/$n")" = /dev/null ]
	done
	kill "$pid"
	wait "$pid"
	pid=
}

@test "JSON: schema, result, roles, devices, threads" {
	"$GANTRY" run -p "$GANTRY_PLUGINS" "$conf" --json >"$BATS_TEST_TMPDIR/out"
	output=$(cat "$BATS_TEST_TMPDIR/out")
	says '"schema": 1,'
	says '"result": "ok"'
	says '"load": {'
	says '"transport": "loop"'
	says '"threads": ['
	[[ "$output" == "{"*"}" ]]
}

@test "separate threads, several lanes" {
	gantry run -v -p "$GANTRY_PLUGINS" "$conf" --set runtime.threads=separate \
		--set roles.load.lanes=2 --set roles.bridge.lanes=2
	echo "$output"
	[ "$status" -eq 0 ]
	says "threads 4"
}

@test "no listener in the process: exit status 2 and the reason, at once" {
	gantry run -p "$GANTRY_PLUGINS" "$conf" --role load
	[ "$status" -eq 2 ]
	says 'connects to "f" on the device "d", which reaches only this process, and no role that this process runs listens there'
}

# over_shm - lets the device d reach other processes
over_shm() {
	need shm-comch
	sed -i "s|transport = \"loop\"|transport = \"shm-comch\"; dir = \"$BATS_TEST_TMPDIR/shm\"|" "$conf"
}

@test "no listener: exit status 1 and the reason" {
	over_shm
	gantry run -p "$GANTRY_PLUGINS" "$conf" --role load
	echo "$output"
	[ "$status" -eq 1 ]
	local why='cannot connect to "f" on device d: no listener there; start the role that serves it first'
	says "roles.load: session not started id="
	[ "${lines[-1]}" = "roles.load: no session: $conf:9: $why (d: $BATS_TEST_TMPDIR/shm/00%3A00.0)" ]
	[ "${#lines[@]}" -eq 2 ] # no report of zeroes
	"$GANTRY" run -p "$GANTRY_PLUGINS" "$conf" --role load --json >"$BATS_TEST_TMPDIR/out" || [ "$?" -eq 1 ]
	grep -q '"result": "failed"' "$BATS_TEST_TMPDIR/out"
}

@test "a wait for a peer is logged, once, without a terminal" {
	over_shm
	"$GANTRY" run -p "$GANTRY_PLUGINS" "$conf" --role load --set roles.load.connect.timeout=599s \
		>"$BATS_TEST_TMPDIR/out" 2>"$BATS_TEST_TMPDIR/err" 3>&- &
	pid=$!
	until_true grep -q 'roles.load: waiting for a listener at "f" on device d (connect.timeout=599s)$' "$BATS_TEST_TMPDIR/err"
	kill -TERM "$pid"
	finish
	[ "$status" -eq 3 ]
	[ "$(grep -c waiting "$BATS_TEST_TMPDIR/err")" -eq 1 ]
	[ "$(cat "$BATS_TEST_TMPDIR/out")" = "roles.load: no session: interrupted" ]
}

@test "progress on a terminal, which is erased before other output" {
	local command="'$GANTRY' run -p '$GANTRY_PLUGINS' '$conf' --set roles.load.workload.ops=0 --set roles.load.workload.time=2s"
	command -v script >/dev/null || skip "script is not installed"
	run script -qec "$command" /dev/null </dev/null
	echo "$output" | cat -v
	[ "$status" -eq 0 ]
	[[ "$output" == *$'\r\e[Kload 1s ['*'%  '*' IO/s  '*'B/s'* ]]
	[[ "$output" == *$'B/s\r\e[Kresult ok,'* ]]
}

@test "a session that requests more than the device supports gets the reason, also if the file has no limit" {
	gantry run -p "$GANTRY_PLUGINS" "$conf" --set devices.d.max_depth=8 --set roles.load.workload.depth=5
	echo "$output"
	[ "$status" -eq 1 ]
	says "depth out of range (depth=5, limit listen.max_depth=4)"
	gantry run -p "$GANTRY_PLUGINS" "$conf" --set devices.d.max_depth=8 --set roles.load.workload.depth=4
	[ "$status" -eq 0 ]
}

@test "a client that a target refuses: one line of each role on the way" {
	gantry run -p "$GANTRY_PLUGINS" "$conf" --set roles.store.listen.max_depth=2
	echo "$output"
	[ "$status" -eq 1 ]
	[ "$(grep -c ' roles.store: ' <<<"$output")" -eq 1 ]
	[ "$(grep -c ' roles.bridge: ' <<<"$output")" -eq 1 ]
	[ "$(grep -c ' roles.load: ' <<<"$output")" -eq 1 ]
	says "roles.bridge: session refused id="
	says "reason=\"target: $conf:7: refused at hello: depth out of range"
	says "roles.load: session not started id="
	[[ "$output" != *"session lost"* ]]
}

@test "a failed IO: exit status 1" {
	sed -i 's/type = "stats"; }/type = "fault"; error_nth = 10; }/' "$conf"
	gantry run -p "$GANTRY_PLUGINS" "$conf"
	echo "$output"
	[ "$status" -eq 1 ]
	says "result failed, elapsed "
	[[ "$output" =~ $'\n'"  errors "+"IO "[1-9] ]]
}

@test "SIGINT: a summary, and exit status 3" {
	begin --set roles.load.workload.ops=0 --set roles.load.workload.time=600s
	until_true reports '"p99_99_ns": [1-9]'
	kill -INT "$pid"
	finish
	echo "$output"
	[ "$status" -eq 3 ]
	says "gantry: Interrupt: stopping; send the signal again to end at once"
	says "result interrupted, elapsed "
	[[ "$output" =~ $'\n'"  hop target "+[0-9.]+k?" " ]]
}

@test "a second signal ends it at once, whatever is in flight" {
	sed -i 's/type = "stats"; }/type = "fault"; drop_rate = "100%"; }/' "$conf"
	begin --set roles.load.workload.deadline=300s
	until_true reports '"seen_ops": [1-9]'
	kill -INT "$pid"
	until_true grep -q stopping "$BATS_TEST_TMPDIR/err"
	kill -0 "$pid"
	kill -INT "$pid"
	finish
	echo "$output"
	[ "$status" -eq 3 ]
	[[ "$output" != *result* ]]
	[ -z "$(ls "$dir")" ]
}

@test "SIGTERM is how servers end: exit status 0" {
	begin --role store --role bridge
	kill -TERM "$pid"
	finish
	echo "$output"
	[ "$status" -eq 0 ]
}

# The first of two signals would stop it in order, and the second would end it at once, with exit status 3.
@test "SIGHUP and SIGINT that were ignored at the start stay ignored; SIGTERM does not" {
	(
		trap '' HUP INT TERM
		exec "$GANTRY" run -p "$GANTRY_PLUGINS" "$conf" --role store
	) >"$BATS_TEST_TMPDIR/out" 2>"$BATS_TEST_TMPDIR/err" 3>&- &
	pid=$!
	until_true answers
	kill -HUP "$pid"
	kill -INT "$pid"
	kill -TERM "$pid"
	finish
	echo "$output"
	[ "$status" -eq 0 ]
	says "gantry: Terminated: stopping"
}

@test "a service has a runtime directory and nothing else" {
	sed -i '/stat_dir/d' "$conf"
	mkdir -m 755 "$BATS_TEST_TMPDIR/service"
	dir=$BATS_TEST_TMPDIR/service/gantry
	(
		cd / && umask 077
		exec env -i XDG_RUNTIME_DIR="$BATS_TEST_TMPDIR/service" "$GANTRY" run -p "$GANTRY_PLUGINS" "$conf" --role store
	) </dev/null >"$BATS_TEST_TMPDIR/out" 2>"$BATS_TEST_TMPDIR/err" 3>&- &
	pid=$!
	until_true answers
	gantry stat -v --dir "$dir" store
	says "role                    target"
	kill -TERM "$pid"
	finish
	[ "$status" -eq 0 ]
	[ -z "$(ls "$dir")" ]
}

@test "stat: live report, for people, for machines, for one role" {
	begin --set roles.load.workload.ops=0 --set roles.load.workload.time=600s
	gantry stat -v --dir "$dir"
	[ "$status" -eq 0 ]
	says "process $pid  $conf"
	says "result                  running"
	[[ "$output" =~ "      progress            "[0-9.]+(ns|us|ms|s)" of 10m ("[0-9]+"%)" ]]
	gantry stat --dir "$dir" --json
	[ "$status" -eq 0 ]
	says '"processes": ['
	says "\"pid\": $pid"
	gantry stat -v --dir "$dir" load
	[ "$status" -eq 0 ]
	[[ "$output" != *"transport"* ]]
	gantry stat --dir "$dir" nobody
	[ "$status" -eq 1 ]
	kill -INT "$pid"
	finish
	[ "$status" -eq 3 ]
}

@test "stat: a line for each role and session, once and again" {
	begin --set roles.load.workload.ops=0 --set roles.load.workload.time=600s
	gantry stat --dir "$dir"
	[ "$status" -eq 0 ]
	[ "${#lines[@]}" -eq 6 ]
	[[ "${lines[0]}" =~ ^\ +PID\ ROLE\ +KIND\ +IOPS\ +BYTES/S\ +P50\ +P99\ +HELD\ +ERR$ ]]
	[[ "${lines[1]}" =~ ^\ +$pid\ store\ +target\ +[0-9.]+[kM]?\ +-\ +-\ +-\ +[0-9]+\ +0$ ]]
	[[ "${lines[2]}" =~ ^\ +session\ [0-9a-f]{8}\ running,\ peer\ $pid,\ lanes\ 1,\ depth\ 4$ ]]
	[[ "${lines[3]}" =~ ^\ +$pid\ bridge\ +gateway\ +[0-9.]+[kM]?\ +[0-9] ]]
	[[ "${lines[5]}" =~ ^\ +$pid\ load\ +initiator\ +[0-9.]+[kM]?\ +[0-9].*[mun]s\ +[0-9]+\ +0$ ]]
	watch 2 " load " "$GANTRY" stat --dir "$dir" --watch 1 load
	[ "$(grep -c " load " <<<"$output")" -ge 2 ]
	kill -INT "$pid"
	finish
	run timeout 10 "$GANTRY" stat --dir "$dir" --watch 1
	[ "$status" -eq 1 ]
}

@test "stat: only the processes of a configuration, in its directory" {
	begin --role store
	gantry stat -c "$conf"
	[ "$status" -eq 0 ]
	says " store "
	cd "$BATS_TEST_TMPDIR"
	gantry stat -c ./t.conf
	says " store "
	sed 's/"v"/"w"/' "$conf" >other.conf
	gantry stat -c other.conf
	[ "$status" -eq 1 ]
	says "no running gantry process of other.conf answers in $dir;"
	gantry stat -c none.conf
	[ "$status" -eq 2 ]
	gantry stat --watch 0
	[ "$status" -eq 2 ]
	says "gantry: --watch: not a number of seconds from 1 to 3600 (value=0)"
	gantry stat --watch 1 --json
	[ "$status" -eq 2 ]
	kill -TERM "$pid"
	finish
}

# metrics - start the roles, and save the metrics as soon as IOs have completed
metrics() {
	begin --set roles.load.workload.ops=0 --set roles.load.workload.time=600s
	until_true has_metrics
}

has_metrics() {
	"$GANTRY" stat --dir "$dir" --openmetrics >"$BATS_TEST_TMPDIR/metrics" 2>/dev/null &&
		grep -q '^gantry_done_ops_total.*role="load".* [1-9]' "$BATS_TEST_TMPDIR/metrics"
}

@test "stat: the parser of the Prometheus client reads all families" {
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

@test "stat: promtool finds nothing to object to" {
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

@test "stat: only one form of output can be chosen, and none without a process" {
	run "$GANTRY" stat --openmetrics --json
	[ "$status" -eq 2 ]
	run "$GANTRY" stat --openmetrics --dir "$BATS_TEST_TMPDIR"
	[ "$status" -eq 1 ]
}

@test "stat: names stopped processes, and waits for all of them at the same time" {
	begin --role store
	local stopped="" i
	for i in 1 2 3 4 5 6; do
		"$GANTRY" run -p "$GANTRY_PLUGINS" "$conf" --role store >/dev/null 2>&1 3>&- &
		stopped="$stopped $!"
	done
	for i in $stopped; do
		for _ in $(seq 5000); do
			[ ! -S "$dir/$i.stat.sock" ] || break
		done
		kill -STOP "$i"
	done
	SECONDS=0
	gantry stat -v --dir "$dir"
	local took=$SECONDS
	"$GANTRY" stat --dir "$dir" --json >"$BATS_TEST_TMPDIR/json" 2>/dev/null
	kill -KILL $stopped
	[ "$status" -eq 0 ]
	says "process $pid  $conf"
	for i in $stopped; do
		says "gantry: process $i has not answered for 2000 ms; it may be stopped"
		grep -qx " *$i,\{0,1\}" "$BATS_TEST_TMPDIR/json"
	done
	[ "$took" -lt 12 ] # sequential waits would take longer
	grep -q '"silent": \[' "$BATS_TEST_TMPDIR/json"
	kill -TERM "$pid"
	finish
}

@test "stat: a process that may open no more files answers all the same" {
	local free=0
	begin --role store
	while [ -e "/proc/$pid/fd/$free" ]; do
		free=$((free + 1))
	done
	prlimit --pid "$pid" --nofile="$free:"
	for _ in 1 2 3; do
		gantry stat -v --dir "$dir"
		[ "$status" -eq 0 ]
		says "process $pid  $conf"
	done
	kill -TERM "$pid"
	finish
	[ "$status" -eq 0 ]
}

@test "stat: only this user can access the socket, and the process removes it at its end" {
	begin --role store
	[ "$(stat -c %a "$dir/$pid.stat.sock")" = 600 ]
	[ "$(stat -c %a "$dir")" = 700 ]
	kill -TERM "$pid"
	finish
	[ "$status" -eq 0 ]
	[ -z "$(ls "$dir")" ]
}

@test "stat: a directory that others may write is not used" {
	mkdir "$dir"
	chmod 777 "$dir"
	gantry run -p "$GANTRY_PLUGINS" "$conf"
	[ "$status" -eq 0 ]
	says "cannot open the control socket: the directory $dir is writable by other users (owner="
	[ "$(grep -c ' control: ' <<<"$output")" -eq 1 ]
	[ -z "$(ls "$dir")" ]
}

@test "a gateway with more targets than its descriptors have pieces for says which depth it takes" {
	local i stores='' legs=''
	for i in {1..16}; do
		stores+="s$i = { role = \"target\"; listen = { device = \"d\"; name = \"v$i\"; max_depth = 4096; };"
		stores+=" backend = { type = \"memory\"; size = \"1MiB\"; }; };"
		legs+="${legs:+, }{ device = \"d\"; name = \"v$i\"; }"
	done
	cat >"$conf" <<-END
		devices = { d = { transport = "loop"; }; };
		roles = {
		  $stores
		  bridge = { role = "gateway"; listen = { device = "d"; name = "f"; max_depth = 4096; }; connect = ( $legs ); };
		  load = { role = "initiator"; connect = { device = "d"; name = "f"; timeout = "50ms"; };
		           workload = { ops = 10; depth = 4096; }; };
		};
	END
	gantry run -p "$GANTRY_PLUGINS" "$conf"
	[ "$status" -eq 1 ]
	says "refused at query: depth 4096 is too large for 16 targets as one volume (limit=4095)"
}

@test "check describes what run would make, and leaves nothing behind" {
	gantry check -v -p "$GANTRY_PLUGINS" "$conf"
	echo "$output"
	[ "$status" -eq 0 ]
	says "pipeline              stats, link"
	says "$conf: ok"
	[ ! -e "$dir" ]
	gantry check -p "$GANTRY_PLUGINS" "$conf" --json
	[ "$status" -eq 0 ]
	says '"warnings": ['
}

@test "check does not make the file of a volume" {
	need file
	local file="type = \"file\"; path = \"$BATS_TEST_TMPDIR/volume\"; create = true; size = \"1MiB\""
	sed -i "s|type = \"memory\"; size = \"1MiB\"|$file|" "$conf"
	gantry check -p "$GANTRY_PLUGINS" "$conf"
	[ "$status" -eq 0 ]
	[ ! -e "$BATS_TEST_TMPDIR/volume" ]
	gantry run -p "$GANTRY_PLUGINS" "$conf"
	[ "$status" -eq 0 ]
	[ "$(stat -c %s "$BATS_TEST_TMPDIR/volume")" -eq 1048576 ]
}
