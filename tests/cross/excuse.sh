#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# excuse.sh LIST DIR - in the results below DIR, mark failed cases as skipped if the list has them as unable to pass
set -u

# has_failed LOG CASE
has_failed()
{
	awk -v end=" $2" '/^FAIL: / && substr($0, length - length(end) + 1) == end { found = 1 } END { exit !found }' "$1"
}

while IFS='	' read -r name case reason; do
	trs=$2/$name.trs log=$2/$name.log
	[ -n "$reason" ] && [ -f "$trs" ] && has_failed "$log" "$case" || continue
	sed -i '0,/^:test-result: FAIL/s//:test-result: SKIP/' "$trs"
	echo "SKIP: $name $case # SKIP $reason" >>"$log"
	# the summary of bats that a test has failed
	grep -q '^:test-result: FAIL' "$trs" || sed -i 's/^:test-result: ERROR/:test-result: PASS/' "$trs"
done <"$1"
