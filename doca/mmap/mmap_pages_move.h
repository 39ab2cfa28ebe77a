/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mmap_pages_move.h - interface between mmap_pages.c and mmap_pages_move.c. Functions over a list
 * return 0, or -errno of the first failure.
 */
#ifndef GD_PAGES_MOVE_H
#define GD_PAGES_MOVE_H

#include "mmap/mmap_maps.h"

/*
 * Move pieces into the memfd, at offsets equal to their addresses, with their content. `fd` of a
 * piece is set if its pages are in another memfd. Writes of other processes to that memfd are
 * copied until the move, and not after it.
 */
int gd_pages_share(int memfd, const struct gd_piece *pieces, size_t n);
/* Replace pages of memfds (gd_piece.fd) by private copies. The memfds keep their content. */
int gd_pages_make_private(const struct gd_piece *pieces, size_t n);
/* Like gd_pages_make_private(), for one piece without a stack in use. Uses only system calls. */
int gd_pages_make_private_in_child(const struct gd_piece *piece);

#endif
