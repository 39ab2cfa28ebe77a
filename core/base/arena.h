/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * arena.h - small pieces of memory that live and die together, such as the strings of a
 * configuration.
 *
 * A zeroed struct is an empty arena. Belongs to one thread at a time.
 */
#ifndef GN_BASE_ARENA_H
#define GN_BASE_ARENA_H

#include <stddef.h>

struct gn_arena_block;
struct gn_arena {
	struct gn_arena_block *blocks;
	size_t used; /* bytes of the first block that are given out */
};

/*
 * Zeroed memory, aligned for any type, until gn_arena_fini. Returns NULL when there is no memory.
 */
void *gn_arena_alloc(struct gn_arena *arena, size_t bytes);

/* Copies length bytes and terminates them. Returns NULL when there is no memory. */
char *gn_arena_strndup(struct gn_arena *arena, const char *text, size_t length);

/* Copies a string. Returns NULL when there is no memory. */
char *gn_arena_strdup(struct gn_arena *arena, const char *text);

/* Frees everything; the arena is empty and usable again. */
void gn_arena_fini(struct gn_arena *arena);

#endif
