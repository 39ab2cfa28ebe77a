#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# file-names.sh - a name of a source file or header of the product exists once, so that it can be found and cited without its
# directory. The public headers of DOCA exist twice where two interfaces have a header of the same name.
. "$(dirname "$0")/lib.sh"

seed()
{
	: | put "$1/core/base/queue.c"
	: | put "$1/plugins/transport/rope/queue.c"
	: | put "$1/include/gantry/role.h"
	: | put "$1/core/session/role.h"
	: | put "$1/include/doca/doca_dev.h"
	: | put "$1/include/doca/workq/doca_dev.h"
	: | put "$1/tests/unit/base/queue.c"
}

check()
{
	files "$1" '*.[ch]' | grep -E '^(core|plugins|include|doca|clients)/' | $awk -F/ '
	/^include\/doca\// { next }
	$NF in first { print $0 ": same name as " first[$NF]; next }
	{ first[$NF] = $0 }'
}

run_lint 2 "each file name of the product exists once"
