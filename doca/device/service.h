/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * service.h - the service thread, the one thread that the library has in a process: it waits for
 * fds and times.
 *
 * It is started at the first use and ends with the process. A program may fork: the child starts
 * its own at its first use, with nothing to wait for. Functions run there with all signals blocked,
 * one at a time. Any thread may call what is here.
 */
#ifndef GD_SERVICE_H
#define GD_SERVICE_H

#include "base/loop.h"

#include <doca_error.h>

/* Have fn called while the fd is readable or hung up. NO_MEMORY, OPERATING_SYSTEM. */
doca_error_t gd_service_add_fd(int fd, void (*fn)(void *arg), void *arg);
/*
 * When it returns fn does not run any more, unless called from fn: hold no lock that fn takes. The
 * fd must still be open.
 */
void gd_service_remove_fd(int fd);
/*
 * Have the timer's function called at that time, once; 0: not. In the past: at once. Not for one
 * that was set before a fork.
 */
void gd_service_set_timer(struct gn_timer *timer, uint64_t at_ns);

/*
 * Install what keeps fork() right, once. Handlers that are installed later lock earlier: whoever
 * calls in here with a lock of his own held, and has handlers for that lock, calls this first.
 */
void gd_service_watch_forks(void);

#endif
