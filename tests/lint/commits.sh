#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# commits.sh - each commit after the one that tests/lint/commits-after names has a subject `area: summary` of at most 72 characters
# without a full stop, and a body if it changes more than 20 lines. Skipped without git or without that commit.
. "$(dirname "$0")/lib.sh"

# commit DIR SUBJECT [BODY] - make a commit that changes 21 lines
commit()
{
	seq 21 | sed "s/^/$2 /" >"$1/file"
	git -C "$1" add file
	git -C "$1" -c user.name=x -c user.email=x@x commit -q -m "$2" ${3:+-m "$3"}
}

seed()
{
	git -C "$1" init -q
	commit "$1" 'area: first'
	git -C "$1" rev-parse HEAD | put "$1/tests/lint/commits-after"
	commit "$1" 'area: change it' 'Problem, cause, change.'
	commit "$1" 'Change it' 'No area.'
	commit "$1" 'area: change it again.' 'A full stop.'
	commit "$1" 'area: change it and state all that was ever known about it in one long line' 'Too long.'
	commit "$1" 'area: change it without a body'
}

check()
{
	git -C "$1" log --no-merges --no-renames --shortstat --format='%x00%h%n%s%n%b%x01' \
		"$(cat "$1/tests/lint/commits-after").." |
		tr '\n\000' '\001\n' | $awk -F '\001' 'NF > 2 {
			hash = $1; subject = $2; lines = 0; body = 0
			for (i = 3; i <= NF; i++) {
				if ($i ~ /^ [0-9]+ files? changed/) {
					n = split($i, word, ", ")
					for (k = 2; k <= n; k++) lines += word[k] + 0
				} else if ($i != "") body = 1
			}
			if (length(subject) > 72) print hash ": subject of " length(subject) " characters: " subject
			if (subject !~ /^[A-Za-z0-9_.*\/-]+(, [A-Za-z0-9_.*\/-]+)*: /) print hash ": no area: " subject
			if (subject ~ /\.$/) print hash ": full stop: " subject
			if (lines > 20 && !body) print hash ": no body (lines=" lines ", limit 20): " subject
		}'
}

if ! git -C "$top" cat-file -e "$(cat "$top/tests/lint/commits-after")" 2>/dev/null; then
	echo "1..0 # SKIP no git history"
	exit 0
fi
run_lint 4 "commits have a subject and a body of the required form"
