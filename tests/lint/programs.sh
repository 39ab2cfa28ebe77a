#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# programs.sh - tests/doca/programs.list is consistent: each program is in a case, and each command of a case names a program that
# is built for that side, or a process of the case. gantry-doca(7) has the table of the list.
. "$(dirname "$0")/lib.sh"

seed()
{
	put "$1/tests/doca/programs.list" <<-'END'
	program lonely dpu samples/lonely doca-common
	program here dpu samples/here doca-common
	until early text
	case one 10
	start a host here
	start b dpu absent
	start c @side here
	ends d
	begin a
	END
	printf '.\\" programs\n.\\" end\n' | put "$1/man/gantry-doca.7"
}

check()
{
	list=$1/tests/doca/programs.list
	$awk '
	NF == 0 || /^#/ { next }
	function wrong(text) { print "tests/doca/programs.list:" NR ": " text }
	$1 == "program" {
		if (NF != 5 || $3 !~ /^(dpu|host|dpu,host)$/) wrong("not NAME SIDES DIRECTORY NEEDS")
		sides[$2] = "," $3 ","
		line[$2] = NR
		next
	}
	$1 == "case" { name = $2; split("", labels); if ($3 !~ /^[1-9][0-9]*$/) wrong("no limit of seconds"); next }
	name == "" { wrong("a command before the first case"); next }
	$1 == "start" {
		labels[$2] = used[$4] = 1
		if (!($4 in sides)) wrong("there is no program " $4)
		else if ($3 ~ /^@(side|other)$/ ? sides[$4] != ",dpu,host," : !index(sides[$4], "," $3 ","))
			wrong($4 " is not built for " $3)
		next
	}
	$1 ~ /^(until|enter|ends|errors|prints)$/ {
		if (!($2 in labels)) wrong("the case has not started " $2)
		next
	}
	$1 !~ /^(file|listens|run|shim)$/ { wrong("unknown command " $1) }
	END { for (p in sides) if (!(p in used)) print "tests/doca/programs.list:" line[p] ": no case runs " p }' "$list"
	$awk -f "$top/man/programs.awk" "$list" "$1/man/gantry-doca.7" | cmp -s - "$1/man/gantry-doca.7" ||
		echo "man/gantry-doca.7: not the table of tests/doca/programs.list: run make -C man update-programs"
}

run_lint 8 "the list of programs is consistent, and the manual has it"
