#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# html.sh SRCDIR VERSION OUT PAGE... - make the manual as HTML in the directory OUT: a file for each manual page, which is in the
# current directory or in SRCDIR, an index of all pages, and the style sheet. The environment has AWK, and in PATHS the commands of
# sed that replace names such as DOCDIR by directories. The output has no date: the same pages give the same files.
srcdir=$1 version=$2 out=$3
shift 3
awk=${AWK:-awk}

# find_page PAGE - print the path of the file
find_page()
{
	[ -e "$1" ] && echo "$1" || echo "$srcdir/$1"
}

# title PAGE - print its name as text refers to it, such as gantry(1)
title()
{
	echo "${1%.*}(${1##*.})"
}

# begin TITLE - print what is above the text of a file
begin()
{
	cat <<-END
	<!DOCTYPE html>
	<html lang="en">
	<head>
	<meta charset="utf-8">
	<meta name="viewport" content="width=device-width, initial-scale=1">
	<meta name="color-scheme" content="light dark">
	<title>$1</title>
	<link rel="stylesheet" href="manual.css">
	</head>
	<body>
	END
}

# end - print what is below the text of a file
end()
{
	printf '<footer>gantry %s</footer>\n</body>\n</html>\n' "$version"
}

# page PAGE - print the page as HTML. mandoc reports warnings, but only an error (3 or more) fails
page()
{
	begin "$(title "$1")"
	printf '<header><a href="index.html">gantry manual</a> <b>%s</b></header>\n<main>\n' "$(title "$1")"
	sed "$PATHS" "$(find_page "$1")" >"$out/$1" || return
	(cd "$out" && mandoc -T html -W warning -I os=gantry -O fragment,toc,man=%N.%S.html "$1" >body)
	[ $? -lt 3 ] || { echo "html.sh: mandoc failed (page=$1)" >&2; return 1; }
	$awk -v pages="$pages" -f "$srcdir/html.awk" "$out/body" || return
	rm "$out/$1" "$out/body"
	echo '</main>'
	end
}

# entry PAGE - print the line of the index: its name and the first sentence of its description
entry()
{
	sed -n 's/&/\&amp;/g; s/</\&lt;/g; s/>/\&gt;/g; s/^\.Nd //p' "$(find_page "$1")" | sed 's/\. .*//' |
		sed "1!d; s|.*|<li><a href=\"$1.html\">$(title "$1")</a> &</li>|"
}

# section NUMBER HEADING PAGE... - print the entries of the pages in that section of the manual, except the tutorial
section()
{
	number=$1
	printf '<h2>%s</h2>\n<ul class="pages">\n' "$2"
	shift 2
	for name; do
		case $name in gantry-tutorial.7) ;; *."$number") entry "$name" || return ;; esac
	done
	echo '</ul>'
}

# index PAGE... - print the index
index()
{
	begin "gantry manual"
	printf '<main>\n<h1>gantry manual</h1>\n'
	printf '<h2>Begin here</h2>\n<ul class="pages">\n' && entry gantry-tutorial.7 && echo '</ul>' || return
	section 1 "Programs" "$@" && section 5 "Configuration" "$@" && section 7 "Concepts and plugins" "$@" &&
		section 3 "Interfaces for programs and plugins" "$@" || return
	echo '</main>'
	end
}

command -v mandoc >/dev/null || { echo "html.sh: mandoc not found (Debian: mandoc): install it" >&2; exit 1; }
pages=$*
mkdir -p "$out" || exit 1
for name; do
	page "$name" >"$out/$name.html" || exit 1
done
index "$@" >"$out/index.html" || exit 1
cat "$srcdir/manual.css" >"$out/manual.css"
