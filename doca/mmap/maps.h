/* SPDX-License-Identifier: BSD-3-Clause */
/* maps.h - what is mapped where in this process, by /proc/self/maps. */
#ifndef GD_MAPS_H
#define GD_MAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct gd_file {
	dev_t device;
	ino_t inode;
};

/* A range of pages of one mapping. */
struct gd_piece {
	uintptr_t from, to;
	uintptr_t area_from, area_to; /* of the whole mapping */
	uint64_t offset;              /* in the file, of `from` */
	struct gd_file file;          /* inode 0: none */
	int prot;
	bool shared, main_stack;
	int fd; /* of that file; the caller's, -1 at first */
};

/*
 * Append the pieces of [from, to) to a list from malloc, in order; holes are left out. 0, -ENOMEM,
 * or -errno.
 */
int gd_maps_read(uintptr_t from, uintptr_t to, struct gd_piece **pieces_p, size_t *n_p);

#endif
