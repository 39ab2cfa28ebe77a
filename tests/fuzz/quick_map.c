/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * quick_map.c - small private mappings without system calls, for fuzz targets with one thread
 *
 * A target links it with $(QUICK_MAP_LDFLAGS). A mapping that is gone stays mapped for the next one
 * of its size: ASan knows that nothing may touch it meanwhile, and msync() fails as it does for
 * memory that is not mapped.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#if defined(__SANITIZE_ADDRESS__)
#define WITH_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WITH_ASAN 1
#endif
#endif
#ifdef WITH_ASAN
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(addr, size) ((void)(addr), (void)(size))
#define ASAN_UNPOISON_MEMORY_REGION(addr, size) ((void)(addr), (void)(size))
#endif

#define MAPS 128
#define SMALL 65536

static struct map {
	char *at;
	size_t size;
	bool used;
} maps[MAPS];
static unsigned n_maps;

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
	for (unsigned i = 0; i < n_maps; i++)
		if ((uintptr_t)addr - (uintptr_t)maps[i].at < maps[i].size)
			return &maps[i];
	return NULL;
}

static void *use(struct map *m)
{
	ASAN_UNPOISON_MEMORY_REGION(m->at, m->size);
	memset(m->at, 0, m->size);
	m->used = true;
	return m->at;
}

void *__wrap_mmap(void *addr, size_t size, int prot, int flags, int fd, off_t offset)
{
	void *at;

	if (addr || size > SMALL || prot != (PROT_READ | PROT_WRITE) ||
	    flags != (MAP_PRIVATE | MAP_ANONYMOUS))
		return __real_mmap(addr, size, prot, flags, fd, offset);
	for (unsigned i = 0; i < n_maps; i++)
		if (!maps[i].used && maps[i].size == size)
			return use(&maps[i]);
	at = __real_mmap(addr, size, prot, flags, fd, offset);
	if (at != MAP_FAILED && n_maps < MAPS)
		maps[n_maps++] = (struct map){.at = at, .size = size, .used = true};
	return at;
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
	ASAN_POISON_MEMORY_REGION(m->at, m->size);
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
