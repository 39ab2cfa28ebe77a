# SPDX-License-Identifier: BSD-3-Clause
# judge.awk - converts the rounds of one measure, lines "LIMIT OURS VERDICT LOW HIGH FOREIGN [PEER=VALUE...]", to one line
#	NAME|TEXT|UNIT|LIMIT|MIN|MEDIAN|MAX|SCORE|GOAL|VERDICT|USED|ALL|PEER=MEDIAN ...|BEST PEER|OURS TO IT|GOAL FOR THAT|
#	REGIME|WHY THE OTHERS WERE NOT USED|KIND
# Variables: head (NAME|TEXT|UNIT), kind (of score: ratio, stage or value), goal and peer_goal (<N, >N or empty), want
# (undisturbed rounds), failed (1: a run failed). A peer without a value did not run in that round.
# The rounds with VERDICT cores count, or those with threads if there are too few with cores. Of these, only the largest set whose
# ping-pongs agree counts, because two cores may be near or far. If no set is large enough, all are shown and none is judged.

function score(limit, ours)
{
	if (kind == "ratio")
		return limit ? ours / limit : 0
	if (kind == "stage")
		return (ours - limit) / 4
	return ours
}

function sort(a, n,  i, j, t)
{
	for (i = 2; i <= n; i++) {
		t = a[i]
		for (j = i - 1; j > 0 && a[j] > t; j--)
			a[j + 1] = a[j]
		a[j + 1] = t
	}
}

function median(a, n)
{
	if (!n)
		return 0
	return n % 2 ? a[(n + 1) / 2] : (a[n / 2] + a[n / 2 + 1]) / 2
}

function holds(x, goal,  bound)
{
	bound = substr(goal, 2) + 0
	return goal ~ /^</ ? x <= bound : x >= bound
}

function verdict(x, to_best)
{
	if (failed)
		return "failed"
	if (regime == "")
		return "not measured"
	if (goal != "" && !holds(x, goal) || peer_goal != "" && best != "" && !holds(to_best, peer_goal))
		return "missed"
	return goal != "" || peer_goal != "" && best != "" ? "reached" : ""
}

# four digits, and no exponent for large numbers
function number(x)
{
	return sprintf((x >= 1000 ? "%.0f" : "%.4g"), x)
}

function short(x)
{
	return x >= 1000 ? number(x) : sprintf("%.3g", x)
}

# of peer p: the median of its values, or with `ratio` the median ratio of ours to them; 0 if it never ran
function of_peer(p, ratio,  i, m, values)
{
	m = 0
	split("", values)
	for (i = 1; i <= shown; i++)
		if (round[i, p] > 0)
			values[++m] = ratio ? round[i, "ours"] / round[i, p] : round[i, p]
	sort(values, m)
	return median(values, m)
}

function better(a, b)
{
	return lower_is_better ? a < b : a > b
}

# set best and best_value, return all peers as text
function list_peers(  i, value, text)
{
	for (i = 1; i <= n_peers; i++) {
		value = of_peer(peers[i], 0)
		if (!value)
			continue
		text = text (text == "" ? "" : " ") peers[i] "=" number(value)
		if (best == "" || better(value, best_value)) {
			best = peers[i]
			best_value = value
		}
	}
	return text
}

# keep this line as round number `at` of the shown ones
function keep(at, line,  field, n_fields, part, i)
{
	n_fields = split(line, field, " ")
	round[at, "limit"] = field[1] + 0
	round[at, "ours"] = field[2] + 0
	for (i = 7; i <= n_fields; i++) {
		split(field[i], part, "=")
		round[at, part[1]] = part[2] + 0
		if (!(part[1] in known)) {
			known[part[1]] = 1
			peers[++n_peers] = part[1]
		}
	}
}

BEGIN {
	split(head, part, "|")
	lower_is_better = part[3] ~ /^(s|ns|us|x|%|KiB|ns\/IO)$/
}

# mark the largest set of rounds of that kind whose ping-pongs are within 30 % of that of one of them; returns its size
function agree(kind,  i, j, n, most, centre)
{
	for (i = 1; i <= NR; i++) {
		n = 0
		for (j = 1; j <= NR; j++)
			n += why[i] == kind && why[j] == kind && low[j] <= 1.3 * low[i] && low[i] <= 1.3 * low[j]
		if (n > most) {
			most = n
			centre = low[i]
		}
	}
	for (i = 1; i <= NR; i++)
		used[i] = why[i] == kind && low[i] <= 1.3 * centre && centre <= 1.3 * low[i]
	return most + 0
}

# reason for each round that is not used
function leave(  i, n_why, word)
{
	for (i = 1; i <= NR; i++)
		if (!used[i])
			left[why[i]]++
	n_why = split("busy regime cores threads", word, " ")
	for (i = 1; i <= n_why; i++)
		if (left[word[i]])
			reasons = reasons (reasons == "" ? "" : " ") word[i] "=" left[word[i]]
}

{
	line[NR] = $0
	why[NR] = $3
	low[NR] = $4
}

END {
	regime = agree("cores") >= want ? "cores" : agree("threads") >= want ? "threads" : ""
	for (i = 1; i <= NR; i++) {
		used[i] = regime != "" && used[i]
		if (regime == "" || used[i])
			keep(++shown, line[i])
	}
	leave()
	for (i = 1; i <= shown; i++) {
		limit[i] = round[i, "limit"]
		ours[i] = round[i, "ours"]
		scores[i] = score(limit[i], ours[i])
	}
	sort(limit, shown)
	sort(ours, shown)
	sort(scores, shown)
	x = median(scores, shown)
	text = list_peers()
	to_best = best == "" ? 0 : of_peer(best, 1)
	printf "%s|%s|%s|%s|%s|", head, number(median(limit, shown)), number(ours[1]), number(median(ours, shown)),
		number(ours[shown])
	printf "%s|%s|%s|%d|%d|", short(x), goal, verdict(x, to_best), regime == "" ? 0 : shown, NR
	printf "%s|%s|%s|%s|%s|%s|%s\n", text, best, short(to_best), peer_goal, regime, reasons, kind
}
