#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# sizes.sh - no file has over 800 lines, no function over 100, no line of C over 100 columns, no line of a script over 132; a tab
# counts as 8. A line of C may be longer for a string, a single name, or an arrow of a diagram.
. "$(dirname "$0")/lib.sh"

seed()
{
	mkdir -p "$1/core/base"
	$awk 'BEGIN { print "int f(void)\n{"; for (i = 0; i < 101; i++) print "\tg();"; print "}" }' >"$1/core/base/long.c"
	$awk 'BEGIN { for (i = 0; i < 801; i++) print "int a" i ";" }' >"$1/core/base/big.c"
	$awk 'BEGIN { printf "\t"; for (i = 0; i < 50; i++) printf "x "; print "" }' >"$1/core/base/wide.c"
}

check()
{
	files "$1" '*.[ch]' '*.sh' '*.awk' '*.bats' | while read -r file; do
		$awk -v file="$file" '
		function width(s,  n, i, c) {
			for (i = 1; i <= length(s); i++)
				n = substr(s, i, 1) == "\t" ? n + 8 - n % 8 : n + 1
			return n
		}
		/^[{]/ { start = NR }
		/^[}]/ && start {
			if (NR - start - 1 > 100) print file ":" start ": function of " NR - start - 1 " lines"
			start = 0
		}
		{ limit = file ~ /[.][ch]$/ ? 100 : 132 }
		limit == 100 && (/"/ || /--/ || NF == 1) { next }
		length($0) > 40 && width($0) > limit { print file ":" NR ": line of " width($0) " columns" }
		END { if (NR > 800) print file ": " NR " lines" }' "$1/$file"
	done
}

run_lint 3 "files, functions and lines stay small enough to read"
