/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * worker.c - create and destroy a worker, call functions on its thread, add and remove pollers and
 * clocks. The turns are in worker_turn.c.
 */
#include "pipeline/worker_priv.h"

#include "base/clock.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct gn_worker_call {
	void (*fn)(void *arg);
	void *arg;
	int done;
	struct gn_worker_call *next;
};

static void run_calls(struct gn_worker *worker)
{
	pthread_mutex_lock(&worker->lock);
	__atomic_store_n(&worker->have_calls, 0, __ATOMIC_RELAXED);
	while (worker->calls) {
		struct gn_worker_call *c = worker->calls;

		worker->calls = c->next;
		pthread_mutex_unlock(&worker->lock);
		c->fn(c->arg);
		pthread_mutex_lock(&worker->lock);
		c->done = 1;
		pthread_cond_broadcast(&worker->called);
	}
	pthread_mutex_unlock(&worker->lock);
}

/*
 * Main function of the thread. After a sleep it polls before it disarms the pollers, because the
 * event that woke the lane waits for the poll, not for the disarm.
 */
static void *run(void *arg)
{
	struct gn_worker *worker = arg;
	int n;

	while (!__atomic_load_n(&worker->stop, __ATOMIC_RELAXED)) {
		gn_worker_tick(worker);
		if (__atomic_load_n(&worker->have_calls, __ATOMIC_ACQUIRE)) {
			gn_worker_disarm_all(worker);
			run_calls(worker);
		}
		n = gn_worker_poll_all(worker);
		if (worker->armed)
			gn_worker_disarm_all(worker);
		if (n == 0)
			gn_worker_idle(worker, 0);
	}
	gn_worker_disarm_all(worker);
	run_calls(worker);
	return NULL;
}

/* Stop and join the thread, which can be asleep. */
static void stop_thread(struct gn_worker *worker)
{
	__atomic_store_n(&worker->stop, 1, __ATOMIC_RELAXED);
	gn_worker_wake(worker);
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

static void free_worker(struct gn_worker *worker)
{
	int fds[] = {worker->timer_fd, worker->epoll_fd, worker->wake_fd};

	for (unsigned i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
		if (fds[i] >= 0)
			close(fds[i]);
	pthread_cond_destroy(&worker->called);
	pthread_mutex_destroy(&worker->lock);
	free(worker->pollers);
	free(worker->clocks);
	free(worker);
}

/*
 * Returns the epoll events to request. A worker with a thread polls everything after it wakes up
 * and before it sleeps, so it uses edge-triggered events and no fd has to be drained. The owner of
 * a driven worker waits on the epoll fd itself, which must stay readable while an event is pending.
 */
static uint32_t worker_events(bool driven)
{
	return driven ? EPOLLIN : EPOLLIN | (uint32_t)EPOLLET;
}

bool gn_worker_is_edge_triggered(const struct gn_worker *worker)
{
	return !worker->driven;
}

/* Returns the duration of a system call, the shortest of a few. */
static uint64_t measure_call_ns(void)
{
	uint64_t best = UINT64_MAX;

	for (int try = 0; try < 8; try++) {
		uint64_t before = gn_fast_ns(), took;

		getppid(); /* the C library does not cache the result */
		took = gn_fast_ns() - before;
		if (took < best)
			best = took;
	}
	return best;
}

int gn_worker_create(const struct gn_worker_attr *attr, struct gn_worker **worker_p)
{
	struct gn_worker *worker = gantry_zalloc_lines(sizeof(*worker));
	struct epoll_event ev = {.events = worker_events(attr->driven)};
	int rc = 0;

	if (!worker)
		return -ENOMEM;
	worker->cpu = attr->cpu;
	worker->driven = attr->driven;
	gn_idle_init(&worker->idle, attr->spin_ns, measure_call_ns());
	worker->now_ns = gn_fast_ns();
	pthread_mutex_init(&worker->lock, NULL);
	pthread_cond_init(&worker->called, NULL);
	worker->timer_fd = -1;
	worker->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	worker->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (worker->wake_fd < 0 || worker->epoll_fd < 0 ||
	    epoll_ctl(worker->epoll_fd, EPOLL_CTL_ADD, worker->wake_fd, &ev) != 0)
		rc = -errno;
	if (rc == 0)
		rc = worker->driven ? gn_worker_open_timer(worker)
				    : start_thread(worker, attr->name);
	if (rc != 0) {
		free_worker(worker);
		return rc;
	}
	*worker_p = worker;
	return 0;
}

void gn_worker_destroy(struct gn_worker **worker_p)
{
	struct gn_worker *worker = *worker_p;

	*worker_p = NULL;
	if (!worker)
		return;
	if (!worker->driven)
		stop_thread(worker);
	free_worker(worker);
}

static bool on_worker(const struct gn_worker *worker)
{
	return worker->driven ? gn_worker_is_inside(worker)
			      : pthread_equal(pthread_self(), worker->thread);
}

void gn_worker_call(struct gn_worker *worker, void (*fn)(void *arg), void *arg)
{
	struct gn_worker_call c = {.fn = fn, .arg = arg};

	if (on_worker(worker)) {
		fn(arg);
		return;
	}
	if (worker->driven) {
		gn_worker_call_driven(worker, fn, arg);
		return;
	}
	pthread_mutex_lock(&worker->lock);
	c.next = worker->calls;
	worker->calls = &c;
	/*
	 * The lock protects the list. The eventfd ensures that the worker sees the flag: it ends a
	 * sleep that began before the store.
	 */
	__atomic_store_n(&worker->have_calls, 1, __ATOMIC_SEQ_CST);
	gn_worker_wake(worker);
	while (!c.done)
		pthread_cond_wait(&worker->called, &worker->lock);
	pthread_mutex_unlock(&worker->lock);
}

struct spin_change {
	struct gn_worker *worker;
	uint64_t spin_ns;
};

static void set_spin(void *arg)
{
	const struct spin_change *change = arg;

	gn_idle_set_spin(&change->worker->idle, change->spin_ns);
}

void gn_worker_set_spin(struct gn_worker *worker, uint64_t spin_ns)
{
	struct spin_change change = {worker, spin_ns};

	gn_worker_call(worker, set_spin, &change);
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
	int fd = ch->poller->fd ? ch->poller->fd(ch->poller->self) : -1;
	struct epoll_event ev = {.events = worker_events(worker->driven)};

	if (worker->n_pollers == worker->max_pollers) {
		unsigned max = worker->max_pollers * 2 + 8;
		struct gantry_poller *more = realloc(worker->pollers, max * sizeof(*more));

		if (!more) {
			ch->rc = -ENOMEM;
			return;
		}
		worker->pollers = more;
		worker->max_pollers = max;
	}
	if (fd >= 0 && epoll_ctl(worker->epoll_fd, EPOLL_CTL_ADD, fd, &ev) != 0 &&
	    errno != EEXIST) {
		ch->rc = -errno;
		return;
	}
	worker->pollers[worker->n_pollers++] = *ch->poller;
	gn_idle_worked(&worker->idle);
}

/* Returns true if a remaining poller waits for the same fd. */
static int fd_shared(const struct gn_worker *worker, int fd)
{
	for (unsigned i = 0; i < worker->n_pollers; i++) {
		const struct gantry_poller *p = &worker->pollers[i];

		if (p->poll && p->fd && p->fd(p->self) == fd)
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

		if (!p->poll || p->self != ch->self)
			continue;
		fd = p->fd ? p->fd(p->self) : -1;
		if (worker->armed && p->disarm)
			p->disarm(p->self);
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

static void do_add_clock(void *arg)
{
	struct change *ch = arg;
	struct gn_worker *worker = ch->worker;
	uint64_t **more = realloc(worker->clocks, (worker->n_clocks + 1) * sizeof(*more));

	if (!more) {
		ch->rc = -ENOMEM;
		return;
	}
	worker->clocks = more;
	worker->clocks[worker->n_clocks++] = ch->self;
}

static void do_remove_clock(void *arg)
{
	struct change *ch = arg;
	struct gn_worker *worker = ch->worker;

	for (unsigned i = 0; i < worker->n_clocks; i++)
		if (worker->clocks[i] == ch->self)
			worker->clocks[i] = worker->clocks[--worker->n_clocks];
}

int gn_worker_add_clock(struct gn_worker *worker, uint64_t *now_ns)
{
	struct change ch = {.worker = worker, .self = now_ns};

	gn_worker_call(worker, do_add_clock, &ch);
	return ch.rc;
}

void gn_worker_remove_clock(struct gn_worker *worker, uint64_t *now_ns)
{
	struct change ch = {.worker = worker, .self = now_ns};

	gn_worker_call(worker, do_remove_clock, &ch);
}

void gn_worker_report(const struct gn_worker *worker, struct gantry_writer *w)
{
	w->u64(w, "turns", __atomic_load_n(&worker->n_turns, __ATOMIC_RELAXED));
	w->u64(w, "turns_with_work", __atomic_load_n(&worker->n_hits, __ATOMIC_RELAXED));
	w->u64(w, "sleeps", __atomic_load_n(&worker->n_sleeps, __ATOMIC_RELAXED));
}
