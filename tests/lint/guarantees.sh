#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# guarantees.sh - in gantry-guarantees(7), each sentence with a promise names an existing test, and each default matches
# gantry.conf(5)
#
# A sentence ends with `.Bq FILE . \" CASE | CASE`, a row of a table with `Ta Bq FILE \" CASE`. Further tests of a sentence are in
# lines `.Bq FILE \" CASE` before the last one. FILE is a test without `tests/` and its suffix. CASE is a function that a test
# program runs, or a title of a script.
. "$(dirname "$0")/lib.sh"
page=man/gantry-guarantees.7

seed()
{
	printf 'int main(void)\n{\n\tRUN_TEST(test_here);\n\t/* test_gone */\n}\n' | put "$1/tests/walk/c.c"
	printf '@test "a title" {\n' | put "$1/tests/walk/b.bats"
	printf '%s\n' '.\" options connect' '.It Cm resume Pq time' 'Default "0s".' '.\" end' | put "$1/man/gantry.conf.5"
	cat <<-'END' | put "$1/$page"
		.Sh DESCRIPTION
		Promises nothing.
		.Sh GOOD
		It holds
		.Bq walk/c \" test_here
		.Bq walk/b . \" a title
		In each case:
		.Bl -column "row"
		.It Em event Ta Em test
		.It row Ta Bq walk/b \" a title
		.El
		.Sh BAD
		It names no test.
		It has
		.Fn no_test .
		It holds one. And another one
		.Bq walk/c . \" test_here
		It does not end
		.Bq walk/c \" test_here
		.Pp
		It is in no file
		.Bq walk/gone . \" test_here
		It is not run
		.Bq walk/c . \" test_here | test_gone
		It has another title
		.Bq walk/b . \" a titl
		It has no case
		.Bq walk/c .
		.Bl -column "row"
		.It row Ta kept
		.El
		.It Cm connect.resume Pq 1s
		It ends
		.Bq walk/b . \" a title
		.Sh NOT PROMISED
		Anything.
	END
}

# sentences FILE - print the sentences that name no test
sentences()
{
	$awk -v file="$page" '
	function say(what) { print file ":" NR ": " what }
	/^\.\\"/ { next }
	/^\.Sh / {
		if (open) say("sentence without an end before this line")
		checked = $0 !~ /^\.Sh (NAME|DESCRIPTION|NOT PROMISED|EXAMPLES|SEE ALSO)$/
		open = rows = 0
		next
	}
	!checked { next }
	{
		text = $0
		sub(/ *\\".*/, "", text)
	}
	/^\.(Ss|Pp|It|Bl|El)/ {
		if (open) say("sentence without an end before this line")
		open = 0
		if ($1 == ".Bl") rows = $2 == "-column"
		if ($1 == ".El") rows = 0
		if (rows && $1 == ".It" && $2 != "Em" && text !~ / Ta Bq [^ ]+$/) say("row without a test")
		next
	}
	/^\.Bq/ { open = text !~ / \.$/; next }
	text ~ /[.] +[A-Z]/ { say("two sentences in one line") }
	text ~ /[.]$/ { say("sentence without a test"); open = 0; next }
	{ open = text !~ /:$/ }' "$1/$page"
}

# tests FILE - print a line "LINE FILE CASE" for each named case; CASE may be empty
tests()
{
	$awk '/(^\.| Ta )Bq / {
		ref = $0
		sub(/^(.* Ta |\.)Bq /, "", ref)
		split(ref, word, " ")
		n = index(ref, "\\\" ") ? split(substr(ref, index(ref, "\\\" ") + 3), cases, " [|] ") : 0
		for (i = 1; i <= n; i++) print NR, word[1], cases[i]
		if (n == 0) print NR, word[1]
	}' "$1/$page"
}

# defaults FILE - print lines "LINE SECTION KEY DEFAULT"
defaults()
{
	sed -n 's/^\.It Cm \([a-z]*\)\.\([a-z_]*\) Pq \(.*\)/\1 \2 \3/p' "$1/$page"
}

# has_case TEST CASE - whether the file of a test runs this case
has_case()
{
	case $1 in
	*.c) grep -qE "^[[:space:]]*(RUN_TEST|RUN_ROUNDS|RIG_CASE)\($2\);" "$1" ;;
	*.bats) grep -qxF "@test \"$2\" {" "$1" ;;
	*) grep -qF "\"$2\"" "$1" ;;
	esac
}

check()
{
	sentences "$1"
	tests "$1" | while read -r line test case; do
		file=
		for suffix in c bats sh; do [ ! -f "$1/tests/$test.$suffix" ] || file=$1/tests/$test.$suffix; done
		if [ -z "$file" ]; then
			echo "$page:$line: test $test does not exist"
		elif [ -z "$case" ]; then
			echo "$page:$line: names no case of $test"
		else
			has_case "$file" "$case" || echo "$page:$line: $test has no case '$case'"
		fi
	done
	defaults "$1" | while read -r section key value; do
		sed -n "/^.\\\\\" options $section\$/,/^.\\\\\" end\$/p" "$1/man/gantry.conf.5" |
			sed -n "/^\.It Cm $key /,/^\.It /p" | grep -qiE "default \"$value\"" ||
			echo "$page: the default of $section.$key is not $value"
	done
}

run_lint 10 "each promise names a test"
