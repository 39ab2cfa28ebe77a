#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# lib.sh - common functions of the lints. A lint defines
#	seed DIR	write a small tree with errors
#	check DIR	print one line for each error in the tree at DIR
# and calls `run_lint SEEDED WHAT` with the number of these errors. run_lint first proves that the check finds each of them, then
# checks the tree.
top=${top_srcdir:-$(cd "$(dirname "$0")/../.." && pwd)}
awk=${AWK:-awk}

# files DIR NAME... - print files of the project below DIR with one of these names (patterns of find), relative to DIR
files()
{
	root=$1
	shift
	(
		cd "$root" || exit 1
		set -f
		names=
		for name; do names="$names -o -name $name"; done
		# shellcheck disable=SC2046,SC2086 # lists of words
		find $(ls -d core plugins include doca clients tests conf man m4 debian 2>/dev/null) \
			\( -name .libs -o -name .deps -o -name corpus \) -prune -o -type f \( ${names# -o} \) -print | sort
	)
}

# put FILE - write standard input to FILE, and create its directory
put()
{
	mkdir -p "${1%/*}" && cat >"$1"
}

run_lint()
{
	bad=$(mktemp -d) || exit 1
	trap 'rm -rf "$bad"' EXIT
	seed "$bad"
	seen=$(check "$bad" | wc -l)
	echo "1..2"
	if [ "$seen" -eq "$1" ]; then
		echo "ok 1 - the check finds each seeded error"
	else
		echo "not ok 1 - the check finds each seeded error"
		check "$bad" | sed "s|^|# found: |"
		echo "# $seen found, $1 seeded"
	fi
	found=$(check "$top")
	if [ -z "$found" ]; then
		echo "ok 2 - $2"
	else
		echo "not ok 2 - $2"
		echo "$found" | sed 's/^/# /'
	fi
}
