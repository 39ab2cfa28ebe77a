/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * worker_priv.h - shared by worker.c (life, calls, pollers), worker_turn.c (turns, and what is done
 * between them) and worker_driven.c (who is inside)
 */
#ifndef GN_PIPELINE_WORKER_PRIV_H
#define GN_PIPELINE_WORKER_PRIV_H

#include "pipeline/worker.h"

#include <pthread.h>

struct gn_worker_call;

struct gn_worker {
	struct gn_worker_small small; /* first */
	struct gantry_poller *pollers;
	unsigned n_pollers, max_pollers;
	unsigned n_removed; /* entries whose poll is NULL, swept at the end of a turn */
	uint64_t **clocks;
	unsigned n_clocks;
	int epoll_fd;
	int wake_fd;
	bool armed; /* all pollers are */
	uint64_t now_ns;
	uint64_t looked_ns;     /* the time when it was looked at for a small thing */
	uint64_t idle_since_ns; /* 0: the last turn found work */
	uint64_t max_spin_ns;
	unsigned pauses;      /* between two turns without work */
	uint64_t switched_ns; /* a yield that took longer has let somebody else run */
	uint64_t spin_ns;     /* what this wait is worth */
	/* so far into a wait others are let run; 0: somebody shares the processor */
	uint64_t yield_ns;
	uint64_t pause_ns; /* the same of this wait */
	bool yielded;      /* in this wait */
	bool tried;        /* it pauses before it yields, though the processor is shared */
	uint8_t pays;      /* for so many waits more it is worth it */
	uint16_t waits;    /* the last 16, newest in bit 0; set: it was short */
	uint8_t late;      /* this wait: how often it counts as not short */
	bool rare;         /* and it is so long that such waits must be few */

	/* for reports; written by the worker alone */
	uint64_t n_turns, n_hits, n_sleeps;

	/* guards calls; held by who is inside a driven worker, and guards all of it */
	pthread_mutex_t lock;
	pthread_cond_t called;

	/* with a thread */
	pthread_t thread;
	int cpu;
	int stop;
	struct gn_worker_call *calls;
	int have_calls; /* __atomic */

	/* driven */
	bool driven;
	bool woken;     /* the wake_fd is readable, and nobody has taken that in */
	bool owes_turn; /* it was armed when the owner came in */
	int timer_fd;
	uint64_t timer_ns; /* what the timer_fd is set to; 0: nothing */
	uintptr_t inside;  /* pthread_self() of the thread that is; __atomic */
	unsigned n_wanted; /* threads that want to call; __atomic */
};

/* Forget the pollers that were removed; not while they are walked. */
void gn_worker_sweep(struct gn_worker *worker);
/* 0: all pollers are armed. 1: there is work; none is. */
int gn_worker_arm_all(struct gn_worker *worker);
void gn_worker_disarm_all(struct gn_worker *worker);
/* The earliest timer; 0: none. */
uint64_t gn_worker_timer(const struct gn_worker *worker);
/* Make the wake_fd readable; any thread. */
void gn_worker_wake(struct gn_worker *worker);
/*
 * How many make up the time between two turns without work, on this processor: measured in a few
 * microseconds.
 */
unsigned gn_worker_pauses(void);
/*
 * A yield that takes longer, on this processor and under this kernel, has let somebody else run;
 * measured likewise.
 */
uint64_t gn_worker_switched_ns(void);
/* Poll everybody and count. */
int gn_worker_poll_all(struct gn_worker *worker);

/*
 * Driven: the lock of who is inside, without a look at what is armed. Nothing with a thread of its
 * own.
 */
void gn_worker_step_in(struct gn_worker *worker);
void gn_worker_step_out(struct gn_worker *worker);
/* gn_worker_call for a driven worker, from a thread that is not inside. */
void gn_worker_call_driven(struct gn_worker *worker, void (*fn)(void *arg), void *arg);
bool gn_worker_is_inside(const struct gn_worker *worker);
int gn_worker_open_timer(struct gn_worker *worker);

#endif
