#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# results.sh - what bench.sh makes of its rounds, on fixed input: the judge, the table, JSON and the plot
here=$top_srcdir/tests/perf
. "$top_srcdir/tests/tap.sh"
LC_ALL=C
export LC_ALL

# judged HEAD KIND GOAL PEER-GOAL WANT FAILED - of the rounds on standard input
judged()
{
	awk -v head="$1" -v kind="$2" -v goal="$3" -v peer_goal="$4" -v want="$5" -v failed="$6" -f "$here/judge.awk"
}

# the ratios of the rounds are 2, 2.2 and 3, that of the medians would be 2.5; the busy round would change everything
rounds='100 200 cores 120 121 0 slow=800 quick=500
100 250 busy 500 121 40 slow=1 quick=1
100 300 cores 120 121 0 slow=900 quick=400
200 440 cores 120 121 0 slow=700 quick=600'
is "median of the ratios of the rounds, without those that were disturbed" \
	"$(echo "$rounds" | judged "a|b c|ns" ratio "<2.5" "" 2 "")" \
	"a|b c|ns|100|200|300|440|2.2|<2.5|reached|3|4|slow=800 quick=500|quick|0.733||cores|busy=1|ratio"
is "a goal is missed on its other side" \
	"$(echo "$rounds" | judged "a|b c|ns" ratio "<2.1" "" 2 "" | cut -d'|' -f10)" "missed"
is "with a rate more is better, of peers too" \
	"$(echo "$rounds" | judged "a|b c|kIO/s" ratio ">2.2" ">0.3" 2 "" | cut -d'|' -f10,13-)" \
	"reached|slow=800 quick=500|slow|0.333|>0.3|cores|busy=1|ratio"
is "the goal to the best peer counts as well" \
	"$(echo "$rounds" | judged "a|b c|kIO/s" ratio ">2.2" ">0.4" 2 "" | cut -d'|' -f10)" "missed"
is "a peer that failed in a round, and one that always did" \
	"$(printf '1 2 cores 1 1 0%s\n' " x=4" "" " y=0" | judged "a|b|ns" ratio "" ">1" 1 "" | cut -d'|' -f8-)" \
	"2||missed|3|3|x=4|x|0.5|>1|cores||ratio"
is "without any peer its goal is none" \
	"$(printf '1 2 cores 1 1 0\n' | judged "a|b|ns" ratio "" ">9" 1 "" | cut -d'|' -f8-)" "2|||1|1|||0|>9|cores||ratio"
is "too few undisturbed rounds: all are shown, nothing is judged" \
	"$(echo "$rounds" | judged "a|b c|ns" ratio "<9" "" 4 "" | cut -d'|' -f6,10-12,17-18)" \
	"275|not measured|0|4||busy=1 cores=3"
threads='10 15 threads 50 50 0
10 16 threads 50 50 0
10 17 regime 120 50 0'
is "where there is but one core, its threads are compared" \
	"$(echo "$threads" | judged "a|b|ns" ratio "<1.6" "" 2 "" | cut -d'|' -f6,8-12,17-18)" \
	"15.5|1.55|<1.6|reached|2|3|threads|regime=1"
is "two cores go before two threads, and they are not mixed" \
	"$(printf '%s\n' "$rounds" "$threads" | judged "a|b|ns" ratio "<1.6" "" 2 "" | cut -d'|' -f6,8-12,17-18)" \
	"300|2.2|<1.6|missed|3|7|cores|busy=1 regime=1 threads=2"
far='10 30 cores 300 310 0
10 30 cores 310 320 0
10 20 cores 60 61 0
10 22 cores 61 62 0
10 24 cores 62 63 0'
is "cores that are near and cores that are far are not mixed: the more count" \
	"$(echo "$far" | judged "a|b|ns" ratio "<2.5" "" 3 "" | cut -d'|' -f6,8-12,17-18)" "22|2.2|<2.5|reached|3|5|cores|cores=2"
is "a run that failed" "$(printf '' | judged "a|b|ns" ratio "<9" "" 1 1 | cut -d'|' -f4-12)" "0|0|0|0|0|<9|failed|0|0"
is "a stage costs a quarter of four" "$(printf '10 22 cores\n' | judged "a|b|ns/IO" stage "<4" "" 1 "" | cut -d'|' -f8-10)" \
	"3|<4|reached"
is "large numbers have no exponent" \
	"$(printf '12345 33333 cores 1 1 0 x=123456\n' | judged "a|b|ns" value "" "" 1 "" | cut -d'|' -f4-8,13)" \
	"12345|33333|33333|33333|33333|x=123456"
is "a value is judged by itself" "$(printf '0 22 cores\n' | judged "a|b|%" value "<22" "" 1 "" | cut -d'|' -f8-10)" "22|<22|reached"

cat >"$tmp/results" <<'END'
rtt|there & "back" <64 B>|ns|100|200|300|440|2.2|<2.5|reached|3|4|slow=800 quick=500|quick|0.733|>0.5|threads|busy=1|ratio
one|no limit, nobody else|kIO/s|0|5|5|5|5||not measured|0|1|||0|||busy=1|value
END
is "the table" "$(awk -v head=1 -f "$here/table.awk" "$tmp/results" | sed 's/  */ /g; s/ $//')" \
	'measure unit limit min ours max score goal peer which score goal verdict rounds
there & "back" <64 B> ns 100 200 300 440 2.2 <2.5 500 quick 0.733 >0.5 reached t 3/4 busy=1
no limit, nobody else kIO/s - 5 5 5 5 - - not judged 0/1 busy=1'

# to FORMAT - the results written so
to()
{
	awk -v quick=true -v version='gantry "1"' -v cpus=0,1 -v absent='a;b "c"' -f "$here/$1.awk" "$tmp/results"
}

to json >"$tmp/json"
if command -v jq >/dev/null; then
	is "JSON: what stands around the measures" "$(jq -c 'del(.measures)' "$tmp/json")" \
		'{"schema":3,"version":"gantry \"1\"","quick":true,"cpus":"0,1","absent":["a","b \"c\""]}'
	is "JSON: a measure" "$(jq -c '.measures[0]' "$tmp/json")" \
		'{"name":"rtt","text":"there & \"back\" <64 B>","unit":"ns","limit":100,"min":200,"median":300,"max":440,'\
'"score":2.2,"goal":"<2.5","verdict":"reached","peers":{"slow":800,"quick":500},"best_peer":"quick","to_best_peer":0.733,'\
'"peer_goal":">0.5","rounds":3,"regime":"threads","dropped":{"busy":1}}'
	is "JSON: a measure without peers" "$(jq -c '.measures[1].peers, (.measures | length)' "$tmp/json" | paste -sd' ' -)" "{} 2"
else
	skipped JSON "jq is missing (Debian: jq)"
fi

to svg >"$tmp/svg"
is "plot: a bar for limit, ours and each peer, the longest of a measure in full width" \
	"$(sed -n 's/.* width="\([0-9.]*\)" height="12" class="\([a-z]*\)".*/\2 \1/p' "$tmp/svg" | paste -sd' ' -)" \
	"limit 75.0 ours 225.0 peer 600.0 peer 375.0 ours 600.0"
is "plot: from the smallest to the largest of ours" \
	"$(sed -n 's/.*path d="\([^"]*\)" class="span".*/\1/p' "$tmp/svg")" \
	"M270.0 126h180.0"
is "plot: the goal, in the unit of ours" \
	"$(sed -n 's/.*path d="\([^"]*\)" class="goal".*/\1/p' "$tmp/svg")" \
	"M307.5 110v17"
is "plot: text is text" \
	"$(grep -c '>there &amp; "back" &lt;64 B&gt;<' "$tmp/svg")" 1
is "plot: the verdict" "$(sed -n 's/.*class="verdict">\(.*\)<.*/\1/p' "$tmp/svg")" \
	"score 2.2, goal &lt;2.5; 0.733 of quick, goal &gt;0.5: reached (threads)
not measured"
is "plot: what is opened is closed" "$(grep -o '<[a-z/][^>]*>' "$tmp/svg" | awk '
	/\/>$/ { next }
	/^<\// { if (stack[depth--] != substr($0, 3, length($0) - 3)) bad++; next }
	{ sub(/^</, ""); sub(/[ >].*/, ""); stack[++depth] = $0 }
	END { print depth + 0, bad + 0 }')" "0 0"
done_testing
