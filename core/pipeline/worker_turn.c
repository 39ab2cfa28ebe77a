/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * worker_turn.c - the turns of a worker: poll, and without work do what the idle policy (idle.h)
 * chooses: pause, yield or sleep. Worker's thread.
 */
#include "pipeline/worker_priv.h"

#include "base/clock.h"
#include "base/pause.h"

#include <errno.h>
#include <sched.h>
#include <sys/epoll.h>
#include <unistd.h>

void gn_worker_sweep(struct gn_worker *worker)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < worker->n_pollers; i++)
		if (worker->pollers[i].poll)
			worker->pollers[kept++] = worker->pollers[i];
	worker->n_pollers = kept;
	worker->n_removed = 0;
}

int gn_worker_poll_all(struct gn_worker *worker)
{
	int n = 0;

	for (unsigned i = 0; i < worker->n_pollers; i++) {
		const struct gantry_poller *p = &worker->pollers[i];

		if (p->poll)
			n += p->poll(p->self);
	}
	if (worker->n_removed != 0)
		gn_worker_sweep(worker);
	gantry_count(&worker->n_turns, 1);
	if (n > 0) {
		gantry_count(&worker->n_hits, 1);
		gn_idle_worked(&worker->idle);
	}
	return n;
}

static void disarm(struct gn_worker *worker, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (worker->pollers[i].disarm)
			worker->pollers[i].disarm(worker->pollers[i].self);
}

int gn_worker_arm_all(struct gn_worker *worker)
{
	for (unsigned i = 0; i < worker->n_pollers; i++)
		if (worker->pollers[i].arm &&
		    worker->pollers[i].arm(worker->pollers[i].self) != 0) {
			disarm(worker, i + 1);
			return 1;
		}
	worker->armed = true;
	return 0;
}

void gn_worker_disarm_all(struct gn_worker *worker)
{
	if (worker->armed)
		disarm(worker, worker->n_pollers);
	worker->armed = false;
}

uint64_t gn_worker_timer(const struct gn_worker *worker)
{
	uint64_t first = 0;

	for (unsigned i = 0; i < worker->n_pollers; i++) {
		const struct gantry_poller *p = &worker->pollers[i];
		uint64_t at = p->wake_ns ? p->wake_ns(p->self) : 0;

		if (at != 0 && (first == 0 || at < first))
			first = at;
	}
	return first;
}

void gn_worker_wake(struct gn_worker *worker)
{
	uint64_t one = 1;

	if (write(worker->wake_fd, &one, sizeof(one)) < 0)
		return; /* the counter is at its limit, so the fd is readable already */
}

/*
 * Wait for an event; if `limited`, for at most left_ns. The event itself is irrelevant: the caller
 * polls all pollers and checks for calls.
 */
static void wait_fds(struct gn_worker *worker, bool limited, uint64_t left_ns)
{
	struct epoll_event ev[8];
	const struct timespec ts = {.tv_sec = (time_t)(left_ns / GN_NS_PER_S),
				    .tv_nsec = (long)(left_ns % GN_NS_PER_S)};

	if (epoll_pwait2(worker->epoll_fd, ev, 8, limited ? &ts : NULL, NULL) < 0 &&
	    errno == ENOSYS)
		epoll_wait(worker->epoll_fd, ev, 8,
			   limited ? (int)(left_ns / GN_NS_PER_MS) + 1 : -1);
}

/*
 * Between two polls of a cache line the peer must get a chance to write it. A pause instruction
 * takes 10 to 60 ns, depending on the processor.
 */
static void relax(struct gn_worker *worker)
{
	gn_worker_step_out(worker);
	gn_pause();
	gn_worker_step_in(worker);
}

/*
 * Let another thread run: a thread that waits for this processor or, with a driven worker, a thread
 * that waits in gn_worker_call().
 */
static void yield(struct gn_worker *worker)
{
	uint64_t before, took;

	gn_worker_step_out(worker);
	before = gn_fast_ns();
	sched_yield();
	took = gn_fast_ns() - before;
	gn_worker_step_in(worker);
	gn_idle_yielded(&worker->idle, took);
}

/* Sleep until an event; if `limited`, for at most left_ns. */
static void sleep_for(struct gn_worker *worker, bool limited, uint64_t left_ns)
{
	gn_worker_step_out(worker);
	if (!__atomic_load_n(&worker->have_calls, __ATOMIC_SEQ_CST))
		wait_fds(worker, limited, left_ns);
	gn_worker_step_in(worker);
	gantry_count(&worker->n_sleeps, 1);
}

/*
 * Sleep until an event, a timer or until_ns. If a poller refuses to be armed, there is work that
 * possibly cannot be done yet, for example because a queue of the peer is full.
 */
static void sleep_until_event(struct gn_worker *worker, uint64_t until_ns)
{
	uint64_t timer = gn_worker_timer(worker), nap_ns;

	if (timer != 0 && (until_ns == 0 || timer < until_ns))
		until_ns = timer;
	if (until_ns != 0 && gn_idle_is_near(&worker->idle, worker->now_ns, until_ns)) {
		relax(worker);
		return;
	}
	if (gn_worker_arm_all(worker) != 0) {
		nap_ns = gn_idle_blocked(&worker->idle, worker->now_ns);
		if (nap_ns != 0)
			sleep_for(worker, true, nap_ns);
		else
			yield(worker);
		return;
	}
	sleep_for(worker, until_ns != 0, until_ns - worker->now_ns);
	if (worker->driven)
		gn_worker_disarm_all(worker);
	gn_idle_slept(&worker->idle, gn_fast_ns());
}

void gn_worker_idle(struct gn_worker *worker, uint64_t until_ns)
{
	enum gn_idle_step step = gn_idle_next(&worker->idle, worker->now_ns);

	if (step == GN_IDLE_SLEEP)
		sleep_until_event(worker, until_ns);
	else if (step == GN_IDLE_YIELD)
		yield(worker); /* the lane that this lane waits for might need the processor */
	else
		relax(worker);
}
