#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Seed bugs into copies of the product's files, and count how many schedules of the component level find each.
#
#	tests/sim/mutants-component.sh BUILD OUT [SCHEDULES [PATTERN]]
#
# BUILD: a configured tree; OUT: where tests/sim/component.mk has built the component level. mutants-component.txt has a bug on
# each line: PART@FILE below plugins or core@SED@MODELS@TEXT. MODELS is `any`, or `late`: the bug needs store buffers, so the
# sequentially consistent model must not find it. Exit status 1: a bug is not found, or a wrong model finds it.
build=$1 out=$2 n=${3:-100000} pattern=${4:-}
top=$(cd "$(dirname "$0")/../.." && pwd)
tmp=$(mktemp -d) || exit 2
trap 'rm -rf "$tmp"' EXIT
failed=0

mkdir "$tmp/src"
cp -a "$top/plugins" "$top/core" "$tmp/src"
cp -a "$out" "$tmp/out"
cd "$top" || exit 2

compile() {
	make -f tests/sim/component.mk BUILD="$build" OUT="$tmp/out" FROM="$tmp/src" component >"$tmp/make.log" 2>&1
}

# how many of n schedules are bad
bad() {
	"$tmp/out/component" "$1" 1 "$n" -m "$2" 2>/dev/null | sed -n 's/.* schedules, \([0-9]*\) bad.*/\1/p'
}

printf '%7s %7s %7s  of %s schedules\n' sc tso pso "$n"
while IFS=@ read -r part file edit models text; do
	case $part in '' | '#'*) continue ;; esac
	case "$part: $text" in *"$pattern"*) ;; *) continue ;; esac
	path=$file
	[ -e "$top/$path" ] || path=plugins/$file
	sed "$edit" "$top/$path" >"$tmp/src/$path"
	if cmp -s "$top/$path" "$tmp/src/$path"; then
		echo "NO CHANGE: $part: $text"
		failed=1
		continue
	fi
	if compile; then
		sc=$(bad "$part" sc) tso=$(bad "$part" tso) pso=$(bad "$part" pso)
		verdict=
		[ "$models" = any ] && [ "${sc:-0}" = 0 ] && verdict="NOT FOUND WITH SC: "
		[ "$models" = late ] && [ "${sc:-1}" != 0 ] && verdict="FOUND WITH SC: "
		[ "${tso:-0}" = 0 ] && [ "${pso:-0}" = 0 ] && [ "${sc:-0}" = 0 ] && verdict="NOT FOUND: "
		[ -n "$verdict" ] && failed=1
		printf '%7s %7s %7s  %s%s: %s\n' "$sc" "$tso" "$pso" "$verdict" "$part" "$text"
	else
		echo "DOES NOT COMPILE: $part: $text"
		cat "$tmp/make.log"
		failed=1
	fi
	cp "$top/$path" "$tmp/src/$path"
done <"$top/tests/sim/mutants-component.txt"
exit $failed
