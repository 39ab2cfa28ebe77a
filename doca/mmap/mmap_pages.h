/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mmap_pages.h - pages of this process that other processes can map, converted in place
 *
 * The pages are in sparse memfds; the offset of a page in its memfd equals the address of the page.
 * Each range has its own memfd, so that a process with the descriptor can map nothing else. Ranges
 * with common pages share their memfds.
 */
#ifndef GD_PAGES_H
#define GD_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* maximum number of runs of a range; more than one if other ranges have some of its pages */
#define GD_RUNS 8u

/* Consecutive pages of a range in one memfd. */
struct gd_run {
	int fd;
	uint64_t from, to; /* first address and end; offsets in the memfd are the same */
};

/*
 * Move all pages of the range, with their content, into memfds and count a hold. Other threads may
 * read and write the pages meanwhile, except for atomic operations and stack frames, see
 * mmap_pages_move.c. write: other processes will write them. common: use the one memfd of all
 * common ranges; each process that gets it can read all of these ranges. Any thread. Returns 0, or
 *     -EFAULT      the range is not completely mapped
 *     -EACCES      the page protection does not permit reads, or (`write`) writes
 *     -EOPNOTSUPP  the program has mapped the range as shared, or the kernel lacks a feature
 *     -EMFILE      the process has too many open files
 *     -ENOMEM, other -errno
 */
int gd_pages_hold(const void *addr, size_t length, bool write, bool common);

/*
 * Get the memfds of a held range, in order, for another process. The descriptors belong to this
 * module and are valid until the range is dropped. Returns the number of runs; -EFAULT: the program
 * has unmapped a part; -EOPNOTSUPP: more than `max` runs. Any thread.
 */
int gd_pages_give(const void *addr, size_t length, struct gd_run *runs, unsigned max);

/*
 * Replace the pages of a range by copies in a new memfd, at the same addresses. Processes that
 * mapped the old pages keep them, and no page is put into the old memfd again. pinned: also replace
 * pages that were never shared, but that a device can write. Concurrent writes of threads are kept,
 * as by gd_pages_hold(). Returns 0, or -errno: some old pages can remain. Any thread.
 */
int gd_pages_replace(const void *addr, size_t length, bool pinned);

/*
 * Drop one hold of the range. The pages stay in the memfd and remain those of the program. The
 * memory of pages that the program has unmapped is freed now or at the next call.
 */
void gd_pages_drop(const void *addr, size_t length);

/*
 * Returns a counter that changes when pages of this process have been replaced. A device can then
 * still have old pages registered. Any thread.
 */
uint32_t gd_pages_moves(void);

#endif
