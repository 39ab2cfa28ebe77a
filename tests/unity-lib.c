/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unity-lib.c - Unity, or the shim, compiled into our tree: which one is a matter of the include
 * path.
 * Its output leaves line by line, so that a crash loses nothing.
 */
#include <unity.c>

#include <stdio.h>

__attribute__((constructor)) static void line_by_line(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
}
