#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# sleeps.sh - tests wait for events, they do not sleep. A line that must sleep says `lint: allowed` and the reason.
. "$(dirname "$0")/lib.sh"

seed()
{
	printf 'int main(void)\n{\n\tusleep(10);\n\tclock_nanosleep(0, 0, &t, 0);\n}\n' | put "$1/tests/walk/x.c"
	printf 'sleep 1\nsleep 1 # lint: allowed, the load itself\nasleep 2\n' | put "$1/tests/cli/x.sh"
}

check()
{
	files "$1" '*.[ch]' '*.sh' '*.bats' | grep -E '^tests/' | grep -vx 'tests/lint/sleeps.sh' | while read -r file; do
		grep -nE '\b(u|nano|clock_nano)?sleep[( ][^)]*[0-9a-z"$&]' "$1/$file" |
			grep -vE 'lint: allowed|^[0-9]+:[[:space:]]*/?\*' | sed "s|^|$file:|"
	done
}

run_lint 3 "no test sleeps"
