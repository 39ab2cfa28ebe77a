/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * os_memory.c - memfd and mmap: shared memory of simulated processes
 *
 * A simulated memfd is a memfd of the host. Each process has a range of addresses of its own. Each
 * mapping gets addresses that were not used before: an access after munmap() faults, and addresses
 * are the same in each run of a seed.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "disk.h"

#define PAGE ((size_t)4096)
/* bytes; the host does not populate a memfd of this size or more: the product rarely fills it */
#define LAZY (1 << 20)

static size_t tops[SIM_PROCS]; /* used bytes of the range of each process */
extern size_t sim_proc_index(const struct sim_proc *proc);

/* -- memfd -- */

struct memory_file {
	struct sim_file file;
	int real;
	off_t lazy; /* bytes that the product has allocated, but the host has not */
};

static ssize_t memory_read(struct sim_file *file, void *to, size_t bytes, off_t offset)
{
	int fd = ((struct memory_file *)file)->real;
	ssize_t n = offset < 0 ? read(fd, to, bytes) : pread(fd, to, bytes, offset);

	return n < 0 ? -errno : n;
}

static ssize_t memory_write(struct sim_file *file, const void *from, size_t bytes, off_t offset)
{
	int fd = ((struct memory_file *)file)->real;
	ssize_t n = offset < 0 ? write(fd, from, bytes) : pwrite(fd, from, bytes, offset);

	return n < 0 ? -errno : n;
}

static int memory_stat(struct sim_file *file, struct stat *st)
{
	const struct memory_file *m = (const struct memory_file *)file;

	if (fstat(m->real, st) != 0)
		return -errno;
	if (m->lazy != 0)
		st->st_blocks = m->lazy / 512;
	return 0;
}

static int memory_truncate(struct sim_file *file, off_t bytes)
{
	return ftruncate(((struct memory_file *)file)->real, bytes) != 0 ? -errno : 0;
}

static int memory_allocate(struct sim_file *file, int mode, off_t offset, off_t bytes)
{
	struct memory_file *m = (struct memory_file *)file;

	if (mode == 0 && sim_memory_fails())
		return -ENOSPC;
	if (mode == 0 && offset == 0 && bytes >= LAZY) {
		m->lazy = bytes;
		return 0;
	}
	return fallocate(m->real, mode, offset, bytes) != 0 ? -errno : 0;
}

static int memory_fcntl(struct sim_file *file, int command, long arg)
{
	int rc = fcntl(((struct memory_file *)file)->real, command, arg);

	return rc < 0 ? -errno : rc;
}

static int memory_map(struct sim_file *file, void *at, size_t bytes, int prot, int flags,
		      off_t offset)
{
	return mmap(at, bytes, prot, flags | MAP_FIXED_NOREPLACE,
		    ((struct memory_file *)file)->real, offset) == MAP_FAILED
		       ? -errno
		       : 0;
}

static void memory_close(struct sim_file *file)
{
	close(((struct memory_file *)file)->real);
}

static const struct sim_file_ops memory_ops = {.kind = "memfd",
					       .read = memory_read,
					       .write = memory_write,
					       .stat = memory_stat,
					       .truncate = memory_truncate,
					       .allocate = memory_allocate,
					       .fcntl = memory_fcntl,
					       .map = memory_map,
					       .close = memory_close};

int sim_memory_fd(const struct sim_file *file)
{
	return file->ops == &memory_ops ? ((const struct memory_file *)file)->real : -1;
}

struct sim_file *sim_memory_reopen(struct sim_file *file, int flags)
{
	struct memory_file *m;
	char path[40];
	int real;

	if (file->ops != &memory_ops)
		return NULL;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", ((struct memory_file *)file)->real);
	real = open(path, flags | O_CLOEXEC);
	if (real < 0)
		return NULL;
	m = sim_file_new(&memory_ops, sizeof(*m), flags);
	m->real = real;
	m->lazy = ((struct memory_file *)file)->lazy;
	return &m->file;
}

int __wrap_memfd_create(const char *name, unsigned flags)
{
	struct memory_file *m;
	int real;

	sim_call();
	if (flags & MFD_HUGETLB || sim_memory_fails())
		return (int)sim_result(-ENOMEM);
	real = memfd_create(name, flags | MFD_CLOEXEC);
	if (real < 0)
		return -1;
	m = sim_file_new(&memory_ops, sizeof(*m), O_RDWR);
	m->real = real;
	return sim_fd_new(&m->file, flags & MFD_CLOEXEC);
}

/* -- mappings -- */

static size_t whole_pages(size_t bytes)
{
	return (bytes + PAGE - 1) / PAGE * PAGE;
}

static struct sim_map *find_map(struct sim_proc *proc, const void *at)
{
	for (struct sim_map *map = proc->maps; map < proc->maps + SIM_MAPS; map++)
		if (map->at == at)
			return map;
	return NULL;
}

/* Returns addresses that were never used, followed by an unused page. */
static uint8_t *fresh(const struct sim_proc *proc, size_t bytes)
{
	size_t index = sim_proc_index(proc);
	uint8_t *at = (uint8_t *)SIM_MAPPED + index * SIM_MAPPED_BYTES + tops[index];

	tops[index] += bytes + PAGE;
	if (tops[index] > SIM_MAPPED_BYTES)
		sim_fail("%s: no addresses left", proc->name);
	return at;
}

void *__wrap_mmap(void *wanted, size_t bytes, int prot, int flags, int fd, off_t offset)
{
	struct sim_proc *proc = sim_proc_self();
	struct sim_file *file = NULL;
	struct sim_map *map;
	uint8_t *at;
	int rc = 0;

	sim_call();
	map = find_map(proc, NULL);
	if (!map)
		sim_fail("%s: more than %u mappings", proc->name, SIM_MAPS);
	if (flags & MAP_FIXED) {
		rc = (int)sim_result(
			sim_map_over(wanted, bytes, prot, flags, fd, offset) < 0 ? -errno : 0);
		return rc == 0 ? wanted : MAP_FAILED;
	}
	if (flags & MAP_FIXED_NOREPLACE)
		sim_fail("%s: mmap at %p", proc->name, wanted);
	if (flags & MAP_HUGETLB || sim_memory_fails()) {
		errno = ENOMEM;
		return MAP_FAILED;
	}
	if (!(flags & MAP_ANONYMOUS)) {
		file = sim_fd_file(fd);
		if (!file || !file->ops->map) {
			errno = !file ? EBADF : ENODEV;
			return MAP_FAILED;
		}
	}
	at = fresh(proc, whole_pages(bytes));
	if (file)
		rc = file->ops->map(file, at, bytes, prot, flags, offset);
	else if (mmap(at, bytes, prot, flags | MAP_FIXED_NOREPLACE, -1, 0) == MAP_FAILED)
		rc = -errno;
	if (rc != 0) {
		errno = -rc;
		return MAP_FAILED;
	}
	if (file)
		sim_file_get(file);
	*map = (struct sim_map){.at = at,
				.bytes = whole_pages(bytes),
				.file = file,
				.is_private = (flags & MAP_PRIVATE) != 0};
	sim_note((uint64_t)bytes << 8 | 8);
	return at;
}

/* Forget a mapping. The caller unmaps its addresses. */
static void forget(struct sim_map *map)
{
	struct sim_file *file = map->file;

	*map = (struct sim_map){0};
	if (file)
		sim_file_put(file);
}

/* Unmaps a whole mapping, its beginning or its end. */
int __wrap_munmap(void *at, size_t bytes)
{
	struct sim_proc *proc = sim_proc_self();
	struct sim_map *map = proc->maps;
	uint8_t *from = at;

	sim_call();
	bytes = whole_pages(bytes);
	if (bytes == 0)
		return (int)sim_result(-EINVAL);
	while (map < proc->maps + SIM_MAPS &&
	       (!map->at || from < map->at || from + bytes > map->at + map->bytes))
		map++;
	if (map == proc->maps + SIM_MAPS ||
	    (from != map->at && from + bytes != map->at + map->bytes))
		sim_fail("%s: munmap of %zu bytes, which are no mapping, nor an end of one",
			 proc->name, bytes);
	munmap(at, bytes);
	if (bytes == map->bytes) {
		forget(map);
		return 0;
	}
	if (from == map->at)
		map->at += bytes;
	map->bytes -= bytes;
	return 0;
}

/* Supports only what core/memory does: a private copy replaces a shared mapping. */
void *__wrap_mremap(void *old, size_t old_bytes, size_t bytes, int flags, void *at)
{
	struct sim_proc *proc = sim_proc_self();
	struct sim_map *from, *to;
	struct sim_file *file;

	sim_call();
	sim_drain_all(); /* the kernel interrupts the processors that have the old pages */
	from = find_map(proc, old);
	to = find_map(proc, at);
	if (!(flags & MREMAP_FIXED) || old_bytes != bytes || !from || !to ||
	    to->bytes != from->bytes)
		sim_fail("%s: mremap in a way that is not simulated", proc->name);
	if (sim_memory_fails()) {
		errno = ENOMEM;
		return MAP_FAILED;
	}
	if (mremap(old, bytes, bytes, flags, at) == MAP_FAILED)
		return MAP_FAILED;
	file = to->file;
	to->file = from->file;
	to->is_private = from->is_private;
	*from = (struct sim_map){0};
	if (file)
		sim_file_put(file);
	return at;
}

static bool is_private(struct sim_proc *proc, const uint8_t *at)
{
	for (const struct sim_map *map = proc->maps; map < proc->maps + SIM_MAPS; map++)
		if (at >= map->at && at < map->at + map->bytes)
			return map->is_private;
	return false;
}

int __wrap_madvise(void *at, size_t bytes, int advice)
{
	sim_call();
	if ((advice == MADV_POPULATE_WRITE || advice == MADV_POPULATE_READ) && sim_memory_fails())
		return (int)sim_result(-ENOMEM);
	if (bytes >= LAZY && (advice == MADV_POPULATE_WRITE || advice == MADV_POPULATE_READ) &&
	    !is_private(sim_proc_self(), at))
		return 0;
	if (advice == MADV_DONTFORK)
		return 0; /* no simulated process forks */
	return madvise(at, bytes, advice);
}

void sim_maps_drop_all(struct sim_proc *proc)
{
	size_t index = sim_proc_index(proc);

	for (struct sim_map *map = proc->maps; map < proc->maps + SIM_MAPS; map++)
		if (map->at)
			forget(map);
	if (tops[index] != 0) /* one call, since each of them takes long in a virtual machine */
		munmap((uint8_t *)SIM_MAPPED + index * SIM_MAPPED_BYTES, tops[index]);
	tops[index] = 0;
}
