#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# released.sh [keep] - plugins written for each released API version are built against the present headers, unchanged, and loaded:
# the sources below tests/abi/released, or before the first release the examples. Each source states its version before it
# includes a header of gantry. keep: copy the examples to the directory of the newest version; tests/abi/released/README
. "$top_srcdir/tests/tap.sh"
released=$top_srcdir/tests/abi/released
umask 022

# newest - the newest API version of the headers
newest()
{
	sed -n 's/^#define GANTRY_API_NEWEST //p' "$top_srcdir/include/gantry/plugin.h"
}

# examples - the sources of the examples that are plugins
examples()
{
	grep -lE '^GANTRY_PLUGIN\(' "$top_srcdir"/examples/*/*.c
}

# sources - VERSION FILE of each source
sources()
{
	if [ -d "$released/1" ]; then
		for file in "$released"/*/*.c; do
			echo "$(basename "$(dirname "$file")") $file"
		done
	else
		examples | sed "s/^/$(newest) /"
	fi
}

# states VERSION FILE - the source defines this version, and before it includes a header of gantry
states()
{
	$AWK -v version="$1" '
	/^#define GANTRY_API_VERSION / { stated = $3 }
	/^#include <gantry\// { exit }
	END { exit stated != version }' "$2"
}

# build FILE NAME - build the plugin
build()
{
	${CC:-cc} -std=gnu11 -O2 -Wall -Wextra -Werror -fPIC -shared -I"$top_srcdir/include" -o "$tmp/$2.so" "$1"
}

# loads NAME - the program accepts the plugin, opens and closes it
loads()
{
	"$GANTRY" plugins -p "$tmp" "$1" && "$GANTRY" conform --case opens_and_closes "$tmp/$1.so"
}

if [ "${1:-}" = keep ]; then
	dir=$released/$(newest)
	[ ! -e "$dir" ] || { echo "released.sh: $dir exists: raise GANTRY_API_NEWEST first" >&2; exit 2; }
	mkdir "$dir" && examples | while read -r file; do cp "$file" "$dir" || exit 1; done
	exit
fi
sources >"$tmp/sources"
while read -r version file; do
	name=$(basename "$file" .c)
	ok "$name states version $version before the include" states "$version" "$file"
	ok "$name is built with the present headers" build "$file" "$name"
	[ ! -e "$tmp/$name.so" ] || ok "$name is loaded" loads "$name"
done <"$tmp/sources"
ok "each kind is there" [ "$(wc -l <"$tmp/sources")" -ge 5 ]

# faults that must be found: a version after the include, none, and one that the headers do not have
stage=$(examples | grep /stage/)
sed '/^#define GANTRY_API_VERSION/d; s/^#include <errno.h>/#define GANTRY_API_VERSION 1\n&/' "$stage" >"$tmp/late.c"
! states 1 "$tmp/late.c"
verdict $? "a version that is stated too late is found"
sed '/^#define GANTRY_API_VERSION/d' "$stage" >"$tmp/none.c"
! build "$tmp/none.c" none 2>/dev/null
verdict $? "a source without a version is not built"
sed "s/^#define GANTRY_API_VERSION.*/#define GANTRY_API_VERSION $(($(newest) + 1))/" "$stage" >"$tmp/future.c"
! build "$tmp/future.c" future 2>/dev/null
verdict $? "a version that the headers do not have is not built"
done_testing
