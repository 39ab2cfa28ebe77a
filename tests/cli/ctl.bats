# SPDX-License-Identifier: BSD-3-Clause
# ctl.bats - gantry ctl, the control socket and SIGHUP

setup() {
	. "$BATS_TEST_DIRNAME/lib.sh"
	need target initiator memory loop
	dir=$BATS_TEST_TMPDIR/stat
	conf=$BATS_TEST_TMPDIR/conf
	cat >"$conf" <<-END
		runtime = { stat_dir = "$dir"; };
		devices = { d = { transport = "loop"; }; };
		roles = {
			store = { role = "target"; listen = { device = "d"; name = "v"; };
			          backend = { type = "memory"; size = "1MiB"; }; };
			load = { role = "initiator"; connect = { device = "d"; name = "v"; };
			         workload = { pattern = "randread"; time = "599s"; }; };
		};
	END
	err=$BATS_TEST_TMPDIR/err
	pid=
}

teardown() {
	[ -z "$pid" ] || kill -KILL "$pid" 2>/dev/null || :
}

answers() {
	"$GANTRY" ctl --dir "$dir" options >/dev/null 2>&1
}

begin() { # ARGUMENT... - start gantry run without a terminal, and wait until it answers
	setsid "$GANTRY" run -p "$GANTRY_PLUGINS" "$conf" "$@" >"$BATS_TEST_TMPDIR/out" 2>"$err" 3>&- &
	pid=$!
	until_true answers
}

finish() { # wait for its end; set status
	status=0
	wait "$pid" || status=$?
	pid=
}

ctl() { # ARGUMENT... - call a method; set status and output
	run "$GANTRY" ctl --dir "$dir" "$@"
	echo "$output"
}

has_session() {
	[ "$("$GANTRY" ctl --dir "$dir" --pid "$pid" stat | jq '.roles.store.sessions | length')" = 1 ]
}

value() { # PATH - print the present value of an option
	"$GANTRY" ctl --dir "$dir" options | jq -r --arg path "$1" '.options[] | select(.path == $path).value'
}

@test "without arguments the methods are listed" {
	run "$GANTRY" ctl
	[ "$status" -eq 0 ]
	[ "$(awk '{ print $1 }' <<<"$output" | tr '\n' ' ')" = "stat config options set reload drain rpc.discover " ]
}

@test "set changes an option, and says from what to what" {
	begin
	ctl set runtime.log debug
	[ "$status" -eq 0 ]
	[ "$(jq -c . <<<"$output")" = '{"changed":[{"path":"runtime.log","from":"warn","to":"debug"}]}' ]
	[ "$(value runtime.log)" = debug ]
	grep -q 'control: runtime.log: changed (from=warn, to=debug)$' "$err"
	ctl set runtime.log debug
	[ "$(jq -c . <<<"$output")" = '{"changed":[]}' ]
	ctl set runtime.spin 5us
	ctl set runtime.spin 0
	[ "$(value runtime.spin)" = 0 ]
	ctl config
	[[ "$(jq -r .text <<<"$output")" = *'log = "debug"'* ]]
	[ "$(jq -r .path <<<"$output")" = "$conf" ]
}

recorded() {
	"$GANTRY" ctl --dir "$dir" stat | jq '.roles.load.stages[0] | .written_records + .buffered_records'
}

completes() { # NUMBER - wait until so many more IOs are completed
	local before
	before=$("$GANTRY" ctl --dir "$dir" stat | jq .roles.load.completed)
	until_true at_least $((before + $1))
}

at_least() {
	[ "$("$GANTRY" ctl --dir "$dir" stat | jq .roles.load.completed)" -ge "$1" ]
}

is_recording() { # NUMBER - the trace has more records than that
	[ "$(recorded)" -gt "$1" ]
}

@test "a trace is switched on and off" {
	need trace
	sed -i "s|workload = {|stages = ( { type = \"trace\"; enabled = false; path = \"$BATS_TEST_TMPDIR/t\"; } ); &|" "$conf"
	begin
	[ "$(recorded)" -eq 0 ]
	ctl set 'roles.load.stages[0].enabled' true
	[ "$status" -eq 0 ]
	until_true is_recording 0
	ctl set roles.load.stages.0.enabled false
	[ "$(jq -r '.changed[0].path' <<<"$output")" = 'roles.load.stages[0].enabled' ]
	until_true completes 10000 # descriptors on their way can add records
	before=$(recorded)
	until_true completes 10000
	[ "$(recorded)" -eq "$before" ]
}

own_times() { # prints the number of samples of stage and backend, and whether they have the right order of size
	"$GANTRY" ctl --dir "$dir" stat | jq -c '.roles.store | [.stages[0].own_time.count, .backend.own_time.count,
		.stages[0].own_time.p50_ns >= 2000000, .stages[0].own_time_share > .backend.own_time_share]'
}

measures() { # NUMBER - the stage has more samples than that
	[ "$(own_times | jq '.[0] // 0')" -gt "$1" ]
}

@test "the times of stages are switched on and off" {
	need fault
	sed -i 's|backend = {|stages = ( { type = "fault"; delay = "3ms"; delay_rate = "100%"; } ); &|' "$conf"
	begin --set roles.load.workload.depth=8
	until_true completes 10
	[ "$(own_times)" = '[null,null,false,false]' ]
	ctl set runtime.stage_times true
	[ "$status" -eq 0 ]
	until_true measures 100
	jq -e '.[2] and .[3]' <<<"$(own_times)"
	"$GANTRY" stat --dir "$dir" --openmetrics |
		grep -q '^gantry_stage_time_seconds_count{.*role="store",.*stage="backend"} [1-9]'
	"$GANTRY" stat --dir "$dir" -v | grep -qE '^ +own time +min ([2-9]|[0-9]{2,})[.0-9]*ms'
	ctl set runtime.stage_times false
	before=$(own_times)
	until_true completes 100
	[ "$(own_times)" = "$before" ]
	ctl set runtime.stage_times true
	until_true measures "$(($(jq '.[0]' <<<"$before") + 100))"
}

@test "an invalid or fixed option changes nothing" {
	begin
	ctl set runtime.lgo debug
	[ "$status" -eq 1 ]
	[[ "$output" = *'runtime.lgo: unknown key; did you mean "log"?' ]]
	ctl set runtime.log loud
	[ "$status" -eq 1 ]
	[[ "$output" = *'"loud" is unknown; write one of '* ]]
	ctl set roles.load.workload.time 5s
	[ "$status" -eq 1 ]
	[[ "$output" = *"roles.load.workload.time: the setting cannot change while the process runs: edit $conf and restart" ]]
	ctl set runtime.log
	[ "$status" -eq 1 ]
	[[ "$output" = *'set: path (a string) or value is missing, or there are other params: write set runtime.log debug' ]]
	[ "$(value runtime.log)" = warn ]
	[ ! -s "$err" ]
}

@test "overrides of the start stay in force, also those that look like numbers" {
	begin --set roles.store.listen.name=7 --set roles.load.connect.name=7
	ctl set runtime.log info
	[ "$status" -eq 0 ]
	ctl set runtime.spin 1us
	[ "$status" -eq 0 ]
	[ "$(value runtime.log)" = info ]
}

@test "reload changes what can change, and names what cannot" {
	begin
	sed -i 's/runtime = {/& log = "info";/; s/599s/598s/' "$conf"
	ctl reload
	[ "$status" -eq 0 ]
	[ "$(jq -c .changed <<<"$output")" = '[{"path":"runtime.log","from":"warn","to":"info"}]' ]
	[ "$(jq -c .kept <<<"$output")" = '[{"path":"roles.load.workload.time","from":"599s","to":"598s"}]' ]
	sed -i 's/log = "info";//; s/598s/599s/' "$conf"
	ctl reload
	[ "$(jq -c .changed <<<"$output")" = '[{"path":"runtime.log","from":"info","to":"warn"}]' ]
	[ "$(jq -c .kept <<<"$output")" = '[]' ]
	sed -i 's/"loop"/"lop"/' "$conf"
	ctl reload
	[ "$status" -eq 1 ]
	[[ "$output" = *"$conf:2: devices.d.transport: "*'"lop"'* ]]
}

@test "a file without the group of the option, and lists of another length" {
	sed -i "s|^runtime = .*||" "$conf"
	begin --set runtime.stat_dir="$dir"
	ctl set runtime.log info
	[ "$status" -eq 0 ]
	[ "$(value runtime.log)" = info ]
	ctl reload
	[ "$(jq -c .changed <<<"$output")" = '[{"path":"runtime.log","from":"info","to":"warn"}]' ]
	ctl reload
	[ "$(jq -c .changed <<<"$output")" = '[]' ]
	sed -i 's/backend = { type = "memory"/stages = ( { type = "noop"; } ); &/' "$conf"
	ctl reload
	[ "$(jq -c '[.kept[].path]' <<<"$output")" = '["roles.store.stages"]' ]
}

@test "set names a role that this process does not run" {
	begin --role store
	ctl set roles.load.workload.time 1s
	[ "$status" -eq 1 ]
	[[ "$output" = *'roles.load.workload.time: this process does not use that role or device' ]]
}

@test "a message that is cut inside a character still arrives" {
	begin
	ctl set runtime.log "xxxxx$(printf '€%.0s' {1..400})"
	[ "$status" -eq 1 ]
	[[ "$output" = *': runtime.log: "xxxxx'* ]]
}

@test "SIGHUP reloads in a process without a terminal" {
	begin
	sed -i 's/runtime = {/& log = "info";/; s/599s/598s/' "$conf"
	kill -HUP "$pid"
	until_true grep -q 'control: configuration reloaded' "$err"
	grep -q 'control: runtime.log: changed (from=warn, to=info)$' "$err"
	grep -q 'roles.load.workload.time: cannot change while the process runs (from=599s, to=598s): restart the process$' "$err"
	echo garbage >>"$conf"
	kill -HUP "$pid"
	until_true grep -q "control: reload: nothing is changed: $conf:" "$err"
	[ "$(value runtime.log)" = info ]
	kill -TERM "$pid"
	finish
	[ "$status" -eq 3 ]
}

@test "drain ends a server after its last session" {
	need shm-comch
	sed -i "s|transport = \"loop\"|transport = \"shm-comch\"; dir = \"$BATS_TEST_TMPDIR/shm\"|" "$conf"
	begin --role store
	setsid "$GANTRY" run -p "$GANTRY_PLUGINS" "$conf" --role load --set roles.load.workload.time=599s >/dev/null 2>&1 3>&- &
	load=$!
	until_true has_session
	ctl --pid "$pid" drain
	[ "$status" -eq 0 ]
	run "$GANTRY" run -p "$GANTRY_PLUGINS" "$conf" --role load --set roles.load.workload.ops=1 \
		--set roles.load.connect.timeout=10ms
	[ "$status" -eq 1 ]
	kill -0 "$pid"
	kill -TERM "$load"
	wait "$load" || [ "$?" -eq 3 ]
	finish
	[ "$status" -eq 0 ]
}

@test "one process must be chosen" {
	begin
	setsid "$GANTRY" run -p "$GANTRY_PLUGINS" "$conf" >/dev/null 2>&1 3>&- &
	second=$!
	until_true test -S "$dir/$second.stat.sock"
	ctl options
	[ "$status" -eq 1 ]
	[[ "$output" = *"2 processes answer: "*"; choose one with --pid or -c" ]]
	ctl --pid "$second" options
	[ "$status" -eq 0 ]
	ctl --pid 1 options
	[ "$status" -eq 1 ]
	[[ "$output" = "gantry: no gantry process 1 answers in $dir" ]]
	kill -KILL "$second"
	wait "$second" || :
}

@test "requests that are no JSON-RPC get an error, and IO continues" {
	begin
	exchange=$BATS_TEST_TMPDIR/exchange.py
	command -v python3 >/dev/null || skip "python3 is not installed"
	cat >"$exchange" <<-'END'
		import socket, sys
		s = socket.socket(socket.AF_UNIX)
		s.connect(sys.argv[1])
		s.sendall(sys.stdin.buffer.read())
		s.shutdown(socket.SHUT_WR)
		sys.stdout.buffer.write(b"".join(iter(lambda: s.recv(65536), b"")))
	END
	run python3 "$exchange" "$dir/$pid.stat.sock" <<<'{"jsonrpc":'
	[ "$(jq -c '[.id, .error.code]' <<<"$output")" = '[null,-32700]' ]
	run python3 "$exchange" "$dir/$pid.stat.sock" \
		<<<'[{"jsonrpc":"2.0","id":"a","method":"options"},{"jsonrpc":"2.0","id":"b","method":"x"}]'
	[ "$(jq -c '[.[].id, .[1].error.code]' <<<"$output")" = '["a","b",-32601]' ]
	run python3 "$exchange" "$dir/$pid.stat.sock" < <(head -c 300000 /dev/zero | tr '\0' x)
	answers
	kill -0 "$pid"
}

@test "each result matches the schema that rpc.discover publishes" {
	command -v python3 >/dev/null && python3 -c 'import jsonschema' 2>/dev/null || skip "python3-jsonschema is not installed"
	begin
	ctl rpc.discover
	echo "$output" >"$BATS_TEST_TMPDIR/openrpc"
	for call in stat config options "set runtime.log info" reload drain; do
		# shellcheck disable=SC2086 # a method and its values
		"$GANTRY" ctl --dir "$dir" $call >"$BATS_TEST_TMPDIR/result"
		jq --arg name "${call%% *}" '.methods[] | select(.name == $name).result.schema' "$BATS_TEST_TMPDIR/openrpc" \
			>"$BATS_TEST_TMPDIR/schema"
		python3 -c 'import json, sys, jsonschema; jsonschema.validate(*(json.load(open(f)) for f in sys.argv[1:]))' \
			"$BATS_TEST_TMPDIR/result" "$BATS_TEST_TMPDIR/schema"
	done
}
