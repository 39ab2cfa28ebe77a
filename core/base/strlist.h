/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * words.h - a list of words in the order in which they were given, such as the roles that a command
 * line names.
 *
 * A zeroed struct is an empty list. The words stay the caller's. Belongs to one thread at a time.
 */
#ifndef GN_BASE_STRLIST_H
#define GN_BASE_STRLIST_H

#include <stdbool.h>
#include <stddef.h>

struct gn_strlist {
	const char **word;
	size_t n;
};

/* Append a word. 0, -ENOMEM. */
int gn_strlist_add(struct gn_strlist *words, const char *word);
bool gn_strlist_has(const struct gn_strlist *words, const char *word);
/* The list is empty again. */
void gn_strlist_fini(struct gn_strlist *words);

#endif
