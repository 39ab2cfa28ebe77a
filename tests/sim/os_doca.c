/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * os_doca.c - the part of the kernel that only libgantry-doca uses: pages that are replaced at
 * their address, and the table of mappings
 *
 * doca/mmap/mmap_pages_move.c keeps the old pages in a pipe (vmsplice) while it maps other pages
 * over them. Then it reads from the pipe the last writes of threads to the old pages. Here the pipe
 * gets the contents when the pages are replaced: no thread can write the old pages afterwards.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "mmap/mmap_maps.h"
#include "os.h"

#define OVERS 256u /* replaced parts of the mappings of a process */
#define PIPE 65536u

extern size_t sim_proc_index(const struct sim_proc *proc);
int __wrap_atexit(void (*fn)(void));
int __wrap_gd_maps_read(uintptr_t from, uintptr_t to, struct gd_piece **pieces_p, size_t *n_p);

/* -- pages in a pipe: one range at a time, since the product moves pages under a lock -- */

static struct {
	struct sim_proc *proc;
	uint8_t *at;
	size_t bytes, done;
	bool replaced;
	uint8_t last[PIPE]; /* contents when the pages were replaced */
} pipes[SIM_PROCS];

static long hold_pages(const struct iovec *iov)
{
	struct sim_proc *proc = sim_proc_self();
	size_t index = sim_proc_index(proc);

	if (iov->iov_len > PIPE)
		return -EAGAIN;
	pipes[index].proc = proc;
	pipes[index].at = iov->iov_base;
	pipes[index].bytes = iov->iov_len;
	pipes[index].done = 0;
	pipes[index].replaced = false;
	return (long)iov->iov_len;
}

static void replaced(const struct sim_proc *proc, const uint8_t *at, size_t bytes)
{
	size_t index = sim_proc_index(proc);

	if (pipes[index].proc != proc || pipes[index].replaced || pipes[index].at < at ||
	    pipes[index].at + pipes[index].bytes > at + bytes)
		return;
	memcpy(pipes[index].last, pipes[index].at, pipes[index].bytes);
	pipes[index].replaced = true;
}

static long read_pipe(void *to, size_t bytes)
{
	struct sim_proc *proc = sim_proc_self();
	size_t index = sim_proc_index(proc), left = pipes[index].bytes - pipes[index].done;

	if (pipes[index].proc != proc || left == 0)
		return -EAGAIN;
	bytes = bytes < left ? bytes : left;
	memcpy(to,
	       (pipes[index].replaced ? pipes[index].last : pipes[index].at) + pipes[index].done,
	       bytes);
	pipes[index].done += bytes;
	return (long)bytes;
}

/* -- mappings over mappings -- */

/* A part of a mapping that another mapping has replaced. */
struct over {
	uint8_t *from, *to;
	uint64_t offset;
	struct gd_file file; /* file of the host; inode 0: anonymous memory */
	int prot;
};

static struct over overs[SIM_PROCS][OVERS];

static struct sim_map *map_of(struct sim_proc *proc, const uint8_t *at, size_t bytes)
{
	for (struct sim_map *map = proc->maps; map < proc->maps + SIM_MAPS; map++)
		if (map->at && at >= map->at && at + bytes <= map->at + map->bytes)
			return map;
	return NULL;
}

static void add_over(struct sim_proc *proc, const struct over *over)
{
	if (proc->n_overs == OVERS)
		sim_fail("%s: more than %u mappings over others", proc->name, OVERS);
	overs[sim_proc_index(proc)][proc->n_overs++] = *over;
}

/* Remove the part of each older mapping that the new mapping replaces. */
static void cut_overs(struct sim_proc *proc, uint8_t *from, uint8_t *to)
{
	struct over *all = overs[sim_proc_index(proc)], tails[8];
	uint32_t n = proc->n_overs, kept = 0, n_tails = 0;

	for (uint32_t i = 0; i < n; i++) {
		struct over o = all[i];

		if (!map_of(proc, o.from, (size_t)(o.to - o.from)))
			continue; /* the older mapping was unmapped */
		if (o.from < to && o.to > to && n_tails < 8) {
			tails[n_tails] = o;
			tails[n_tails].offset += (uint64_t)(to - o.from);
			tails[n_tails++].from = to;
		}
		if (o.to > from && o.from < to)
			o.to = from;
		if (o.from < o.to)
			all[kept++] = o;
	}
	proc->n_overs = kept;
	for (uint32_t i = 0; i < n_tails; i++)
		add_over(proc, &tails[i]);
}

static void note_over(struct sim_proc *proc, uint8_t *at, size_t bytes, int prot, int real,
		      off_t offset)
{
	struct over over = {.from = at, .to = at + bytes, .offset = (uint64_t)offset, .prot = prot};
	struct stat st;

	if (real >= 0 && fstat(real, &st) == 0)
		over.file = (struct gd_file){st.st_dev, st.st_ino};
	cut_overs(proc, over.from, over.to);
	add_over(proc, &over);
}

long sim_map_over(void *at, size_t bytes, int prot, int flags, int fd, off_t offset)
{
	struct sim_proc *proc = sim_proc_self();
	struct sim_file *file = flags & MAP_ANONYMOUS ? NULL : sim_fd_file(fd);
	int real = file ? sim_memory_fd(file) : -1;

	bytes = (bytes + 4095) & ~(size_t)4095;
	if (!map_of(proc, at, bytes))
		sim_fail("%s: a mapping over none", proc->name);
	if (real < 0 && !(flags & MAP_ANONYMOUS))
		return -ENODEV;
	sim_drain_all(); /* the kernel interrupts the processors that have the old pages */
	replaced(proc, at, bytes);
	if (mmap(at, bytes, prot, flags, real, offset) == MAP_FAILED)
		return -errno;
	note_over(proc, at, bytes, prot, real, offset);
	sim_note((uint64_t)bytes << 8 | 9);
	return (long)at;
}

/* Move a private mapping over another mapping. */
static long move_over(uint8_t *old, size_t bytes, int flags, uint8_t *at)
{
	struct sim_proc *proc = sim_proc_self();
	struct sim_map *from = map_of(proc, old, bytes);

	if (!from || from->at != old || from->bytes != bytes || from->file ||
	    !map_of(proc, at, bytes))
		sim_fail("%s: mremap in a way that is not simulated", proc->name);
	sim_drain_all();
	if (mremap(old, bytes, bytes, flags, at) == MAP_FAILED)
		return -errno;
	*from = (struct sim_map){0};
	note_over(proc, at, bytes, PROT_READ | PROT_WRITE, -1, 0);
	return (long)at;
}

/* -- the table of mappings -- */

static int compare_pieces(const void *a, const void *b)
{
	const struct gd_piece *x = a, *y = b;

	return x->from < y->from ? -1 : x->from > y->from;
}

static int append(struct gd_piece **pieces_p, size_t *n_p, const struct gd_piece *piece,
		  uintptr_t from, uintptr_t to)
{
	struct gd_piece *more, p = *piece;

	if (p.to <= from || p.from >= to || p.from >= p.to)
		return 0;
	if (p.from < from) {
		p.offset += from - p.from;
		p.from = from;
	}
	if (p.to > to)
		p.to = to;
	more = realloc(*pieces_p, (*n_p + 1) * sizeof(**pieces_p));
	if (!more)
		return -ENOMEM;
	more[(*n_p)++] = p;
	*pieces_p = more;
	return 0;
}

static struct gd_piece piece_of_map(const struct sim_map *map)
{
	struct gd_piece piece = {.from = (uintptr_t)map->at,
				 .to = (uintptr_t)map->at + map->bytes,
				 .fd = -1,
				 .prot = PROT_READ | PROT_WRITE,
				 .shared = map->file != NULL};
	int real = map->file ? sim_memory_fd(map->file) : -1;
	struct stat st;

	if (real >= 0 && fstat(real, &st) == 0)
		piece.file = (struct gd_file){st.st_dev, st.st_ino};
	return piece;
}

/* Append the parts of a mapping that no other mapping has replaced. */
static int append_map(struct sim_proc *proc, const struct sim_map *map, uintptr_t from,
		      uintptr_t to, struct gd_piece **pieces_p, size_t *n_p)
{
	const struct over *all = overs[sim_proc_index(proc)];
	struct gd_piece piece = piece_of_map(map);
	uintptr_t at = piece.from, end = piece.to;
	int rc = 0;

	while (at < end && rc == 0) {
		uintptr_t next = end, over_to = end;

		for (uint32_t i = 0; i < proc->n_overs; i++) {
			uintptr_t of = (uintptr_t)all[i].from, ot = (uintptr_t)all[i].to;

			if (ot > at && of < next) {
				next = of > at ? of : at;
				over_to = ot;
			}
		}
		piece.from = at;
		piece.to = next;
		piece.area_from = at;
		piece.area_to = next;
		rc = append(pieces_p, n_p, &piece, from, to);
		at = next == end ? end : over_to;
	}
	return rc;
}

int __wrap_gd_maps_read(uintptr_t from, uintptr_t to, struct gd_piece **pieces_p, size_t *n_p)
{
	struct sim_proc *proc = sim_proc_self();
	size_t first = *n_p;
	int rc = 0;

	sim_call();
	cut_overs(proc, NULL, NULL); /* drops the entries of unmapped memory */
	for (const struct sim_map *map = proc->maps; map < proc->maps + SIM_MAPS && rc == 0; map++)
		if (map->at)
			rc = append_map(proc, map, from, to, pieces_p, n_p);
	for (uint32_t i = 0; i < proc->n_overs && rc == 0; i++) {
		const struct over *o = &overs[sim_proc_index(proc)][i];
		struct gd_piece piece = {.from = (uintptr_t)o->from,
					 .to = (uintptr_t)o->to,
					 .area_from = (uintptr_t)o->from,
					 .area_to = (uintptr_t)o->to,
					 .offset = o->offset,
					 .file = o->file,
					 .prot = o->prot,
					 .shared = o->file.inode != 0,
					 .fd = -1};

		rc = append(pieces_p, n_p, &piece, from, to);
	}
	if (rc == 0 && *n_p > first)
		qsort(*pieces_p + first, *n_p - first, sizeof(**pieces_p), compare_pieces);
	return rc;
}

/* -- system calls by number -- */

/* Returns the host's descriptor for a descriptor of the process. */
static int real_fd(unsigned long fd)
{
	struct sim_file *file = sim_fd_file((int)fd);

	return file ? sim_memory_fd(file) : -1;
}

static long result_of(long rc)
{
	return rc < 0 ? -errno : rc;
}

bool sim_syscall_doca(long number, const unsigned long a[6], long *result)
{
	const struct iovec *iov;

	switch (number) {
	case SYS_mmap:
		*result = sim_map_over((void *)a[0], a[1], (int)a[2], (int)a[3], (int)a[4],
				       (off_t)a[5]);
		return true;
	case SYS_mremap:
		*result = move_over((uint8_t *)a[0], a[1], (int)a[3], (uint8_t *)a[4]);
		return true;
	case SYS_madvise:
		*result = result_of(madvise((void *)a[0], a[1], (int)a[2]));
		return true;
	case SYS_vmsplice:
		*result = hold_pages((const struct iovec *)a[1]);
		return true;
	case SYS_read:
		*result = read_pipe((void *)a[1], a[2]);
		return true;
	case SYS_process_vm_readv:
		iov = (const struct iovec *)a[3];
		memcpy(((const struct iovec *)a[1])->iov_base, iov->iov_base, iov->iov_len);
		*result = (long)iov->iov_len;
		return true;
	case SYS_pwrite64:
		*result = result_of(pwrite(real_fd(a[0]), (const void *)a[1], a[2], (off_t)a[3]));
		return true;
	case SYS_pread64:
		*result = result_of(pread(real_fd(a[0]), (void *)a[1], a[2], (off_t)a[3]));
		return true;
	default:
		return false;
	}
}

/* -- the end of a process -- */

int __wrap_atexit(void (*fn)(void))
{
	struct sim_proc *proc = sim_proc_self();

	if (proc->n_at_exit == SIM_AT_EXIT)
		sim_fail("%s: more than %u functions for exit()", proc->name, SIM_AT_EXIT);
	proc->at_exit[proc->n_at_exit++] = fn;
	return 0;
}

void sim_run_at_exit(void)
{
	struct sim_proc *proc = sim_proc_self();

	while (proc->n_at_exit != 0)
		proc->at_exit[--proc->n_at_exit]();
}
