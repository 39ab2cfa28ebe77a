#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# html.sh - the manual as HTML: each manual page is made without a warning and is in the index, each link resolves, the HTML is
# valid, a browser shows it on a narrow screen, and it can be installed
. "$top_srcdir/tests/tap.sh"
command -v mandoc >/dev/null || skip "mandoc is not installed"
unset MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES
html=$tmp/html

# man_make ARGUMENT... - make in the directory of the manual, with the HTML in $html
man_make()
{
	${MAKE:-make} -s -C "$top_builddir/man" V=0 manual="$html" "$@"
}

# pages - print the files that the manual must have: one for each manual page
pages()
{
	for page in "$top_srcdir"/man/*.[1-8] "$top_builddir"/man/*.3; do
		echo "${page##*/}.html"
	done | sort -u
}

# links FILE... - print each link as "FILE TARGET"
links()
{
	$AWK '{
		name = FILENAME
		sub(/.*\//, "", name)
		for (rest = $0; match(rest, /(href|src)="[^"]*"/); rest = substr(rest, RSTART + RLENGTH)) {
			target = substr(rest, RSTART, RLENGTH)
			gsub(/^[a-z]*="|"$/, "", target)
			print name, target
		}
	}' "$@"
}

# dangling FILE... - print the links that lead to no file, or to no place in the file
dangling()
{
	links "$@" | sort -u | while read -r from target; do
		file=${target%%#*}
		[ -f "$html/${file:-$from}" ] || { echo "$from: $target"; continue; }
		case $target in *'#'*) grep -qF "id=\"${target#*#}\"" "$html/${file:-$from}" || echo "$from: $target" ;; esac
	done
}

# browse [OPTION] - print what a browser shows of the manual
browse()
{
	HOME=$tmp timeout 100 chromium --headless --no-sandbox --disable-gpu --disable-dev-shm-usage \
		--allow-file-access-from-files --user-data-dir="$tmp/profile" --virtual-time-budget=60000 "$@" \
		--dump-dom "file://$html/frames.html" 2>"$tmp/browser.err" | sed -n 's/.*<pre id="seen">\(.*\)<\/pre>.*/\1/p'
}

man_make html >"$tmp/made" 2>"$tmp/warnings"
verdict $? "make html makes the manual" "$tmp/made" "$tmp/warnings"
none "without a warning" "$tmp/warnings"
pages >"$tmp/pages"
is "each page has a file" "$(cat "$tmp/pages")" "$(cd "$html" && printf '%s\n' *.html | grep -vx 'index\.html')"
sed -n 's/^<li><a href="\([^"]*\)">[^<]*<\/a> ..*<\/li>$/\1/p' "$html/index.html" >"$tmp/index"
is "the index has each page once, with its description" "$(cat "$tmp/pages")" "$(sort "$tmp/index")"
is "the tutorial is the first one" gantry-tutorial.7.html "$(head -n 1 "$tmp/index")"
dangling "$html"/*.html >"$tmp/dangling"
none "each link resolves" "$tmp/dangling"
links "$html"/gantry.1.html >"$tmp/links"
ok "pages have links to others" grep -qx 'gantry.1.html gantry.conf.5.html' "$tmp/links"
links "$html"/gantry-stage.3.html >"$tmp/links"
ok "a page that is named in the text is a link" grep -qx 'gantry-stage.3.html gantry-io.3.html' "$tmp/links"
ok "pages of other programs are plain text" grep -q '[^>]flock(2)[^<]' "$html/gantry-file.7.html"
grep -lE '(INCLUDE|LIB|DOC|DATA)DIR' "$html"/*.html >"$tmp/names"
none "directories are those of the installation" "$tmp/names"
if command -v tidy >/dev/null; then
	tidy -q -e "$html"/*.html >"$tmp/tidy" 2>&1
	none "the HTML is valid" "$tmp/tidy"
else
	skipped "the HTML is valid" "tidy is not installed"
fi
(html=$tmp/again && TZ=Asia/Tokyo man_make html) >"$tmp/made" 2>&1
ok "it is made in the same way again" diff -r "$html" "$tmp/again"
ok "make install-html installs it" man_make install-html DESTDIR="$tmp/root"
installed=$(find "$tmp/root" -name index.html)
ok "all of it" diff -r "$html" "${installed%/index.html}"
ok "make uninstall removes it" man_make uninstall DESTDIR="$tmp/root"
is "completely" "" "$(find "$tmp/root" -type f)"
${MAKE:-make} -n -C "$top_builddir" install DESTDIR="$tmp/root" >"$tmp/install" 2>&1
grep -E 'mandoc|html\.sh' "$tmp/install" >"$tmp/needs"
none "make install does not need mandoc" "$tmp/needs"
PATH=$tmp /bin/sh "$top_srcdir/man/html.sh" "$top_srcdir/man" 1 "$tmp/none" gantry.1 2>"$tmp/message"
is "without mandoc it fails with a remedy" "1 html.sh: mandoc not found (Debian: mandoc): install it" "$? $(cat "$tmp/message")"
if command -v chromium >/dev/null; then
	cat "$top_srcdir/tests/conf/html-frames.html" >"$html/frames.html"
	number=$(wc -l <"$tmp/pages")
	is "a browser shows all pages on a narrow screen" "$number pages, rgb(27, 31, 36) on rgb(255, 255, 255): " "$(browse)"
	is "and dark if the reader prefers that" "$number pages, rgb(225, 228, 232) on rgb(21, 24, 28): " \
		"$(browse --blink-settings=preferredColorScheme=0)"
else
	skipped "a browser shows all pages" "chromium is not installed"
fi
done_testing
