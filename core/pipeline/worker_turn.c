/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * worker_turn.c - the turns of a worker: poll, and without work pause, yield and sleep. Worker's
 * thread.
 *
 * A wait begins with the first turn without work:
 *
 *      pause for pause_ns -> yield until spin_ns -> sleep until an event
 *                                                  (or in short intervals, see wait_blocked())
 *
 * spin_ns is the whole budget (attr.spin_ns) or 0, see begin_wait(). pause_ns adapts to whether
 * another thread shares the processor, see yield() and pause_before_yield().
 */
#include "pipeline/worker_priv.h"

#include "base/clock.h"
#include "base/pause.h"

#include <errno.h>
#include <sched.h>
#include <sys/epoll.h>
#include <unistd.h>

#define RELAX_NS 40ull /* time between two turns of an idle worker */
#define PAUSE_SAMPLES 32
#define MAX_PAUSES 8
/*
 * Pause before the first yield of a wait, if no other thread uses the processor. The pause doubles
 * with each yield that let no other thread run, up to LAST_YIELD_NS. If another thread shares the
 * processor, the worker yields immediately.
 */
#define FIRST_YIELD_NS 1000ull
#define LAST_YIELD_NS 16000ull
/*
 * pause of a relay after a yield: as long as the two thread switches of a yield, away from the
 * worker and back
 */
#define RELAY_PAUSE_NS 2000ull
/*
 * A yield let another thread run if the yield took longer than this time and than SWITCHED_CALLS
 * system calls. The second limit is for emulated processors, where system calls are slow.
 */
#define SWITCHED_NS 1000ull
#define SWITCHED_CALLS 5
#define CALL_SAMPLES 8
/* number of further waits that pause first after a wait that ended during its pause */
#define MAX_PAYS 2
/*
 * Try to pause first in one of this many turns. The number is prime, so that each wait of a
 * periodic sequence is tried at some time.
 */
#define TRY_EVERY 61
#define PREEMPTED_NS 20000ull    /* a longer yield is not counted as part of the wait */
#define BLOCKED_NS 1000000ull    /* after this time, blocked work is polled at intervals */
#define BLOCKED_POLL_NS 50000ull /* interval of the polls of blocked work */
#define NEAR_TIMER_NS 50000ull   /* do not sleep if the next timer is due within this time */
/*
 * A wait that sleeps immediately counts as long if it takes more than this many spin budgets: it
 * would not have ended within one budget of spinning.
 */
#define LONG_WAIT 2
/* a wait that spun its whole budget without finding work counts as this many long waits */
#define WASTED_SPIN 3
/* after a wait of more budgets than this, the cost of spinning one budget is negligible */
#define NEGLIGIBLE_SPIN 64
#define MANY_SHORT 12 /* spin if this many of the last 16 waits were short */

/*
 * Between two polls of a cache line the peer must get a chance to write it. A pause instruction
 * takes 10 to 60 ns, depending on the processor.
 */
unsigned gn_worker_pauses(void)
{
	uint64_t best = UINT64_MAX;

	for (int try = 0; try < 8; try++) {
		uint64_t before = gn_fast_ns(), took;

		for (int i = 0; i < PAUSE_SAMPLES; i++)
			gn_pause();
		took = gn_fast_ns() - before;
		if (took < best)
			best = took;
	}
	if (best <= RELAX_NS * PAUSE_SAMPLES / MAX_PAUSES)
		return MAX_PAUSES;
	return best >= RELAX_NS * PAUSE_SAMPLES ? 1 : (unsigned)(RELAX_NS * PAUSE_SAMPLES / best);
}

uint64_t gn_worker_switched_ns(void)
{
	uint64_t best = UINT64_MAX;

	for (int try = 0; try < CALL_SAMPLES; try++) {
		uint64_t before = gn_fast_ns(), took;

		/* getppid: a cheap system call that the C library does not cache */
		getppid();
		took = gn_fast_ns() - before;
		if (took < best)
			best = took;
	}
	return best * SWITCHED_CALLS > SWITCHED_NS ? best * SWITCHED_CALLS : SWITCHED_NS;
}

static void relax(const struct gn_worker *worker)
{
	for (unsigned i = 0; i < worker->pauses; i++)
		gn_pause();
}

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
		worker->idle_since_ns = 0;
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
 * Returns how long the next wait pauses before it yields.
 *
 * If the worker shares the processor with the thread that it waits for, it yields immediately. But
 * a relay waits alternately for a thread on its processor and for a thread on another processor.
 * After a wait that yielded, the next wait can end during a pause. The worker tries a pause from
 * time to time, and continues while it succeeds.
 */
static uint64_t pause_before_yield(struct gn_worker *worker)
{
	bool after_yield = worker->yielded;

	if (worker->tried && !after_yield)
		worker->pays = MAX_PAYS;
	else if (worker->tried && worker->pays > 0)
		worker->pays--;
	worker->yielded = false;
	worker->tried = worker->yield_ns == 0 && after_yield &&
			(worker->pays > 0 || worker->n_turns % TRY_EVERY == 0);
	return worker->tried ? RELAY_PAUSE_NS : worker->yield_ns;
}

/*
 * Choose the spin budget of a wait.
 *
 * Spin for the whole budget if nearly all recent waits would have ended within it. Otherwise do not
 * spin at all: a lane that waits alternately for a near event (a reply) and a distant one (the next
 * request) would lose time with every spin. After a very long wait the loss is negligible, and the
 * peer that woke the lane is likely to send more.
 */
static void begin_wait(struct gn_worker *worker)
{
	worker->pause_ns = pause_before_yield(worker);
	uint16_t waits = (uint16_t)(worker->late ? worker->waits << worker->late
						 : worker->waits << 1 | 1);
	bool spin = worker->rare || __builtin_popcount(waits) >= MANY_SHORT;

	worker->spin_ns = spin ? worker->max_spin_ns : 0;
	worker->waits = waits;
	worker->late = 0;
	worker->rare = false;
	worker->idle_since_ns = worker->now_ns;
}

/*
 * Record a wake-up in the history of waits. The wait continues until there is work: a wake-up
 * without work must not start another spin.
 */
static void update_wait_history(struct gn_worker *worker)
{
	uint64_t waited_ns = gn_fast_ns() - worker->idle_since_ns;

	if (worker->spin_ns != 0)
		worker->late = WASTED_SPIN;
	else if (waited_ns > LONG_WAIT * worker->max_spin_ns)
		worker->late = 1;
	worker->rare = waited_ns > NEGLIGIBLE_SPIN * worker->max_spin_ns;
}

/*
 * Let another thread run: a thread that waits for this processor or, with a driven worker, a thread
 * that waits in gn_worker_call(). Then update yield_ns from the time that this took.
 */
static void yield(struct gn_worker *worker)
{
	uint64_t before, took;

	gn_worker_step_out(worker);
	before = gn_fast_ns();
	sched_yield();
	took = gn_fast_ns() - before;
	gn_worker_step_in(worker);
	worker->yielded = true;
	if (took > worker->switched_ns)
		worker->yield_ns = 0;
	else if (worker->yield_ns < LAST_YIELD_NS)
		worker->yield_ns = worker->yield_ns != 0 ? 2 * worker->yield_ns : FIRST_YIELD_NS;
	worker->pause_ns = worker->yield_ns;
	if (worker->idle_since_ns != 0 && took > PREEMPTED_NS)
		worker->idle_since_ns += took;
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
 * There is work that cannot be done yet, for example because a queue of the peer is full. Possibly
 * no event signals when the work can be done, so yield at first, and then poll at intervals.
 */
static void wait_blocked(struct gn_worker *worker)
{
	/* yield() moves idle_since_ns on, also past now_ns */
	if (worker->now_ns < worker->idle_since_ns + BLOCKED_NS) {
		yield(worker);
		return;
	}
	sleep_for(worker, true, BLOCKED_POLL_NS);
}

/* The spin budget is used up: sleep until an event, a timer or until_ns. */
static void sleep_until_event(struct gn_worker *worker, uint64_t until_ns)
{
	uint64_t timer = gn_worker_timer(worker), left;

	if (timer != 0 && (until_ns == 0 || timer < until_ns))
		until_ns = timer;
	if (until_ns != 0 && until_ns <= worker->now_ns + NEAR_TIMER_NS) {
		gn_worker_step_out(worker);
		gn_worker_step_in(worker);
		return;
	}
	if (gn_worker_arm_all(worker) != 0) {
		wait_blocked(worker);
		return;
	}
	left = until_ns != 0 ? until_ns - worker->now_ns : 0;
	sleep_for(worker, until_ns != 0, left);
	if (worker->driven)
		gn_worker_disarm_all(worker);
	update_wait_history(worker);
}

void gn_worker_idle(struct gn_worker *worker, uint64_t until_ns)
{
	uint64_t waited;

	if (worker->idle_since_ns == 0)
		begin_wait(worker);
	waited = worker->now_ns - worker->idle_since_ns;
	if (waited >= worker->spin_ns) {
		sleep_until_event(worker, until_ns);
	} else if (waited >= worker->pause_ns) {
		yield(worker); /* the lane that this lane waits for might need the processor */
	} else {
		gn_worker_step_out(worker);
		relax(worker);
		gn_worker_step_in(worker);
	}
}
