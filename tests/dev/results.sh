#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# results.sh - results of the steps of ./dev: their numbers, the logs of failed tests, and the tests that were repeated
#
# ./dev reads this file. The current directory is the top of the tree, results are below build/KIND.
#
# A busy machine can exceed the time within which one process must detect the death of another one. Scripts that depend on
# such times are therefore repeated once, alone. A script that then passes is flaky: `summary` lists it, and more than
# flaky_limit of them fail the run.

passed=0 failed=0 skipped=0
durations=() # a line for each step
flaky=() flaky_limit=2
failures=() # a line for each failed result
result_line='^(PASS|FAIL|XFAIL|XPASS|SKIP|ERROR): ' # what make check prints for each case
# what runs the programs of another architecture; empty: this machine runs them
emulator=()

# result pass|fail|skip NAME [REASON] - count one result
result()
{
	case $1 in
	pass) passed=$((passed + 1)) ;;
	fail) failed=$((failed + 1)) failures+=("$2 ${3:-}"); echo "FAILED: $2 ${3:-}" ;;
	skip) skipped=$((skipped + 1)); echo "skipped: $2 ${3:-}" ;;
	esac
}

# print_failures LOG - print what the log of a test has about failed cases; 40 lines of both ends of a long text
print_failures()
{
	awk '
	function show(i) {
		for (i = 1; i <= n; i++)
			if (i <= 40 || i > n - 40)
				print line[i]
			else if (i == 41)
				printf "... %d lines ...\n", n - 80
		n = 0
	}
	/^((PASS|FAIL|XFAIL|SKIP): |ok |1\.\.)/ { next }
	/^not ok / { show() }
	{ line[++n] = $0 }
	END { show() }' "$1" | head -n 400
}

# collect DIR - count the results below build/DIR, and print the skipped tests and the failures
collect()
{
	local trs ok bad skip line
	while read -r trs; do
		ok=$(grep -cE '^:test-result: (PASS|XFAIL)' "$trs")
		skip=$(grep -c '^:test-result: SKIP' "$trs")
		bad=$(grep -cE '^:test-result: (FAIL|ERROR|XPASS)' "$trs")
		passed=$((passed + ok)) skipped=$((skipped + skip)) failed=$((failed + bad))
		[ "$skip" -eq 0 ] || grep -hE '^(SKIP:|1\.\.0 ).*# SKIP' "${trs%.trs}.log" |
			sed "s|^|skipped: ${1%/tests} ${trs##*/}: |"
		[ "$bad" -ne 0 ] || continue
		echo "FAILED: $trs"
		print_failures "${trs%.trs}.log"
		while read -r line; do
			failures+=("${1%/tests} $line")
		done < <(sed -nE 's/^(FAIL|ERROR|XPASS): //p' "${trs%.trs}.log")
	done < <(find "build/$1" -name '*.trs' | sort)
}

# repeat_failed KIND [VARIABLE...] - run the failed scripts of tests/walk and tests/cli in build/KIND once more, one at a time, and
# print what each of them printed the first time. Returns non-zero if there are none, or if one fails again.
repeat_failed()
{
	local kind=$1 dir=build/$1/tests trs name names=() rc
	shift
	while read -r trs; do
		name=${trs#"$dir/"}
		name=${name%.trs}.bats
		[ -f "tests/$name" ] || continue
		names+=("$name")
		echo "repeated: $kind $name, which failed:"
		print_failures "${trs%.trs}.log"
	done < <(grep -lsE '^:test-result: (FAIL|ERROR)' "$dir"/{walk,cli}/*.trs)
	[ ${#names[@]} -gt 0 ] || return 1
	"${emulator[@]}" make -C "$dir" -j1 check "$@" TESTS="${names[*]}" >"build/$kind/repeat.log" 2>&1
	rc=$?
	for name in "${names[@]}"; do
		trs=$dir/${name%.bats}.trs
		[ -f "$trs" ] && ! grep -qE '^:test-result: (FAIL|ERROR)' "$trs" && flaky+=("$kind $name")
	done
	return $rc
}

# failed_scripts LOG - print the scripts of tests/vm with a failed case in this log
failed_scripts()
{
	sed -n 's/^not ok [0-9]* - \([^: ]*\).*/\1/p' "$1" | sort -u
}

# compare_repeated LABEL FIRST SECOND - note the scripts as flaky that failed in log FIRST and passed in log SECOND
compare_repeated()
{
	local name
	while read -r name; do
		flaky+=("$1 $name")
	done < <(comm -23 <(failed_scripts "$2") <(failed_scripts "$3"))
}

# summary - print the durations of the steps, the flaky tests by name, and the numbers of all results. Returns non-zero if the run
# failed.
summary()
{
	[ ${#durations[@]} -eq 0 ] || printf 'step: %s\n' "${durations[@]}"
	[ ${#flaky[@]} -eq 0 ] || printf 'flaky: %s\n' "${flaky[@]}"
	[ ${#flaky[@]} -le $flaky_limit ] || result fail "flaky tests" "(number=${#flaky[@]}, limit $flaky_limit)"
	[ ${#failures[@]} -eq 0 ] || printf 'failed: %s\n' "${failures[@]}"
	echo "$passed passed, $failed failed, $skipped skipped, ${#flaky[@]} flaky"
	[ "$failed" -eq 0 ]
}
