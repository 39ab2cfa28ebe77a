/* SPDX-License-Identifier: BSD-3-Clause */
#include "pipeline/worker.h"

#include "base/clock.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define PURE_SPIN_NS 1000ull      /* so long an idle worker only pauses; then it also yields the processor */
#define STOLEN_NS 20000ull        /* a yield that took longer than this let somebody else run */
#define NEAR_TIMER_NS 50000ull    /* a timer so near is not worth a sleep */
#define MIN_SPIN_SHARE 8          /* the spin budget never falls below its maximum divided by this */

struct call {
	void (*fn)(void *arg);
	void *arg;
	int done;
	struct call *next;
};

struct gn_worker {
	struct gantry_poller *pollers;
	unsigned n_pollers, max_pollers;
	unsigned n_removed; /* entries whose poll is NULL, swept at the end of a turn */
	int epoll_fd;
	int wake_fd;
	uint64_t now_ns;
	uint64_t idle_since_ns; /* 0: the last turn found work */
	uint64_t max_spin_ns;
	uint64_t spin_ns; /* the budget of today */
	int cpu;
	int stop;

	/* for reports; written by the worker alone */
	uint64_t n_turns, n_hits, n_sleeps;

	pthread_t thread;
	pthread_mutex_t lock; /* guards calls */
	pthread_cond_t called;
	struct call *calls;
	int have_calls; /* __atomic */
};

static void relax(void)
{
#if defined(__x86_64__)
	for (int i = 0; i < 5; i++)
		__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

static void run_calls(struct gn_worker *worker)
{
	pthread_mutex_lock(&worker->lock);
	__atomic_store_n(&worker->have_calls, 0, __ATOMIC_RELAXED);
	while (worker->calls != NULL) {
		struct call *c = worker->calls;

		worker->calls = c->next;
		pthread_mutex_unlock(&worker->lock);
		c->fn(c->arg);
		pthread_mutex_lock(&worker->lock);
		c->done = 1;
		pthread_cond_broadcast(&worker->called);
	}
	pthread_mutex_unlock(&worker->lock);
}

static void sweep(struct gn_worker *worker)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < worker->n_pollers; i++)
		if (worker->pollers[i].poll != NULL)
			worker->pollers[kept++] = worker->pollers[i];
	worker->n_pollers = kept;
	worker->n_removed = 0;
}

static int poll_all(struct gn_worker *worker)
{
	int n = 0;

	for (unsigned i = 0; i < worker->n_pollers; i++) {
		const struct gantry_poller *p = &worker->pollers[i];

		if (p->poll != NULL)
			n += p->poll(p->self);
	}
	if (worker->n_removed != 0)
		sweep(worker);
	return n;
}

static void disarm(struct gn_worker *worker, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (worker->pollers[i].disarm != NULL)
			worker->pollers[i].disarm(worker->pollers[i].self);
}

static uint64_t next_timer(const struct gn_worker *worker)
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

static void wait_fds(struct gn_worker *worker, uint64_t until_ns)
{
	struct epoll_event ev[8];
	uint64_t left = until_ns > worker->now_ns ? until_ns - worker->now_ns : 0;
	struct timespec ts = {.tv_sec = (time_t)(left / GN_NS_PER_S), .tv_nsec = (long)(left % GN_NS_PER_S)};
	int n = epoll_pwait2(worker->epoll_fd, ev, 8, until_ns != 0 ? &ts : NULL, NULL);

	if (n < 0 && errno == ENOSYS)
		n = epoll_wait(worker->epoll_fd, ev, 8, until_ns != 0 ? (int)(left / GN_NS_PER_MS) + 1 : -1);
	for (int i = 0; i < n; i++)
		if (ev[i].data.fd == worker->wake_fd) {
			uint64_t count;

			if (read(worker->wake_fd, &count, sizeof(count)) < 0)
				return; /* EAGAIN: nothing to clear */
		}
}

/* Nothing happened for the whole budget: sleep until something does. */
static void doze(struct gn_worker *worker)
{
	uint64_t until = next_timer(worker), before;

	if (until != 0 && until <= worker->now_ns + NEAR_TIMER_NS)
		return;
	for (unsigned i = 0; i < worker->n_pollers; i++)
		if (worker->pollers[i].arm != NULL && worker->pollers[i].arm(worker->pollers[i].self) != 0) {
			disarm(worker, i + 1);
			sched_yield(); /* work that cannot be done yet: somebody else must run first */
			return;
		}
	before = gn_now_ns();
	if (!__atomic_load_n(&worker->have_calls, __ATOMIC_SEQ_CST))
		wait_fds(worker, until);
	disarm(worker, worker->n_pollers);
	gantry_count(&worker->n_sleeps, 1);
	/* A long sleep says that spinning is wasted here; a short one that it nearly paid. */
	if (gn_now_ns() - before > 4 * worker->max_spin_ns)
		worker->spin_ns = worker->max_spin_ns / MIN_SPIN_SHARE;
	else
		worker->spin_ns = worker->max_spin_ns;
	worker->idle_since_ns = 0;
}

static void idle(struct gn_worker *worker)
{
	uint64_t waited;

	if (worker->idle_since_ns == 0)
		worker->idle_since_ns = worker->now_ns;
	waited = worker->now_ns - worker->idle_since_ns;
	if (waited >= worker->spin_ns) {
		doze(worker);
	} else if (waited < PURE_SPIN_NS) {
		relax();
	} else {
		/* Somebody else may need this processor, perhaps the very lane that we wait for. */
		sched_yield();
		if (gn_fast_ns() - worker->now_ns > STOLEN_NS)
			worker->idle_since_ns += gn_fast_ns() - worker->now_ns;
	}
}

static void *run(void *arg)
{
	struct gn_worker *worker = arg;

	while (!__atomic_load_n(&worker->stop, __ATOMIC_RELAXED)) {
		int n;

		worker->now_ns = gn_fast_ns();
		if (__atomic_load_n(&worker->have_calls, __ATOMIC_ACQUIRE))
			run_calls(worker);
		n = poll_all(worker);
		gantry_count(&worker->n_turns, 1);
		if (n > 0) {
			gantry_count(&worker->n_hits, 1);
			worker->idle_since_ns = 0;
		} else {
			idle(worker);
		}
	}
	run_calls(worker);
	return NULL;
}

static void wake(struct gn_worker *worker)
{
	uint64_t one = 1;

	if (write(worker->wake_fd, &one, sizeof(one)) < 0)
		return; /* the counter is full: it is awake anyway */
}

/* The thread may sleep already. */
static void stop_thread(struct gn_worker *worker)
{
	__atomic_store_n(&worker->stop, 1, __ATOMIC_RELAXED);
	wake(worker);
	pthread_join(worker->thread, NULL);
}

static int start_thread(struct gn_worker *worker, const char *name)
{
	int rc = pthread_create(&worker->thread, NULL, run, worker);

	if (rc != 0)
		return -rc;
	pthread_setname_np(worker->thread, name);
	if (worker->cpu >= 0) {
		cpu_set_t set;

		CPU_ZERO(&set);
		CPU_SET(worker->cpu, &set);
		rc = pthread_setaffinity_np(worker->thread, sizeof(set), &set);
		if (rc != 0)
			stop_thread(worker);
	}
	return -rc;
}

int gn_worker_create(const struct gn_worker_attr *attr, struct gn_worker **worker_p)
{
	struct gn_worker *worker = calloc(1, sizeof(*worker));
	struct epoll_event ev = {.events = EPOLLIN};
	int rc;

	if (worker == NULL)
		return -ENOMEM;
	worker->cpu = attr->cpu;
	worker->max_spin_ns = worker->spin_ns = attr->spin_ns;
	worker->now_ns = gn_fast_ns();
	pthread_mutex_init(&worker->lock, NULL);
	pthread_cond_init(&worker->called, NULL);
	worker->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	worker->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	ev.data.fd = worker->wake_fd;
	if (worker->wake_fd < 0 || worker->epoll_fd < 0 ||
	    epoll_ctl(worker->epoll_fd, EPOLL_CTL_ADD, worker->wake_fd, &ev) != 0) {
		rc = -errno;
		goto out_close;
	}
	rc = start_thread(worker, attr->name);
	if (rc != 0)
		goto out_close;
	*worker_p = worker;
	return 0;

out_close:
	if (worker->epoll_fd >= 0)
		close(worker->epoll_fd);
	if (worker->wake_fd >= 0)
		close(worker->wake_fd);
	pthread_cond_destroy(&worker->called);
	pthread_mutex_destroy(&worker->lock);
	free(worker);
	return rc;
}

void gn_worker_destroy(struct gn_worker **worker_p)
{
	struct gn_worker *worker = *worker_p;

	*worker_p = NULL;
	if (worker == NULL)
		return;
	stop_thread(worker);
	close(worker->epoll_fd);
	close(worker->wake_fd);
	pthread_cond_destroy(&worker->called);
	pthread_mutex_destroy(&worker->lock);
	free(worker->pollers);
	free(worker);
}

void gn_worker_call(struct gn_worker *worker, void (*fn)(void *arg), void *arg)
{
	struct call c = {.fn = fn, .arg = arg};

	if (pthread_equal(pthread_self(), worker->thread)) {
		fn(arg);
		return;
	}
	pthread_mutex_lock(&worker->lock);
	c.next = worker->calls;
	worker->calls = &c;
	__atomic_store_n(&worker->have_calls, 1, __ATOMIC_SEQ_CST);
	wake(worker);
	while (!c.done)
		pthread_cond_wait(&worker->called, &worker->lock);
	pthread_mutex_unlock(&worker->lock);
}

struct change {
	struct gn_worker *worker;
	const struct gantry_poller *poller;
	void *self;
	int rc;
};

static void do_add(void *arg)
{
	struct change *ch = arg;
	struct gn_worker *worker = ch->worker;
	int fd = ch->poller->fd != NULL ? ch->poller->fd(ch->poller->self) : -1;
	struct epoll_event ev = {.events = EPOLLIN, .data.fd = fd};

	if (worker->n_pollers == worker->max_pollers) {
		unsigned max = worker->max_pollers * 2 + 8;
		struct gantry_poller *more = realloc(worker->pollers, max * sizeof(*more));

		if (more == NULL) {
			ch->rc = -ENOMEM;
			return;
		}
		worker->pollers = more;
		worker->max_pollers = max;
	}
	if (fd >= 0 && epoll_ctl(worker->epoll_fd, EPOLL_CTL_ADD, fd, &ev) != 0 && errno != EEXIST) {
		ch->rc = -errno;
		return;
	}
	worker->pollers[worker->n_pollers++] = *ch->poller;
	worker->idle_since_ns = 0;
}

/* Whether a poller that stays waits for the same fd. */
static int fd_shared(const struct gn_worker *worker, int fd)
{
	for (unsigned i = 0; i < worker->n_pollers; i++) {
		const struct gantry_poller *p = &worker->pollers[i];

		if (p->poll != NULL && p->fd != NULL && p->fd(p->self) == fd)
			return 1;
	}
	return 0;
}

static void do_remove(void *arg)
{
	struct change *ch = arg;
	struct gn_worker *worker = ch->worker;

	for (unsigned i = 0; i < worker->n_pollers; i++) {
		struct gantry_poller *p = &worker->pollers[i];
		int fd;

		if (p->poll == NULL || p->self != ch->self)
			continue;
		fd = p->fd != NULL ? p->fd(p->self) : -1;
		*p = (struct gantry_poller){.poll = NULL};
		worker->n_removed++;
		if (fd >= 0 && !fd_shared(worker, fd))
			epoll_ctl(worker->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
	}
}

int gn_worker_add(struct gn_worker *worker, const struct gantry_poller *poller)
{
	struct change ch = {.worker = worker, .poller = poller};

	gn_worker_call(worker, do_add, &ch);
	return ch.rc;
}

void gn_worker_remove(struct gn_worker *worker, void *self)
{
	struct change ch = {.worker = worker, .self = self};

	gn_worker_call(worker, do_remove, &ch);
}

uint64_t gn_worker_now(const struct gn_worker *worker)
{
	return worker->now_ns;
}

void gn_worker_report(const struct gn_worker *worker, struct gantry_writer *w)
{
	w->u64(w, "turns", __atomic_load_n(&worker->n_turns, __ATOMIC_RELAXED));
	w->u64(w, "turns_with_work", __atomic_load_n(&worker->n_hits, __ATOMIC_RELAXED));
	w->u64(w, "sleeps", __atomic_load_n(&worker->n_sleeps, __ATOMIC_RELAXED));
}
