/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * strlist.h - list of strings in the order of adding, such as the roles that a command line names.
 *
 * A zeroed struct is an empty list. The caller owns the strings. Only one thread at a time may use
 * a list.
 */
#ifndef GN_BASE_STRLIST_H
#define GN_BASE_STRLIST_H

#include <stdbool.h>
#include <stddef.h>

struct gn_strlist {
	const char **word;
	size_t n;
};

/* Append a string, which is not copied. Returns 0 or -ENOMEM. */
int gn_strlist_add(struct gn_strlist *words, const char *word);
bool gn_strlist_has(const struct gn_strlist *words, const char *word);
/* Free the list, but not the strings. It is empty afterwards. */
void gn_strlist_fini(struct gn_strlist *words);

#endif
