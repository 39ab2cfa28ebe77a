/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * quick_fd.h - eventfd, timerfd, epoll and memfd without system calls, for fuzz targets with one
 * thread
 *
 * A target links quick_fd.c with $(QUICK_FD_LDFLAGS): the linker redirects the calls of all its
 * objects. Other file descriptors go to the system. Nothing waits: epoll_wait returns 0 where the
 * system would sleep. A timer never expires. getpid() asks the system once: the target does not
 * fork. getrandom() returns numbers of a fixed sequence. /dev/null is a file of quick_fd.c, and
 * /proc/self/fd has its descriptors.
 */
#ifndef FUZZ_QUICK_FD_H
#define FUZZ_QUICK_FD_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Whether the last epoll_wait would have slept: its timeout was not 0, and no descriptor was ready.
 */
bool quick_fd_slept(void);
/* Returns the number of open descriptors. */
unsigned quick_fd_count(void);
/* Returns another descriptor for the file of fd; -1: errno is set. */
int quick_fd_dup(int fd);

/* Whether fd is a memfd of quick_fd.c, which quick_map.c maps. */
bool quick_fd_is_memory(int fd);
/* Set and get a pointer of quick_map.c for a memfd; NULL at first, and for all other files. */
void quick_fd_set_memory(int fd, void *memory);
void *quick_fd_memory(int fd);

/* A file of another kind. Files with the same struct quick_ops share their state. */
struct quick_ops {
	uint32_t (*events)(void); /* returns the EPOLL* bits that are ready */
	void (*close)(void);      /* the last descriptor is closed */
};

/* Create a file. Returns its descriptor; -1: errno is set. */
int quick_fd_make(const struct quick_ops *ops);
/* Returns the operations of a file; NULL for a file of quick_fd.c or of the system. */
const struct quick_ops *quick_fd_ops(int fd);

#endif
