/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stop.h - ends a process that was asked to end, also when its control thread waits for a plugin that never returns
 *
 *	gn_stop_open         before any other thread: SIGINT, SIGTERM and SIGHUP go to a thread of their own, the guard
 *	gn_stop_watch        the guard passes events to the control loop
 *	gn_stop_begin        the roles begin to end: the limit begins, as it does with the first signal
 *	gn_stop_close
 *
 * The guard sends each signal, and the end of the limit, to the control loop. The control thread ends the process after the
 * second signal and after the limit. When it has not done so within GN_STOP_GRACE_NS, the guard does.
 */
#ifndef GN_CLI_STOP_H
#define GN_CLI_STOP_H

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>

#include "base/clock.h"
#include "base/loop.h"

#define GN_STOP_GRACE_NS (2 * GN_NS_PER_S)
#define GN_STOP_LIMIT 0 /* an event that is not the number of a signal: the limit is over */

struct gn_stop {
	pthread_t guard;
	bool started;        /* the guard; the control thread's */
	sigset_t before;     /* the mask */
	int signal_fd;
	int wake_fd;         /* to the guard: look at what follows */
	int events[2];       /* a pipe from the guard: one int for each event */
	struct gn_loop *loop;
	void (*on_event)(void *arg, int event);
	void *arg;

	pthread_mutex_t lock; /* guards what follows */
	bool begun, closing;
	uint64_t limit_ns;    /* 0: none */
	void (*explain)(void *arg);
	void *explain_arg;

	/* the guard's own */
	unsigned n_signals;
	uint64_t begun_ns, exit_ns; /* 0: not yet */
	int exit_code;
	bool limit_over;
};

/* Blocks the signals and starts the guard. After gn_clock_init. 0 or -errno. */
int gn_stop_open(struct gn_stop *stop);
/* Call on_event on the loop's thread for each event. 0 or -errno. */
int gn_stop_watch(struct gn_stop *stop, struct gn_loop *loop, void (*on_event)(void *arg, int event), void *arg);
/*
 * How long the end may take from its begin on (0: no limit), and a function that logs what it waits for, which the guard calls
 * when the control thread does not answer. explain NULL: from now on there is nothing to explain; the guard is not inside it
 * when this returns.
 */
void gn_stop_set(struct gn_stop *stop, uint64_t limit_ns, void (*explain)(void *arg), void *arg);
/* Idempotent. */
void gn_stop_begin(struct gn_stop *stop);
/* Ends the guard, and gives the signals back. After gn_stop_open has failed as well. */
void gn_stop_close(struct gn_stop *stop);

#endif
