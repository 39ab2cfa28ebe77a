# SPDX-License-Identifier: BSD-3-Clause
# table.awk - converts lines of judge.awk to a table. Variables: head (1: with the first line).
function row(text, unit, limit, min, ours, max, score, goal, peer, name, to_peer, peer_goal, verdict, rounds)
{
	printf "%-43.43s %-6s %7s %7s %7s %7s %6s %-6s %7s %-9s %6s %-5s %-11s %s\n", text, unit, limit, min, ours, max,
		score, goal, peer, name, to_peer, peer_goal, verdict, rounds
}

# value of the best peer, from PEER=VALUE ...
function best_value(peers, best,  i, n, word, part)
{
	n = split(peers, word, " ")
	for (i = 1; i <= n; i++) {
		split(word[i], part, "=")
		if (part[1] == best)
			return part[2]
	}
	return "-"
}

BEGIN {
	FS = "|"
	if (head)
		row("measure", "unit", "limit", "min", "ours", "max", "score", "goal", "peer", "which", "score", "goal", "verdict",
			"rounds")
}

{
	row($2, $3, $4 + 0 ? $4 : "-", $5, $6, $7, $8, $9, best_value($13, $14), $14, $14 != "" ? $15 : "-", $16,
		($10 == "not measured" ? "not judged" : $10) ($17 == "threads" ? " t" : ""), $11 "/" $12 ($18 != "" ? " " $18 : ""))
}
