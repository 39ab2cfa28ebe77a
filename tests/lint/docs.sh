#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# docs.sh - the manual matches the program: each plugin has a page, option lists match the tables in the code, and gantry(1) has the
# commands and options of --help
. "$(dirname "$0")/lib.sh"
GANTRY=${GANTRY:-${top_builddir:-$top}/core/gantry}
GANTRY_PLUGINS=${GANTRY_PLUGINS:-${top_builddir:-$top}/plugins/.libs}
export GANTRY GANTRY_PLUGINS

seed()
{
	printf 'GANTRY_PLUGIN([stage],[here])\nGANTRY_PLUGIN([stage],[lonely],[LIBX])\n' | put "$1/configure.ac"
	printf '.\\" options here\nNone.\n.\\" end\n' | put "$1/man/gantry-here.7"
	printf '.\\" options runtime\n.Bl -tag -width Ds\n.El\n.\\" end\n' | put "$1/man/gantry.conf.5"
	printf '.Ss run FILE\n.Ss common options\n.It Fl j , Fl Fl json\n' | put "$1/man/gantry.1"
}

# of_help COMMAND - print its options, one line each: "COMMAND -p --plugin-dir DIR"
of_help()
{
	"$GANTRY" $1 --help | sed -nE 's/^ +((-[a-zA-Z]), )?(--[a-z-]+)( [^ ]+)?( .*)?$/\2 \3\4/p' | sed 's/^ //'
}

# said DIR - print the content of the page: "COMMAND", and "COMMAND OPTION" for each option
said()
{
	$awk '
	/^\.Ss / { command = $2; if (command != "common") print command }
	/^\.It Fl / && command {
		sub(/^\.It /, ""); gsub(/ , Fl Fl /, " --"); gsub(/Fl Fl /, "--"); gsub(/Fl /, "-"); gsub(/Ar /, "")
		print command, $0
	}' "$1/man/gantry.1" | sort
}

# true_of - print the content of --help in the same form; options of all commands belong to "common"
true_of()
{
	of_help "" | sort >"$bad/common"
	sed 's/^/common /' "$bad/common"
	"$GANTRY" --help | sed -n '/^Commands:/,/^$/s/^  *\([a-z-]*\) .*/\1/p' | while read -r command; do
		echo "$command"
		of_help "$command" | grep -vxF -f "$bad/common" | sed "s/^/$command /"
	done
}

check()
{
	sed -n 's/^GANTRY_PLUGIN(\[[a-z]*\],\[\([a-z0-9-]*\)\].*/\1/p' "$1/configure.ac" | while read -r plugin; do
		grep -qsx ".\\\\\" options $plugin" "$1/man/gantry-$plugin.7" ||
			echo "man/gantry-$plugin.7 or its list of options is missing"
	done
	for page in "$1"/man/*.[1357]; do
		sh "$top/man/options.sh" "$page" >"$bad/page"
		cmp -s "$bad/page" "$page" || echo "man/${page##*/}: options differ from the code: run make -C man update-options"
	done
	said "$1" >"$bad/said"
	true_of | sort >"$bad/true"
	diff "$bad/said" "$bad/true" >"$bad/diff" ||
		echo "man/gantry.1 differs from --help: $(grep '^[<>]' "$bad/diff" | head -n 3 | tr '\n' ';')"
}

[ -x "$GANTRY" ] || { echo "1..0 # SKIP gantry is not built"; exit 0; }
run_lint 3 "pages, options and commands match the code"
