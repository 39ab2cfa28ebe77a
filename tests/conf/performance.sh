#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# performance.sh - gantry-performance(7) matches the program: its commands run with the settings of each row of its tables, the
# section of each plugin names all its options, and the tables fit on a terminal
. "$top_srcdir/tests/tap.sh"
chmod 700 "$tmp"
XDG_RUNTIME_DIR=$tmp
export XDG_RUNTIME_DIR
page=$top_srcdir/man/gantry-performance.7 tables=$top_srcdir/tests/perf/tunables.awk

# ran SETTINGS - run `gantry run FILE` with them, shortly and with little memory, since most settings prefault all of it
ran()
{
	(
		cd "$tmp" || exit 1
		set=
		for setting in $1; do set="$set --set $setting"; done
		# shellcheck disable=SC2086 # words
		timeout 60 "$GANTRY" run FILE --plugin-dir "$GANTRY_PLUGINS" $set --set roles.load.workload.ramp=0s \
			--set roles.load.workload.time=10ms --set roles.store.backend.size=16MiB >out 2>&1 &&
			echo OK || { echo "gantry run FILE $set"; cat out; }
	)
}

# named OWNER - the options of that plugin or section that its part of the page does not name
named()
{
	$AWK -v owner="$1" '
	/^\.S[sh] / { inside = index(" " $0 ",", " " owner ",") || index(" " $0 " ", " " owner " "); next }
	inside' "$page" >"$tmp/part"
	"$GANTRY" options --plugin-dir "$GANTRY_PLUGINS" "$1" | sed -n 's/^  \([a-z_.]*\)  *[a-z].*/\1/p' |
		while read -r option; do
			grep -qwF -e "$option" "$tmp/part" || echo "$1: $option"
		done
}

$AWK -v file=1 -f "$tables" "$page" >"$tmp/FILE"
if [ -e "$GANTRY_PLUGINS/shm-comch.so" ] && taskset -c 0,1 true 2>/dev/null; then
	$AWK -f "$tables" "$page" >"$tmp/tables"
	is "there are tables" OK "$([ "$(grep -c '^table' "$tmp/tables")" -gt 0 ] && grep -q '^row' "$tmp/tables" && echo OK)"
	while IFS='|' read -r kind _ settings columns; do
		[ "$kind" = table ] && base=$settings
		[ "$kind" = table ] && settings=
		is "FILE $base $settings" OK "$(ran "$base $settings")"
	done <"$tmp/tables"
else
	skipped commands "they need CPUs 0 and 1, and shm-comch"
fi
for owner in runtime role listen connect $(cd "$GANTRY_PLUGINS" && ls ./*.so | sed 's|./\(.*\)\.so|\1|'); do
	case $owner in *-test* | test-*) continue ;; esac
	missing=$(named "$owner")
	is "all options of $owner are named" OK "${missing:-OK}"
done
if command -v mandoc >/dev/null; then
	wide=$(mandoc -T ascii -O width=78 "$page" | sed 's/.\x08//g' | expand | $AWK 'length($0) > 78')
	is "no line is wider than a terminal" OK "${wide:-OK}"
else
	skipped width "mandoc is missing (Debian: mandoc)"
fi
done_testing
