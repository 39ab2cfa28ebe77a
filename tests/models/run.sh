#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# run.sh [TEST...] - runs the litmus tests of this directory: no execution of a test reaches its condition `exists`, and each weaker
# variant of the test has an execution that reaches it
#
# The comment of a test names the modelled code and the weaker variants:
#	code FILE FUNCTION TEXT		the function of that file contains the text: tests/lint/models.sh checks it
#	weak EDIT			a script of sed that weakens a fence or access
# litmus.c explores the tests. If herd7 is installed, it also checks the tests without membarrier(). A fence without a test has a
# line in `reasons`.
src=${top_srcdir:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/models
litmus=${top_builddir:-$src/../../build/gcc}/tests/models/litmus
. "$src/../tap.sh"

# explored FILE - Yes: an execution reaches the condition; No: none does
explored()
{
	"$litmus" "$1" | cut -d' ' -f1
}

# herd FILE - the same by herd7, which does not support membarrier(2)
herd()
{
	herd7 -model rc11.cat "$1" 2>&1 | sed -n 's/^\(Yes\|No\)$/\1/p; s/^Ok$/Yes/p' | tail -n 1
}

# variant FILE EDIT - apply the edit to a copy of the file, below its comment
variant()
{
	sed "1,/^\*)/!{
$2
}" "$1" >"$tmp/weak.litmus"
	! cmp -s "$1" "$tmp/weak.litmus"
}

# check RUNNER FILE NAME
check()
{
	is "$3: $1: $(sed -n 's/^(\* //p' "$2")" No "$($1 "$2")"
	grep '^weak ' "$2" | cut -d' ' -f2- >"$tmp/edits"
	ok "$3: has a variant" grep -q . "$tmp/edits"
	while IFS= read -r edit; do
		if variant "$2" "$edit"; then
			is "$3: $1: weaker: $edit" Yes "$($1 "$tmp/weak.litmus")"
		else
			is "$3: $edit" changed "no change"
		fi
	done <"$tmp/edits"
}

for file in "$src"/*.litmus; do
	name=$(basename "$file" .litmus)
	[ $# -eq 0 ] || case " $* " in *" $name "*) ;; *) continue ;; esac
	check explored "$file" "$name"
	! command -v herd7 >/dev/null || grep -q 'membarrier();' "$file" || check herd "$file" "$name"
done
command -v herd7 >/dev/null || skipped "the same by herd7" "herd7 is not installed"
done_testing
