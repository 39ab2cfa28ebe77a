/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * quick_map.c - small private mappings and memfds of quick_fd.c without system calls, for fuzz
 * targets with one thread
 *
 * A target links it with $(QUICK_MAP_LDFLAGS). A mapping is a block of malloc(). After munmap() its
 * entry in the table remains until another mapping needs it. Until then msync() fails as for memory
 * that is not mapped.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "fuzz/quick_fd.h"

#define MAPS 128
#define SMALL 262144
#define PAGE 4096u

static struct map {
	char *at;
	size_t size;
	bool used;
} maps[MAPS];
static unsigned n_maps, next; /* next: the entry to reuse after the first MAPS mappings */

void *__real_mmap(void *addr, size_t size, int prot, int flags, int fd, off_t offset);
int __real_munmap(void *addr, size_t size);
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
	abort();
}

void *__wrap_mmap(void *addr, size_t size, int prot, int flags, int fd, off_t offset)
{
	bool is_small = !addr && size <= SMALL && prot == (PROT_READ | PROT_WRITE) &&
			flags == (MAP_PRIVATE | MAP_ANONYMOUS);
	size_t whole = (size + PAGE - 1) / PAGE * PAGE;
	char *at;

	if (!is_small && !quick_fd_is_memory(fd))
		return __real_mmap(addr, size, prot, flags, fd, offset);
	at = aligned_alloc(PAGE, whole);
	if (!at)
		return MAP_FAILED;
	*place() = (struct map){.at = at, .size = size, .used = true};
	return memset(at, 0, whole);
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
	free(m->at);
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
