/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * doca_error.h - what functions return
 *
 * In all headers, comments leave out the prefix DOCA_ERROR_. A function that returns doca_error_t
 * says INVALID_VALUE when a pointer that it needs is NULL. Where an error comes back, what was to
 * be filled is left alone.
 */
#ifndef DOCA_ERROR_H
#define DOCA_ERROR_H

#include <doca_common_defines.h>
#include <doca_compat.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum doca_error {
	DOCA_SUCCESS = 0,                      /* done */
	DOCA_ERROR_UNKNOWN = 1,                /* no better word for it */
	DOCA_ERROR_NOT_PERMITTED = 2,          /* not now, or not with these rights */
	DOCA_ERROR_IN_USE = 3,                 /* still in use */
	DOCA_ERROR_NOT_SUPPORTED = 4,          /* the device cannot do it */
	DOCA_ERROR_AGAIN = 5,                  /* not now: try again */
	DOCA_ERROR_INVALID_VALUE = 6,          /* an argument makes no sense */
	DOCA_ERROR_NO_MEMORY = 7,              /* out of memory, or of a pool */
	DOCA_ERROR_INITIALIZATION = 8,         /* could not be set up */
	DOCA_ERROR_TIME_OUT = 9,               /* took too long */
	DOCA_ERROR_SHUTDOWN = 10,              /* is being shut down */
	DOCA_ERROR_CONNECTION_RESET = 11,      /* the peer ended the connection */
	DOCA_ERROR_CONNECTION_ABORTED = 12,    /* the connection was given up */
	DOCA_ERROR_CONNECTION_INPROGRESS = 13, /* the connection is not there yet */
	DOCA_ERROR_NOT_CONNECTED = 14,         /* not connected */
	DOCA_ERROR_NO_LOCK = 15,               /* a lock was not to be had */
	DOCA_ERROR_NOT_FOUND = 16,             /* there is none */
	DOCA_ERROR_IO_FAILED = 17,             /* input or output failed */
	DOCA_ERROR_BAD_STATE = 18,             /* not in this state */
	DOCA_ERROR_UNSUPPORTED_VERSION = 19,   /* another version */
	DOCA_ERROR_OPERATING_SYSTEM = 20,      /* the operating system refused */
	DOCA_ERROR_DRIVER = 21,                /* a driver refused */
	DOCA_ERROR_UNEXPECTED = 22,            /* should not have happened */
	DOCA_ERROR_ALREADY_EXIST = 23,         /* is there already */
	DOCA_ERROR_FULL = 24,                  /* no more room */
	DOCA_ERROR_EMPTY = 25,                 /* nothing in it */
	DOCA_ERROR_IN_PROGRESS = 26,           /* begun, not yet done */
	DOCA_ERROR_TOO_BIG = 27,               /* too big */
	DOCA_ERROR_AUTHENTICATION = 28,        /* not who it claims to be */
	DOCA_ERROR_BAD_CONFIG = 29,            /* the configuration is wrong */
	DOCA_ERROR_SKIPPED = 30,               /* left out */
} doca_error_t;

#define DOCA_IS_ERROR(r) doca_unlikely((r) != DOCA_SUCCESS)
/* Keep the first error: r becomes t when it is none. */
#define DOCA_ERROR_PROPAGATE(r, t) \
	do { \
		if ((r) == DOCA_SUCCESS) \
			(r) = (t); \
	} while (0)

/*
 * The name of the value, "DOCA_ERROR_AGAIN", or a text that says that there is none. Never NULL;
 * lives forever. Any thread.
 */
DOCA_STABLE const char *doca_error_get_name(doca_error_t error);

/* The same as a sentence for people. */
DOCA_STABLE const char *doca_error_get_descr(doca_error_t error);

#ifdef __cplusplus
}
#endif

#endif
