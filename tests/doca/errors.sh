#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# errors.sh - checks that a test provokes each error that a function of libgantry-doca is documented to return
#
# errors/HEADER.txt lists `FUNCTION ERROR`, one a line, for each public header; those of work queues are in errors/workq.txt. If no
# program can provoke an error here, ` - ` and the reason follow. The script runs all C tests of this directory again, linked so
# that seen.c records the results of their calls. The tests must return each error without a reason, and none with a reason.
#
# To complete the list of one or several headers, run only the programs that matter (names without doca/):
#	HEADERS='doca_dma doca_buf' PROGRAMS='dma buf' make -C build/gcc check TESTS=doca/errors.sh VERBOSE=1
. "$top_srcdir/tests/tap.sh"
here=$top_srcdir/tests/doca
tests=$top_builddir/tests
include=$top_srcdir/include/doca
lib=$top_builddir/doca/.libs/libgantry-doca.so
SEEN=$tests/doca/seen.d
awk=${AWK:-awk}
export SEEN
mkdir -p "$SEEN"

[ -e "$lib" ] || skip "libgantry-doca is not built"
case $(${CC:-cc} -dumpmachine) in
x86_64-*) ;;
*) skip "the stubs are for x86-64" ;;
esac
command -v objcopy >/dev/null || skip "objcopy is not installed"
command -v g++ >/dev/null || skip "g++ is not installed, which compiles calls of each function with NULL arguments"
for part in LIBCRYPTO LIBIBVERBS LIBISAL LIBRDMACM LZ4 ZLIB; do
	grep -q "^#define HAVE_$part 1" "$top_builddir/config.h" || skip "built without $part: its errors cannot be provoked"
done
nm -D "$lib" | grep -q '__[atu][a-z]*san_' && skip "not with sanitizers"

# functions - print the functions that return doca_error_t; function n has stub n - 1
functions()
{
	$awk '/^DOCA_[A-Z]+ doca_error_t$/ { first = $0; getline; $0 = first " " $0 } { print }' \
		"$include"/*.h "$include"/workq/*.h |
		sed -nE 's/^DOCA_(STABLE|EXPERIMENTAL|DEPRECATED) doca_error_t (doca_[a-z0-9_]+)\(.*/\2/p' | sort -u
}

# stubs - print stubs of the functions on standard input
stubs()
{
	echo ".text"
	$awk '{
		print ".globl seen_" $1 "\nseen_" $1 ":"
		print "\tmovl $" NR - 1 ", %r10d\n\tmovq " $1 "@GOTPCREL(%rip), %r11\n\tjmp seen_call"
	}'
	echo '.section .note.GNU-stack,"",@progbits'
}

# build - link the programs of $programs with the stubs
build()
{
	functions >"$SEEN/functions" && cat "$SEEN/functions" "$here/seen.c" "$here/seen-link.sh" >"$SEEN/new" || return 1
	if ! cmp -s "$SEEN/new" "$SEEN/made-of"; then
		rm -f "$tests"/doca/*.seen
		stubs <"$SEEN/functions" >"$SEEN/stubs.S"
		sed 's/.*/& seen_&/' "$SEEN/functions" >"$SEEN/map"
		$CC -c -o "$SEEN/stubs.o" "$SEEN/stubs.S" && $CC -O2 -c -o "$SEEN/seen.o" "$here/seen.c" || return 1
		mv "$SEEN/new" "$SEEN/made-of"
	fi
	# shellcheck disable=SC2046 # words
	env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL make -s -j2 -C "$tests" EXEEXT=.seen CCLD="sh $here/seen-link.sh $CC" \
		$(printf 'doca/%s.seen ' $programs)
}

# nothing DIR - print a program that calls each function that lists INVALID_VALUE with NULL or 0 for every argument
nothing()
{
	(cd "$include/$1" && printf '#include <%s>\n' doca_*.h)
	echo '#include "nothing.h"'
	echo 'int main() {'
	lists=$here/errors/workq.txt
	[ "$1" = workq ] || {
		lists=$(echo "$here"/errors/doca_*.txt)
		echo '	(void)doca_argp_init(nullptr, nullptr); // the others of its header need that'
	}
	# shellcheck disable=SC2086 # words
	sed -n 's/^\([a-z0-9_]*\) INVALID_VALUE$/\trefused("\1", \1);/p' $lists
	echo '}'
}

# refused DIR - build and run such a program, and print its output
refused()
{
	[ "$1" = workq ] && first=-I$include/workq || first=
	nothing "$1" >"$SEEN/nothing.cc" &&
		g++ -std=c++17 -DDOCA_ALLOW_EXPERIMENTAL_API $first -I"$include" -I"$include/dpu" -I"$here" \
			-c -o "$SEEN/nothing.o" "$SEEN/nothing.cc" &&
		objcopy --redefine-syms="$SEEN/map" "$SEEN/nothing.o" &&
		g++ -o "$SEEN/nothing" "$SEEN/nothing.o" "$SEEN/stubs.o" "$SEEN/seen.o" "$lib" -Wl,-rpath,"${lib%/*}" || return 0
	GANTRY_SEEN=$SEEN/table timeout 60 "$SEEN/nothing" 2>"$SEEN/last" || echo "$(tail -n 1 "$SEEN/last"): the program crashed"
}

# run - run all programs, two at a time; the exit status of each is in $SEEN/PROGRAM.exit
run()
{
	rm -f "$SEEN"/*.exit
	truncate -s 0 "$SEEN/table"
	truncate -s $(($(wc -l <"$SEEN/functions") * 4)) "$SEEN/table"
	# shellcheck disable=SC2016,SC2086 # for the shell of each program; words
	printf '%s\n' $programs | GANTRY_SEEN=$SEEN/table xargs -P 2 -n 1 sh -c '
		timeout -k 10 120 "$0/doca/$1.seen" >"$SEEN/$1.log" 2>&1; echo $? >"$SEEN/$1.exit"' "$tests"
}

# compare TABLE LIST - print the errors of the list; the table has the recorded results
compare()
{
	od -An -v -w4 -tu4 "$1" | paste -d ' ' "$SEEN/functions" - | $awk -v list="${2##*/}" -v header="$include/doca_error.h" '
	function bit(word, n) {
		return int(word / 2 ^ n) % 2
	}
	BEGIN {
		while ((getline line <header) > 0)
			if (split(line, f, /[ \t,]+/) && f[2] ~ /^DOCA_ERROR_/ && f[3] == "=")
				number[substr(f[2], 12)] = f[4]
	}
	NR == FNR { table[$1] = $2; next }
	/^(#|$)/ { next }
	!($1 in table) { print $1 ": no function of the library (errors/" list ")"; next }
	!($2 in number) { print $1 " " $2 ": no error (errors/" list ")"; next }
	said[$1, $2]++ { print $1 " " $2 " stands twice in errors/" list; next }
	$0 !~ / - ./ && !bit(table[$1], number[$2]) {
		print $1 " never returned " $2 ": provoke it in a test, or say in errors/" list " why it cannot be"
	}
	/ - ./ && bit(table[$1], number[$2]) { print $1 " did return " $2 ": take its reason out of errors/" list }' - "$2"
}

programs=$PROGRAMS
[ -n "$programs" ] || for program in $(sed -nE 's|^doca_([a-z0-9_]+)_SOURCES = .*|\1|p' "$here/tests.am"); do
	[ -x "$tests/doca/$program" ] && programs="$programs $program"
done
if ! build >"$SEEN/build.log" 2>&1; then
	verdict 1 "the tests link with the stubs" "$SEEN/build.log"
	done_testing
	exit 0
fi

# test of the check: without any recorded error, all lines without a reason are wrong; with all errors, all other lines
head -c $(($(wc -l <"$SEEN/functions") * 4)) /dev/zero >"$SEEN/none"
tr '\0' '\377' <"$SEEN/none" >"$SEEN/all"
for list in "$here"/errors/*.txt; do
	lines=$(grep -c . "$list")
	reasons=$(grep -c ' - .' "$list")
	[ "$(compare "$SEEN/none" "$list" | wc -l)" -eq $((lines - reasons)) ] &&
		[ "$(compare "$SEEN/all" "$list" | wc -l)" -eq "$reasons" ] || compare "$SEEN/all" "$list"
done >"$SEEN/out"
none "the check sees each gap and each stale reason" "$SEEN/out"

cat "$here"/errors/*.txt | sed 's/ .*//' | sort -u | comm -23 "$SEEN/functions" - >"$SEEN/out"
none "each function that can fail is in a list" "$SEEN/out"

run
for program in $programs; do
	case $(cat "$SEEN/$program.exit") in 0 | 77) continue ;; esac
	echo "$program: exit status $(cat "$SEEN/$program.exit")"
	grep -h ':FAIL' "$SEEN/$program.log"
done >"$SEEN/out"
none "the tests pass with the stubs" "$SEEN/out"
{ refused . && refused workq; } >"$SEEN/out" 2>&1
none "a function that is given nothing says INVALID_VALUE" "$SEEN/out"
for list in "$here"/errors/*.txt; do
	header=$(basename "$list" .txt)
	case " ${HEADERS:-$header} " in *" $header "*) ;; *) continue ;; esac
	compare "$SEEN/table" "$list" >"$SEEN/out"
	none "$header: each documented error was returned" "$SEEN/out"
done
done_testing
