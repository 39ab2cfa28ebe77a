#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# man.sh - mandoc has nothing to say about our manual pages
. "$(dirname "$0")/lib.sh"

seed()
{
	printf '.\\" x\n.Dd $Mdocdate$\n.Dt X 1\n.Os\n.Sh NAME\n.Nm x\n.Nd y\n.Xx\n' | put "$1/man/x.1"
}

check()
{
	files "$1" '*.[1-8]' | while read -r file; do
		text=$(cd "$1" && mandoc -T lint -W warning "$file") || echo "$text" | head -n 1
	done
}

command -v mandoc >/dev/null || { echo "1..0 # SKIP mandoc is not installed"; exit 0; }
run_lint 1 "mandoc has nothing to say"
