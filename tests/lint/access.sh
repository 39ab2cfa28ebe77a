#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# access.sh - README and the pages of gantry.conf, roles and network transports state by the same text which peers can open a volume
#
# In a page the text is a list between the lines `.\" access` and `.\" end`; in README it is the paragraph with the same beginning.
. "$(dirname "$0")/lib.sh"
pages="man/gantry.conf.5 man/gantry-target.7 man/gantry-gateway.7 man/gantry-rdma-verbs.7 man/gantry-rxe.7 man/gantry-tcp.7"

seed()
{
	printf '%s\n' What ---- '' 'The transport decides which peers can open a volume:' '- gantry-x(7): all;' \
		'  with auth none only.' '' More |
		put "$1/README"
	for page in $pages; do
		printf '%s\n' '.\" access' 'The transport decides which peers can open a volume:' '.Bl -bullet' .It \
			'.Xr gantry-x 7 :' 'all; with' '.Cm auth' none only. .El '.\" end' | put "$1/$page"
	done
	sed -i 's/all/few/' "$1/man/gantry-target.7"
	sed -i '/access/d' "$1/man/gantry-rxe.7"
}

# one_line - print standard input as one line, with one space between words
one_line()
{
	tr -s ' \t\n' '   ' | sed 's/^ //; s/ $//'
}

# of_page FILE - print the text of a page, without macros
of_page()
{
	"$awk" '$0 == ".\\\" access" { on = 1; next } $0 == ".\\\" end" { on = 0 } on' "$1" |
		sed -E '/^\.(Bl|El)/d; s/^\.It$/-/; s/^\.Xr ([^ ]+) ([0-9])/\1(\2)/; s/^\.[A-Z][a-z] //
			s/ ([.,;:])$/\1/' | one_line
}

of_readme()
{
	"$awk" 'BEGIN { RS = "" } /^The transport decides which peers can open a volume:/ { print }' "$1" | one_line
}

check()
{
	words=$(of_readme "$1/README")
	[ -n "$words" ] || echo "README: no paragraph states which peers can open a volume"
	for page in $pages; do
		[ "$(of_page "$1/$page")" = "$words" ] || echo "$page: the text differs from README: $(of_page "$1/$page")"
	done
}

run_lint 2 "README and pages agree on the peers that can open a volume"
