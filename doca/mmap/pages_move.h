/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pages_move.h - between pages.c and pages_move.c. What goes over a list returns 0, or -errno of
 * the first that fails.
 */
#ifndef GD_PAGES_MOVE_H
#define GD_PAGES_MOVE_H

#include "mmap/maps.h"

/*
 * Have pieces in the memfd, at the offsets that are their addresses, with what is in them. A piece
 * of another memfd says so (fd): what other processes write there meanwhile comes along, and what
 * they write later does not.
 */
int gd_pages_share(int memfd, const struct gd_piece *pieces, size_t n);
/* Private copies instead of pages of memfds (gd_piece.fd), which keep what they have. */
int gd_pages_part(const struct gd_piece *pieces, size_t n);
/* The same for one piece, which is no stack in use, with nothing but system calls. */
int gd_pages_part_in_child(const struct gd_piece *piece);

#endif
