#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# dev-results.sh - the summary of ./dev: counts results, lists repeated tests that passed as flaky, and fails a run with too many
#
# The build is a makefile whose scripts pass when they are repeated, except those that the file `broken` names.
. "$top_srcdir/tests/tap.sh"
. "$top_srcdir/tests/dev/results.sh"
cd "$tmp" || exit 1

# fails NAME... - results of a first run in which these scripts failed and walk/good.bats passed
fails()
{
	local name
	rm -rf build tests
	passed=0 failed=0 skipped=0 flaky=() failures=()
	mkdir -p build/x/tests/{walk,cli,unit} tests/{walk,cli,unit}
	: >tests/walk/good.bats
	printf ':test-result: PASS case\n:test-result: SKIP case\n' >build/x/tests/walk/good.trs
	printf 'ok 1 - case\n1..0 # SKIP no device\n' >build/x/tests/walk/good.log
	for name; do
		: >"tests/$name.bats"
		printf ':test-result: PASS\n:test-result: FAIL\n' >"build/x/tests/$name.trs"
		printf 'ok 1 - first\nnot ok 2 - second of %s\nFAIL: %s 2 - second\n# it was late\n' "$name" "$name" \
			>"build/x/tests/$name.log"
	done
	: >broken
	cat >build/x/tests/Makefile <<-'END'
	.RECIPEPREFIX = >
	check:
	>@echo "$(TESTS)" >>../repeated
	>@for name in $(TESTS:.bats=); do \
	>	grep -qx $$name ../../../broken || printf ':test-result: PASS first\n:test-result: PASS second\n' >$$name.trs; \
	>done
	>@! grep -q . ../../../broken
	END
}

# report - repeat, count and print the summary, as a step of ./dev and its end do; leaves the exit status in $rc
report()
{
	repeat_failed x TESTS=all >log
	collect x/tests >>log
	summary >out
	rc=$?
}

fails
report
is "nothing to repeat: nothing is flaky" "1 passed, 0 failed, 1 skipped, 0 flaky" "$(cat out)"
is "the run passes" 0 $rc
is "a skipped case is printed with its reason" 1 "$(grep -c '^skipped: x good.trs: .*no device' log)"

fails walk/kill cli/copy
report
is "repeated tests that pass are listed by name" "flaky: x walk/kill.bats
flaky: x cli/copy.bats
5 passed, 0 failed, 1 skipped, 2 flaky" "$(cat out)"
is "two of them do not fail the run" 0 $rc
is "only failed tests are repeated" "walk/kill.bats cli/copy.bats" "$(cat build/x/repeated)"
is "their first failure is printed" 1 "$(grep -c '^not ok 2 - second of walk/kill' log)"

fails walk/kill walk/quotas cli/copy
report
is "three are listed and counted as a failure" "flaky: x walk/kill.bats
flaky: x walk/quotas.bats
flaky: x cli/copy.bats
FAILED: flaky tests (number=3, limit 2)
failed: flaky tests (number=3, limit 2)
7 passed, 1 failed, 1 skipped, 3 flaky" "$(cat out)"
is "they fail the run" 1 $rc

fails walk/kill cli/copy
echo cli/copy >broken
report
is "a test that fails again is failed, not flaky" "flaky: x walk/kill.bats
failed: x cli/copy 2 - second
4 passed, 1 failed, 1 skipped, 1 flaky" "$(cat out)"
is "it fails the run" 1 $rc

fails
echo ':test-result: FAIL' >build/x/tests/unit/bad.trs
printf 'not ok 1 - case\nFAIL: unit/bad 1 - case\n' >build/x/tests/unit/bad.log
report
is "other tests are not repeated, and are listed by name" "failed: x unit/bad 1 - case
1 passed, 1 failed, 1 skipped, 0 flaky" "$(cat out)"

fails
printf '%s\n' 'ok 1 - 10-first: case' 'not ok 2 - 20-second: case' 'not ok 3 - 20-second: other' 'not ok 4 - 30-third: case' >first
printf '%s\n' 'ok 1 - 20-second: case' 'not ok 2 - 30-third: case' >second
compare_repeated vm first second
summary >out
is "a script of the virtual machine that passes again is flaky" "flaky: vm 20-second" "$(head -n 1 out)"
is "one that fails again is not" 1 "$(grep -c flaky: out)"
done_testing
