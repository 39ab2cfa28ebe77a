/* SPDX-License-Identifier: BSD-3-Clause */
/* doca_version.h - the version of the interface that these headers describe */
#ifndef DOCA_VERSION_H
#define DOCA_VERSION_H

#include <stddef.h>

#include <doca_compat.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DOCA_VERSION_MAJOR 3
#define DOCA_VERSION_MINOR 3
#define DOCA_VERSION_PATCH 0
#define DOCA_VERSION_STRING "3.3.0000"

/* Convert a version to a number. A later version has a greater number. */
#define DOCA_VERSION_CALC_EXACT(major, minor, patch) \
	((size_t)(((size_t)(major) << 24) | ((size_t)(minor) << 16) | (size_t)(patch)))
#define DOCA_VERSION_CALC(major, minor, patch) DOCA_VERSION_CALC_EXACT(major, minor, (patch)*1000)
#define DOCA_VERSION_EXACT \
	DOCA_VERSION_CALC_EXACT(DOCA_VERSION_MAJOR, DOCA_VERSION_MINOR, DOCA_VERSION_PATCH)
#define DOCA_VERSION_OFFICIAL \
	DOCA_VERSION_CALC(DOCA_VERSION_MAJOR, DOCA_VERSION_MINOR, DOCA_VERSION_PATCH)
/* True if the version equals that of these headers (EQ), or is not newer (LTE). */
#define DOCA_VERSION_EQ_CURRENT(major, minor, patch) \
	(DOCA_VERSION_CALC(major, minor, patch) == DOCA_VERSION_OFFICIAL)
#define DOCA_VERSION_LTE_CURRENT(major, minor, patch) \
	(DOCA_VERSION_CALC(major, minor, patch) <= DOCA_VERSION_OFFICIAL)

/* Returns the version of the loaded library. The string is static. */
DOCA_EXPERIMENTAL const char *doca_version_runtime(void);

/* Returns the version of the headers that the program was compiled with. */
static inline const char *doca_version(void)
{
	return DOCA_VERSION_STRING;
}

#ifdef __cplusplus
}
#endif

#endif
