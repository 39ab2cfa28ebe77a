#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# results.sh - what bench.sh makes of its rounds, on fixed input: the judge, the table, JSON and the plot
here=$top_srcdir/tests/perf
tmp=$(mktemp -d "${TMPDIR:-/tmp}/gantry-results.XXXXXX") || exit 1
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' INT TERM HUP
LC_ALL=C
export LC_ALL
n=0

# is WHAT GOT WANTED - one line of TAP
is()
{
	n=$((n + 1))
	if [ "$2" = "$3" ]; then
		echo "ok $n - $1"
	else
		echo "not ok $n - $1"
		printf '# got:    %s\n# wanted: %s\n' "$2" "$3"
	fi
}

# judged HEAD KIND GOAL PEER-GOAL WANT FAILED - of the rounds on standard input
judged()
{
	awk -v head="$1" -v kind="$2" -v goal="$3" -v peer_goal="$4" -v want="$5" -v failed="$6" -f "$here/judge.awk"
}

# the ratios of the rounds are 2, 2.2 and 3, that of the medians would be 2.5; the busy round would change everything
rounds='100 200 ok 120 121 0 slow=800 quick=500
100 250 busy 500 121 40 slow=1 quick=1
100 300 ok 120 121 0 slow=900 quick=400
200 440 ok 120 121 0 slow=700 quick=600'
is "median of the ratios of the rounds, without those that were disturbed" \
	"$(echo "$rounds" | judged "a|b c|ns" ratio "<2.5" "" 2 "")" \
	"a|b c|ns|100|200|300|440|2.2|<2.5|reached|3|4|slow=800 quick=500|quick|0.733|"
is "a goal is missed on its other side" \
	"$(echo "$rounds" | judged "a|b c|ns" ratio "<2.1" "" 2 "" | cut -d'|' -f10)" "missed"
is "with a rate more is better, of peers too" \
	"$(echo "$rounds" | judged "a|b c|kIO/s" ratio ">2.2" ">0.3" 2 "" | cut -d'|' -f10,13-)" \
	"reached|slow=800 quick=500|slow|0.333|>0.3"
is "the goal to the best peer counts as well" \
	"$(echo "$rounds" | judged "a|b c|kIO/s" ratio ">2.2" ">0.4" 2 "" | cut -d'|' -f10)" "missed"
is "a peer that failed in a round, and one that always did" \
	"$(printf '1 2 ok 1 1 0 x=4\n1 2 ok 1 1 0\n1 2 ok 1 1 0 y=0\n' | judged "a|b|ns" ratio "" ">1" 1 "" | cut -d'|' -f8-)" \
	"2||missed|3|3|x=4|x|0.5|>1"
is "without any peer its goal is none" \
	"$(printf '1 2 ok 1 1 0\n' | judged "a|b|ns" ratio "" ">9" 1 "" | cut -d'|' -f8-)" "2|||1|1|||0|>9"
is "too few undisturbed rounds: all are shown, nothing is judged" \
	"$(echo "$rounds" | judged "a|b c|ns" ratio "<9" "" 4 "" | cut -d'|' -f6,10-12)" "275|not measured (machine busy)|3|4"
is "a run that failed" "$(printf '' | judged "a|b|ns" ratio "<9" "" 1 1 | cut -d'|' -f4-12)" "0|0|0|0|0|<9|failed|0|0"
is "a stage costs a quarter of four" "$(printf '10 22 ok\n' | judged "a|b|ns/IO" stage "<4" "" 1 "" | cut -d'|' -f8-10)" \
	"3|<4|reached"
is "large numbers have no exponent" \
	"$(printf '12345 33333 ok 1 1 0 x=123456\n' | judged "a|b|ns" value "" "" 1 "" | cut -d'|' -f4-8,13)" \
	"12345|33333|33333|33333|33333|x=123456"
is "a value is judged by itself" "$(printf '0 22 ok\n' | judged "a|b|%" value "<22" "" 1 "" | cut -d'|' -f8-10)" "22|<22|reached"

cat >"$tmp/results" <<'END'
rtt|there & "back" <64 B>|ns|100|200|300|440|2.2|<2.5|reached|3|4|slow=800 quick=500|quick|0.733|>0.5
one|no limit, nobody else|kIO/s|0|5|5|5|5||not measured (machine busy)|1|1|||0|
END
is "the table" "$(awk -v head=1 -f "$here/table.awk" "$tmp/results" | sed 's/  */ /g; s/ $//')" \
	'measure unit limit min ours max score goal peer which score goal verdict rounds
there & "back" <64 B> ns 100 200 300 440 2.2 <2.5 500 quick 0.733 >0.5 reached 3/4
no limit, nobody else kIO/s - 5 5 5 5 - - not judged 1/1'

# to FORMAT - the results written so
to()
{
	awk -v quick=true -v version='gantry "1"' -v cpus=0,1 -v absent='a;b "c"' -f "$here/$1.awk" "$tmp/results"
}

to json >"$tmp/json"
if command -v jq >/dev/null; then
	is "JSON: what stands around the measures" "$(jq -c 'del(.measures)' "$tmp/json")" \
		'{"schema":2,"version":"gantry \"1\"","quick":true,"cpus":"0,1","absent":["a","b \"c\""]}'
	is "JSON: a measure" "$(jq -c '.measures[0]' "$tmp/json")" \
		'{"name":"rtt","text":"there & \"back\" <64 B>","unit":"ns","limit":100,"min":200,"median":300,"max":440,'\
'"score":2.2,"goal":"<2.5","verdict":"reached","peers":{"slow":800,"quick":500},"best_peer":"quick","to_best_peer":0.733,'\
'"peer_goal":">0.5","rounds":3,"dropped":1}'
	is "JSON: a measure without peers" "$(jq -c '.measures[1].peers, (.measures | length)' "$tmp/json" | paste -sd' ' -)" "{} 2"
else
	n=$((n + 1))
	echo "ok $n - JSON # SKIP jq is missing (Debian: jq)"
fi

to svg >"$tmp/svg"
is "plot: a bar for limit, ours and each peer, the longest of a measure in full width" \
	"$(sed -n 's/.* width="\([0-9.]*\)" height="12" class="\([a-z]*\)".*/\2 \1/p' "$tmp/svg" | paste -sd' ' -)" \
	"limit 65.0 ours 195.0 peer 520.0 peer 325.0 ours 520.0"
is "plot: from the smallest to the largest of ours" \
	"$(sed -n 's/.*path d="\([^"]*\)" class="span".*/\1/p' "$tmp/svg")" \
	"M250.0 110h156.0"
is "plot: text is text" \
	"$(grep -c '>there &amp; "back" &lt;64 B&gt;: score 2.2, goal &lt;2.5; 0.733 of quick, goal &gt;0.5: reached<' \
		"$tmp/svg")" 1
is "plot: what is opened is closed" "$(grep -o '<[a-z/][^>]*>' "$tmp/svg" | awk '
	/\/>$/ { next }
	/^<\// { if (stack[depth--] != substr($0, 3, length($0) - 3)) bad++; next }
	{ sub(/^</, ""); sub(/[ >].*/, ""); stack[++depth] = $0 }
	END { print depth + 0, bad + 0 }')" "0 0"
echo "1..$n"
