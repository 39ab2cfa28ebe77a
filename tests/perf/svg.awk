# SPDX-License-Identifier: BSD-3-Clause
# svg.awk - lines of judge.awk to a plot: for each measure a bar for the limit, one for gantry with its extremes, and one for
# each peer. Each measure has its own scale, the largest of its bars is full width. Limit, gantry and peers are told apart by
# hatching, solid and outline, and each bar says who and how much: no colour is needed. Variables: version, quick.
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

# one bar, and what it stands for
function bar(class, who, value, unit, most,  width)
{
	width = most > 0 ? value / most * FULL : 0
	say(LEFT - 8, y + 11, "who", who)
	out = out sprintf("<rect x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"12\" class=\"%s\"/>\n", LEFT, y, width, class)
	say(LEFT + width + 8, y + 11, "value", value " " unit)
	y += 16
}

# from the smallest to the largest of ours, below the bar that was drawn last
function whisker(min, max, most)
{
	if (most > 0 && max > min)
		out = out sprintf("<path d=\"M%.1f %dh%.1f\" class=\"span\"/>\n", LEFT + min / most * FULL, y - 2,
			(max - min) / most * FULL)
}

function largest(  i, part, most)
{
	most = $7 > $4 ? $7 + 0 : $4 + 0
	for (i = 1; i <= n; i++) {
		split(peer[i], part, "=")
		if (part[2] + 0 > most)
			most = part[2] + 0
	}
	return most
}

BEGIN {
	FS = "|"
	LEFT = 120
	FULL = 520
	y = 64
}

{
	n = split($13, peer, " ")
	most = largest()
	goals = ($9 != "" ? ", goal " $9 : "") ($14 != "" ? "; " $15 " of " $14 ($16 != "" ? ", goal " $16 : "") : "")
	say(10, y + 10, "head", $2 ": score " $8 goals ($10 != "" ? ": " $10 : ""))
	y += 16
	if ($4 > 0)
		bar("limit", "limit", $4, $3, most)
	bar("ours", "gantry", $6, $3, most)
	whisker($5, $7, most)
	for (i = 1; i <= n; i++) {
		split(peer[i], part, "=")
		bar("peer", part[1], part[2], $3, most)
	}
	y += 12
}

END {
	printf "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"800\" height=\"%d\" viewBox=\"0 0 800 %d\">\n", y, y
	print "<style>text{font:12px sans-serif;fill:#000}.title{font-size:16px}.head{font-weight:bold}.who{text-anchor:end}" \
		".limit{fill:url(#hatch);stroke:#000}.ours{fill:#444;stroke:#000}.peer{fill:#fff;stroke:#000}" \
		".span{stroke:#000;stroke-width:2;fill:none}</style>"
	print "<defs><pattern id=\"hatch\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\">" \
		"<path d=\"M0 6L6 0\" stroke=\"#000\"/></pattern></defs>"
	printf "<rect width=\"800\" height=\"%d\" fill=\"#fff\"/>\n", y
	printf "<text x=\"10\" y=\"24\" class=\"title\">%s%s</text>\n", text(version), quick == "true" ? " (quick)" : ""
	print "<text x=\"10\" y=\"44\">hatched: limit of the machine; solid: gantry, its extremes below; outlined: others. " \
		"Medians; scales differ.</text>"
	printf "%s</svg>\n", out
}
