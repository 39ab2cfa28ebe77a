#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# prose.sh - comments, manual pages, README and configurations name the actor and use the terms of the field: no banned words
. "$(dirname "$0")/lib.sh"

# Extended regular expressions. The names of tests that a page refers to are not checked.
banned='\b([Nn]obody|[Ss]omebody|[Ww]hoever|[Nn]oone)\b'
banned="$banned|(^|[0-9]:|[.;:,(] )([Ww]ho|[Tt]hose who)\\b"
banned="$banned|\\b(is|are|be|was|were) told\\b|\\b[Hh]ears? (of|from|about)\\b|\\bgood-bye\\b"
banned="$banned|\\bfor ever\\b|\\bdear\\b|\\blets? go of\\b|\\bgiv(es?|en) back\\b|\\ba lot of\\b"
banned="$banned|\\bfolders?\\b|\\b(it|they) likes?\\b|\\bstands? (there|here|in the way|still)\\b"

seed()
{
	printf '/* Nobody reads it. */\nint x; /* the peer is told */\nint y; /* nobody_calls() */\n' | put "$1/core/base/x.c"
	printf '/*\n * The lane stops.\n * Who waits is woken.\n */\n' | put "$1/plugins/x.h"
	printf '.Sh NAME\nThe folder stands there.\n.Bq unit/x " nobody waits\n' | put "$1/man/gantry-x.7"
	printf 'It gives back the memory.\n' >"$1/README"
	printf '# a lot of bytes\nname = "nobody";\n' | put "$1/conf/x.conf"
}

# comments FILE - print the comments of a source in C with line numbers
comments()
{
	$awk '{
		text = ""
		if (inside || $0 ~ /\/\*/) {
			text = $0
			if (!inside) { sub(/^.*\/\*/, "", text); inside = 1 }
			if (text ~ /\*\//) { sub(/\*\/.*/, "", text); inside = 0 }
			sub(/^[ \t]*\*? ?/, "", text)
		}
		if (text != "") print NR ":" text
	}' "$1"
}

check()
{
	cd "$1" || return
	# shellcheck disable=SC2046 # a list of words
	find $(ls -d core plugins clients doca include examples 2>/dev/null) -name '*.[ch]' | sort | while read -r file; do
		comments "$file" | grep -E "$banned" | sed "s|^|$file:|"
	done
	for file in README man/*.[1-8]; do
		grep -nE "$banned" "$file" | grep -vE '^[0-9]+:(\.Bq|\.\\")' | sed "s|^|$file:|"
	done
	for file in conf/*.conf; do
		grep -nE "^[^\"]*#.*($banned)" "$file" | sed "s|^|$file:|"
	done
}

run_lint 6 "comments and pages use plain technical English"
