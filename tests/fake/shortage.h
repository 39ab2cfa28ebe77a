/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shortage.h - makes an allocation of the process fail, on any thread: by malloc() and its
 * relatives, or a mapping.
 *
 * shortage.c is part of a program, or a library that is preloaded. As a library it finds an open
 * file with a struct shortage, whose descriptor number is in the environment. Allocations of
 * libconfig never fail, as it does not check them. Nor do those of the user and group lookups of
 * glibc, which would end the process or report that there is no such user. Plugins below
 * directories that a private group may write (umask 002) need these lookups.
 */
#ifndef TESTS_FAKE_SHORTAGE_H
#define TESTS_FAKE_SHORTAGE_H

#include <stdbool.h>
#include <stdint.h>

#define SHORTAGE_ENV "GANTRY_TEST_SHORTAGE"

struct shortage {
	uint32_t at;    /* number of the allocation that fails, from 1; 0: none */
	uint32_t lasts; /* all later ones fail too */
	/*
	 * only allocations of libraries and plugins count, not those of the program that contains
	 * shortage.c
	 */
	uint32_t foreign;
	uint32_t n;      /* allocations so far */
	uint32_t failed; /* of them */
	char file[64];   /* the library whose allocation failed first */
};

/*
 * Whether allocations can fail here. Not in a sanitizer build, whose allocator must not be
 * replaced.
 */
bool shortage_can(void);

/* From now on allocations of this process count, and fail as it says; NULL: no longer. */
void shortage_use(struct shortage *shortage);

/* Blocks of malloc() in the process, and mappings. */
long shortage_blocks(void);
long shortage_maps(void);
/*
 * Other resources of the process: entries of a directory of /proc/self, and mappings of memory that
 * is shared by a descriptor.
 */
long shortage_entries(const char *path);
long shortage_regions(void);

#endif
