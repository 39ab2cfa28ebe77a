#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# unity.sh - tests use only the functions of Unity that the shim has, which replaces Unity in builds with sanitizers
. "$(dirname "$0")/lib.sh"

seed()
{
	printf '#define TEST_ASSERT_TRUE(c) shim(c)\n' | put "$1/tests/unity-shim/unity.h"
	printf 'TEST_ASSERT_TRUE(1);\nTEST_ASSERT_BITS_LOW(1, 2);\n_exit(Unity.CurrentTestFailed);\n' | put "$1/tests/unit/x.c"
}

check()
{
	grep -rnoE --include='*.[ch]' '\b(TEST_(ASSERT|FAIL|IGNORE)[A-Za-z0-9_]*|Unity\.[A-Za-z]+)' "$1/tests" |
		grep -v "^$1/tests/unity-shim/" | sort -t: -k3 -u | sort -t: -k3 | while IFS=: read -r file line word; do
		grep -qE "^#define $word\\b" "$1/tests/unity-shim/unity.h" ||
			echo "${file#"$1/"}:$line: $word is not in tests/unity-shim/unity.h"
	done
}

run_lint 2 "tests use only functions that the shim of Unity has"
