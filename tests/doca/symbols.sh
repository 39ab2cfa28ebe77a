#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# symbols.sh - libgantry-doca.so exports exactly the functions that its headers declare, among them all that known programs use
. "$top_srcdir/tests/tap.sh"
lib=$top_builddir/doca/.libs/libgantry-doca.so
headers=$top_srcdir/include/doca
list=$top_srcdir/tests/doca/symbols.txt
[ -e "$lib" ] || skip "libgantry-doca is not built"

# joined FILE... - print the files, with each declaration joined up to the name of its function
joined()
{
	awk '/^(DOCA_[A-Z]+|static inline) / && !/[(]/ { first = $0; getline; $0 = first " " $0 } { print }' "$@"
}

# declared FILE... - print the functions of headers that the library must export
declared()
{
	joined "$@" | sed -nE 's/^DOCA_(STABLE|EXPERIMENTAL|DEPRECATED) [^(]*[ *](doca_[a-z0-9_]+)\(.*/\2/p' | sort -u
}

# in_place FILE... - print the inline functions of the headers
in_place()
{
	joined "$@" | sed -nE 's/^static inline [^(]*[ *](doca_[a-z0-9_]+)\(.*/\1/p' | sort -u
}

declared "$headers"/*.h "$headers"/workq/*.h >"$tmp/declared"
in_place "$headers"/*.h >"$tmp/inline"
nm -D --defined-only "$lib" | awk '{ print $NF }' | sort -u >"$tmp/exported"
grep -v '^#' "$list" | sort -u >"$tmp/used"

printf 'DOCA_STABLE const char *doca_one(void);\nDOCA_EXPERIMENTAL doca_error_t\ndoca_two(\n\t\tint a);\n' >"$tmp/seeded.h"
printf 'doca_one\ndoca_two\n' >"$tmp/seeded"
declared "$tmp/seeded.h" | diff - "$tmp/seeded" >"$tmp/out"
none "declarations are found" "$tmp/out"
[ "$(wc -l <"$tmp/used")" -eq 339 ] && [ "$(wc -l <"$tmp/declared")" -gt 600 ] || echo "a list is too short" >"$tmp/out"
none "the lists are whole" "$tmp/out"
sort -u "$tmp/declared" "$tmp/inline" | comm -13 - "$tmp/used" >"$tmp/out"
none "what known programs use is declared" "$tmp/out"
grep -v '^doca_' "$tmp/exported" >"$tmp/out"
none "nothing but doca_* is exported" "$tmp/out"
comm -13 "$tmp/declared" "$tmp/exported" | grep '^doca_' >"$tmp/out"
none "what is exported is declared" "$tmp/out"
sort -u "$tmp/exported" "$tmp/inline" | comm -13 - "$tmp/used" >"$tmp/out"
none "what known programs use is exported" "$tmp/out"
comm -23 "$tmp/declared" "$tmp/exported" >"$tmp/out"
none "what is declared is exported" "$tmp/out"
nm -D --undefined-only "$lib" | awk '$NF ~ /^(gd|gn|doca)_/ { print $NF }' >"$tmp/out"
none "nothing of our own is missing" "$tmp/out"
done_testing
