/* SPDX-License-Identifier: BSD-3-Clause */
/* doca_version.c - the version of the library */
#include <doca_version.h>

const char *doca_version_runtime(void)
{
	return DOCA_VERSION_STRING;
}
