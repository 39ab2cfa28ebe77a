/* SPDX-License-Identifier: BSD-3-Clause */
/* What a worker does over and over: poll, and when there is nothing, spin and sleep. */
#include "pipeline/worker_priv.h"

#include "base/clock.h"
#include "base/pause.h"

#include <errno.h>
#include <sched.h>
#include <sys/epoll.h>
#include <unistd.h>

#define RELAX_NS 40ull /* an idle worker pauses for about so long between two turns */
#define TRIED_PAUSES 32
#define MAX_PAUSES 8
/* where nobody else wants the processor an idle worker pauses for so long before a yield, */
#define FIRST_YIELD_NS 1000ull
/*   and longer and longer, up to this; where somebody does it yields at once */
#define LAST_YIELD_NS 16000ull
/* what follows an answer is paused for so long: a yield in vain, there and back, takes as much */
#define RELAYED_NS 2000ull
#define SWITCHED_NS 1000ull /* a yield that took longer than this let somebody else run, */
/*   or than so many system calls, where those are slow: on a processor that is emulated */
#define SWITCHED_CALLS 5
#define TRIED_CALLS 8
/* so many pauses in vain follow one that paid, before it is only tried now and then */
#define PAYS_MOST 2
/* turns; a prime: each of the waits that follow each other in a circle has its try */
#define TRY_EACH 61
#define STOLEN_NS 20000ull     /* and this one so much that the wait begins anew */
#define SMALL_NS 200ull        /* things that take less are timed together: */
#define LOOK_NS 1000ull        /*   as many as take so long, */
#define MOST_SMALL 32          /*   and not more than these */
#define NEAR_TIMER_NS 50000ull /* a timer so near is not worth a sleep */
/* a wait of so many budgets, with a sleep, would not have ended within one without */
#define LATE 2
#define IN_VAIN 3 /* for so many such waits counts one that had a whole budget */
/* after one of so many a spin of a whole budget is next to nothing */
#define RARE 64
#define MANY_SHORT 12 /* of the last 16 waits: as good as all */

/*
 * Between two looks at a line the one who writes it should get hold of it, and no more: a pause is
 * 10 ns on one processor and 60 on another.
 */
unsigned gn_worker_pauses(void)
{
	uint64_t best = UINT64_MAX;

	for (int try = 0; try < 8; try++) {
		uint64_t before = gn_fast_ns(), took;

		for (int i = 0; i < TRIED_PAUSES; i++)
			gn_pause();
		took = gn_fast_ns() - before;
		if (took < best)
			best = took;
	}
	if (best <= RELAX_NS * TRIED_PAUSES / MAX_PAUSES)
		return MAX_PAUSES;
	return best >= RELAX_NS * TRIED_PAUSES ? 1 : (unsigned)(RELAX_NS * TRIED_PAUSES / best);
}

uint64_t gn_worker_switched_ns(void)
{
	uint64_t best = UINT64_MAX;

	for (int try = 0; try < TRIED_CALLS; try++) {
		uint64_t before = gn_fast_ns(), took;

		/* the kernel does next to nothing for it, and the C library does not keep it */
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

void gn_worker_tick(struct gn_worker *worker)
{
	uint64_t now_ns = gn_fast_ns(), **clocks = worker->clocks;

	worker->now_ns = now_ns;
	for (unsigned i = 0, n = worker->n_clocks; i < n; i++)
		*clocks[i] = now_ns;
}

/* How many things are to share the next look at the clock, where so many took so long. */
static uint32_t share(uint32_t things, uint64_t took_ns)
{
	if (took_ns >= things * SMALL_NS)
		return 1;
	if (took_ns < LOOK_NS * things / MOST_SMALL)
		return MOST_SMALL;
	return (uint32_t)(LOOK_NS * things / took_ns);
}

void gn_worker_clock_update_coarse(struct gn_worker *worker)
{
	struct gn_worker_small *small = &worker->small;

	if (gn_worker_clock_is_fresh(worker))
		return;
	gn_worker_tick(worker);
	small->most = share(small->done + 1, worker->now_ns - worker->looked_ns) - 1;
	small->done = 0;
	worker->looked_ns = worker->now_ns;
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
		return; /* the counter is full: it is awake anyway */
}

/*
 * left_ns: at most so long, when limited is set. What for does not matter: all pollers are polled,
 * and calls looked for.
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
 * Who shares a processor with the one it waits for yields at once. But a relay waits in turn for
 * one beside it and for one on another processor: after what a yield has brought, a pause may bring
 * the next. It is tried now and then, and kept up while it does. Returns for how long the wait that
 * begins pauses before it yields.
 */
static uint64_t pause_before_yield(struct gn_worker *worker)
{
	bool after_yield = worker->yielded;

	if (worker->tried && !after_yield)
		worker->pays = PAYS_MOST;
	else if (worker->tried && worker->pays > 0)
		worker->pays--;
	worker->yielded = false;
	worker->tried = worker->yield_ns == 0 && after_yield &&
			(worker->pays > 0 || worker->n_turns % TRY_EACH == 0);
	return worker->tried ? RELAYED_NS : worker->yield_ns;
}

/*
 * Is a wait that begins worth spinning for? Yes, for all of the budget, where nearly all of the
 * last waits would have ended within it. A lane that waits now for an answer, which is near, and
 * now for the next request, which is not, must not count the one for the other: there every spin is
 * a loss, however short. After a very long wait it is none, and who woke us may want more.
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
 * It woke up. The wait goes on until there is work: waking up for nothing is no reason to spin
 * again.
 */
static void update_wait_history(struct gn_worker *worker)
{
	uint64_t waited_ns = gn_fast_ns() - worker->idle_since_ns;

	if (worker->spin_ns != 0)
		worker->late = IN_VAIN;
	else if (waited_ns > LATE * worker->max_spin_ns)
		worker->late = 1;
	worker->rare = waited_ns > RARE * worker->max_spin_ns;
}

/* Let somebody else run: who uses this processor, who wants to call. */
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
	if (worker->idle_since_ns != 0 && took > STOLEN_NS)
		worker->idle_since_ns += took;
}

/* Nothing happened for the whole budget: sleep until something does. */
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
		yield(worker); /* work that cannot be done yet */
		return;
	}
	left = until_ns != 0 ? until_ns - worker->now_ns : 0;
	gn_worker_step_out(worker);
	if (!__atomic_load_n(&worker->have_calls, __ATOMIC_SEQ_CST))
		wait_fds(worker, until_ns != 0, left);
	gn_worker_step_in(worker);
	if (worker->driven)
		gn_worker_disarm_all(worker);
	gantry_count(&worker->n_sleeps, 1);
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
		yield(worker); /* perhaps it is the very lane that we wait for */
	} else {
		gn_worker_step_out(worker);
		relax(worker);
		gn_worker_step_in(worker);
	}
}
