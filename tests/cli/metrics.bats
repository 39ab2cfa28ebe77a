#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
# gantry metrics: serves the metrics of processes by HTTP, also while clients stall, flood it or send garbage.

setup() {
	. "$BATS_TEST_DIRNAME/lib.sh"
	umask 022
	trap '' PIPE # the exporter ends connections to which a test still writes
	[ -x "$top_builddir/core/gantry-metrics" ] || [[ "$BATS_TEST_DESCRIPTION" == "without the exporter"* ]] ||
		skip "built without libmicrohttpd"
	command -v curl >/dev/null || skip "curl is not installed"
	conf=$BATS_TEST_TMPDIR/t.conf
	dir=$BATS_TEST_TMPDIR/stat
	pid=
	exporter=
	dripper=
	need target gateway initiator memory stats loop
	cat >"$conf" <<-END
		runtime = { stat_dir = "$dir"; };
		devices = { d = { transport = "loop"; }; };
		roles = {
		  store = { role = "target"; listen = { device = "d"; name = "v"; };
		            backend = { type = "memory"; size = "1MiB"; }; };
		  bridge = { role = "gateway"; listen = { device = "d"; name = "f"; };
		             connect = { device = "d"; name = "v"; }; stages = ( { type = "stats"; } ); };
		  load = { role = "initiator"; connect = { device = "d"; name = "f"; };
		           workload = { pattern = "randrw"; ops = 1000; depth = 4; verify = "stamp"; }; };
		};
	END
}

teardown() {
	for p in $pid $exporter $dripper; do
		kill -KILL "$p" && wait "$p" || true
	done 2>/dev/null
}

says() {
	[[ "$output" == *"$1"* ]] || { echo "expected: $1"; echo "said: $output"; return 1; }
}

# export_metrics [OPTION...] - start gantry metrics; set `url` to the address of its page /
export_metrics() {
	rm -f "$BATS_TEST_TMPDIR/m.out" # of the one before
	"$GANTRY" metrics --dir "$dir" --listen 127.0.0.1:0 "$@" >"$BATS_TEST_TMPDIR/m.out" 2>"$BATS_TEST_TMPDIR/m.err" 3>&- &
	exporter=$!
	until_true grep -q '^metrics at ' "$BATS_TEST_TMPDIR/m.out"
	url=$(sed -n 's/^metrics at //; s/metrics$//p' "$BATS_TEST_TMPDIR/m.out")
	port=${url##*:}
	port=${port%/}
}

stop_exporter() { # set status
	status=0
	kill -TERM "$exporter"
	wait "$exporter" || status=$?
	exporter=
}

# begin [ARGUMENT...] - start the roles, with IO that does not end
begin() {
	"$GANTRY" run -p "$GANTRY_PLUGINS" "$conf" --set roles.load.workload.ops=0 --set roles.load.workload.time=600s \
		--set roles.load.workload.rate=1000 "$@" \
		>"$BATS_TEST_TMPDIR/run.out" 2>"$BATS_TEST_TMPDIR/run.err" 3>&- &
	pid=$!
}

end() {
	kill -TERM "$pid"
	wait "$pid" || true
	pid=
}

# shellcheck disable=SC2120 # some calls have no options
scrape() { # [OPTION...] - get the metrics
	curl -sS --max-time 60 "$@" "${url}metrics"
}

has() { # PATTERN - the metrics have such a line
	scrape >"$BATS_TEST_TMPDIR/metrics" && grep -q "$1" "$BATS_TEST_TMPDIR/metrics"
}

# answers STATUS ARGUMENT... - curl with these arguments gets this status
answers() {
	local expected=$1
	shift
	run curl -s --max-time 60 -o /dev/null -w '%{http_code}' "$@"
	[ "$output" = "$expected" ] || { echo "$*: $output, expected $expected"; return 1; }
}

# connect N TEXT - N more clients send TEXT and nothing more; `fds` has their descriptors
connect() {
	local fd
	for _ in $(seq "$1"); do
		exec {fd}<>"/dev/tcp/127.0.0.1/$port"
		{ printf '%b' "$2" >&"$fd"; } 2>/dev/null || true # it may be ended before all is sent
		fds+=("$fd")
	done
}

is_ended() { # FD - the exporter has ended this connection
	local line rc=0
	while IFS= read -r -t 60 line <&"$1" || { rc=$?; false; }; do :; done
	[ "$rc" -eq 1 ] # above 128: no end in that time
}

@test "a scrape has the families of gantry stat, and the parser of the Prometheus client reads it" {
	begin
	export_metrics
	until_true has '^gantry_done_ops_total.*role="load".* [1-9]'
	"$GANTRY" stat --dir "$dir" --openmetrics | grep '^#' >"$BATS_TEST_TMPDIR/families"
	run diff "$BATS_TEST_TMPDIR/families" <(grep '^#' "$BATS_TEST_TMPDIR/metrics")
	echo "$output"
	[ "$status" -eq 0 ]
	grep -qx "gantry_process_up{pid=\"$pid\",config=\"$conf\"} 1" "$BATS_TEST_TMPDIR/metrics"
	run scrape -o /dev/null -w '%{http_code} %{content_type}'
	[ "$output" = "200 application/openmetrics-text; version=1.0.0; charset=utf-8" ]
	if /usr/bin/python3 -c 'import prometheus_client.openmetrics.parser' 2>/dev/null; then
		run /usr/bin/python3 - "$BATS_TEST_TMPDIR/metrics" <<-'END'
			import sys
			from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse
			for family in parse(open(sys.argv[1]).read()):
			    print(family.type, family.name, len(family.samples))
		END
		echo "$output"
		[ "$status" -eq 0 ]
		[ "${#lines[@]}" -eq "$(grep -c '^# TYPE' "$BATS_TEST_TMPDIR/metrics")" ]
	fi
	stop_exporter
	[ "$status" -eq 0 ]
	[ ! -s "$BATS_TEST_TMPDIR/m.err" ]
	end
}

@test "a client that accepts only the classic format gets it, and promtool finds nothing to object to" {
	begin
	export_metrics
	until_true has '^gantry_done_ops_total.*role="load".* [1-9]'
	run scrape -H 'Accept: text/plain;version=0.0.4' -o "$BATS_TEST_TMPDIR/classic" -w '%{content_type}'
	[ "$output" = "text/plain; version=0.0.4; charset=utf-8" ]
	grep -q '^# TYPE gantry_done_ops_total counter$' "$BATS_TEST_TMPDIR/classic"
	run scrape -H 'Accept: application/openmetrics-text;version=1.0.0,text/plain;q=0.5' -o /dev/null -w '%{content_type}'
	[ "$output" = "application/openmetrics-text; version=1.0.0; charset=utf-8" ]
	if command -v promtool >/dev/null; then
		run promtool check metrics <"$BATS_TEST_TMPDIR/classic"
		echo "$output"
		[ "$status" -eq 0 ]
	fi
	end
}

@test "other pages, methods and requests" {
	export_metrics
	answers 200 "${url}"
	answers 200 -I "${url}metrics"
	answers 200 -I "${url}"
	answers 404 "${url}metrics/"
	answers 404 "${url}../etc/passwd" --path-as-is
	for method in POST PUT DELETE OPTIONS FROB; do
		answers 405 -X "$method" "${url}metrics"
		answers 405 -X "$method" -d text "${url}metrics"
	done
	run curl -sS -i -X POST "${url}metrics"
	[[ "$output" == *"Allow: GET, HEAD"* ]]
	answers 000 -X GET -d text "${url}metrics" # a body: dropped
	answers 431 -H "Long: $(head -c 20000 /dev/zero | tr '\0' x)" "${url}metrics"
	answers 200 "${url}metrics?name[]=a"
	run curl -sS "$url"
	says 'href="/metrics"'
	stop_exporter
	[ "$status" -eq 0 ]
}

@test "a Unix socket exists while the exporter runs" {
	local socket=$BATS_TEST_TMPDIR/s
	export_metrics --listen "unix:$socket"
	run curl -sS --unix-socket "$socket" http://gantry/metrics
	[ "${lines[-1]}" = "# EOF" ]
	[ "$(stat -c %a "$socket")" = 755 ] # the umask: only this user can connect
	run "$GANTRY" metrics --dir "$dir" --listen "unix:$socket"
	[ "$status" -eq 1 ]
	says "gantry: unix:$socket: cannot listen: Address already in use: use --listen with another address"
	stop_exporter
	[ "$status" -eq 0 ]
	[ ! -e "$socket" ]
	# a killed exporter leaves it, and the next one replaces it
	export_metrics --listen "unix:$socket"
	kill -KILL "$exporter"
	wait "$exporter" || true
	[ -S "$socket" ]
	export_metrics --listen "unix:$socket"
	curl -sS --unix-socket "$socket" http://gantry/metrics | grep -qx "# EOF"
	stop_exporter
	[ ! -e "$socket" ]
	echo data >"$socket" # not a socket: never removed
	run "$GANTRY" metrics --dir "$dir" --listen "unix:$socket"
	[ "$status" -eq 1 ]
	[ "$(cat "$socket")" = data ]
}

@test "it listens only on this machine" {
	for address in 0.0.0.0:9464 192.0.2.1:9464 '[::]:9464' '[2001:db8::1]:9464' 128.0.0.1:0; do
		run "$GANTRY" metrics --dir "$dir" --listen "$address"
		[ "$status" -eq 2 ]
		says "gantry: --listen: not a loopback address (value=$address): use 127.0.0.1:PORT, and put a reverse proxy"
		[ "${#lines[@]}" -eq 1 ]
	done
	for address in "" 9464 localhost:9464 127.0.0.1 127.0.0.1: 127.0.0.1:65536 127.0.0.1:-1 127.0.0.1:1x :1 '[::1:1' '[::1]1' \
		'[]:1'; do
		run "$GANTRY" metrics --dir "$dir" --listen "$address"
		[ "$status" -eq 2 ]
		says "gantry: --listen: not an address (value=$address)"
	done
	run "$GANTRY" metrics --dir "$dir" --listen unix:
	[ "$status" -eq 2 ]
	run "$GANTRY" metrics --dir "$dir" --listen "unix:/$(head -c 120 /dev/zero | tr '\0' x)"
	[ "$status" -eq 2 ]
	says "too long"
	run "$GANTRY" metrics --dir "$dir" --listen "unix:$BATS_TEST_TMPDIR/none/s"
	[ "$status" -eq 1 ]
	run "$GANTRY" metrics word
	[ "$status" -eq 2 ]
	export_metrics --listen 127.0.0.1:0
	run "$GANTRY" metrics --dir "$dir" --listen "127.0.0.1:$port"
	[ "$status" -eq 1 ]
	says "gantry: 127.0.0.1:$port: cannot listen: Address already in use"
	stop_exporter
	[ -e /proc/net/if_inet6 ] || return 0
	export_metrics --listen '[::1]:0'
	[[ "$url" == "http://[::1]:"* ]]
	answers 200 -g "${url}metrics"
}

@test "without the exporter, gantry reports what is missing" {
	cp "$GANTRY" "$BATS_TEST_TMPDIR/gantry"
	[[ "$("$BATS_TEST_TMPDIR/gantry" metrics --listen x 2>&1)" != *"not an address"* ]] || skip "an exporter is installed"
	run "$BATS_TEST_TMPDIR/gantry" metrics
	[ "$status" -eq 2 ]
	[ "${#lines[@]}" -eq 1 ]
	says "/gantry-metrics: cannot run the program: No such file or directory: install gantry-metrics, or build gantry with libm"
}

@test "no process, one that ends between scrapes, one that is stopped" {
	export_metrics
	has '^# EOF$' # the directory does not exist yet
	[ "$(grep -vc '^#' "$BATS_TEST_TMPDIR/metrics")" -eq 0 ]
	begin --role store
	until_true has "^gantry_process_up{pid=\"$pid\".*} 1"
	kill -STOP "$pid"
	until_true has "^gantry_process_up{pid=\"$pid\"} 0"
	kill -CONT "$pid"
	until_true has "^gantry_process_up{pid=\"$pid\".*} 1"
	end
	no_sample() { has '^# EOF$' && [ "$(grep -vc '^#' "$BATS_TEST_TMPDIR/metrics")" -eq 0 ]; }
	until_true no_sample
	stop_exporter
	[ "$status" -eq 0 ]
}

@test "only the processes of a configuration, in its directory" {
	begin
	sed 's/"v"/"w"/' "$conf" >"$BATS_TEST_TMPDIR/other.conf"
	env --default-signal=INT "$GANTRY" metrics -c "$BATS_TEST_TMPDIR/other.conf" --listen 127.0.0.1:0 \
		>"$BATS_TEST_TMPDIR/other.out" 3>&- &
	local other=$!
	export_metrics -c "$conf"
	until_true has "^gantry_process_up{pid=\"$pid\".*} 1"
	until_true grep -q '^metrics at ' "$BATS_TEST_TMPDIR/other.out"
	url=$(sed -n 's/^metrics at //; s/metrics$//p' "$BATS_TEST_TMPDIR/other.out")
	has '^# EOF$'
	[ "$(grep -vc '^#' "$BATS_TEST_TMPDIR/metrics")" -eq 0 ]
	kill -INT "$other"
	wait "$other"
	run "$GANTRY" metrics -c "$BATS_TEST_TMPDIR/none.conf"
	[ "$status" -eq 2 ]
	end
}

@test "a directory that cannot be read is an error of the scrape, which is logged once" {
	touch "$dir"
	export_metrics
	answers 503 "${url}metrics"
	run scrape
	says "$dir: cannot read the directory: Not a directory"
	rm "$dir"
	until_true has '^# EOF$'
	stop_exporter
	[ "$status" -eq 0 ]
	[ "$(grep -c "metrics: $dir: cannot read the directory: Not a directory" "$BATS_TEST_TMPDIR/m.err")" -eq 1 ]
}

@test "scrapes of one moment share a collection, later ones do not" {
	begin
	export_metrics
	until_true has '^gantry_process_elapsed_seconds{'
	pair() { # get the metrics twice, over one connection
		curl -sS "${url}metrics" "${url}metrics" | grep '^gantry_process_elapsed_seconds{' >"$BATS_TEST_TMPDIR/pair"
		[ "$(wc -l <"$BATS_TEST_TMPDIR/pair")" -eq 2 ]
	}
	same() { pair && [ "$(sort -u "$BATS_TEST_TMPDIR/pair" | wc -l)" -eq 1 ]; }
	differs() {
		scrape >"$BATS_TEST_TMPDIR/now"
		[ -z "$(grep -xF "$(tail -n 1 "$BATS_TEST_TMPDIR/pair")" "$BATS_TEST_TMPDIR/now")" ]
	}
	until_true same
	until_true differs
	end
}

@test "a client that stalls is ended" {
	local fds=()
	export_metrics
	connect 1 'GET /metrics HTTP/1.1\r\n'
	connect 1 ''
	is_ended "${fds[0]}"
	is_ended "${fds[1]}"
	stop_exporter
	[ "$status" -eq 0 ]
}

# drip - send one byte by each connection again and again, so that none of them is idle
drip() {
	local fd
	while :; do
		for fd in "${fds[@]}"; do
			printf x >&"$fd" || true
		done
		sleep 1 # lint: allowed, the load itself
	done 2>/dev/null
}

@test "clients that send too slowly keep nobody out: the oldest one is ended for a new one" {
	local fds=() line
	export_metrics
	connect 40 'GET /metrics HTTP/1.1\r\nX: '
	drip 3>&- &
	dripper=$!
	answers 200 "${url}metrics"
	kill -KILL "$dripper"
	is_ended "${fds[0]}"
	is_ended "${fds[23]}"
	# the newest ones are still clients
	printf '\r\nHost: x\r\n\r\n' >&"${fds[-1]}"
	IFS= read -r -t 60 line <&"${fds[-1]}"
	[[ "$line" == "HTTP/1.1 200 OK"* ]]
	stop_exporter
	[ "$status" -eq 0 ]
}

@test "clients that do not read their answers keep nobody out, and are ended" {
	local fds=() requests descriptors
	begin
	export_metrics
	descriptors=$(ls "/proc/$exporter/fd" | wc -l)
	is_alone() { [ "$(ls "/proc/$exporter/fd" | wc -l)" -eq "$descriptors" ]; } # it has no connection
	until_true has '^gantry_done_ops_total.*role="load".* [1-9]'
	requests=$(printf 'GET /metrics HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n%.0s' $(seq 200))
	connect 16 "$requests"
	until_true has "^gantry_process_up{pid=\"$pid\".*} 1"
	answers 200 "${url}metrics"
	[ "$(ls "/proc/$exporter/fd" | wc -l)" -gt "$descriptors" ]
	until_true is_alone
	stop_exporter
	[ "$status" -eq 0 ]
	end
}

@test "garbage ends only the connection that sent it" {
	local fds=()
	export_metrics
	connect 1 '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 hello over TLS\r\n\r\n'
	connect 1 '\x00\x00\x00\x00\r\n\r\n\r\n\r\n'
	connect 1 'GET\r\n\r\n'
	connect 1 'GET /metrics HTTP/9.9\r\n\r\n'
	connect 1 'GET /metrics HTTP/1.1\r\nContent-Length: -1\r\n\r\n'
	connect 1 'GET /%00%ff%2e HTTP/1.0\r\n: \r\n:::\r\n\r\n'
	connect 1 'POST /metrics HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\nx'
	for _ in $(seq 8); do
		connect 1 ''
		{ head -c 60000 /dev/urandom >&"${fds[-1]}"; } 2>/dev/null || true
	done
	answers 200 "${url}metrics"
	stop_exporter
	[ "$status" -eq 0 ]
	[ ! -s "$BATS_TEST_TMPDIR/m.err" ]
}

@test "a flood of clients is served" {
	local clients=() client
	begin
	export_metrics
	until_true has "^gantry_process_up{pid=\"$pid\".*} 1"
	for _ in $(seq 8); do
		for _ in $(seq 30); do
			curl -sS --retry 20 --retry-all-errors --retry-delay 1 --max-time 60 -o /dev/null "${url}metrics" || exit 1
		done 3>&- &
		clients+=($!)
	done
	for client in "${clients[@]}"; do
		wait "$client"
	done
	answers 200 "${url}metrics"
	stop_exporter
	[ "$status" -eq 0 ]
	end
}

@test "clients that hang on the exporter do not disturb IO" {
	local fds=()
	export_metrics
	connect 16 'GET /metrics HTTP/1.1\r\n'
	"$GANTRY" run -p "$GANTRY_PLUGINS" "$conf" --json --set roles.load.workload.ops=50000 >"$BATS_TEST_TMPDIR/report" 3>&- &
	pid=$!
	# the exporter asks the process while it runs, and the clients hang on
	until_true eval 'has "^gantry_process_up{pid=\"$pid\".*} 1" || ! kill -0 $pid 2>/dev/null'
	connect 16 'GET /metrics HTTP/1.1\r\nHost: x\r\n\r\nGET /metrics HTTP/1.1\r\n'
	wait "$pid"
	pid=
	grep -q '"result": "ok"' "$BATS_TEST_TMPDIR/report"
	grep -q '"ops": 50000,' "$BATS_TEST_TMPDIR/report"
	grep -q '"corrupt": 0' "$BATS_TEST_TMPDIR/report"
	# both servers: the IOs of the workload, and one to verify each of the 256 blocks
	[ "$(grep -c '"ops_done": 50256,' "$BATS_TEST_TMPDIR/report")" -eq 2 ]
	[ "$(grep -c '"ops_failed": 0' "$BATS_TEST_TMPDIR/report")" -eq 2 ]
	stop_exporter
	[ "$status" -eq 0 ]
}

@test "the examples of the page work" {
	local examples
	mapfile -t examples < <(sed -n '/^\.Sh EXAMPLES/,/^\.Sh SEE/s/^\$ //p' "$top_srcdir/man/gantry-metrics.1")
	[ "${#examples[@]}" -eq 4 ]
	cd "$BATS_TEST_TMPDIR"
	export XDG_RUNTIME_DIR=$BATS_TEST_TMPDIR PATH=${GANTRY%/*}:$PATH
	# the port of the first example: another program may use it
	[ "${examples[0]}" = "gantry metrics &" ]
	[ "${examples[1]}" = "curl http://127.0.0.1:9464/metrics" ]
	gantry metrics >m.out 2>&1 3>&- &
	exporter=$!
	until_true grep -qE '^(metrics at http://127.0.0.1:9464/metrics$|gantry: 127.0.0.1:9464: cannot listen)' m.out
	kill "$exporter" 2>/dev/null || true
	wait "$exporter" || true
	eval "${examples[2]% &} >m.out 3>&- &"
	exporter=$!
	until_true grep -q '^metrics at unix:metrics.sock$' m.out
	run eval "${examples[3]}"
	[ "$status" -eq 0 ]
	[ "${lines[-1]}" = "# EOF" ]
	stop_exporter
	[ "$status" -eq 0 ]
}
