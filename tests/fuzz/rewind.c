/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rewind.c - see rewind.h
 *
 * A block of the arena is a struct block followed by the memory of the caller. The whole arena is
 * poisoned for ASan, except the memory of allocated blocks.
 */
#include "fuzz/rewind.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "fuzz/asan.h"

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
void *__real_aligned_alloc(size_t align, size_t size);
int __real_posix_memalign(void **p, size_t align, size_t size);
void __real_free(void *p);
char *__real_strdup(const char *s);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);
void *__wrap_aligned_alloc(size_t align, size_t size);
int __wrap_posix_memalign(void **p, size_t align, size_t size);
void __wrap_free(void *p);
char *__wrap_strdup(const char *s);

#define ARENA_BYTES ((size_t)64 << 20)
#define REDZONE 16u
#define PART 512u
#define GLOBALS 1024

/* The description of a global variable that the compiler passes to ASan. */
struct global {
	uintptr_t at;
	size_t size, size_with_redzone;
	const char *name, *module;
	uintptr_t has_dynamic_init;
	void *location;
	uintptr_t odr_indicator;
};

enum { FREED = 0x46524545, ALLOCATED = 0x414c4c4f };

struct block {
	struct block *previous;
	size_t size;
	void *caller;
	uint32_t state, unused;
};

/* A part of a block or of a global variable. copy NULL: all of it is zero. */
struct saved {
	char *at, *copy;
	size_t size;
};

/* Words at any address. A `wide` is a vector: one instruction copies or tests 16 bytes. */
typedef uint64_t word __attribute__((aligned(1), may_alias));
typedef uint64_t wide __attribute__((vector_size(16), aligned(1), may_alias));

static struct {
	struct global globals[GLOBALS]; /* global variables of all object files of the target */
	unsigned n_globals;
	struct saved *saved;
	size_t n_saved, max_saved;
	char *arena, *at;
	struct block *last;
	unsigned count;
	bool is_active, is_marked;
	/* the state at rewind_mark() */
	char *at_then;
	struct block *last_then, **blocks; /* blocks: the allocated blocks, count_then of them */
	unsigned count_then;
} r;

#if WITH_ASAN
extern char __data_start[], _end[];

void __real___asan_register_globals(struct global *globals, uintptr_t n);
void __wrap___asan_register_globals(struct global *globals, uintptr_t n);

UNSEEN void __wrap___asan_register_globals(struct global *globals, uintptr_t n)
{
	for (uintptr_t i = 0; i < n; i++) {
		int is_ours = globals[i].at >= (uintptr_t)&r && globals[i].at < (uintptr_t)(&r + 1);

		if (globals[i].at < (uintptr_t)__data_start || globals[i].at >= (uintptr_t)_end ||
		    is_ours)
			continue;
		if (r.n_globals == GLOBALS)
			abort();
		r.globals[r.n_globals++] = globals[i];
	}
	__real___asan_register_globals(globals, n);
}
#endif

static void fail(const char *what)
{
	fprintf(stderr, "rewind: %s\n", what);
	abort();
}

static void open_arena(void)
{
	r.arena = mmap(NULL, ARENA_BYTES, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (r.arena == MAP_FAILED)
		fail("no arena");
	__asan_poison_memory_region(r.arena, ARENA_BYTES);
	__lsan_register_root_region(r.arena, ARENA_BYTES);
	r.at = r.arena;
}

/* Replaces memcpy(), which ASan checks: blocks may be poisoned. */
UNSEEN static void copy_bytes(char *to, const char *from, size_t size)
{
	size_t i = 0;

	for (; i + 64 <= size; i += 64) {
		wide a = *(const wide *)(from + i), b = *(const wide *)(from + i + 16);
		wide c = *(const wide *)(from + i + 32), d = *(const wide *)(from + i + 48);

		*(wide *)(to + i) = a;
		*(wide *)(to + i + 16) = b;
		*(wide *)(to + i + 32) = c;
		*(wide *)(to + i + 48) = d;
	}
	for (; i + 8 <= size; i += 8)
		*(volatile word *)(to + i) = *(const word *)(from + i);
	for (; i < size; i++)
		((volatile char *)to)[i] = from[i];
}

UNSEEN static bool is_zero(const char *at, size_t size)
{
	wide a = {0}, b = {0}, c = {0}, d = {0};
	word bits = 0;
	size_t i = 0;

	for (; i + 64 <= size; i += 64) {
		a |= *(const wide *)(at + i);
		b |= *(const wide *)(at + i + 16);
		c |= *(const wide *)(at + i + 32);
		d |= *(const wide *)(at + i + 48);
	}
	a |= b | c | d;
	for (; i + 8 <= size; i += 8)
		bits |= *(const word *)(at + i);
	for (; i < size; i++)
		bits |= (word)at[i];
	return !(a[0] | a[1] | bits);
}

/* Clear memory; checks first, as most of it is still zero. */
UNSEEN static void clear(char *at, size_t size)
{
	static const char zeros[PART];

	for (size_t i = 0; i < size; i += PART) {
		size_t n = size - i < PART ? size - i : PART;

		if (!is_zero(at + i, n))
			copy_bytes(at + i, zeros, n);
	}
}

UNSEEN static void restore(void)
{
	for (unsigned i = 0; i < r.count_then; i++)
		if (r.blocks[i]->state == FREED)
			__asan_unpoison_memory_region(r.blocks[i] + 1, r.blocks[i]->size);
	for (size_t i = 0; i < r.n_saved; i++) {
		const struct saved *s = &r.saved[i];

		if (s->copy)
			copy_bytes(s->at, s->copy, s->size);
		else
			clear(s->at, s->size);
	}
	__asan_poison_memory_region(r.at_then, (size_t)(r.at - r.at_then));
	r.at = r.at_then;
	r.last = r.last_then;
	r.count = r.count_then;
}

/*
 * Clear the stack, so that print_hash() prints the same hash in each run of an input: old bytes of
 * the stack get into the padding of structs, which the hash includes.
 */
UNSEEN static __attribute__((noinline)) void clear_stack(void)
{
	volatile char below[65536];

	for (size_t i = 0; i < sizeof(below); i++)
		below[i] = 0;
}

bool rewind_begin(void)
{
	if (!WITH_ASAN || getenv("GANTRY_FUZZ_HEAP"))
		return false;
	if (!r.arena)
		open_arena();
	if (r.is_marked)
		restore();
	if (getenv("GANTRY_FUZZ_STATE"))
		clear_stack();
	r.is_active = true;
	return r.is_marked;
}

UNSEEN static void save_part(char *at, size_t size)
{
	bool zero = is_zero(at, size);
	struct saved *s = r.n_saved ? &r.saved[r.n_saved - 1] : NULL;

	if (s && zero && !s->copy && s->at + s->size == at) {
		s->size += size;
		return;
	}
	if (r.n_saved == r.max_saved) {
		r.max_saved = r.max_saved * 2 + 1024;
		r.saved = __real_realloc(r.saved, r.max_saved * sizeof(*r.saved));
		if (!r.saved)
			fail("no memory");
	}
	s = &r.saved[r.n_saved++];
	*s = (struct saved){at, zero ? NULL : __real_malloc(size), size};
	if (s->copy)
		copy_bytes(s->copy, at, size);
}

/* Save memory. A block that is all zero, as most large blocks are, needs no copy. */
static void save(char *at, size_t size)
{
	for (size_t i = 0; i < size; i += PART)
		save_part(at + i, size - i < PART ? size - i : PART);
}

/* Save all allocated blocks. Sizes are rounded up, into the redzone. */
UNSEEN static void save_blocks(void)
{
	unsigned n = 0;

	r.blocks = __real_calloc(r.count, sizeof(struct block *));
	if (!r.blocks)
		fail("no memory");
	for (struct block *b = r.last; b; b = b->previous)
		if (b->state == ALLOCATED) {
			r.blocks[n++] = b;
			save((char *)b, sizeof(*b) + (b->size + 7) / 8 * 8);
		}
}

void rewind_mark(void)
{
	if (!r.is_active)
		return;
	r.at_then = r.at;
	r.last_then = r.last;
	r.count_then = r.count;
	save_blocks();
	for (unsigned i = 0; i < r.n_globals; i++)
		save((char *)r.globals[i].at, r.globals[i].size);
	r.is_marked = true;
}

/* Align the arena to 8 bytes, the granularity of poisoning. */
static void align_arena(void)
{
	r.at += -(uintptr_t)r.at % 8;
}

UNSEEN void rewind_trim(void)
{
	char *end = r.at;

	if (!r.is_active)
		return;
	while (r.last && r.last->state == FREED)
		r.last = r.last->previous;
	r.at = r.last ? (char *)(r.last + 1) + r.last->size + REDZONE : r.arena;
	align_arena();
	__asan_poison_memory_region(r.at, (size_t)(end - r.at));
}

unsigned rewind_count(void)
{
	return r.count;
}

UNSEEN static void list_blocks(void)
{
	for (struct block *b = r.last; b; b = b->previous) {
		char text[256];

		if (b->state != ALLOCATED)
			continue;
		__sanitizer_symbolize_pc(b->caller, "%f %s:%l", text, sizeof(text));
		fprintf(stderr, "rewind: %zu bytes, allocated by %s\n", b->size, text);
	}
}

/* Hash the bytes: the result differs if any byte differs. */
UNSEEN static uint64_t hash_of(uint64_t hash, const char *at, size_t size)
{
	for (size_t i = 0; i < size; i++)
		hash = (hash ^ (uint8_t)at[i]) * 0x100000001b3;
	return hash;
}

/* Print a hash of the state after an input, which order.sh compares between runs of the input. */
UNSEEN static void print_hash(void)
{
	uint64_t hash = 0xcbf29ce484222325;

	for (struct block *b = r.last; b; b = b->previous)
		hash = hash_of(hash_of(hash, (char *)&b->size, sizeof(b->size)), (char *)(b + 1),
			       b->size);
	for (unsigned i = 0; i < r.n_globals; i++)
		hash = hash_of(hash, (const char *)r.globals[i].at, r.globals[i].size);
	fprintf(stderr, "state %016llx\n", (unsigned long long)hash);
}

void rewind_end(unsigned n)
{
	if (!r.is_active)
		return;
	r.is_active = false;
	if (getenv("GANTRY_FUZZ_STATE"))
		print_hash();
	if (r.count == n)
		return;
	fprintf(stderr, "rewind: %u blocks are allocated, not %u\n", r.count, n);
	list_blocks();
	abort();
}

UNSEEN static bool in_arena(const void *p)
{
	return r.arena && (uintptr_t)p - (uintptr_t)r.arena < ARENA_BYTES;
}

UNSEEN static struct block *block_of(void *p)
{
	return (struct block *)((char *)p - sizeof(struct block));
}

UNSEEN static void *allocate(size_t size, size_t align, void *caller)
{
	struct block *b;
	char *p;

	p = r.at + sizeof(*b);
	p += -(uintptr_t)p % (align < 16 ? 16 : align);
	if (size > (size_t)(r.arena + ARENA_BYTES - p) - REDZONE)
		fail("the arena is full");
	b = block_of(p);
	b->previous = r.last;
	b->size = size;
	b->caller = caller;
	b->state = ALLOCATED;
	r.last = b;
	r.count++;
	r.at = p + size + REDZONE;
	align_arena();
	__asan_unpoison_memory_region(p, size);
	return p;
}

/* Fill memory, so that it has the same contents in each run of an input. */
static void *filled(void *p, int byte, size_t size)
{
	return memset(p, byte, size);
}

UNSEEN static size_t release(void *p)
{
	struct block *b = block_of(p);

	if (b->state != ALLOCATED)
		fail(b->state == FREED ? "freed twice" : "freed, but not allocated");
	b->state = FREED;
	r.count--;
	__asan_poison_memory_region(p, b->size);
	return b->size;
}

UNSEEN static size_t size_of(void *p)
{
	return block_of(p)->size;
}

void *__wrap_malloc(size_t size)
{
	return r.is_active ? filled(allocate(size, 16, __builtin_return_address(0)), 0xbe, size)
			   : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
	size_t all;

	if (!r.is_active)
		return __real_calloc(n, size);
	if (__builtin_mul_overflow(n, size, &all))
		return NULL;
	return filled(allocate(all, 16, __builtin_return_address(0)), 0, all);
}

void *__wrap_realloc(void *p, size_t size)
{
	size_t old = 0;
	char *to;

	if (p ? !in_arena(p) : !r.is_active)
		return __real_realloc(p, size);
	to = filled(allocate(size, 16, __builtin_return_address(0)), 0xbe, size);
	if (p) {
		old = size_of(p);
		memcpy(to, p, old < size ? old : size);
		release(p);
	}
	return to;
}

void *__wrap_aligned_alloc(size_t align, size_t size)
{
	if (!r.is_active)
		return __real_aligned_alloc(align, size);
	return filled(allocate(size, align, __builtin_return_address(0)), 0xbe, size);
}

int __wrap_posix_memalign(void **p, size_t align, size_t size)
{
	if (!r.is_active)
		return __real_posix_memalign(p, align, size);
	*p = filled(allocate(size, align, __builtin_return_address(0)), 0xbe, size);
	return 0;
}

void __wrap_free(void *p)
{
	if (in_arena(p))
		release(p);
	else
		__real_free(p);
}

char *__wrap_strdup(const char *s)
{
	size_t size = strlen(s) + 1;

	if (!r.is_active)
		return __real_strdup(s);
	return memcpy(allocate(size, 16, __builtin_return_address(0)), s, size);
}
