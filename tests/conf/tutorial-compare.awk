# SPDX-License-Identifier: BSD-3-Clause
# tutorial-compare.awk - compare the output of a command with the text of gantry-tutorial(7)
#
#	awk -v here=DIR -v lines=1 -f tutorial-compare.awk WANT SEEN
#
# "..." in WANT stands for any number of lines, and at the end of a line for any text. What differs in each run is equal: times,
# rates, process ids, numbers of calls, and the directory DIR, which is /home/me in the page. With lines=0, for a build without
# libdw, the place of a finding is equal, too. Exit status: 0 if they are equal.
function masked(text,  i, at, word, n)
{
	while ((at = index(text, here)) > 0)
		text = substr(text, 1, at - 1) "/home/me" substr(text, at + length(here))
	gsub(/[ \t]+/, " ", text)
	sub(/^ /, "", text)
	sub(/ $/, "", text)
	gsub(/[0-9-]+T[0-9:.]+Z/, "TIME", text)
	gsub(/calls=[0-9]+/, "calls=N", text)
	gsub(/^session [0-9a-f]+ running, peer [0-9]+/, "session ID running, peer PID", text)
	if (!lines)
		sub(/^object created at main \(.*/, "object created at main", text)
	n = split(text, word, " ")
	if (n == 9 && word[1] ~ /^[0-9]+$/) # a role in gantry stat: only its name, its kind and its errors are constant
		return word[2] " " word[3] " " word[9]
	for (i = 1; i <= n; i++)
		sub(/^[0-9.]+(ns|us|ms|s)/, "TIME", word[i])
	if (n >= 8 && word[n] ~ /^(TIME|-)$/ && word[n - 3] ~ /^(TIME|-)$/) # a row of a table: IOPS and bytes/s
		word[n - 5] = word[n - 4] = "RATE"
	text = word[1]
	for (i = 2; i <= n; i++)
		text = text " " word[i]
	return text
}

# whether two lines are equal
function equal(want, seen)
{
	if (want ~ /\.\.\.$/)
		return substr(want, 1, length(want) - 3) == substr(seen, 1, length(want) - 3)
	return want == seen
}

FILENAME == ARGV[1] { want[++n_want] = masked($0); next }
{ seen[++n_seen] = masked($0) }
END {
	w = s = 1
	while (s <= n_seen) {
		if (w <= n_want && want[w] == "...") {
			after = ++w
			next_start = s
		} else if (w <= n_want && equal(want[w], seen[s])) {
			w++
			s++
		} else if (after) {
			# begin one line later after the last "..."
			w = after
			s = ++next_start
		} else {
			exit 1
		}
	}
	while (w <= n_want && want[w] == "...")
		w++
	exit w <= n_want
}
