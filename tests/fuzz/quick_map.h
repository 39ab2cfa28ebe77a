/* SPDX-License-Identifier: BSD-3-Clause */
/* quick_map.h - see quick_map.c */
#ifndef FUZZ_QUICK_MAP_H
#define FUZZ_QUICK_MAP_H

#include <stddef.h>

/*
 * Give a memfd of quick_fd.c memory that all its mappings share, also later ones. Without this call
 * each mapping has separate memory. Returns another mapping, which is writable and stays.
 */
char *quick_map_share(int fd, size_t size);
/* Returns the number of existing mappings that quick_map.c made without the system. */
unsigned quick_map_count(void);

#endif
