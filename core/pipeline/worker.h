/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * worker.h - workers: threads that poll. Each serves one or more lanes.
 *
 * Lanes of several roles of a process can share a worker, so that a topology in one process runs to
 * completion on one core. An idle worker spins or sleeps; idle.h has the policy.
 *
 * A driven worker has no thread. Its owner, one thread at a time, polls it between enter and leave:
 *
 *     gn_worker_enter   the calling thread acts as the thread of the worker, until gn_worker_leave
 *     gn_worker_turn    poll all pollers once
 *     gn_worker_idle    after a turn without work: spin or sleep, as a worker with a thread does
 *     gn_worker_arm     instead of gn_worker_idle, if the owner waits for gn_worker_fd elsewhere
 *     gn_worker_leave
 */
#ifndef GN_PIPELINE_WORKER_H
#define GN_PIPELINE_WORKER_H

#include <gantry/plugin.h>

#include <stdbool.h>

struct gn_worker;

struct gn_worker_attr {
	const char *name; /* name of the thread, up to 15 bytes */
	int cpu;          /* CPU to pin the thread to; -1: none */
	uint64_t spin_ns; /* longest spin before a sleep; 0: sleep immediately */
	bool driven;      /* no thread; name and cpu are ignored */
};

/*
 * gn_worker_create - create a worker and start its thread, unless it is driven. Returns 0 or
 * -errno.
 */
int gn_worker_create(const struct gn_worker_attr *attr, struct gn_worker **worker_p);
/*
 * gn_worker_destroy - join the thread and free the worker. All pollers must have been removed, and
 * no thread may be between enter and leave.
 */
void gn_worker_destroy(struct gn_worker **worker_p);

/*
 * gn_worker_call - run fn(arg) on the worker's thread and wait for its return. On the worker's own
 * thread fn runs immediately. For a driven worker fn runs on the calling thread, while the owner is
 * in gn_worker_idle() or not between enter and leave. Any thread.
 */
void gn_worker_call(struct gn_worker *worker, void (*fn)(void *arg), void *arg);
/* gn_worker_set_spin - change the spin budget of a worker. Any thread; waits for the worker. */
void gn_worker_set_spin(struct gn_worker *worker, uint64_t spin_ns);

/*
 * gn_worker_add, gn_worker_remove - add and remove pollers. Any thread: both use gn_worker_call.
 * gn_worker_remove removes all pollers with this `self`. gn_worker_add returns 0; -ENOMEM; another
 * -errno: the fd of the poller cannot be added to the epoll instance.
 */
int gn_worker_add(struct gn_worker *worker, const struct gantry_poller *poller);
void gn_worker_remove(struct gn_worker *worker, void *self);

/*
 * gn_worker_add_clock - let the worker write the time into *now_ns: at the start of each turn and
 * call, and at gn_worker_enter. Any thread. Returns 0 or -ENOMEM.
 */
int gn_worker_add_clock(struct gn_worker *worker, uint64_t *now_ns);
/* gn_worker_remove_clock - stop writing the time into *now_ns. Any thread. */
void gn_worker_remove_clock(struct gn_worker *worker, uint64_t *now_ns);

/*
 * gn_worker_tick - read the clock and update all cells of gn_worker_add_clock(). Worker's thread,
 * or between enter and leave.
 */
void gn_worker_tick(struct gn_worker *worker);

/* First member of every worker: state of the coarse clock. */
struct gn_worker_small {
	uint32_t done; /* events counted since the last reading of the clock */
	uint32_t most; /* limit of `done`: one more event needs a reading of the clock */
};

/*
 * gn_worker_clock_update_coarse - update the clock after one of many short events. While an event
 * takes less than 200 ns, the clock is read once per microsecond only: reading it takes 10 ns, and
 * 40 ns with the update of the cells. Worker's thread.
 */
void gn_worker_clock_update_coarse(struct gn_worker *worker);

/*
 * gn_worker_clock_is_fresh - count an event. Returns false if the clock must be read: call
 * gn_worker_clock_update_coarse(). Worker's thread.
 */
static inline bool gn_worker_clock_is_fresh(struct gn_worker *worker)
{
	struct gn_worker_small *small = (struct gn_worker_small *)worker;

	if (small->done >= small->most)
		return false;
	small->done++;
	return true;
}

/* -- driven workers: call all but gn_worker_enter and gn_worker_fd between enter and leave -- */

/*
 * gn_worker_enter - lock the worker for this thread and disarm it. Waits for calls of other
 * threads. Must not be nested.
 */
void gn_worker_enter(struct gn_worker *worker);
/*
 * gn_worker_leave - unlock the worker. If it was armed at gn_worker_enter and no turn ran, its fd
 * becomes readable again.
 */
void gn_worker_leave(struct gn_worker *worker);
/* gn_worker_turn - poll all pollers once. Returns the number of events that they handled. */
int gn_worker_turn(struct gn_worker *worker);
/*
 * gn_worker_idle - after a turn without work: pause, yield, or sleep until there is work, a timer
 * is due, another thread uses gn_worker_call(), or until_ns (absolute; 0: no limit). During the
 * wait, calls of other threads can run.
 */
void gn_worker_idle(struct gn_worker *worker, uint64_t until_ns);
/*
 * gn_worker_arm - prepare to wait for gn_worker_fd.
 *
 * Returns 0: from gn_worker_leave on, the fd is readable when there is work, a timer is due or
 * another thread has called. It stays readable until the next turn, even if the owner enters for
 * another reason before.
 * Returns 1: there is work now; nothing is armed.
 */
int gn_worker_arm(struct gn_worker *worker);
/* gn_worker_fd - returns the fd of the worker. The worker owns it. Any thread. */
int gn_worker_fd(const struct gn_worker *worker);

/*
 * gn_worker_is_edge_triggered - returns true if the worker waits edge-triggered: each new signal of
 * an fd wakes it, also while an earlier one is pending. Value for GANTRY_QUEUE_EDGES. Any thread.
 */
bool gn_worker_is_edge_triggered(const struct gn_worker *worker);

/* gn_worker_report - write the numbers of turns, turns with work, and sleeps. Any thread. */
void gn_worker_report(const struct gn_worker *worker, struct gantry_writer *w);

#endif
