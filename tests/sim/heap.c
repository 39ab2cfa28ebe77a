/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * heap.c - malloc() of this program: memory that a simulated process allocates, also inside
 * libraries, comes from its arena
 *
 * An arena is reset when its process ends, so nothing of a killed process remains, and addresses
 * are the same in each run of a seed. Fresh and freed memory is filled with patterns, so an invalid
 * read of it returns the same in each run.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <gantry/branch.h>

#include "proc.h"

#define ARENA_BYTES ((size_t)96 << 20)
#define UNIT 16u
/* bytes; smaller sizes have a bin each, larger ones share one for each power of two */
#define SMALL 2048u
#define SMALL_BINS (SMALL / UNIT + 1)
#define BINS (SMALL_BINS + 32)
#define FILL 0xa5
#define FREED 0xdb
#define FILLED_BYTES 65536u /* fill at most this much of a fresh or freed block, to save time */

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t n, size_t bytes);
void *__libc_realloc(void *memory, size_t bytes);
void *__libc_memalign(size_t align, size_t bytes);
void __libc_free(void *memory);

struct block {
	size_t bytes; /* of the whole block with its header */
	/*
	 * the header at the start of the block: this one, unless it is a second header, directly
	 * before the pointer that memalign() returned
	 */
	struct block *start;
};
struct free_block {
	struct block block;
	struct free_block *next;
};

struct sim_arena {
	uint8_t *memory;
	size_t top, used;
	struct free_block *bins[BINS];
};

static struct sim_arena arenas[SIM_PROCS];
static size_t n_arenas;
static uint8_t *first_arena;

static struct sim_arena *arena_of(const void *memory)
{
	size_t at = (size_t)((const uint8_t *)memory - first_arena);

	return first_arena && at < n_arenas * ARENA_BYTES ? &arenas[at / ARENA_BYTES] : NULL;
}

struct sim_arena *sim_arena_new(void)
{
	if (!first_arena) {
		first_arena = mmap(
			(void *)0x100000000000, SIM_PROCS * ARENA_BYTES, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
		if (first_arena == MAP_FAILED)
			sim_fail("no address space for heaps");
	}
	if (n_arenas == SIM_PROCS)
		sim_fail("too many heaps");
	arenas[n_arenas].memory = first_arena + n_arenas * ARENA_BYTES;
	return &arenas[n_arenas++];
}

void sim_arena_reset(struct sim_arena *arena)
{
	arena->top = arena->used = 0;
	memset(arena->bins, 0, sizeof(arena->bins));
}

size_t sim_arena_used(const struct sim_arena *arena)
{
	return arena->used;
}

/* Returns the bin for `bytes`, and rounds `bytes` up to the size of its blocks. */
static size_t bin_of(size_t *bytes)
{
	size_t bin = SMALL_BINS, limit = 2 * SMALL;

	if (*bytes <= SMALL)
		return *bytes / UNIT;
	while (*bytes > limit) {
		limit *= 2;
		bin++;
	}
	*bytes = limit;
	return bin;
}

static void *arena_alloc(struct sim_arena *arena, size_t bytes, size_t align)
{
	size_t whole, bin;
	struct block *block, *head;
	uint8_t *at;

	if (bytes > ARENA_BYTES / 2 || align > ARENA_BYTES / 2)
		return NULL;
	whole = (bytes + sizeof(struct block) + UNIT - 1) / UNIT * UNIT +
		(align > UNIT ? align : 0);
	if (whole < sizeof(struct free_block))
		whole = 2 * UNIT;
	bin = bin_of(&whole);
	if (arena->bins[bin]) {
		block = &arena->bins[bin]->block;
		arena->bins[bin] = arena->bins[bin]->next;
	} else {
		if (whole > ARENA_BYTES - arena->top)
			return NULL;
		block = (struct block *)(arena->memory + arena->top);
		arena->top += whole;
		block->bytes = whole;
	}
	at = (uint8_t *)(block + 1);
	if (align > UNIT)
		at += (align - (uintptr_t)at % align) % align;
	head = (struct block *)at - 1;
	head->start = block;
	if (head != block)
		head->bytes = block->bytes;
	arena->used += block->bytes;
	return at;
}

static size_t room_of(void *memory)
{
	struct block *block = ((struct block *)memory - 1)->start;

	return block->bytes - (size_t)((uint8_t *)memory - (uint8_t *)block);
}

static void arena_free(struct sim_arena *arena, void *memory)
{
	struct block *block = ((struct block *)memory - 1)->start;
	struct free_block *free_block = (struct free_block *)block;
	size_t bytes = block->bytes;

	arena->used -= bytes;
	/* the pattern makes a use after free visible */
	memset(memory, FREED, room_of(memory) < FILLED_BYTES ? room_of(memory) : FILLED_BYTES);
	free_block->next = arena->bins[bin_of(&bytes)];
	arena->bins[bin_of(&bytes)] = free_block;
}

/* Returns the arena of the running process. NULL: use the host's heap. */
static struct sim_arena *present_arena(void)
{
	struct sim_thread *t = sim_self();

	return t && t->proc ? t->proc->arena : NULL;
}

uint32_t sim_memory_failures;

bool sim_memory_fails(void)
{
	const struct sim_proc *proc = sim_self()->proc;
	bool fails = gantry_unlikely(proc->memory_fails_one_in != 0) && proc->memory_spared == 0 &&
		     sim_draw(proc->memory_fails_one_in) == 0;

	sim_memory_failures += fails;
	return fails;
}

static void *allocate(size_t bytes, size_t align, int fill)
{
	struct sim_arena *arena = present_arena();
	void *memory;

	memory = sim_memory_fails() ? NULL : arena_alloc(arena, bytes, align);
	if (!memory)
		errno = ENOMEM;
	else
		memset(memory, fill, fill == 0 || bytes < FILLED_BYTES ? bytes : FILLED_BYTES);
	return memory;
}

void *malloc(size_t bytes)
{
	return !present_arena() ? __libc_malloc(bytes) : allocate(bytes, UNIT, FILL);
}

void *calloc(size_t n, size_t bytes)
{
	size_t all;

	if (!present_arena())
		return __libc_calloc(n, bytes);
	if (__builtin_mul_overflow(n, bytes, &all)) {
		errno = ENOMEM;
		return NULL;
	}
	return allocate(all, UNIT, 0);
}

void free(void *memory)
{
	struct sim_arena *arena = arena_of(memory);

	if (!arena)
		__libc_free(memory);
	else
		arena_free(arena, memory);
}

void *realloc(void *memory, size_t bytes)
{
	struct sim_arena *arena = arena_of(memory);
	void *moved;
	size_t room;

	if (!memory)
		return malloc(bytes);
	if (!arena)
		return __libc_realloc(memory, bytes);
	room = room_of(memory);
	if (bytes <= room)
		return memory;
	moved = malloc(bytes);
	if (!moved)
		return NULL;
	memcpy(moved, memory, room);
	arena_free(arena, memory);
	return moved;
}

void *memalign(size_t align, size_t bytes);
void *memalign(size_t align, size_t bytes)
{
	return !present_arena() ? __libc_memalign(align, bytes) : allocate(bytes, align, FILL);
}

void *aligned_alloc(size_t align, size_t bytes)
{
	return memalign(align, bytes);
}

int posix_memalign(void **memory_p, size_t align, size_t bytes)
{
	void *memory = memalign(align, bytes);

	if (!memory)
		return ENOMEM;
	*memory_p = memory;
	return 0;
}

void *sim_host_alloc(size_t bytes)
{
	void *memory = __libc_calloc(1, bytes);

	if (!memory)
		sim_fail("out of memory");
	return memory;
}

void sim_host_free(void *memory)
{
	__libc_free(memory);
}
