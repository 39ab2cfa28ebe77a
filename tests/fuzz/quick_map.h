/* SPDX-License-Identifier: BSD-3-Clause */
/* quick_map.h - see quick_map.c */
#ifndef FUZZ_QUICK_MAP_H
#define FUZZ_QUICK_MAP_H

#include <stddef.h>

/*
 * Give a memfd of quick_fd.c memory that all its mappings share, also later ones. Without it each
 * mapping has memory of its own. Returns another mapping, always writable, which stays.
 */
char *quick_map_share(int fd, size_t size);
/* Mappings that mmap() has returned, except those of the system. */
unsigned quick_map_count(void);

#endif
