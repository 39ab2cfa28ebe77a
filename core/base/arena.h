/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * arena.h - memory allocations that are freed together, such as the strings of a configuration.
 *
 * A zeroed struct is an empty arena. Only one thread at a time may use an arena.
 */
#ifndef GN_BASE_ARENA_H
#define GN_BASE_ARENA_H

#include <stddef.h>

struct gn_arena_block;
struct gn_arena {
	struct gn_arena_block *blocks;
	size_t used; /* bytes of the first block that are allocated */
};

/*
 * Allocate zeroed memory, aligned for any type, valid until gn_arena_fini(). Returns NULL when out
 * of memory.
 */
void *gn_arena_alloc(struct gn_arena *arena, size_t bytes);

/* Copy length bytes and add a terminating 0. Returns NULL when out of memory. */
char *gn_arena_strndup(struct gn_arena *arena, const char *text, size_t length);

/* Copy a string. Returns NULL when out of memory. */
char *gn_arena_strdup(struct gn_arena *arena, const char *text);

/* Free all memory. The arena is empty afterwards, and can be used again. */
void gn_arena_fini(struct gn_arena *arena);

#endif
