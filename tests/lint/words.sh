#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# words.sh - no notes about open work in comments: open work is an issue
. "$(dirname "$0")/lib.sh"

seed()
{
	printf '/* TO%s: later */\nint x; /* not implemented ye%s */\nint toDO;\n' DO t | put "$1/core/base/x.c"
	printf '# FIX%s\n' ME | put "$1/tests/x.sh"
}

check()
{
	files "$1" '*.[ch]' '*.sh' '*.bats' '*.awk' '*.am' '*.conf' '*.[1-8]' | grep -vE '/(libtool|lt.*)\.m4$' |
		while read -r file; do
			grep -nE '\b(TODO|FIXME|XXX|HACK)\b|not implemented ye[t]' "$1/$file" | sed "s|^|$file:|"
		done | grep -v '^tests/lint/words.sh:'
}

run_lint 3 "no notes about open work"
