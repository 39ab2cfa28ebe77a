/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * worker.h - a thread that polls: the progress engine under one or more lanes.
 *
 * Lanes of several roles of one process may share a worker, so that a topology in one process runs
 * to completion on one core. A worker spins while there is work, then for a budget that follows how
 * long waits have been, then sleeps.
 *
 * A driven worker has no thread of its own: its owner, one thread at a time, polls when it likes.
 *
 *     gn_worker_enter             until gn_worker_leave, the owner's thread is the worker's
 *     gn_worker_turn              poll everybody once
 *     gn_worker_idle              the turn found nothing: spin, or sleep, as a worker with a thread
 *                                 would
 *     gn_worker_arm               the same for an owner that waits elsewhere: for gn_worker_fd
 *     gn_worker_leave
 */
#ifndef GN_PIPELINE_WORKER_H
#define GN_PIPELINE_WORKER_H

#include <gantry/plugin.h>

#include <stdbool.h>

struct gn_worker;

struct gn_worker_attr {
	const char *name; /* of the thread, up to 15 bytes */
	int cpu;          /* pin to it; -1: do not */
	uint64_t spin_ns; /* longest spin before sleeping; 0: sleep at once */
	bool driven;      /* no thread; name and cpu do not matter */
};

/* Start the thread. 0 or -errno. */
int gn_worker_create(const struct gn_worker_attr *attr, struct gn_worker **worker_p);
/* All pollers must have been removed. Joins the thread; nobody may be inside a driven worker. */
void gn_worker_destroy(struct gn_worker **worker_p);

/*
 * Run fn(arg) on the worker's thread and wait for it. From the worker's own thread: runs it at
 * once. A driven worker's fn runs on the caller's thread as soon as the owner is outside or idle,
 * and before it comes in again.
 */
void gn_worker_call(struct gn_worker *worker, void (*fn)(void *arg), void *arg);

/*
 * Add and remove pollers: from any thread (through gn_worker_call) or from the worker's own. 0,
 * -ENOMEM, or -errno when its fd cannot be watched.
 */
int gn_worker_add(struct gn_worker *worker, const struct gantry_poller *poller);
void gn_worker_remove(struct gn_worker *worker, void *self);

/*
 * Have a cell of the caller's follow the time: that at the start of this turn or call; of a driven
 * worker, also that at which its owner came in. From which threads: as for pollers. 0, -ENOMEM.
 */
int gn_worker_add_clock(struct gn_worker *worker, uint64_t *now_ns);
void gn_worker_remove_clock(struct gn_worker *worker, uint64_t *now_ns);

/*
 * The time is now: for who has reason to believe that some has passed. Worker's thread, or inside.
 */
void gn_worker_tick(struct gn_worker *worker);

/* What every worker begins with. */
struct gn_worker_small {
	uint32_t done; /* small things, since the clock was looked at for one */
	uint32_t most; /* for so many it need not be */
};

/*
 * The same for who has done one of many small things, and comes again after the next: while they
 * take less than 200 ns, the clock is looked at once a microsecond. A look takes 10 ns, and 40 with
 * what is done when time has passed.
 */
void gn_worker_clock_update_coarse(struct gn_worker *worker);

/* gn_worker_clock_update_coarse, where the clock need not be looked at; false: call that. */
static inline bool gn_worker_clock_is_fresh(struct gn_worker *worker)
{
	struct gn_worker_small *small = (struct gn_worker_small *)worker;

	if (small->done >= small->most)
		return false;
	small->done++;
	return true;
}

/* -- driven workers; all but gn_worker_enter and gn_worker_fd: between enter and leave -- */

/* Come in, and disarm. Waits for the calls of other threads. Not from inside. */
void gn_worker_enter(struct gn_worker *worker);
void gn_worker_leave(struct gn_worker *worker);
/* Poll everybody once. Returns how many things they did. */
int gn_worker_turn(struct gn_worker *worker);
/*
 * After a turn that did nothing: pause, yield, or sleep until there is work, a timer or a call, but
 * not longer than until_ns (absolute; 0: no limit). Outside meanwhile: others may call.
 */
void gn_worker_idle(struct gn_worker *worker, uint64_t until_ns);
/*
 * 0: from gn_worker_leave on, the fd becomes readable when there is work, a timer is due or
 * somebody has called. It stays readable until a turn, also when the owner comes in for something
 * else before. 1: there is work now; nothing is armed.
 */
int gn_worker_arm(struct gn_worker *worker);
/* The worker's; any thread. */
int gn_worker_fd(const struct gn_worker *worker);

/*
 * Does it hear each new signal of an fd, whatever stands there from before? As GANTRY_QUEUE_EDGES.
 * Any thread.
 */
bool gn_worker_hears_edges(const struct gn_worker *worker);

/* Turns, turns that found work, sleeps: for reports. */
void gn_worker_report(const struct gn_worker *worker, struct gantry_writer *w);

#endif
