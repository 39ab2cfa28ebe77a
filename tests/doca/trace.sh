#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# trace.sh - `gantry doca trace`: the events follow the format of Chrome, and the drawing is XML
. "$top_srcdir/tests/tap.sh"
[ -e "$top_builddir/doca/gantry-doca" ] || skip "libgantry-doca is not built"
command -v jq >/dev/null || skip "jq is not installed"
mkdir -m 700 "$tmp/run"
XDG_RUNTIME_DIR=$tmp/run GANTRY_PLUGIN_PATH=$GANTRY_PLUGINS
export XDG_RUNTIME_DIR GANTRY_PLUGIN_PATH
unset GANTRY_RUNDIR GANTRY_DOCA_CONF GANTRY_DOCA_PROFILE
cases=$top_builddir/tests/doca/check/cases

# has WHAT FILTER - the filter of jq yields true for the trace
has()
{
	jq -L "$top_srcdir/tests" -e "include \"chrome\"; $2" "$tmp/trace.json" >"$tmp/jq.out" 2>&1
	verdict $? "$1" "$tmp/jq.out" "$tmp/trace.json"
}

ok "the program runs" "$GANTRY" doca trace -o "$tmp/trace.json" --svg "$tmp/trace.svg" -- "$cases" chain-in-comch good
has "each event has the fields of its phase" has_fields
has "each context has a name" has_names
has "each slice that ends has begun, not later" has_begins
has "an arrow leads from the send to the receive" '.traceEvents | [.[] | select(.ph == "s")] as $from |
	[.[] | select(.ph == "f")] | length == 1 and all(. as $f | any($from[]; .id == $f.id and .ts <= $f.ts))'
has "times do not decrease" is_sorted
grep -q '^<svg .*' "$tmp/trace.svg" && grep -q '^</svg>$' "$tmp/trace.svg" && grep -q 'class="flow"' "$tmp/trace.svg"
verdict $? "the drawing has the message" "$tmp/trace.svg"
! grep -o '<[a-z][a-z]*' "$tmp/trace.svg" | sort -u | grep -vxE '<(svg|style|text|rect|title|line)' >"$tmp/odd"
verdict $? "the drawing has only known elements" "$tmp/odd"
# a browser lays the drawing out; program names of vendors have up to 33 characters
if command -v chromium >/dev/null; then
	cp "$cases" "$tmp/comch_data_path_high_speed_server2"
	"$GANTRY" doca trace --svg "$tmp/long.svg" -- \
		"$tmp/comch_data_path_high_speed_server2" chain-in-comch good >"$tmp/long.out" 2>&1
	{ echo '<!DOCTYPE html><body>' && cat "$tmp/long.svg" "$top_srcdir/tests/doca/drawing.html"; } >"$tmp/page.html"
	HOME=$tmp timeout 60 chromium --headless --no-sandbox --disable-gpu --disable-dev-shm-usage \
		--user-data-dir="$tmp/profile" --dump-dom "file://$tmp/page.html" 2>"$tmp/browser.err" |
		sed -n 's/.*<pre id="seen">\(.*\)<\/pre>.*/\1/p' >"$tmp/seen"
	is "in a browser, all is visible, and no label touches a bar" "4 labels, 2 bars, 1 lines: " "$(cat "$tmp/seen")"
else
	skipped "in a browser, all is visible, and no label touches a bar" "chromium is not installed"
fi
"$GANTRY" doca trace -- "$cases" chain-in-comch good 2>"$tmp/err"
is "without a file the command is wrong" 2 "$?"
done_testing
