#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# see-also.sh - an installed page names no page in SEE ALSO that is not installed with it
. "$top_srcdir/tests/tap.sh"

# installed PAGE... - make the page as it is installed with these
installed()
{
	"${AWK:-awk}" -v pages='gantry.1 gantry-crc.7 gantry-trace.7' -v installed="$*" -f "$top_srcdir/man/see-also.awk" \
		"$tmp/page" >"$tmp/made"
}

page()
{
	printf '%s\n' '.Sh NAME' '.Xr gantry-trace 7' '.Sh SEE ALSO' "$@" '.Sh HISTORY' 'None.'
}

page '.Xr gantry 1 ,' '.Xr gantry-crc 7 ,' '.Xr gantry-trace 7 ,' '.Xr unix 7' >"$tmp/page"
installed gantry.1 gantry-crc.7 gantry-trace.7
is "all are installed" "$(cat "$tmp/page")" "$(cat "$tmp/made")"
installed gantry.1 gantry-trace.7
is "one in the middle is not" "$(page '.Xr gantry 1 ,' '.Xr gantry-trace 7 ,' '.Xr unix 7')" "$(cat "$tmp/made")"
page '.Xr gantry 1 ,' '.Xr gantry-crc 7 ,' '.Xr gantry-trace 7' >"$tmp/page"
installed gantry.1
is "the last ones are not" "$(page '.Xr gantry 1')" "$(cat "$tmp/made")"

# count INSTALLED - print how many pages differ from their source
count()
{
	all=$(cd "$top_srcdir/man" && echo *.[1357])
	for page in "$top_srcdir"/man/*.[1357]; do
		"${AWK:-awk}" -v pages="$all" -v installed="$1" -f "$top_srcdir/man/see-also.awk" "$page" >"$tmp/page"
		cmp -s "$page" "$tmp/page" || echo "${page##*/}"
	done | wc -l
}
count "$(cd "$top_srcdir/man" && echo *.[1357])" >"$tmp/made"
is "no page changes if all are installed" 0 "$(cat "$tmp/made")"
[ "$(count gantry.1)" -gt 5 ] && echo pages change >"$tmp/made"
is "many pages change if only one is installed" "pages change" "$(cat "$tmp/made")"
done_testing
