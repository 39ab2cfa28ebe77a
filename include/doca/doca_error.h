/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * doca_error.h - error codes, and the conventions of the comments in all doca_*.h headers
 *
 * - Comments omit the prefix DOCA_ERROR_.
 * - A function returns INVALID_VALUE if a required pointer is NULL or an argument is out of range.
 *   Comments do not repeat this.
 * - A function that fails stores no result through its output parameters.
 * - "Before start": the object is idle, as it is after its creation or after a stop.
 * - "Never returns" and "never returned": the vendor's interface defines the error for this
 *   function, but this library does not return it from this function.
 * - NO_MEMORY means that memory allocation failed, unless the comment gives another cause.
 * - An object and its tasks belong to one thread at a time: the thread that progresses its engine.
 *   "Any thread" marks the exceptions.
 * - All functions exist since the first version of the library (ABI 0).
 * - The caller owns what a create or allocate function stores, and releases it by the destroy or
 *   free function.
 */
#ifndef DOCA_ERROR_H
#define DOCA_ERROR_H

#include <doca_common_defines.h>
#include <doca_compat.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum doca_error {
	DOCA_SUCCESS = 0,                      /* success */
	DOCA_ERROR_UNKNOWN = 1,                /* no other code fits */
	DOCA_ERROR_NOT_PERMITTED = 2,          /* the state or the rights do not permit the call */
	DOCA_ERROR_IN_USE = 3,                 /* the object is still in use */
	DOCA_ERROR_NOT_SUPPORTED = 4,          /* not supported by the device or library */
	DOCA_ERROR_AGAIN = 5,                  /* temporarily not possible: try again */
	DOCA_ERROR_INVALID_VALUE = 6,          /* an argument is invalid */
	DOCA_ERROR_NO_MEMORY = 7,              /* out of memory, or the pool is empty */
	DOCA_ERROR_INITIALIZATION = 8,         /* initialization failed */
	DOCA_ERROR_TIME_OUT = 9,               /* timeout */
	DOCA_ERROR_SHUTDOWN = 10,              /* the context is stopping */
	DOCA_ERROR_CONNECTION_RESET = 11,      /* the peer closed the connection */
	DOCA_ERROR_CONNECTION_ABORTED = 12,    /* the connection was aborted */
	DOCA_ERROR_CONNECTION_INPROGRESS = 13, /* the connection is not yet established */
	DOCA_ERROR_NOT_CONNECTED = 14,         /* not connected */
	DOCA_ERROR_NO_LOCK = 15,               /* a lock could not be acquired */
	DOCA_ERROR_NOT_FOUND = 16,             /* the object does not exist */
	DOCA_ERROR_IO_FAILED = 17,             /* input or output failed */
	DOCA_ERROR_BAD_STATE = 18,             /* invalid in the current state */
	DOCA_ERROR_UNSUPPORTED_VERSION = 19,   /* unsupported version */
	DOCA_ERROR_OPERATING_SYSTEM = 20,      /* a system call failed */
	DOCA_ERROR_DRIVER = 21,                /* a driver call failed */
	DOCA_ERROR_UNEXPECTED = 22,            /* unexpected internal error */
	DOCA_ERROR_ALREADY_EXIST = 23,         /* the object already exists */
	DOCA_ERROR_FULL = 24,                  /* the container is full */
	DOCA_ERROR_EMPTY = 25,                 /* the container is empty */
	DOCA_ERROR_IN_PROGRESS = 26,           /* the operation has started and is not complete */
	DOCA_ERROR_TOO_BIG = 27,               /* the value is too large */
	DOCA_ERROR_AUTHENTICATION = 28,        /* authentication failed */
	DOCA_ERROR_BAD_CONFIG = 29,            /* invalid configuration */
	DOCA_ERROR_SKIPPED = 30,               /* the operation was skipped */
} doca_error_t;

#define DOCA_IS_ERROR(r) doca_unlikely((r) != DOCA_SUCCESS)
/* Set r to t if r is DOCA_SUCCESS, so that r keeps the first error. */
#define DOCA_ERROR_PROPAGATE(r, t) \
	do { \
		if ((r) == DOCA_SUCCESS) \
			(r) = (t); \
	} while (0)

/*
 * Returns the name of the code, such as "DOCA_ERROR_AGAIN", or a text that says that the code is
 * unknown. Never returns NULL. The string is static. Any thread.
 */
DOCA_STABLE const char *doca_error_get_name(doca_error_t error);

/* Returns a description of the code. Like doca_error_get_name() otherwise. */
DOCA_STABLE const char *doca_error_get_descr(doca_error_t error);

#ifdef __cplusplus
}
#endif

#endif
