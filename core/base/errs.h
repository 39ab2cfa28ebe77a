/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * errs.h - the messages of a check that looks for all faults before it gives up.
 *
 * A zeroed struct holds no message. Belongs to one thread at a time.
 */
#ifndef GN_BASE_ERRS_H
#define GN_BASE_ERRS_H

#include <stddef.h>

#include "base/arena.h"

#define GN_ERRS_MAX 4096 /* messages that are kept; more are only counted */

/* What a message is about. NULL and 0: unknown. */
struct gn_err_place {
	const char *file; /* or "--set" */
	unsigned int line;
	const char *key; /* "roles.load.lanes" */
};

struct gn_err {
	struct gn_err_place place;
	const char *message; /* without its place: the end of text */
};

struct gn_errs {
	size_t n;  /* messages that were added */
	int cause; /* of the first; 0: none was said */
	size_t n_kept, capacity;
	const char **text;    /* [n_kept]: the whole messages, "FILE:LINE: KEY: MESSAGE" */
	struct gn_err *parts; /* [n_kept] */
	struct gn_arena arena;
};

/* Adds a message, without newline; of any length. */
void gn_errs_add(struct gn_errs *errs, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/*
 * Adds a message about a place, which is copied: "FILE:LINE: KEY: MESSAGE", without what is
 * unknown.
 */
void gn_errs_add_at(struct gn_errs *errs, const struct gn_err_place *place, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/*
 * Records the place of each message that was added since there were `before` messages. These
 * messages already begin with a text of `skip` bytes that names the place.
 */
void gn_errs_locate(struct gn_errs *errs, size_t before, const struct gn_err_place *place,
		    size_t skip);

/* The next message has this -errno for its cause, and not what somebody wrote. */
void gn_errs_because(struct gn_errs *errs, int rc);
/* The message for -ENOMEM. */
void gn_errs_no_memory(struct gn_errs *errs);
/* -errno of the first message: its cause, else -EINVAL. 0: there is no message. */
int gn_errs_rc(const struct gn_errs *errs);

/* How many messages text[] holds. */
size_t gn_errs_kept(const struct gn_errs *errs);

/* Frees the messages; the struct is empty and usable again. */
void gn_errs_fini(struct gn_errs *errs);

#endif
