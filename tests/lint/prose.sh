#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# prose.sh - comments, manual pages, README, configurations, scripts of the build and lists of tests name the actor and use the
# terms of the field: no banned words
. "$(dirname "$0")/lib.sh"

# Extended regular expressions. The names of tests that a page refers to are not checked, nor is `code`.
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
	printf 'const char *p = "/*"; /* asks somebody, `who` */\nint nobody;\n' | put "$1/tests/unit/base/x.c"
	printf 'nobody # no comment\n# runs\n#	who runs\n' | put "$1/tests/walk/x.sh"
	printf '(* A lane\n   waits for ever.\ncode x.c nobody x\n*)\nnobody\n' | put "$1/tests/models/x.litmus"
	printf 'x.c@s/nobody/x/@a dear call\n' | put "$1/tests/sim/mutants.txt"
	printf '#!/bin/bash\n# waits for ever\nx\n' >"$1/dev"
	printf 'AC_INIT\n# our folder\n' >"$1/configure.ac"
	printf '# who builds\n' | put "$1/m4/gantry_x.m4"
}

# comments FILE... - print the comments of sources in C as "FILE:LINE:TEXT"
comments()
{
	$awk '{
		if (FNR == 1) inside = 0
		text = ""
		if (!inside) gsub(/"([^"\\]|\\.)*"/, "\"\"")
		if (inside || $0 ~ /\/\*/) {
			text = $0
			if (!inside) { sub(/^.*\/\*/, "", text); inside = 1 }
			if (text ~ /\*\//) { sub(/\*\/.*/, "", text); inside = 0 }
			sub(/^[ \t]*\*? ?/, "", text)
		}
		gsub(/`[^`]*`/, "code", text)
		if (text != "") print FILENAME ":" FNR ":" text
	}' "$@"
}

# remarks FILE... - print the comments of scripts, makefiles and litmus tests in the same form
remarks()
{
	$awk '{
		if (FNR == 1) inside = 0
		text = ""
		if (/^(code |weak |\*\))/) inside = 0
		else if (/^\(\*/ || inside) { text = $0; inside = 1 }
		else if (match($0, /(^|[ \t])#+[ \t]/)) text = substr($0, RSTART + RLENGTH)
		sub(/^\(?[* \t]*/, "", text)
		gsub(/`[^`]*`/, "code", text)
		if (text != "") print FILENAME ":" FNR ":" text
	}' "$@"
}

# fields FILE... - print the last fields of lists, which are texts, in the same form: of seeded bugs, and of reasons
fields()
{
	$awk '!/^#/ { sub(/^.*(@|\t| - )/, ""); print FILENAME ":" FNR ":" $0 }' "$@"
}

check()
{
	cd "$1" || return
	# shellcheck disable=SC2046 # lists of words
	{
		comments $(find $(ls -d core plugins clients doca include examples tests 2>/dev/null) -name '*.[ch]' | sort)
		remarks $(ls dev configure.ac m4/gantry_*.m4 2>/dev/null)
		remarks $(find tests -name '*.sh' -o -name '*.bats' -o -name '*.awk' -o -name '*.am' -o -name '*.mk' -o \
			-name Makefile -o -name '*.litmus' -o -name 'mutants*.txt' -o -name packages -o -name budgets -o \
			-name surface | sort)
		fields $(find tests -name 'mutants*.txt' -o -name reasons -o -name unable -o -path '*/errors/*.txt' | sort)
	} | grep -E "$banned"
	for file in README man/*.[1-8]; do
		grep -nE "$banned" "$file" | grep -vE '^[0-9]+:(\.Bq|\.\\")' | sed "s|^|$file:|"
	done
	for file in conf/*.conf; do
		grep -nE "^[^\"]*#.*($banned)" "$file" | sed "s|^|$file:|"
	done
}

run_lint 13 "comments and pages use plain technical English"
