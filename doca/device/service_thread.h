/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * service_thread.h - the service thread: the only thread of the library in a process; it waits for
 * fds and timers
 *
 * The first use starts it, and it ends with the process. After fork(2) the child starts its own
 * thread at its first use, without the fds and timers of the parent. Functions run on it one at a
 * time, with all signals blocked. Any thread may call the functions below.
 */
#ifndef GD_SERVICE_H
#define GD_SERVICE_H

#include "base/event_loop.h"

#include <doca_error.h>

/* Call fn while the fd is readable or hung up. NO_MEMORY, OPERATING_SYSTEM. */
doca_error_t gd_service_add_fd(int fd, void (*fn)(void *arg), void *arg);
/*
 * Remove an fd, which must still be open. After the call fn does not run, unless fn itself is the
 * caller. Do not hold a lock that fn takes.
 */
void gd_service_remove_fd(int fd);
/*
 * Call the function of the timer once at that time. 0: cancel. A time in the past: at once. Do not
 * use a timer that was set before a fork.
 */
void gd_service_set_timer(struct gn_timer *timer, uint64_t at_ns);

/*
 * Install the fork handlers of the service, once. Handlers installed later lock earlier. A module
 * that calls the service with its own lock held, and has fork handlers for that lock, must call
 * this first.
 */
void gd_service_watch_forks(void);

#endif
