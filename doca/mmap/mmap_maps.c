/* SPDX-License-Identifier: BSD-3-Clause */
/* mmap_maps.c - reads /proc/self/maps */
#include "mmap/mmap_maps.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>

static bool parse(const char *line, struct gd_piece *piece)
{
	unsigned long long from, to, offset, inode;
	unsigned major, minor;
	char perms[5];

	if (sscanf(line, "%llx-%llx %4s %llx %x:%x %llu", &from, &to, perms, &offset, &major,
		   &minor, &inode) != 7)
		return false;
	*piece = (struct gd_piece){
		.from = (uintptr_t)from,
		.to = (uintptr_t)to,
		.area_from = (uintptr_t)from,
		.area_to = (uintptr_t)to,
		.offset = offset,
		.file = {makedev(major, minor), inode},
		.shared = perms[3] == 's',
		.main_stack = strstr(line, "[stack]") != NULL,
		.fd = -1,
	};
	piece->prot = (perms[0] == 'r' ? PROT_READ : 0) | (perms[1] == 'w' ? PROT_WRITE : 0) |
		      (perms[2] == 'x' ? PROT_EXEC : 0);
	return true;
}

static void cut(struct gd_piece *piece, uintptr_t from, uintptr_t to)
{
	if (piece->from < from) {
		piece->offset += from - piece->from;
		piece->from = from;
	}
	if (piece->to > to)
		piece->to = to;
}

int gd_maps_read(uintptr_t from, uintptr_t to, struct gd_piece **pieces_p, size_t *n_p)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	struct gd_piece piece, *more;
	char line[512];
	int rc = 0;

	if (!maps)
		return -errno;
	while (rc == 0 && fgets(line, sizeof(line), maps)) {
		if (!parse(line, &piece) || piece.to <= from || piece.from >= to)
			continue;
		cut(&piece, from, to);
		more = realloc(*pieces_p, (*n_p + 1) * sizeof(**pieces_p));
		if (!more) {
			rc = -ENOMEM;
			break;
		}
		more[(*n_p)++] = piece;
		*pieces_p = more;
	}
	fclose(maps);
	return rc;
}
