/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * worker_priv.h - shared by worker.c (create, calls, pollers), worker_turn.c (turns) and
 * worker_driven.c (workers without a thread)
 */
#ifndef GN_PIPELINE_WORKER_PRIV_H
#define GN_PIPELINE_WORKER_PRIV_H

#include "pipeline/idle.h"
#include "pipeline/worker.h"

#include <pthread.h>

struct gn_worker_call;

struct gn_worker {
	struct gn_worker_small small; /* must be first */
	struct gantry_poller *pollers;
	unsigned n_pollers, max_pollers;
	unsigned n_removed; /* pollers whose poll is NULL; removed from the array after the turn */
	uint64_t **clocks;
	unsigned n_clocks;
	int epoll_fd;
	int wake_fd;
	bool armed; /* all pollers are armed */
	uint64_t now_ns;
	uint64_t looked_ns; /* time of the last coarse update of the clock */
	struct gn_idle idle;

	/* counters for reports; only the worker writes them */
	uint64_t n_turns, n_hits, n_sleeps;

	/*
	 * worker with a thread: protects `calls`. Driven worker: protects all fields; the thread
	 * that runs the worker holds it
	 */
	pthread_mutex_t lock;
	pthread_cond_t called;

	/* -- worker with a thread -- */
	pthread_t thread;
	int cpu;
	int stop;
	struct gn_worker_call *calls;
	int have_calls; /* not 0: `calls` is not empty; __atomic */

	/* -- driven worker -- */
	bool driven;
	bool woken; /* wake_fd is readable and was not drained */
	/* the worker was armed when the owner entered: signal the fd again at leave */
	bool owes_turn;
	int timer_fd;
	uint64_t timer_ns; /* expiry of timer_fd; 0: not set */
	uintptr_t inside;  /* pthread_self() of the thread that is inside; 0: none; __atomic */
	unsigned n_wanted; /* threads that wait to call; __atomic */
};

/* Remove the entries of removed pollers from the array. Not while the array is iterated. */
void gn_worker_sweep(struct gn_worker *worker);
/* Arm all pollers. Returns 0; or 1: there is work, and no poller is armed. */
int gn_worker_arm_all(struct gn_worker *worker);
/* Disarm all pollers, if they are armed. */
void gn_worker_disarm_all(struct gn_worker *worker);
/* Returns the earliest timer of all pollers; 0: none. */
uint64_t gn_worker_timer(const struct gn_worker *worker);
/* Make wake_fd readable. Any thread. */
void gn_worker_wake(struct gn_worker *worker);
/* Poll all pollers once. Returns the number of events that they handled. */
int gn_worker_poll_all(struct gn_worker *worker);

/*
 * Driven worker: take and release the lock without disarming. No effect on a worker with a thread.
 */
void gn_worker_step_in(struct gn_worker *worker);
void gn_worker_step_out(struct gn_worker *worker);
/* gn_worker_call() for a driven worker, from a thread that is not inside. */
void gn_worker_call_driven(struct gn_worker *worker, void (*fn)(void *arg), void *arg);
/* Returns true if the calling thread is inside the driven worker. */
bool gn_worker_is_inside(const struct gn_worker *worker);
/* Create the timerfd of a driven worker and add it to the epoll instance. Returns 0 or -errno. */
int gn_worker_open_timer(struct gn_worker *worker);

#endif
