/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stop.h - end the process after a signal, even if its control thread waits for a plugin that never
 * returns
 *
 *     gn_stop_open     call before any other thread exists: starts the guard. The guard receives
 *                      SIGTERM, and SIGINT and SIGHUP unless they were ignored at the start. SIGHUP
 *                      ends a process with a terminal, and is a request to reload otherwise
 *     gn_stop_watch    the guard passes events to the control loop
 *     gn_stop_begin    the roles begin to end: starts the time limit, as the first signal does
 *     gn_stop_close    ends the guard
 *
 * The guard passes each signal, and the end of the time limit, to the control loop. The control
 * thread ends the process after the second signal, and after the time limit. If it has not done so
 * within GN_STOP_GRACE_NS, the guard ends the process.
 */
#ifndef GN_CLI_STOP_H
#define GN_CLI_STOP_H

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>

#include "base/clock.h"
#include "base/event_loop.h"

#define GN_STOP_GRACE_NS (2 * GN_NS_PER_S)
#define GN_STOP_LIMIT 0 /* event: the time limit has expired. All other events are signal numbers */

struct gn_stop {
	pthread_t guard;
	bool started;    /* the guard runs; control thread */
	bool hup_ends;   /* SIGHUP ends the process; else it is only passed on */
	sigset_t before; /* the signal mask to restore */
	int signal_fd;
	int wake_fd;   /* wakes the guard: fields under `lock` have changed */
	int events[2]; /* pipe from the guard: one int for each event */
	/* 1: the pipe has a SIGHUP, which stands for all that follow; __atomic */
	int reload_pending;
	struct gn_loop *loop;
	void (*on_event)(void *arg, int event);
	void *arg;

	pthread_mutex_t lock; /* guards the fields from `begun` to `explain_arg` */
	bool begun, closing;
	uint64_t limit_ns; /* time limit; 0: no limit */
	void (*explain)(void *arg);
	void *explain_arg;

	/* guard's thread only */
	unsigned n_signals; /* without those that request a reload */
	/* begun_ns: start of the limit. exit_ns: when the guard ends the process. 0: not set */
	uint64_t begun_ns, exit_ns;
	int exit_code;
	bool limit_over;
};

/*
 * Block the signals and start the guard. Call it after gn_clock_init(). Returns 0 or -errno.
 *
 * hup_ends   SIGHUP ends the process, also without a terminal
 */
int gn_stop_open(struct gn_stop *stop, bool hup_ends);
/* Call on_event on the loop's thread for each event. Returns 0 or -errno. */
int gn_stop_watch(struct gn_stop *stop, struct gn_loop *loop,
		  void (*on_event)(void *arg, int event), void *arg);
/*
 * Set the time limit, and the function that logs what the process waits for.
 *
 * limit_ns  from gn_stop_begin() or the first signal; 0: no limit
 * explain   the guard calls it when the control thread does not answer. NULL: none. After the
 *           return the guard does not call an earlier function any more
 */
void gn_stop_set(struct gn_stop *stop, uint64_t limit_ns, void (*explain)(void *arg), void *arg);
/* Start the time limit. Idempotent. Any thread. */
void gn_stop_begin(struct gn_stop *stop);
/* End the guard and restore the signal mask. Also allowed after gn_stop_open has failed. */
void gn_stop_close(struct gn_stop *stop);

#endif
