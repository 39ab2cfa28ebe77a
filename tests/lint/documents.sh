#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# documents.sh - all objects that documents for maintainers name exist: files, commands of ./dev, make and gantry, options, keys of
# the configuration, functions, identifiers, manual pages, and links. Each document is shipped, and each decision is listed.
#
# Checked in the whole text: ./dev COMMAND, FUNCTION(), PAGE(7), [text](link). Checked in `code` and in indented lines: paths
# below the directories of the tree, --options, make and gantry commands. Checked only as a whole `code`: a file name, an
# identifier, `struct NAME`, `PREFIX_*`, and a key such as `listen.uids`. Names in capitals such as KIND or NAME are placeholders.
. "$(dirname "$0")/lib.sh"

seed()
{
	printf 'case ${1:-help} in\nbuild) cmd_build ;;\nasan | tsan) cmd_sanitize ;;\nesac\n' | put "$1/dev"
	printf 'int here_it_is(void)\n{\n\treturn 0;\n}\n' | put "$1/core/base/x.c"
	printf '\t{"run", "FILE", "run it"},\n\t{"json", 0, NULL, 0},\n' | put "$1/core/cli/main.c"
	printf '%s\n' '.\" options listen' '.It Cm uids Pq string' '.\" end' | put "$1/man/gantry.conf.5"
	printf 'EXTRA_DIST = doc/good.md doc/bad.md doc/architecture.md doc/decisions/0001-here.md\n' | put "$1/Makefile.am"
	printf 'update-x:\n\ttrue\n' | put "$1/man/Makefile.am"
	printf 'int main(void)\n' | put "$1/tests/unit/base/x.c"
	printf '# 1. Here\n' | put "$1/doc/decisions/0001-here.md"
	printf '1. [Here](decisions/0001-here.md)\n' | put "$1/doc/architecture.md"
	cat <<-'END' | put "$1/doc/good.md"
		`core/base/x.c`, `x.c`, `core/*/x.c`, `core/base/`, `plugins/KIND/NAME.c`, `./dev tsan`, `make -C build/gcc check`,
		`make -C build/gcc/man update-x`, `gantry run FILE --json`, `listen.uids`, `roles.store.listen.uids`, here_it_is(),
		`here_it_is`, `here_*`, gantry.conf(5), open(2), [a link](architecture.md#x), `./dev`, [one](https://example.org/)

		    make -C build/gcc/tests check check_PROGRAMS=unit/base/x TESTS=unit/base/x
	END
	cat <<-'END' | put "$1/doc/bad.md"
		`core/base/gone.c`
		`gone.c`
		`./dev gone`
		`make -C build/gcc gone`
		`make -C build/gcc/gone check`
		`gantry gone FILE`
		`gantry run FILE --gone`
		`listen.gone`
		gone_it_is()
		`gone_it_is`
		`struct gone_it_is`
		`gone_*`
		gantry-gone(7)
		[a link](gone.md)

		    make check TESTS=unit/base/gone
		    ./dev gone
	END
	printf '# not shipped\n' | put "$1/SECURITY.md"
	printf '# 2. Not shipped, not listed\n' | put "$1/doc/decisions/0002-gone.md"
}

documents()
{
	(cd "$1" && ls -d doc/*.md doc/decisions/*.md CONTRIBUTING.md SECURITY.md NEWS tests/README.md 2>/dev/null)
}

# sources PATTERN - print matches in sources of the current directory, except this file, which names missing objects
sources()
{
	# --include must come first, otherwise grep also reads files that no option matches
	# shellcheck disable=SC2046 # a list of words
	grep -rhoE --include='*.[ch]' --include='*.sh' --include='*.bats' --include='*.am' --include='*.m4' --include='*.ac' \
		--include='*.map' --include=dev --exclude=documents.sh -- "$1" \
		$(ls -d core plugins include doca clients tests man m4 dev configure.ac 2>/dev/null)
}

# known DIR - print "KIND NAME" of each object of the tree in DIR
known()
(
	cd "$1" || exit 1
	# shellcheck disable=SC2046 # a list of words
	find $(ls -d [A-Z]* core plugins include doca clients tests conf man m4 doc bash-completion dev configure.ac 2>/dev/null) \
		-not -path '*/.*' | sed 's/^/path /'
	sources '[A-Za-z_][A-Za-z0-9_]*' | sort -u | sed 's/^/word /'
	sources '[A-Za-z_][A-Za-z0-9_]*\)?\(' | tr -d '()' | sort -u | sed 's/^/call /'
	sources '(^|[ [(])--[a-z][a-z-]*' | sed 's/.*--/option --/' | sort -u
	sources '\{"[a-z-]+", [0-9a-z_]+, ' | sed 's/^{"\([^"]*\)".*/option --\1/'
	sources '#[[:space:]]*include <[^>]*>' | sed 's/.*<\(.*\)>/header \1/' | sort -u
	sed -n '/^case ${1:-help} in/,/^esac/s/^\([a-z][a-z |-]*\)).*/\1/p' dev | tr -s '| ' '\n\n' | sed 's/^/dev /'
	sed -n 's/^[[:space:]]*{"\([a-z-]*\)", ".*/command \1/p' core/cli/main.c
	sed -n 's|^reference += |path man/|p' man/Makefile.am
	# shellcheck disable=SC2046 # a list of words
	grep -rhoE --include='*.am' '^[a-z][a-z-]*( [a-z-]+)*:' $(ls -d Makefile.am [a-z]*/Makefile.am tests 2>/dev/null) |
		tr -d : | tr ' ' '\n' | sed 's/^/target /'
	printf 'target %s\n' all check install clean dist distcheck
	$awk '/^\.\\" options / { section = $3 } /^\.It Cm / { print "key " section "." $3 }' man/gantry.conf.5
)

# Reads the lines of `known`, then the documents. Prints a line for each name that does not exist.
judge='
function bug(text) { print FILENAME ":" FNR ": there is no " text }
function has(kind, name) { return (kind " " name) in tree }
function is_pattern(name) { return name ~ /\*/ }
# a name in which * matches any characters
function matches(kind, name,  all, i, n) {
	if (!is_pattern(name)) return has(kind, name)
	gsub(/[.]/, "[.]", name)
	gsub(/\*/, ".*", name)
	n = split(names[kind], all, "\n")
	for (i = 1; i <= n; i++) if (all[i] ~ ("^" name "$")) return 1
	return 0
}
function path(name) {
	if (name ~ /(^|[^A-Z])(KIND|NAME|FILE|DIR|MODULE|HEADER)([^A-Z]|$)/) return
	sub(/\/$/, "", name)
	if (!matches("path", name)) bug("file " name)
}
# a program or script of tests/
function test(name) {
	if (!has("path", "tests/" name) && !has("path", "tests/" name ".c")) bug("test " name)
}
function make(text,  word, i, n, dir) {
	n = split(text, word, " ")
	dir = ""
	for (i = 2; i <= n; i++) {
		if (word[i] == "-C") {
			dir = word[++i]
			sub(/^build\/[a-z]*\/?/, "", dir)
			if (dir != "" && !has("path", dir "/Makefile.am")) bug("directory " dir " with a Makefile.am")
		} else if (word[i] == "-f") path(word[++i])
		else if (word[i] ~ /^(TESTS|check_PROGRAMS)=/) {
			sub(/^[^=]*=/, "", word[i])
			if (word[i] != "") test(word[i])
		} else if (word[i] ~ /^[a-z][a-z-]*$/ && !has("target", word[i])) bug("target " word[i])
	}
}
# part of a line that is code
function code(text,  rest, name) {
	if (text ~ /^make( |$)/) make(text)
	if (match(text, /^gantry [a-z][a-z-]*/)) {
		name = substr(text, 8, RLENGTH - 7)
		if (!has("command", name)) bug("command gantry " name)
	}
	for (rest = text; match(rest, /--[a-z][a-z-]*/); rest = substr(rest, RSTART + RLENGTH)) {
		name = substr(rest, RSTART, RLENGTH)
		if (substr(rest, RSTART - 1, 1) !~ /-/ && !has("option", name)) bug("option " name)
	}
	for (rest = text; match(rest, /[A-Za-z0-9_.\/*-]+/); rest = substr(rest, RSTART + RLENGTH)) {
		name = substr(rest, RSTART, RLENGTH)
		if (name ~ /^(core|plugins|include|doca|clients|tests|conf|man|m4|doc|bash-completion)\//) path(name)
	}
}
# a whole code span
function span(text,  name) {
	code(text)
	sub(/^(struct|enum) /, "", text)
	sub(/=$/, "", text)
	if (text ~ /^[A-Za-z0-9_-]+\.(c|h|sh|am|ac|md|txt|bats|awk|list|litmus|mk)$/) {
		if (!(text in base) && !has("header", text) && !has("path", text)) bug("file " text)
	} else if (match(text, /(^|\.)(listen|connect|runtime)\.[a-z_]+$/)) {
		name = substr(text, RSTART)
		sub(/^\./, "", name)
		if (!has("key", name)) bug("key " name)
	} else if (text ~ /^[A-Za-z_][A-Za-z0-9_]*\*?$/ && text !~ /^[A-Z]$/) {
		if (!matches("word", text) && !has("path", text)) bug("name " text)
	}
}
function link(target,  dir) {
	sub(/#.*/, "", target)
	if (target == "" || target ~ /^[a-z]+:/) return
	dir = FILENAME
	if (!sub(/\/[^\/]*$/, "", dir)) dir = ""
	while (target ~ /^\.\.\//) {
		sub(/^\.\.\//, "", target)
		if (!sub(/\/[^\/]*$/, "", dir)) dir = ""
	}
	if (dir != "") target = dir "/" target
	if (!has("path", target)) bug("file " target)
}
FILENAME == "-" {
	name = $0
	sub(/^[a-z]* /, "", name)
	tree[$0]
	if ($1 == "word" || $1 == "path") names[$1] = names[$1] name "\n"
	if ($1 == "path") {
		sub(/.*\//, "", name)
		base[name]
	}
	next
}
{
	for (rest = $0; match(rest, /\.\/dev [a-z]+/); rest = substr(rest, RSTART + RLENGTH))
		if (!has("dev", substr(rest, RSTART + 6, RLENGTH - 6))) bug("command " substr(rest, RSTART, RLENGTH))
	for (rest = $0; match(rest, /[A-Za-z_][A-Za-z0-9_]*\(\)/); rest = substr(rest, RSTART + RLENGTH))
		if (!has("call", substr(rest, RSTART, RLENGTH - 2))) bug("function " substr(rest, RSTART, RLENGTH))
	for (rest = $0; match(rest, /(nbdkit-)?gantry[a-z.-]*\([1-8]\)/); rest = substr(rest, RSTART + RLENGTH)) {
		page = substr(rest, RSTART, RLENGTH - 3) "." substr(rest, RSTART + RLENGTH - 2, 1)
		if (!has("path", "man/" page)) bug("page man/" page)
	}
	for (rest = $0; match(rest, /\]\([^)]*\)/); rest = substr(rest, RSTART + RLENGTH))
		link(substr(rest, RSTART + 2, RLENGTH - 3))
	if ($0 ~ /^    /) {
		text = $0
		sub(/^ +/, "", text)
		code(text)
	}
	n = split($0, part, "`")
	for (i = 2; i <= n; i += 2) span(part[i])
}'

check()
{
	known "$1" | sort -u >"$bad/known"
	# shellcheck disable=SC2046 # a list of words
	(cd "$1" && $awk "$judge" - $(documents .) <"$bad/known")
	documents "$1" | while read -r file; do
		case $file in
		tests/*) list=$1/tests/Makefile.am name=${file#tests/} ;;
		*) list=$1/Makefile.am name=$file ;;
		esac
		grep -qE "^EXTRA_DIST.*[ =]$name( |\$)" "$list" || echo "$file is not shipped"
		[ "${file#doc/decisions/}" = "$file" ] || grep -qF "(decisions/${file##*/})" "$1/doc/architecture.md" ||
			echo "$file is not listed in doc/architecture.md"
	done
}

run_lint 20 "all objects that the documents name exist"
