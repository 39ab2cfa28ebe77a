/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pages.h - pages of this process that other processes can map, made so where they are.
 *
 * Pages are in sparse memfds, each at the offset that is its address. A range has a memfd of its
 * own, so that a process that gets the descriptor can map nothing else. Ranges that have pages in
 * common have their memfds in common, too.
 */
#ifndef GD_PAGES_H
#define GD_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GD_RUNS 8u /* at most; a range that shares pages with neighbours has more than 1 */

/* Pages of a range that are in one memfd. */
struct gd_run {
	int fd;
	uint64_t from, to; /* addresses, which are the offsets in the memfd */
};

/*
 * Have all pages that the range touches in memfds from now on, with what is in them. Other threads
 * may go on reading and writing them, but for atomic operations and for frames of their stacks: see
 * pages_move.c. write: others are to write them. common: the range goes into the one memfd of all
 * such ranges, which is given to processes that may read them all. 0, or
 *     -EFAULT      not all of it is mapped
 *     -EACCES      the program itself may not read it, or not write it
 *     -EOPNOTSUPP  the program shares it with somebody already, or the kernel cannot
 *     -EMFILE      the process has too many open files
 *     -ENOMEM, other -errno
 * Any thread. Holds of a range add up.
 */
int gd_pages_hold(const void *addr, size_t length, bool write, bool common);

/*
 * The memfds of a held range, in order, to be given to another process. The descriptors stay ours,
 * valid until the range is dropped. Returns how many runs; -EFAULT: the program has unmapped some
 * of it; -EOPNOTSUPP: there are more than max. Any thread.
 */
int gd_pages_give(const void *addr, size_t length, struct gd_run *runs, unsigned max);

/*
 * Other processes that had pages of the range keep the old ones, and this process has copies of
 * them where they were: in a new memfd, and never again in the old one. pinned: so have pages that
 * were never shared, but that a device may write. What threads write meanwhile is kept, as by
 * gd_pages_hold. 0 or -errno: some pages may be the old ones. Any thread.
 */
int gd_pages_replace(const void *addr, size_t length, bool pinned);

/*
 * One hold less, of the same range. The pages stay as they are, the program's; the memory behind
 * those that it has unmapped is given back, now or at the next call.
 */
void gd_pages_drop(const void *addr, size_t length);

/*
 * Changes whenever pages of this process have been replaced: what a device has registered before
 * may be others. Any thread.
 */
uint32_t gd_pages_moves(void);

#endif
