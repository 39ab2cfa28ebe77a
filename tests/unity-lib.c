/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unity-lib.c - compiles Unity or the shim, as the include path selects, into the tree
 *
 * The output is line-buffered, so that a crash loses no line.
 */
#include <unity.c>

#include <stdio.h>

__attribute__((constructor)) static void line_by_line(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
}

/* for the tests without such a function */
__attribute__((weak)) void setUp(void)
{
}

__attribute__((weak)) void tearDown(void)
{
}
