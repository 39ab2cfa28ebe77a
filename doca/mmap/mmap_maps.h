/* SPDX-License-Identifier: BSD-3-Clause */
/* mmap_maps.h - the mappings of this process, from /proc/self/maps */
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
	uintptr_t area_from, area_to; /* range of the whole mapping */
	uint64_t offset;              /* offset of `from` in the file */
	struct gd_file file;          /* inode 0: no file */
	int prot;
	bool shared, main_stack;
	int fd; /* descriptor of that file; set by the caller, initially -1 */
};

/*
 * Append the pieces of [from, to) to a list allocated by malloc(3), in the order of their
 * addresses. Unmapped pages have no piece. 0, -ENOMEM, or other -errno.
 */
int gd_maps_read(uintptr_t from, uintptr_t to, struct gd_piece **pieces_p, size_t *n_p);

#endif
