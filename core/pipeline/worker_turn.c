/* SPDX-License-Identifier: BSD-3-Clause */
/* What a worker does over and over: poll, and when there is nothing, spin and sleep. */
#include "pipeline/worker_priv.h"

#include "base/clock.h"

#include <errno.h>
#include <sched.h>
#include <sys/epoll.h>
#include <unistd.h>

#define PURE_SPIN_NS 1000ull      /* so long an idle worker only pauses; then it also yields the processor */
#define STOLEN_NS 20000ull        /* a yield that took longer than this let somebody else run */
#define NEAR_TIMER_NS 50000ull    /* a timer so near is not worth a sleep */
#define MIN_SPIN_SHARE 8          /* the spin budget never falls below its maximum divided by this */

static void relax(void)
{
#if defined(__x86_64__)
	for (int i = 0; i < 5; i++)
		__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

void gn_worker_tick(struct gn_worker *worker)
{
	uint64_t now_ns = gn_fast_ns();

	worker->now_ns = now_ns;
	for (uint64_t **clock = worker->clocks, **end = clock + worker->n_clocks; clock != end; clock++)
		**clock = now_ns;
}

void gn_worker_sweep(struct gn_worker *worker)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < worker->n_pollers; i++)
		if (worker->pollers[i].poll != NULL)
			worker->pollers[kept++] = worker->pollers[i];
	worker->n_pollers = kept;
	worker->n_removed = 0;
}

int gn_worker_poll_all(struct gn_worker *worker)
{
	int n = 0;

	for (unsigned i = 0; i < worker->n_pollers; i++) {
		const struct gantry_poller *p = &worker->pollers[i];

		if (p->poll != NULL)
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
		if (worker->pollers[i].disarm != NULL)
			worker->pollers[i].disarm(worker->pollers[i].self);
}

int gn_worker_arm_all(struct gn_worker *worker)
{
	for (unsigned i = 0; i < worker->n_pollers; i++)
		if (worker->pollers[i].arm != NULL && worker->pollers[i].arm(worker->pollers[i].self) != 0) {
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
		uint64_t at = p->wake_ns != NULL ? p->wake_ns(p->self) : 0;

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

/* left_ns: at most so long, when limited is set. */
static void wait_fds(struct gn_worker *worker, bool limited, uint64_t left_ns)
{
	struct epoll_event ev[8];
	struct timespec ts = {.tv_sec = (time_t)(left_ns / GN_NS_PER_S), .tv_nsec = (long)(left_ns % GN_NS_PER_S)};
	int n = epoll_pwait2(worker->epoll_fd, ev, 8, limited ? &ts : NULL, NULL);

	if (n < 0 && errno == ENOSYS)
		n = epoll_wait(worker->epoll_fd, ev, 8, limited ? (int)(left_ns / GN_NS_PER_MS) + 1 : -1);
	for (int i = 0; i < n; i++)
		if (ev[i].data.fd == worker->wake_fd && !worker->driven) {
			uint64_t count;

			if (read(worker->wake_fd, &count, sizeof(count)) < 0)
				return; /* EAGAIN: nothing to clear */
		}
}

/* A long sleep says that spinning is wasted here; a short one that it nearly paid. */
static void learn(struct gn_worker *worker, uint64_t slept_ns)
{
	if (slept_ns > 4 * worker->max_spin_ns)
		worker->spin_ns = worker->max_spin_ns / MIN_SPIN_SHARE;
	else
		worker->spin_ns = worker->max_spin_ns;
	worker->idle_since_ns = 0;
}

/* Let somebody else run: who uses this processor, who wants to call. */
static void yield(struct gn_worker *worker)
{
	gn_worker_step_out(worker);
	sched_yield();
	gn_worker_step_in(worker);
}

/* Nothing happened for the whole budget: sleep until something does. */
static void doze(struct gn_worker *worker, uint64_t until_ns)
{
	uint64_t timer = gn_worker_timer(worker), before, left;

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
	before = gn_now_ns();
	gn_worker_step_out(worker);
	if (!__atomic_load_n(&worker->have_calls, __ATOMIC_SEQ_CST))
		wait_fds(worker, until_ns != 0, left);
	gn_worker_step_in(worker);
	gn_worker_disarm_all(worker);
	gantry_count(&worker->n_sleeps, 1);
	learn(worker, gn_now_ns() - before);
}

void gn_worker_idle(struct gn_worker *worker, uint64_t until_ns)
{
	uint64_t before = worker->now_ns, waited, after;

	if (worker->idle_since_ns == 0)
		worker->idle_since_ns = before;
	waited = before - worker->idle_since_ns;
	if (waited >= worker->spin_ns) {
		doze(worker, until_ns);
		return;
	}
	if (waited < PURE_SPIN_NS) {
		gn_worker_step_out(worker);
		relax();
		gn_worker_step_in(worker);
		return;
	}
	yield(worker); /* perhaps it is the very lane that we wait for */
	after = gn_fast_ns();
	if (worker->idle_since_ns != 0 && after - before > STOLEN_NS)
		worker->idle_since_ns += after - before;
}
