/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shortage.h - makes an allocation of the process fail, on any thread: a call of malloc() or its
 * relatives, or a mapping.
 *
 * shortage.c is part of a program, or a library that is preloaded. The library maps its struct
 * shortage from an open file, whose descriptor number is in the environment. Allocations of
 * libconfig never fail, because libconfig does not check them. Allocations inside getpwuid_r() and
 * getgrgid_r() never fail either: without memory, glibc would end the process or report that there
 * is no such user. When the core loads a plugin from a directory that a group can write (umask
 * 002), it calls these functions to check that the group is the private group of the user.
 */
#ifndef TESTS_FAKE_SHORTAGE_H
#define TESTS_FAKE_SHORTAGE_H

#include <stdbool.h>
#include <stdint.h>

#define SHORTAGE_ENV "GANTRY_TEST_SHORTAGE"

struct shortage {
	uint32_t at;    /* number of the allocation that fails, from 1; 0: none */
	uint32_t lasts; /* all later allocations fail too */
	/*
	 * only allocations of libraries and plugins count, not those of the program that contains
	 * shortage.c
	 */
	uint32_t foreign;
	uint32_t n;      /* allocations so far */
	uint32_t failed; /* allocations that failed */
	char file[64];   /* the library whose allocation failed first */
};

/*
 * Returns whether allocations can be made to fail. In a sanitizer build they cannot, because its
 * allocator must not be replaced.
 */
bool shortage_can(void);

/* Count the allocations of this process, and fail those that `shortage` selects; NULL: stop. */
void shortage_use(struct shortage *shortage);

/* Return the number of blocks of malloc(), and of mappings, of the process. */
long shortage_blocks(void);
long shortage_maps(void);
/*
 * Return the number of other resources of the process. shortage_entries: entries of a directory,
 * such as /proc/self/fd. shortage_regions: mappings of memfds.
 */
long shortage_entries(const char *path);
long shortage_regions(void);

#endif
