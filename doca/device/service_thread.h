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

/* Call fn while the fd is readable or hung up. Returns SUCCESS, NO_MEMORY or OPERATING_SYSTEM. */
doca_error_t gd_service_add_fd(int fd, void (*fn)(void *arg), void *arg);
/*
 * Remove an fd, which must still be open. The call waits until fn has returned, unless fn itself is
 * the caller. So do not hold a lock that fn takes.
 */
void gd_service_remove_fd(int fd);
/*
 * Call the function of the timer once, when gn_now_ns() reaches at_ns. 0: cancel the timer. A time
 * in the past: call the function as soon as possible. In a child of fork(2), do not use a timer
 * that the parent has set.
 */
void gd_service_set_timer(struct gn_timer *timer, uint64_t at_ns);

/*
 * Install the fork handlers of the service, once. fork(2) runs the handlers that take locks in
 * reverse order of their installation. A module that calls the service while it holds its own lock,
 * and has a fork handler that takes that lock, must call this function before it installs its
 * handler. Then a fork takes the two locks in the same order as the module.
 */
void gd_service_watch_forks(void);

#endif
