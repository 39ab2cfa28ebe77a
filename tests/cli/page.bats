#!/usr/bin/env bats
# SPDX-License-Identifier: BSD-3-Clause
# gantry run --report: the page that it writes, what a browser shows of it, and paths that cannot be written.

setup() {
	. "$BATS_TEST_DIRNAME/lib.sh"
	umask 022
	conf=$BATS_TEST_TMPDIR/t.conf
	page=$BATS_TEST_TMPDIR/out/run.html
	pid=
	mkdir "$BATS_TEST_TMPDIR/out"
	need target gateway initiator memory stats loop
	cat >"$conf" <<-END
		runtime = { stat_dir = "$BATS_TEST_TMPDIR/stat"; };
		devices = { wire = { transport = "loop"; services = { disk = "</script><b>a&b"; }; }; };
		roles = {
		  store = { role = "target"; listen = { device = "wire"; name = "disk"; };
		            backend = { type = "memory"; size = "1MiB"; }; };
		  bridge = { role = "gateway"; listen = { device = "wire"; name = "front"; };
		             connect = { device = "wire"; name = "disk"; };
		             stages = ( { type = "stats"; } ); };
		  load = { role = "initiator"; connect = { device = "wire"; name = "front"; };
		           workload = { pattern = "randrw"; ops = 1000; depth = 4; verify = "stamp"; }; };
		};
	END
}

teardown() {
	[ -z "$pid" ] || kill -KILL "$pid" 2>/dev/null || true
}

gantry() {
	run "$GANTRY" "$@" -p "$GANTRY_PLUGINS"
	echo "$output"
}

says() {
	[[ "$output" == *"$1"* ]] || { echo "expected: $1"; return 1; }
}

alone() { # FILE... - the directory of the page has these files and no other
	[ "$(find "$BATS_TEST_TMPDIR/out" -mindepth 1 -printf '%f\n')" = "$*" ] || { ls -lA "$BATS_TEST_TMPDIR/out"; return 1; }
}

begin() { # start a run that does not end, and wait until it has a report
	env --default-signal=INT "$GANTRY" run -p "$GANTRY_PLUGINS" "$conf" --report "$page" \
		--set roles.load.workload.ops=0 --set roles.load.workload.time=600s \
		>"$BATS_TEST_TMPDIR/stdout" 2>"$BATS_TEST_TMPDIR/stderr" 3>&- &
	pid=$!
	local end=$((SECONDS + 60))
	until "$GANTRY" stat --json --dir "$BATS_TEST_TMPDIR/stat" 2>/dev/null | grep -q '"submitted": [1-9]'; do
		kill -0 "$pid" && [ "$SECONDS" -lt "$end" ] || { cat "$BATS_TEST_TMPDIR"/std*; return 1; }
	done
}

finish() { # end it by a signal; set status and output
	status=0
	kill -INT "$pid"
	wait "$pid" || status=$?
	pid=
	output=$(cat "$BATS_TEST_TMPDIR/stdout" "$BATS_TEST_TMPDIR/stderr")
	echo "$output"
}

# shown [OPTION...] - open the page in a browser, with the script that compares it with its data; print what that says
shown() {
	{
		sed -e '/Content-Security-Policy/d' -e '/^<\/body>/,$d' "$page"
		cat "$BATS_TEST_DIRNAME/page-check.html"
	} >"$BATS_TEST_TMPDIR/shown.html"
	HOME=$BATS_TEST_TMPDIR timeout 60 chromium --headless --no-sandbox --disable-gpu --disable-dev-shm-usage \
		--user-data-dir="$BATS_TEST_TMPDIR/profile" "$@" --dump-dom "file://$BATS_TEST_TMPDIR/shown.html" \
		2>"$BATS_TEST_TMPDIR/browser.err" | sed -n 's/.*<pre id="seen">\(.*\)<\/pre>.*/\1/p'
}

@test "it has the report, the configuration and the machine, needs nothing else, and replaces a page" {
	echo "<!DOCTYPE html> an older page" >"$page"
	gantry run "$conf" --report "$page"
	[ "$status" -eq 0 ]
	says "result ok, elapsed"
	alone run.html
	[ "$(stat -c %a "$page")" = 600 ]
	[ "$(head -n 1 "$page")" = "<!DOCTYPE html>" ]
	[ "$(tail -n 1 "$page")" = "</html>" ]
	[ -z "$(grep -oE ' (src|href)=|https?:|@import|url\([^#]' "$page")" ]
	[ "$(grep -c '<script' "$page")" -eq 1 ]
	[ -z "$(grep '<b>' "$page")" ]
	grep -q 'lt;/script&gt;&lt;b&gt;a&amp;b' "$page"
	grep -qF "$(uname -r)" "$page"
	[ -n "$(command -v jq)" ] || skip "jq is not installed"
	sed -n 's/^<script[^>]*>\(.*\)<\/script>$/\1/p' "$page" | jq -e '
		.report.result == "ok" and .report.roles["load"].total.ops == 1000 and
		(.samples.roles["load"] | length) == 1 and
		.topology.roles.bridge.connects[0].to == "store" and (.machine.cores > 0) and (.config | contains("randrw"))'
}

@test "secrets of the configuration are left out" {
	gantry run "$conf" --report "$page" --set devices.wire.services.password=hush \
		--set 'devices.wire.services.x="nbd://u:hush@h/v"'
	[ "$status" -eq 0 ]
	grep -qF 'password = &quot;(left out)&quot;' "$page"
	[ -z "$(grep hush "$page")" ]
}

@test "a browser shows the values of the data, in a light and in a dark scheme" {
	[ -n "$(command -v chromium)" ] || skip "chromium is not installed"
	gantry run "$conf" --report "$page" --set roles.load.workload.ops=0 \
		--set roles.load.workload.time=2500ms --set roles.load.workload.rate=1000
	[ "$status" -eq 0 ]
	output=$(shown)
	echo "$output"
	[ "$output" = "5 rows, 3 roles, 2 arrows, 11 lines, 3 hops, 4 histograms, light: ." ]
	output=$(shown --blink-settings=preferredColorScheme=0)
	echo "$output"
	[ "$output" = "5 rows, 3 roles, 2 arrows, 11 lines, 3 hops, 4 histograms, dark: ." ]
}

@test "an interrupted run has a page" {
	begin
	alone "" # nothing yet, no temporary file either
	finish
	[ "$status" -eq 3 ]
	alone run.html
	grep -q 'result interrupted' "$page"
}

@test "a run without a session has a page, which shows the roles of other processes" {
	need shm-comch
	[ -n "$(command -v jq)" ] || skip "jq is not installed"
	sed -i "s|transport = \"loop\";.*|transport = \"shm-comch\"; dir = \"$BATS_TEST_TMPDIR/shm\"; }; };|" "$conf"
	gantry run "$conf" --role load --set roles.load.connect.timeout=10ms --report "$page"
	[ "$status" -eq 1 ]
	says "roles.load: no session: "
	[ "$(grep -c 'class="box away"' "$page")" -eq 2 ]
	sed -n 's/^<script[^>]*>\(.*\)<\/script>$/\1/p' "$page" | jq -e '.report.result == "failed" and (.topology.roles |
		.load.here and (.bridge.here | not) and .load.connects[0].to == "bridge" and .bridge.connects[0].to == "store" and
		.bridge.stages == ["stats"] and .store.backend == "memory")'
}

@test "a path that cannot be written: exit status 2, before the run starts" {
	local why='cannot write the report: '
	page=$BATS_TEST_TMPDIR/none/run.html
	gantry run "$conf" --report "$page"
	[ "$status" -eq 2 ]
	[ "${#lines[@]}" -eq 1 ]
	says "gantry: $page: ${why}No such file or directory: name a file in a directory that you can write"
	for path in "$BATS_TEST_TMPDIR/out" "$BATS_TEST_TMPDIR/out/" . "$conf/run.html" ""; do
		gantry run "$conf" --report "$path"
		[ "$status" -eq 2 ]
		[ "${#lines[@]}" -eq 1 ]
		says "gantry: $path: $why"
	done
	gantry run "$conf" --report "$conf"
	[ "$status" -eq 2 ]
	says "gantry: $conf: the file exists and is not a page of HTML: remove it, or name another file"
	grep -q roles "$conf"
	page=$BATS_TEST_TMPDIR/out/run.html
	ln -s "$conf" "$page"
	gantry run "$conf" --report "$page"
	[ "$status" -eq 2 ]
	says "is a symbolic link: name a file"
	gantry run "$conf" --report /dev/null
	[ "$status" -eq 2 ]
	says "/dev/null: is not a regular file: name a file"
	gantry check "$conf" --report "$page"
	[ "$status" -eq 2 ]
	says "unknown option --report"
}

@test "a page that may only be read is not replaced" {
	page=$BATS_TEST_TMPDIR/out/run.html
	echo '<!DOCTYPE html>' >"$page"
	chmod 444 "$page"
	# root may write it, unless it is immutable
	[ ! -w "$page" ] || chattr +i "$page" 2>/dev/null || skip "root, and no immutable files in this file system"
	gantry run "$conf" --report "$page"
	chattr -i "$page" 2>/dev/null || true
	[ "$status" -eq 2 ]
	[ "${#lines[@]}" -eq 1 ]
	says "gantry: $page: cannot write the report: "
	[ "$(cat "$page")" = '<!DOCTYPE html>' ]
}

@test "a directory of another user's link is not followed" {
	[ "$(id -u)" -eq 0 ] || skip "only root can give a link away"
	mkdir -m 1777 "$BATS_TEST_TMPDIR/shared"
	ln -s "$BATS_TEST_TMPDIR/out" "$BATS_TEST_TMPDIR/shared/dir"
	chown -h 65534 "$BATS_TEST_TMPDIR/shared/dir"
	gantry run "$conf" --report "$BATS_TEST_TMPDIR/shared/dir/run.html"
	[ "$status" -eq 2 ]
	says "symbolic link of another user"
	alone ""
}

@test "an error at the end: exit status 1, a message, the report, and no file left" {
	begin
	mkdir "$page"
	finish
	[ "$status" -eq 1 ]
	says "result interrupted"
	says "gantry: $page: the report was not written: Is a directory"
	alone run.html
	rmdir "$page"
	begin
	rmdir "$BATS_TEST_TMPDIR/out"
	finish
	[ "$status" -eq 1 ]
	says "gantry: $page: the report was not written: No such file or directory"
}
