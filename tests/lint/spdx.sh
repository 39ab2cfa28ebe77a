#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# spdx.sh - the first four lines of each file state its licence
. "$(dirname "$0")/lib.sh"

seed()
{
	echo 'int x;' | put "$1/core/base/x.c"
	printf '\n\n\n\n/* SPDX-License-Identifier: BSD-3-Clause */\n' | put "$1/core/base/late.h"
	echo '/* SPDX-License-Identifier: BSD-3-Clause */' | put "$1/core/base/good.c"
}

check()
{
	{
		files "$1" '*.[ch]' '*.sh' '*.bats' '*.awk' '*.am' '*.m4' '*.conf' '*.[1-8]' | grep -vE '^m4/(libtool|lt.*)\.m4$'
		(cd "$1" && ls -d configure.ac Makefile.am dev .ci/run bash-completion/[a-z]* bash-completion/*.am 2>/dev/null)
	} | while read -r file; do
		head -n 4 "$1/$file" | grep -q 'SPDX-License-Identifier: ' || echo "$file: no SPDX line"
	done
}

run_lint 2 "each file has its SPDX line"
