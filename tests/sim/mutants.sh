#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Let the simulation look for each seeded bug of mutants.txt, and print the first seed that fails.
#
#	tests/sim/mutants.sh [doca] BUILD OUT LAST [PATTERN]
#
# doca: the scenarios of ./dev sim doca, and the bugs of mutants-doca.txt.
# BUILD: a configured tree; OUT: where tests/sim/Makefile has built the simulation; LAST: the seeds are 1 to LAST; PATTERN: only
# bugs whose text matches it. No file of the tree is changed: the script puts a bug into a copy, OUT/mutant.c, and builds
# OUT/mutant.so from it. For bugs whose text begins with "guest:" only scenarios with a guest run; for "rbd:" and "nbd:" only those
# with this backend, with the seeds 1 to 10 * LAST.
# PAUSE=COMMAND in the environment runs COMMAND before each bug. Exit status 1: a bug is not found, cannot
# be applied or does not compile.
kind=""
[ "$1" != doca ] || { kind=doca; shift; }
build=$1 out=$2 last=$3 pattern=${4:-.}
sim=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$sim/../.." && pwd)
missed=0
trap 'rm -f "$out"/mutant.*' EXIT
while IFS=@ read -r file expression what; do
	[[ $file == '#'* || -z $file || ! $what =~ $pattern ]] && continue
	[ -z "${PAUSE:-}" ] || until $PAUSE; do :; done
	sed "$expression" "$top/$file" >"$out/mutant.c"
	if cmp -s "$top/$file" "$out/mutant.c"; then
		echo "NOT APPLIED | $what ($file)"
		missed=1
		continue
	fi
	if ! make -s -f "$sim/Makefile" BUILD="$build" OUT="$out" SOURCE="$file" "$out/mutant.so" >"$out/mutant.log" 2>&1; then
		echo "DOES NOT COMPILE | $what ($file)"
		cat "$out/mutant.log"
		missed=1
		continue
	fi
	only="" to=$last
	# one run of 30 has each of the backends rbd and nbd
	case $what in guest:*) only=--guests ;; rbd:* | nbd:*) only=--${what%%:*} to=$((10 * last)) ;; esac
	# a crash or hang of a worker counts as found, too
	found=$("$out/system" --image "$out/mutant.so" $kind "1-$to" $only -j "${JOBS:-2}" --first 2>/dev/null |
		sed -n 's/^seed //p; s/^a worker has/&/p' | head -n 1)
	[ -n "$found" ] || missed=1
	echo "${found:-NOT FOUND} | $what"
done <"$sim/mutants${kind:+-$kind}.txt"
exit $missed
