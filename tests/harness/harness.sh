#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# harness.sh - a failing test is reported as such: runs a program with known verdicts and checks its TAP output
. "$top_srcdir/tests/tap.sh"
tests=$top_srcdir/tests
program=$top_builddir/tests/harness/verdicts

# count PATTERN - lines of $out that match
count()
{
	echo "$out" | grep -cE "$1"
}

# filtered LINES - the output of the filter for a program that prints this
filtered()
{
	printf '%s\n' "$@" | "${AWK:-awk}" -f "$tests/unity2tap.awk"
}

out=$(sh "$tests/run-unity.sh" "$program")
pairs=$(count '^ok [0-9]+ - passes_')
is "the program has assertions" yes "$([ "$pairs" -ge 20 ] && echo yes)"
is "each false assertion is a failure" "$pairs" "$(count '^not ok [0-9]+ - fails_')"
is "no true assertion is a failure" 0 "$(count '^not ok [0-9]+ - passes_')"
is "a skip keeps its reason" 1 "$(count '^ok [0-9]+ - skips_with_a_reason # SKIP .*no such device')"
is "the plan counts all of them" 1 "$(count "^1\\.\\.$((pairs * 2 + 1))\$")"

out=$(sh "$tests/run-unity.sh" "$program" abort 2>/dev/null)
is "a crash is a failure" 1 "$(count '^not ok [0-9]+ - ran to its end \(exit status 134\)')"
is "a crash loses no result before it" "$pairs" "$(count '^not ok [0-9]+ - fails_')"
is "the plan counts the crash" 1 "$(count "^1\\.\\.$((pairs * 2 + 2))\$")"

is "a program that ends early is a failure" "not ok 2 - ran to its end (exit status 0)" \
	"$(filtered a.c:1:t:PASS 'exit status 0' | grep not)"
is "an exit status without a failed test is a failure" "not ok 2 - exit status 1" \
	"$(filtered a.c:1:t:PASS '1 Tests 0 Failures 0 Ignored' 'exit status 1' | grep not)"
is "exit status 77 is a skip" "1..0 # SKIP the program cannot run on this machine" "$(filtered 'exit status 77')"
is "output of the program is a comment" "# ok 1 - forged" "$(filtered 'ok 1 - forged' 'exit status 77' | grep forged)"

out=$(sh -c '. "$top_srcdir/tests/tap.sh"; ok a true; ok b false; is c 1 2; none d "$0"; skipped e why; done_testing' "$0")
is "false cases of a script are failures" 3 "$(count '^not ok [2-4] - [b-d] ')"
is "a skipped case keeps its reason" 1 "$(count '^ok 5 - e # SKIP why$')"
done_testing
