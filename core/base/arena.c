/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/arena.h"

#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_BYTES 4000

struct gn_arena_block {
	struct gn_arena_block *next;
	size_t size; /* bytes of data */
	alignas(max_align_t) char data[];
};

void *gn_arena_alloc(struct gn_arena *arena, size_t bytes)
{
	size_t align = alignof(max_align_t), rounded = (bytes + align - 1) & ~(align - 1);
	struct gn_arena_block *block = arena->blocks;

	if (rounded < bytes || rounded > SIZE_MAX / 2)
		return NULL;
	if (!block || rounded > block->size - arena->used) {
		size_t size = rounded > BLOCK_BYTES ? rounded : BLOCK_BYTES;

		block = calloc(1, sizeof(*block) + size);
		if (!block)
			return NULL;
		block->size = size;
		block->next = arena->blocks;
		arena->blocks = block;
		arena->used = 0;
	}
	arena->used += rounded;
	return block->data + arena->used - rounded;
}

char *gn_arena_strndup(struct gn_arena *arena, const char *text, size_t length)
{
	char *copy = length < SIZE_MAX ? gn_arena_alloc(arena, length + 1) : NULL;

	if (copy)
		memcpy(copy, text, length);
	return copy;
}

char *gn_arena_strdup(struct gn_arena *arena, const char *text)
{
	return gn_arena_strndup(arena, text, strlen(text));
}

void gn_arena_fini(struct gn_arena *arena)
{
	struct gn_arena_block *block = arena->blocks;

	while (block) {
		struct gn_arena_block *next = block->next;

		free(block);
		block = next;
	}
	*arena = (struct gn_arena){0};
}
