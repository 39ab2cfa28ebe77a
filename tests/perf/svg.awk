# SPDX-License-Identifier: BSD-3-Clause
# svg.awk - converts lines of judge.awk to a plot: for each measure a bar for the limit, one for gantry with extremes and the goal,
# and one for each peer. Each measure has its own scale; its largest bar has the full width. The limit is hatched, gantry solid, a
# peer outlined, and each bar has its name and value, so the plot does not depend on colour. Variables: version, quick.
function text(s)
{
	gsub(/&/, "\\&amp;", s)
	gsub(/</, "\\&lt;", s)
	gsub(/>/, "\\&gt;", s)
	return s
}

function say(x, y, class, s)
{
	out = out sprintf("<text x=\"%d\" y=\"%d\" class=\"%s\">%s</text>\n", x, y, class, text(s))
}

function at(value)
{
	return most > 0 ? value / most * FULL : 0
}

# one bar and its label; the value is printed to the right of the bar and of everything that extends to `end`
function bar(class, who, value, unit, end)
{
	say(LEFT - 8, y + 11, "label", who)
	out = out sprintf("<rect x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"12\" class=\"%s\"/>\n", LEFT, y, at(value), class)
	say(LEFT + at(end > value ? end : value) + 8, y + 11, "value", value " " unit)
	y += 16
}

# the extremes of the last bar, as a line below it
function whisker(min, max)
{
	if (most > 0 && max > min)
		out = out sprintf("<path d=\"M%.1f %dh%.1f\" class=\"span\"/>\n", LEFT + at(min), y - 2, at(max - min))
}

# the goal for ours, in the unit of the bar
function goal_value(  goal)
{
	goal = substr($9, 2) + 0
	if ($9 == "" || $19 == "ratio" && $4 == 0)
		return 0
	return $19 == "ratio" ? goal * $4 : $19 == "stage" ? $4 + 4 * goal : goal
}

# leftmost position of the value of gantry that clears its extremes, and the goal if that is near
function beyond(  goal)
{
	goal = goal_value()
	return goal > $7 && at(goal - $7) < 100 ? goal : $7 + 0
}

# the goal, as a line across the last bar
function mark(value)
{
	if (value > 0)
		out = out sprintf("<path d=\"M%.1f %dv17\" class=\"goal\"/>\n", LEFT + at(value), y - 18)
}

function largest(  i, part, value)
{
	value = $7 > $4 ? $7 + 0 : $4 + 0
	if (goal_value() > value && goal_value() < 3 * value)
		value = goal_value()
	for (i = 1; i <= n; i++) {
		split(peer[i], part, "=")
		if (part[2] + 0 > value)
			value = part[2] + 0
	}
	return value
}

function verdict(  s)
{
	s = $19 == "ratio" && $4 > 0 ? "score " $8 : $19 == "stage" ? $8 " each" : ""
	if ($9 != "")
		s = s (s == "" ? "" : ", ") "goal " $9
	if ($14 != "")
		s = s "; " $15 " of " $14 ($16 != "" ? ", goal " $16 : "")
	if ($10 != "")
		s = s (s == "" ? "" : ": ") $10 ($17 == "threads" ? " (threads)" : "")
	return s
}

BEGIN {
	FS = "|"
	LEFT = 120
	FULL = 600
	RIGHT = 870
	y = 80
}

{
	n = split($13, peer, " ")
	most = largest()
	say(10, y + 10, "head", $2)
	say(RIGHT, y + 10, "verdict" ($10 == "missed" || $10 == "failed" ? " head" : ""), verdict())
	y += 16
	if ($4 > 0)
		bar("limit", "limit", $4, $3)
	bar("ours", "gantry", $6, $3, beyond())
	whisker($5, $7)
	mark(goal_value())
	for (i = 1; i <= n; i++) {
		split(peer[i], part, "=")
		bar("peer", part[1], part[2], $3)
	}
	y += 12
}

END {
	printf "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"880\" height=\"%d\" viewBox=\"0 0 880 %d\">\n", y, y
	print "<style>text{font:12px sans-serif;fill:#000}.title{font-size:16px}.head{font-weight:bold}" \
		".label,.verdict{text-anchor:end}" \
		".limit{fill:url(#hatch);stroke:#000}.ours{fill:#666;stroke:#000}.peer{fill:#fff;stroke:#000}" \
		".span{stroke:#000;stroke-width:2;fill:none}.goal{stroke:#000;stroke-width:3;fill:none}</style>"
	print "<defs><pattern id=\"hatch\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\">" \
		"<path d=\"M0 6L6 0\" stroke=\"#000\"/></pattern></defs>"
	printf "<rect width=\"880\" height=\"%d\" fill=\"#fff\"/>\n", y
	printf "<text x=\"10\" y=\"24\" class=\"title\">%s%s</text>\n", text(version), quick == "true" ? " (quick)" : ""
	print "<text x=\"10\" y=\"44\">hatched: limit of the machine; solid: gantry, its extremes below, its goal across;" \
		" outlined: others.</text>"
	print "<text x=\"10\" y=\"60\">Medians; scales differ. Less is better with s, ns, us, x, %, KiB; more with other units." \
		"</text>"
	printf "%s</svg>\n", out
}
