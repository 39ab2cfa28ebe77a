/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * quick_map.c - small private mappings and memfds of quick_fd.c without system calls, for fuzz
 * targets with one thread
 *
 * A target links it with $(QUICK_MAP_LDFLAGS). A mapping is a block of malloc(), or a view of
 * memory that quick_map_share() has mapped. After munmap() its place in the table stays until
 * another mapping needs it: until then msync() fails as it does for memory that is not mapped.
 */
#include "fuzz/quick_map.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz/asan.h"
#include "fuzz/quick_fd.h"

#define MAPS 256
#define SHARED 4
#define VIEWS 64
#define SMALL 262144
#define PAGE 4096u

/*
 * A mapping of the system. mmap() returns a part of it; the other parts are poisoned for ASan, and
 * after munmap() the whole mapping is.
 */
struct view {
	char *at;
	bool used;
};

/* The memory of a memfd. */
static struct shared {
	size_t size;
	struct view views[2][VIEWS]; /* [0]: for reading; [1]: for reading and writing */
} shared[SHARED];
static unsigned n_shared;

static struct map {
	char *at;
	size_t size;
	bool used;
	struct view *view; /* NULL: `at` is a block of malloc() */
} maps[MAPS];
static unsigned n_maps, next; /* next: the entry to reuse after the first MAPS mappings */

void *__real_mmap(void *addr, size_t size, int prot, int flags, int fd, off_t offset);
int __real_munmap(void *addr, size_t size);
int __real_memfd_create(const char *name, unsigned flags);
int __real_ftruncate(int fd, off_t length);
int __real_close(int fd);
int __real_madvise(void *addr, size_t size, int advice);
int __real_msync(void *addr, size_t size, int flags);
void *__wrap_mmap(void *addr, size_t size, int prot, int flags, int fd, off_t offset);
int __wrap_munmap(void *addr, size_t size);
int __wrap_madvise(void *addr, size_t size, int advice);
int __wrap_msync(void *addr, size_t size, int flags);

static struct map *find(const void *addr)
{
	struct map *old = NULL;

	for (unsigned i = 0; i < n_maps; i++)
		if ((uintptr_t)addr - (uintptr_t)maps[i].at < maps[i].size) {
			if (maps[i].used)
				return &maps[i];
			old = &maps[i];
		}
	return old;
}

static struct map *place(void)
{
	if (n_maps < MAPS)
		return &maps[n_maps++];
	for (unsigned i = 0; i < MAPS; i++) {
		struct map *m = &maps[next++ % MAPS];

		if (!m->used)
			return m;
	}
	return NULL;
}

unsigned quick_map_count(void)
{
	unsigned n = 0;

	for (unsigned i = 0; i < n_maps; i++)
		n += maps[i].used;
	return n;
}

static char *map_whole(int memory, size_t size, int prot)
{
	char *at = __real_mmap(NULL, size, prot, MAP_SHARED, memory, 0);

	if (at == MAP_FAILED)
		abort();
	return at;
}

char *quick_map_share(int fd, size_t size)
{
	struct shared *s = &shared[n_shared++];
	int memory = __real_memfd_create("fuzz", MFD_CLOEXEC);
	char *at;

	if (n_shared > SHARED || memory < 0 || __real_ftruncate(memory, (off_t)size))
		abort();
	s->size = size;
	for (unsigned i = 0; i < VIEWS; i++) {
		s->views[0][i].at = map_whole(memory, size, PROT_READ);
		s->views[1][i].at = map_whole(memory, size, PROT_READ | PROT_WRITE);
		__asan_poison_memory_region(s->views[0][i].at, size);
		__asan_poison_memory_region(s->views[1][i].at, size);
	}
	at = map_whole(memory, size, PROT_READ | PROT_WRITE);
	__real_close(memory);
	quick_fd_set_memory(fd, s);
	return at;
}

static void *fail(int err)
{
	errno = err;
	return MAP_FAILED;
}

static void *map_view(struct shared *s, size_t size, int prot, int fd, off_t offset)
{
	bool writes = prot & PROT_WRITE;
	struct view *v = s->views[writes], *end = v + VIEWS;
	struct map *m;

	if (writes && fcntl(fd, F_GET_SEALS) & (F_SEAL_WRITE | F_SEAL_FUTURE_WRITE))
		return fail(EPERM);
	if ((size_t)offset > s->size || size > s->size - (size_t)offset)
		abort(); /* an access would raise SIGBUS */
	while (v < end && v->used)
		v++;
	m = v < end ? place() : NULL;
	if (!m)
		return fail(ENOMEM);
	v->used = true;
	*m = (struct map){.at = v->at + offset, .size = size, .used = true, .view = v};
	__asan_unpoison_memory_region(m->at, size);
	return m->at;
}

static void *map_block(size_t size)
{
	size_t whole = (size + PAGE - 1) / PAGE * PAGE;
	char *at = aligned_alloc(PAGE, whole);
	struct map *m = place();

	if (!at || !m) {
		free(at);
		return fail(ENOMEM);
	}
	*m = (struct map){.at = at, .size = size, .used = true};
	return memset(at, 0, whole);
}

void *__wrap_mmap(void *addr, size_t size, int prot, int flags, int fd, off_t offset)
{
	bool is_small = !addr && size <= SMALL && prot == (PROT_READ | PROT_WRITE) &&
			flags == (MAP_PRIVATE | MAP_ANONYMOUS);
	struct shared *s = quick_fd_memory(fd);

	if (s)
		return map_view(s, size, prot, fd, offset);
	return is_small || quick_fd_is_memory(fd)
		       ? map_block(size)
		       : __real_mmap(addr, size, prot, flags, fd, offset);
}

int __wrap_munmap(void *addr, size_t size)
{
	struct map *m = find(addr);

	if (!m)
		return __real_munmap(addr, size);
	if (!m->used || addr != m->at || size != m->size) {
		errno = EINVAL;
		return -1;
	}
	if (m->view) {
		__asan_poison_memory_region(m->at, m->size);
		m->view->used = false;
	} else {
		free(m->at);
	}
	m->used = false;
	return 0;
}

int __wrap_madvise(void *addr, size_t size, int advice)
{
	return find(addr) ? 0 : __real_madvise(addr, size, advice);
}

int __wrap_msync(void *addr, size_t size, int flags)
{
	const struct map *m = find(addr);

	if (!m)
		return __real_msync(addr, size, flags);
	if (m->used)
		return 0;
	errno = ENOMEM;
	return -1;
}
