/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * quick_fd.h - eventfd, timerfd, epoll and memfd without system calls, for fuzz targets with one
 * thread
 *
 * A target links quick_fd.c with $(QUICK_FD_LDFLAGS): the linker redirects the calls of all its
 * objects. Other file descriptors go to the system. No function blocks: epoll_wait returns 0 where
 * the system would sleep. A timer never expires. getpid() asks the system once: the target does not
 * fork. getrandom() returns numbers of a fixed sequence.
 */
#ifndef FUZZ_QUICK_FD_H
#define FUZZ_QUICK_FD_H

#include <stdbool.h>

/*
 * Whether the last epoll_wait would have slept: its timeout was not 0, and no descriptor was ready.
 */
bool quick_fd_slept(void);
/* The number of open descriptors. */
unsigned quick_fd_count(void);
/* Whether fd is a memfd of quick_fd.c. quick_map.c maps it, once. */
bool quick_fd_is_memory(int fd);

#endif
