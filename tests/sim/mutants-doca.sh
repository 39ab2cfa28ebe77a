#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# mutants-doca.sh BUILD OUT LAST [PATTERN] - let `./dev sim doca` look for each bug of mutants-doca.txt in the seeds 1 to LAST, and
# print the first seed that fails. Ends with 1 if a bug is not found.
build=$1 out=$2 last=$3 pattern=${4:-.}
sim=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$sim/../.." && pwd)
missed=0
while IFS=@ read -r file expression what; do
	[[ $file == '#'* || ! $what =~ $pattern ]] && continue
	sed "$expression" "$top/$file" >"$out/mutant.c"
	if cmp -s "$top/$file" "$out/mutant.c"; then
		echo "not applied: $what ($file)"
		missed=1
		continue
	fi
	if ! make -s -f "$sim/Makefile" BUILD="$build" OUT="$out" SOURCE="$file" "$out/mutant.so" >"$out/mutant.log" 2>&1; then
		echo "does not compile: $what ($file)"
		missed=1
		continue
	fi
	found=$("$out/system" --image "$out/mutant.so" doca "1-$last" -j 2 --first 2>/dev/null |
		sed -n 's/^seed //p; s/^a worker has/&/p' | head -n 1)
	[ -n "$found" ] || missed=1
	echo "${found:-NOT FOUND} | $what"
done <"$sim/mutants-doca.txt"
exit $missed
