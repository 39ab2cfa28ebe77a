#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rules.sh - for each rule of `gantry doca check`, a program that breaks it, and the same program without the mistake
. "$top_srcdir/tests/tap.sh"
[ -e "$top_builddir/doca/gantry-doca" ] || skip "libgantry-doca is not built"
command -v jq >/dev/null || skip "jq is not installed"
mkdir -m 700 "$tmp/run"
XDG_RUNTIME_DIR=$tmp/run GANTRY_PLUGIN_PATH=$GANTRY_PLUGINS
export XDG_RUNTIME_DIR GANTRY_PLUGIN_PATH
unset GANTRY_RUNDIR GANTRY_DOCA_CONF GANTRY_DOCA_PROFILE
cases=$top_builddir/tests/doca/check/cases

# check RULE bad|good [OPTION...] - run a case under the layer; $tmp/RULE.json has the findings
check()
{
	rule=$1 how=$2
	shift 2
	"$GANTRY" doca check --json --stall 300 --timeout 60 "$@" -- "$cases" "$rule" "$how" >"$tmp/$rule.json" 2>"$tmp/$rule.err"
}

# options_of RULE - what the rule needs on the command line
options_of()
{
	case $1 in
	source-written) echo --protect ;;
	task-too-long | too-many-queues) echo --card "$tmp/card" ;;
	esac
}

cat >"$tmp/card" <<'END'
doca_dma_cap_task_memcpy_get_max_buf_size = 4096
doca_comch_consumer_cap_get_max_consumers = 1
doca_comch_producer_cap_get_max_producers = 1
END
"$GANTRY" doca check --rules --json >"$tmp/rules"
jq -r '.[].rule' "$tmp/rules" >"$tmp/names"
[ "$(wc -l <"$tmp/names")" -ge 60 ]
verdict $? "there are at least 60 rules" "$tmp/rules"
page=$top_srcdir/man/gantry-doca-check.1
sed -n 's/^\.It Cm \([a-z-]*\) Pq .*/\1/p' "$page" >"$tmp/in-page"
is "the page lists each rule, in their order" "$(cat "$tmp/names")" "$(cat "$tmp/in-page")"
for command in check trace; do
	"$GANTRY" doca $command --help | sed -n 's/^  --\([a-z]*\) .*/\1/p' | grep -vx help | sort >"$tmp/options"
	sed -n '/^\.Sh '"$([ $command = check ] && echo OPTIONS || echo TRACE)"'/,/^\.El/p' "$page" |
		sed -n 's/^\.It .*Fl -\([a-z]*\).*/\1/p' | sort >"$tmp/described"
	[ $command = check ] || echo timeout >>"$tmp/described"
	is "the page describes each option of $command" "$(cat "$tmp/options")" "$(sort "$tmp/described")"
done
while read -r rule; do
	# shellcheck disable=SC2046 # words
	check "$rule" bad $(options_of "$rule")
	jq -e --arg rule "$rule" '[.findings[].rule] | index($rule) != null' "$tmp/$rule.json" >/dev/null
	verdict $? "$rule: found in the program that breaks it" "$tmp/$rule.json" "$tmp/$rule.err"
done <"$tmp/names"
if grep -q '^#define HAVE_LIBDW 1' "$top_builddir/config.h"; then
	jq -e '.findings[0].created_at | (.file | endswith("/leak_cases.c")) and .line > 0' "$tmp/leak-engine.json" >/dev/null
	verdict $? "a finding has the source line of each call" "$tmp/leak-engine.json"
else
	skipped "a finding has the source line of each call" "built without libdw"
fi
check user-node bad
jq -e '[.findings[].rule] == ["progress-in-callback"]' "$tmp/user-node.json" >/dev/null
verdict $? "progress-in-callback: found in a function that is a node of a graph" "$tmp/user-node.json" "$tmp/user-node.err"
check all good --protect --card "$tmp/card"
verdict $? "no finding in the correct programs" "$tmp/all.json" "$tmp/all.err"
done_testing
