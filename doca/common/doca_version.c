/* SPDX-License-Identifier: BSD-3-Clause */
/* doca_version.c - the version of the library that a program runs with. */
#include <doca_version.h>

const char *doca_version_runtime(void)
{
	return DOCA_VERSION_STRING;
}
