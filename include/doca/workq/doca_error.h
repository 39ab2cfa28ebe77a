/* SPDX-License-Identifier: BSD-3-Clause */
/* doca_error.h - error codes, for programs of the WorkQ interface (DOCA before tasks) */
#ifndef DOCA_WORKQ_ERROR_H
#define DOCA_WORKQ_ERROR_H

#include_next <doca_error.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Returns a description of the code. */
static inline const char *doca_get_error_string(doca_error_t error)
{
	return doca_error_get_descr(error);
}

/* Returns the name of the code. */
static inline const char *doca_get_error_name(doca_error_t error)
{
	return doca_error_get_name(error);
}

#ifdef __cplusplus
}
#endif

#endif
