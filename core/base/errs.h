/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * errs.h - list of error messages, for checks that report all faults instead of the first one.
 *
 * A zeroed struct is an empty list. Only one thread at a time may use a list.
 */
#ifndef GN_BASE_ERRS_H
#define GN_BASE_ERRS_H

#include <stddef.h>

#include "base/arena.h"

#define GN_ERRS_MAX 4096 /* messages that are kept; further messages are only counted */

/* The place that a message is about. A field that is NULL or 0 is unknown. */
struct gn_err_place {
	const char *file; /* name of a file, or "--set" */
	unsigned int line;
	const char *key; /* path of a setting, such as "roles.load.lanes" */
};

struct gn_err {
	struct gn_err_place place;
	const char *message; /* the last part of the text, without the place */
};

struct gn_errs {
	size_t n;  /* number of messages that were added */
	int cause; /* -errno of the first message; 0: not given */
	size_t n_kept, capacity;
	const char **text;    /* [n_kept]: the whole messages, "FILE:LINE: KEY: MESSAGE" */
	struct gn_err *parts; /* n_kept entries: the parts of each message */
	struct gn_arena arena;
};

/* Add a message of any length, without newline. */
void gn_errs_add(struct gn_errs *errs, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/*
 * Add a message about a place: "FILE:LINE: KEY: MESSAGE", without unknown parts. The place is
 * copied.
 */
void gn_errs_add_at(struct gn_errs *errs, const struct gn_err_place *place, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/*
 * Record a place for each message that was added after the first `before` messages. The first
 * `skip` bytes of these messages already name the place.
 */
void gn_errs_locate(struct gn_errs *errs, size_t before, const struct gn_err_place *place,
		    size_t skip);

/*
 * Set the cause, an -errno, that gn_errs_rc() returns. Call it before adding the message. It has no
 * effect if there is a message already. Without this call the cause is -EINVAL, an error in the
 * input.
 */
void gn_errs_because(struct gn_errs *errs, int rc);
/* Add the message for -ENOMEM. */
void gn_errs_no_memory(struct gn_errs *errs);
/* Returns 0: there is no message; else the cause of the first message. */
int gn_errs_rc(const struct gn_errs *errs);

/* Returns how many messages text[] contains. */
size_t gn_errs_kept(const struct gn_errs *errs);

/* Free the messages. The list is empty afterwards, and can be used again. */
void gn_errs_fini(struct gn_errs *errs);

#endif
