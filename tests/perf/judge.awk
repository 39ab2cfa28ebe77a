# SPDX-License-Identifier: BSD-3-Clause
# judge.awk - pairs of one measure, lines "LIMIT OURS VERDICT ...", to one line
#	NAME|TEXT|UNIT|LIMIT|MIN|MEDIAN|MAX|SCORE|GOAL|VERDICT|UNDISTURBED|ALL
# Variables: head (NAME|TEXT|UNIT), kind (of score), goal (<N, >N or empty), want (undisturbed pairs), failed (1: a run did).
# Without enough undisturbed pairs the others are shown too, but nothing is judged.

function score()
{
	if (kind == "ratio")
		return $1 ? $2 / $1 : 0
	if (kind == "enough")
		return $2 / ($1 / 5 < 20 ? $1 / 5 : 20)
	if (kind == "stage")
		return ($2 - $1) / 4
	return $2
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

function verdict(x,  bound)
{
	if (failed)
		return "failed"
	if (n < want)
		return "not measured (machine busy)"
	if (goal == "")
		return ""
	bound = substr(goal, 2) + 0
	if (goal ~ /^</)
		return x <= bound ? "reached" : "missed"
	return x >= bound ? "reached" : "missed"
}

$3 == "ok" {
	n++
	limit[n] = $1 + 0
	ours[n] = $2 + 0
	scores[n] = score()
}

$3 != "ok" {
	dropped++
	limit_dropped[dropped] = $1 + 0
	ours_dropped[dropped] = $2 + 0
	score_dropped[dropped] = score()
}

END {
	shown = n
	if (n < want) {
		for (i = 1; i <= dropped; i++) {
			shown++
			limit[shown] = limit_dropped[i]
			ours[shown] = ours_dropped[i]
			scores[shown] = score_dropped[i]
		}
	}
	sort(limit, shown)
	sort(ours, shown)
	sort(scores, shown)
	x = median(scores, shown)
	printf "%s|%.4g|%.4g|%.4g|%.4g|%.3g|%s|%s|%d|%d\n", head, median(limit, shown), ours[1] + 0, median(ours, shown),
		ours[shown] + 0, x, goal, verdict(x), n, n + dropped
}
