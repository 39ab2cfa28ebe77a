#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# shell.sh - shellcheck reports no warnings for the scripts. Variables may come from another file, so their use across files is not
# checked.
. "$(dirname "$0")/lib.sh"

seed()
{
	# shellcheck disable=SC2016 # the seeded error
	printf '#!/bin/sh\nfor f in $(ls *.c); do rm $f; done\ncd /tmp\n[ $x = 1 ]\n' | put "$1/tests/x.sh"
}

check()
{
	{
		files "$1" '*.sh' '*.bats'
		(cd "$1" && ls -d dev .ci/run bash-completion/[a-z]* 2>/dev/null)
	} | while read -r file; do
		text=$(cd "$1" && shellcheck -S warning -e SC1091,SC2034,SC2154 -f gcc "$file") || echo "$text" | head -n 1
	done
}

command -v shellcheck >/dev/null || { echo "1..0 # SKIP shellcheck is not installed"; exit 0; }
run_lint 1 "shellcheck reports no warnings"
