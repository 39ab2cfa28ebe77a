#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# trouble.sh - a program that expects all trouble meets each kind of it with some seed, and stays correct
. "$top_srcdir/tests/tap.sh"
[ -e "$top_builddir/doca/gantry-doca" ] || skip "libgantry-doca is not built"
mkdir -m 700 "$tmp/run"
XDG_RUNTIME_DIR=$tmp/run GANTRY_PLUGIN_PATH=$GANTRY_PLUGINS
export XDG_RUNTIME_DIR GANTRY_PLUGIN_PATH
unset GANTRY_RUNDIR GANTRY_DOCA_CONF GANTRY_DOCA_PROFILE
cases=$top_builddir/tests/doca/check/cases

# meet NAME [OPTION...] - run the program under the layer; $tmp/NAME.err has what it met. The program prints that only if it was
# correct to its end; the status of the check does not tell how the program exits.
meet()
{
	name=$1
	shift
	"$GANTRY" doca check --timeout 60 "$@" -- "$cases" trouble >"$tmp/$name.out" 2>"$tmp/$name.err" &&
		grep -q '^lost ' "$tmp/$name.err" && ! grep -q 'exit status' "$tmp/$name.err"
}

# sum KIND FILE... - how often the program met it
sum()
{
	kind=$1
	shift
	cat "$@" | awk -v kind="$kind" '$1 == kind { n += $2 } END { print n + 0 }'
}

meet none
verdict $? "without a seed, the program is correct" "$tmp/none.out" "$tmp/none.err"
failed=0
for seed in $(seq 1 16); do
	meet "$seed" --seed "$seed" && continue
	failed=1
	cat "$tmp/$seed.out" "$tmp/$seed.err" >>"$tmp/failed"
done
touch "$tmp/failed"
[ $failed -eq 0 ]
verdict $? "with each of 16 seeds, the program is correct" "$tmp/failed"
for kind in again no_task reordered stopped not_accepted lost path_stopped; do
	is "without a seed, the program does not meet: $kind" 0 "$(sum $kind "$tmp/none.err")"
	[ "$(sum $kind "$tmp"/[0-9]*.err)" -gt 0 ]
	verdict $? "with some seed, the program meets: $kind"
done
# the report counts each kind; the program cannot tell a lack of credits from another refusal
for kind in again no_task late not_accepted fatal disconnect reorder credits path; do
	grep -q "^gantry doca: findings=0,.*, $kind=[1-9]" "$tmp"/[0-9]*.err
	verdict $? "the report counts $kind"
done
# the engine executes copies in the thread of the program, but accepts connections in a thread of the library
of_copies()
{
	grep -E '^(again|no_task|reordered|stopped) ' "$tmp/$1.err"
}
meet twice --seed 2
is "a seed causes the same trouble again in a program of one thread" "$(of_copies 2)" "$(of_copies twice)"
is "--seed runs the program once" 1 "$(grep -c '^again ' "$tmp/twice.err")"
meet range --seeds 2..3
is "--seeds runs it without trouble first" 3 "$(grep -c '^again ' "$tmp/range.err")"
is "and that run meets none" "again 0" "$(grep -m 1 '^again ' "$tmp/range.err")"
# only some kinds
meet some --seeds 1..6 --trouble again,late
verdict $? "trouble can be limited to some kinds" "$tmp/some.err"
is "and the program meets no other" 0 "$(sum no_task "$tmp/some.err")"
"$GANTRY" doca check --seed 1 --trouble again,nothing -- "$cases" trouble >"$tmp/kind.out" 2>&1
is "a kind that does not exist is rejected" 2 "$?"
"$GANTRY" doca check --trouble again -- "$cases" trouble >"$tmp/kind.out" 2>&1
is "kinds without a seed are rejected" 2 "$?"
sed -n 's/^DC_TROUBLE([A-Z_]*, "\([a-z_]*\)".*/\1/p' "$top_srcdir/doca/check/trouble.def" >"$tmp/kinds"
sed -n '/^\.Sh TROUBLE/,/^\.Sh LIM/s/^\.It Cm //p' "$top_srcdir/man/gantry-doca-check.1" >"$tmp/described"
is "the page describes each kind" "$(cat "$tmp/kinds")" "$(cat "$tmp/described")"
# a shell cannot load a layer that needs the library of a sanitizer
if grep -q -e -fsanitize "$top_builddir/doca/Makefile"; then
	skipped "a program that ends with an error is a finding" "not with sanitizers"
else
	"$GANTRY" doca check --junit "$tmp/junit.xml" -- sh -c 'exit 4' >"$tmp/error.out" 2>&1
	is "a program that ends with an error is a finding" 1 "$?"
	grep -q 'name="end"><failure type="error" message="exit status 4"/>' "$tmp/junit.xml"
	verdict $? "JUnit has it as a failed test case" "$tmp/junit.xml"
	"$GANTRY" doca check --seeds 5..6 -- sh -c '[ -z "$GANTRY_DOCA_CHECK_SEED" ]' >"$tmp/changed.out" 2>&1
	is "so is one that does with a seed" 1 "$?"
	grep -q 'repeat: gantry doca check --seed 5 ' "$tmp/changed.out"
	verdict $? "the report has the command that repeats it" "$tmp/changed.out"
fi
done_testing
