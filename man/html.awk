# SPDX-License-Identifier: BSD-3-Clause
# html.awk - adapt the HTML that mandoc makes of a manual page
#
#	awk -v pages='ALL PAGES' -f html.awk FRAGMENT
#
# Names of pages of gantry become links; references to other pages become plain text. The contents become a <nav>. The tables with
# name and date above and below the page are left out.
BEGIN {
	n = split(pages, name, " ")
	for (i = 1; i <= n; i++)
		known[name[i]] = 1
}

# the text without a link around references to pages that are not of gantry
function drop_links(text,  done, link, page)
{
	while (match(text, /<a class="Xr" href="[^"#]*\.html">[^<]*<\/a>/)) {
		link = substr(text, RSTART, RLENGTH)
		done = done substr(text, 1, RSTART - 1)
		text = substr(text, RSTART + RLENGTH)
		page = link
		sub(/^<a class="Xr" href="/, "", page)
		sub(/\.html".*/, "", page)
		if (!(page in known))
			gsub(/<a [^>]*>|<\/a>/, "", link)
		done = done link
	}
	return done text
}

# the text with a link around each name of a page outside of links, such as gantry-stage(3). inside_link is kept between lines
function add_links(text,  done, page, word)
{
	while (match(text, /<[^>]*>|(nbdkit-)?gantry[a-z.-]*\([1-8]\)/)) {
		word = substr(text, RSTART, RLENGTH)
		done = done substr(text, 1, RSTART - 1)
		text = substr(text, RSTART + RLENGTH)
		if (word ~ /^<a /)
			inside_link = 1
		else if (word == "</a>")
			inside_link = 0
		page = word
		gsub(/[()]/, ".", page)
		sub(/\.$/, "", page)
		if (!inside_link && page in known)
			word = "<a class=\"Xr\" href=\"" page ".html\">" word "</a>"
		done = done word
	}
	return done text
}

/^<table class="(head|foot)">/ { in_table = 1 }
in_table { in_table = !/^<\/table>/; next }
/^<h1 class="Sh">TABLE OF CONTENTS<\/h1>/ { print "<nav class=\"toc\" aria-label=\"Contents\">"; in_contents = 1; next }
in_contents && /^<section/ { print "</nav>"; in_contents = 0 }
{ print add_links(drop_links($0)) }
