/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shortage.h - an allocation of the process that fails, whichever thread it is of: by malloc() and
 * its relatives, or a mapping.
 *
 * shortage.c is part of a program, or a library of its own that is loaded before a program: it then
 * finds a file with a struct shortage, already open, by its number in the environment. What
 * libconfig allocates is spared: it does not ask whether it got it. So are glibc's look-ups of
 * users and groups: they end the process, or say that there is no such user. Plugins below folders
 * that a private group may write, as of people with a umask of 002, need them.
 */
#ifndef TESTS_FAKE_SHORTAGE_H
#define TESTS_FAKE_SHORTAGE_H

#include <stdbool.h>
#include <stdint.h>

#define SHORTAGE_ENV "GANTRY_TEST_SHORTAGE"

struct shortage {
	uint32_t at;    /* which allocation fails, from 1; 0: none */
	uint32_t lasts; /* so do all that come after it */
	/*
	 * only those of libraries and plugins count: the program, that shortage.c is a part of, has
	 * enough
	 */
	uint32_t foreign;
	uint32_t n;      /* allocations so far */
	uint32_t failed; /* of them */
	char file[64];   /* the library that wanted the first of these */
};

/* Can allocations fail here? Not in a sanitizer's build, whose allocator is not to be replaced. */
bool shortage_can(void);

/* From now on it counts, and fails, in this process; NULL: no longer. */
void shortage_use(struct shortage *shortage);

/* Blocks of malloc() that the process has, and mappings. */
long shortage_blocks(void);
long shortage_maps(void);
/*
 * What the process has besides: entries of a folder of /proc/self, and mappings of memory that is
 * shared by a descriptor.
 */
long shortage_entries(const char *path);
long shortage_regions(void);

#endif
