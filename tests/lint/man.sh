#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# man.sh - mandoc reports no warnings for the manual pages, also for those that the build has made, and groff, if it is installed,
# formats them in 80 columns
. "$(dirname "$0")/lib.sh"

seed()
{
	printf '.\\" x\n.Dd $Mdocdate$\n.Dt X 1\n.Os\n.Sh NAME\n.Nm x\n.Nd y\n.Xx\n' | put "$1/man/x.1"
	[ -z "$groff" ] || printf '%s\n' '.Dd January 1, 2026' '.Dt Y 1' .Os '.Sh NAME' '.Nm y' '.Nd z' '.Sh DESCRIPTION' \
		'.Bl -column "transport" "struct gantry_transport_ops" "joins processes or machines" -offset indent' \
		'.It transport Ta Vt struct gantry_transport_ops Ta joins processes or machines' .El | put "$1/man/y.1"
}

# pages DIR - print the pages; those of the build with their absolute path
pages()
{
	files "$1" '*.[1-8]'
	[ "$1" != "$top" ] || find "$(cd "${top_builddir:-$top}/man" && pwd)" -name '*.3'
}

check()
{
	pages "$1" | while read -r file; do
		text=$(cd "$1" && mandoc -T lint -W warning "$file") || echo "$text" | head -n 1
		# the last column of a table that is too wide is indented far
		[ -z "$groff" ] || (cd "$1" && groff -mandoc -Tutf8 -wbreak -rLL=78n "$file" 2>&1 >/dev/null) |
			sed "s|^|$file: |" | head -n 1
	done
}

command -v mandoc >/dev/null || { echo "1..0 # SKIP mandoc is not installed"; exit 0; }
groff=$(command -v groff)
[ -n "$groff" ] && seeded=2 || seeded=1
run_lint $seeded "mandoc reports no warnings"
