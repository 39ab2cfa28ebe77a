#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# lists.sh - each file is in a list of its Makefile.am, so that it is built, tested, installed and shipped; each list is included;
# each plugin has a row in configure.ac
. "$(dirname "$0")/lib.sh"

seed()
{
	printf '# base/out.c\nlibgantry_core_la_SOURCES += base/in.c\n' | put "$1/core/base/sources.am"
	echo 'int in;' | put "$1/core/base/in.c"
	echo 'int out;' | put "$1/core/base/out.c"
	echo 'include base/sources.am' | put "$1/core/Makefile.am"
	echo 'true' | put "$1/tests/walk/x.sh"
	echo 'int own;' | put "$1/tests/fuzz/corpus/x/y.c"
	echo '# lonely' | put "$1/plugins/stage/lonely/plugin.am"
	echo 'include stage/here/plugin.am' | put "$1/plugins/Makefile.am"
	echo '# here' | put "$1/plugins/stage/here/plugin.am"
	echo 'GANTRY_PLUGIN([stage],[here])' | put "$1/configure.ac"
	echo 'pages += shipped.1' | put "$1/man/Makefile.am"
	echo '.Nm shipped' | put "$1/man/shipped.1"
}

check()
{
	files "$1" '*.[ch]' '*.sh' '*.bats' '*.awk' '*.conf' '*.[1-8]' | while read -r file; do
		folder=${file%%/*}
		grep -rqE --include='*.am' "^([^#]*[[:space:]=/])?${file#*/}([[:space:]]|\$)" "$1/$folder" ||
			echo "$file is in no list"
	done
	files "$1" '*.[1-8]' | while read -r file; do
		grep -qx "man_MANS += ${file##*/}" "$1/man/Makefile.am" || echo "$file is not installed"
	done
	files "$1" '*.am' | while read -r file; do
		[ "${file##*/}" = Makefile.am ] || grep -qx "include ${file#*/}" "$1/${file%%/*}/Makefile.am" ||
			echo "$file is not included"
		plugin=${file%/plugin.am}
		[ "$plugin" = "$file" ] ||
			grep -qF "GANTRY_PLUGIN([$(basename "${plugin%/*}")],[${plugin##*/}]" "$1/configure.ac" ||
			echo "$plugin is not in configure.ac"
	done
}

run_lint 5 "each file is in the list that builds or ships it"
