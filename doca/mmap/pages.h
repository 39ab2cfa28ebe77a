/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pages.h - pages of this process that other processes can map, made so where they are.
 *
 * All of them are in one sparse memfd, at the offset that is their address: whatever range is shared is one piece of it, however
 * it came together. Who gets the descriptor could map the rest too: it is given to processes of the same user only.
 */
#ifndef GD_PAGES_H
#define GD_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Have all pages that the range touches in the memfd from now on, with what is in them. Other threads may go on reading and
 * writing them, but for atomic operations and for frames of their stacks: see pages_move.c. write: others are to write them.
 * The descriptor stays ours; 0, or
 *	-EFAULT      not all of it is mapped
 *	-EACCES      the program itself may not read it, or not write it
 *	-EOPNOTSUPP  the program shares it with somebody already, or the kernel cannot
 *	-ENOMEM, other -errno
 * Any thread. Holds of a range add up.
 */
int gd_pages_hold(const void *addr, size_t length, bool write, int *fd_p);

/*
 * One hold less, of the same range. The pages stay as they are, the program's; the memory behind those that it has unmapped
 * is given back, now or at the next call.
 */
void gd_pages_drop(const void *addr, size_t length);

/*
 * Changes whenever pages of this process have been replaced: what a device has registered before may be others. Any thread.
 */
uint32_t gd_pages_moves(void);

#endif
