#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# metrics.sh - the dashboard, the rules of alerts and the table of gantry-metrics(1) have only metrics and labels that the program
# exports; promtool accepts their expressions, and the rules cause the alerts of alerts-test.yml
. "$top_srcdir/tests/tap.sh"
umask 022
need target gateway initiator memory stats loop
command -v jq >/dev/null || skip "jq is not installed"
dashboard=$top_srcdir/conf/gantry-dashboard.json
alerts=$top_srcdir/conf/gantry-alerts.yml

# export_samples - print the metrics of a process with all kinds of roles, once its initiator has completed IOs
export_samples()
{
	cat >"$tmp/t.conf" <<-END
		runtime = { stat_dir = "$tmp/stat"; };
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
	"$GANTRY" run -p "$GANTRY_PLUGINS" "$tmp/t.conf" >"$tmp/run.out" 2>&1 &
	pid=$!
	until "$GANTRY" stat --dir "$tmp/stat" --openmetrics >"$tmp/samples" 2>"$tmp/errors" &&
		grep -q '^gantry_io_latency_seconds_count{.*stage="0".* [1-9]' "$tmp/samples"; do
		kill -0 $pid || return 1
	done
}

# families - print "NAME TYPE" for each family; the name of a counter has its suffix
families()
{
	sed -n 's/^# TYPE //p' "$tmp/samples" | sed 's/ counter$/_total counter/'
}

# table - print "NAME TYPE LABEL..." for each row of the page
table()
{
	sed -n 's/^\.It Li \(gantry_[a-z_]*\) Ta \([a-z]*\) Ta \(.*\)/\1 \2 \3/p' "$top_srcdir/man/gantry-metrics.1" | tr -d ,
}

# unknown_in FILE - print metrics and labels of the expressions in FILE, one in a line, that the program does not export
unknown_in()
{
	awk '
	function has(text, word) { return index(" " text " ", " " word " ") }
	FILENAME == ARGV[1] { # the table
		labels = " pid config instance job"
		for (i = 3; i <= NF; i++) labels = labels " " $i
		if ($2 != "histogram") { of[$1] = labels; next }
		of[$1 "_bucket"] = labels " le"
		of[$1 "_sum"] = of[$1 "_count"] = labels
		next
	}
	{
		rest = $0
		known = ""
		while (match(rest, /gantry_[a-z_]+/)) {
			name = substr(rest, RSTART, RLENGTH)
			rest = substr(rest, RSTART + RLENGTH)
			if (name in of) known = known of[name]
			else print "metric " name ": " $0
		}
		rest = $0
		while (match(rest, /by \([^)]*\)|[a-z_]+(=~|!=|!~|=)"|\{\{[a-z_]+\}\}|, [a-z_]+\)$/)) {
			n = split(substr(rest, RSTART, RLENGTH), words, /[^a-z_]+/)
			rest = substr(rest, RSTART + RLENGTH)
			for (i = 1; i <= n; i++)
				if (words[i] != "" && words[i] != "by" && !has(known, words[i])) print "label " words[i] ": " $0
		}
	}' "$tmp/table" "$1"
}

# rules_of FILE - print expressions of the dashboard as rules of Prometheus
rules_of()
{
	printf 'groups:\n  - name: dashboard\n    rules:\n'
	sed 's/\$__rate_interval/5m/g; s/"\$[a-z]*"/".*"/g' "$1" | while read -r expr; do
		printf "      - record: x:y\n        expr: '%s'\n" "$expr"
	done
}

export_samples
verdict $? "a process exports samples" "$tmp/run.out" "$tmp/errors"
table >"$tmp/table"
is "the page lists each metric with its type" "$(families)" "$(cut -d ' ' -f 1,2 "$tmp/table")"
# the samples of the process, as expressions
grep -v '^#' "$tmp/samples" | sed 's/"[^"]*"/""/g; s/} .*/}/' | sort -u >"$tmp/expressions"
unknown_in "$tmp/expressions" >"$tmp/unknown"
none "the page lists the labels of each sample" "$tmp/unknown"
for label in role kind op hop stage session device; do
	grep -q "[{,]$label=" "$tmp/expressions"
	verdict $? "a sample has the label $label"
done

ok "the dashboard is JSON" jq -e '.panels | length > 10' "$dashboard"
jq -r '.panels[].targets[] | .expr + "  # " + .legendFormat' "$dashboard" >"$tmp/shown"
jq -r '.templating.list[] | select(.type == "query") | .query.query' "$dashboard" >>"$tmp/shown"
unknown_in "$tmp/shown" >"$tmp/unknown"
none "the dashboard has only metrics and labels that exist" "$tmp/unknown"
sed -n 's/^ *expr: //p' "$alerts" >"$tmp/alerts"
[ "$(wc -l <"$tmp/alerts")" -eq "$(grep -c '^ *- alert:' "$alerts")" ]
verdict $? "each alert has its expression in one line"
unknown_in "$tmp/alerts" >"$tmp/unknown"
none "the alerts have only metrics and labels that exist" "$tmp/unknown"
cut -d ' ' -f 3- "$tmp/table" | tr ' ' '\n' | sort -u >"$tmp/labels"
printf '%s\n' pid config instance >>"$tmp/labels"
grep -o '\$labels\.[a-z_]*' "$alerts" | sed 's/.*\.//' | sort -u | grep -vxFf "$tmp/labels" >"$tmp/unknown"
none "the messages of the alerts have only labels that exist" "$tmp/unknown"
jq -r '[.panels[].id] | length - (unique | length)' "$dashboard" >"$tmp/twice"
is "each panel has its own number" 0 "$(cat "$tmp/twice")"
# seeded: the comparison finds a metric and a label that do not exist
printf '%s\n' 'sum by (rolle) (gantry_held_ops{role=~"x"})' 'rate(gantry_done_ops[5m])' 'gantry_held_ops{hop="link"}' \
	'gantry_held_ops  # {{op}}' >"$tmp/wrong"
unknown_in "$tmp/wrong" >"$tmp/unknown"
is "a metric and labels that do not exist are found" 4 "$(wc -l <"$tmp/unknown")"

if command -v promtool >/dev/null; then
	jq -r '.panels[].targets[].expr' "$dashboard" >"$tmp/exprs"
	rules_of "$tmp/exprs" >"$tmp/dashboard.yml"
	ok "promtool accepts the expressions of the dashboard" promtool check rules "$tmp/dashboard.yml"
	cp "$alerts" "$top_srcdir/tests/conf/alerts-test.yml" "$tmp"
	ok "promtool accepts the alerts" promtool check rules "$tmp/gantry-alerts.yml"
	sed -n '/^A job of Prometheus:/,/^\.Ed/p' "$top_srcdir/man/gantry-metrics.1" | grep -vE '^(\.|A job)' >"$tmp/prometheus.yml"
	ok "promtool accepts the job of the page" promtool check config "$tmp/prometheus.yml"
	ok "samples cause the alerts" promtool test rules "$tmp/alerts-test.yml"
else
	skipped "expressions and alerts" "promtool is not installed"
fi
done_testing
