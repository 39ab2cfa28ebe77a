/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * worker_driven.c - a worker without a thread. The thread that is inside (between enter and leave,
 * or in a call) holds its lock.
 *
 * The owner enters and leaves many times per microsecond, so another thread that waits for a plain
 * lock would hardly ever get it. A caller therefore increments n_wanted before it locks, and the
 * owner waits outside until n_wanted is 0.
 */
#include "pipeline/worker_priv.h"

#include "base/clock.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

static void set_inside(struct gn_worker *worker, uintptr_t thread)
{
	__atomic_store_n(&worker->inside, thread, __ATOMIC_RELAXED);
}

/*
 * A relaxed load is sufficient: a thread always sees its own store, and only equality with its own
 * id matters.
 */
bool gn_worker_is_inside(const struct gn_worker *worker)
{
	return __atomic_load_n(&worker->inside, __ATOMIC_RELAXED) == (uintptr_t)pthread_self();
}

void gn_worker_step_in(struct gn_worker *worker)
{
	if (!worker->driven)
		return;
	pthread_mutex_lock(&worker->lock);
	while (__atomic_load_n(&worker->n_wanted, __ATOMIC_RELAXED) != 0)
		pthread_cond_wait(&worker->called, &worker->lock);
	set_inside(worker, (uintptr_t)pthread_self());
	gn_worker_tick(worker);
}

void gn_worker_step_out(struct gn_worker *worker)
{
	if (!worker->driven)
		return;
	set_inside(worker, 0);
	pthread_mutex_unlock(&worker->lock);
}

static void ring_once(struct gn_worker *worker)
{
	if (!worker->woken)
		gn_worker_wake(worker);
	worker->woken = true;
}

void gn_worker_call_driven(struct gn_worker *worker, void (*fn)(void *arg), void *arg)
{
	__atomic_add_fetch(&worker->n_wanted, 1, __ATOMIC_RELAXED);
	pthread_mutex_lock(&worker->lock);
	set_inside(worker, (uintptr_t)pthread_self());
	gn_worker_tick(worker);
	if (worker->armed)
		ring_once(worker);
	gn_worker_disarm_all(worker);
	fn(arg);
	if (worker->n_removed != 0)
		gn_worker_sweep(worker);
	set_inside(worker, 0);
	if (__atomic_sub_fetch(&worker->n_wanted, 1, __ATOMIC_RELAXED) == 0)
		pthread_cond_broadcast(&worker->called);
	pthread_mutex_unlock(&worker->lock);
}

void gn_worker_enter(struct gn_worker *worker)
{
	gn_worker_step_in(worker);
	gn_idle_worked(&worker->idle); /* a new wait starts */
	if (worker->armed)
		worker->owes_turn = true;
	gn_worker_disarm_all(worker);
}

void gn_worker_leave(struct gn_worker *worker)
{
	if (worker->owes_turn)
		ring_once(worker);
	worker->owes_turn = false;
	gn_worker_step_out(worker);
}

/* Drain the eventfd and the expired timer: the turn that follows handles their events. */
static void drain_fds(struct gn_worker *worker)
{
	uint64_t count;

	worker->owes_turn = false;
	if (worker->woken && read(worker->wake_fd, &count, sizeof(count)) > 0)
		worker->woken = false;
	if (worker->timer_ns != 0 && worker->timer_ns <= worker->now_ns &&
	    read(worker->timer_fd, &count, sizeof(count)) > 0)
		worker->timer_ns = 0;
}

int gn_worker_turn(struct gn_worker *worker)
{
	drain_fds(worker);
	return gn_worker_poll_all(worker);
}

/*
 * Set the timer unless it expires earlier already. A timer that expires earlier than necessary
 * costs one turn without work.
 */
static int set_timer(struct gn_worker *worker, uint64_t at_ns)
{
	uint64_t left = at_ns - worker->now_ns;
	struct itimerspec its = {.it_value = {.tv_sec = (time_t)(left / GN_NS_PER_S),
					      .tv_nsec = (long)(left % GN_NS_PER_S)}};

	if (worker->timer_ns != 0 && worker->timer_ns <= at_ns)
		return 0;
	if (timerfd_settime(worker->timer_fd, 0, &its, NULL) != 0)
		return -errno;
	worker->timer_ns = at_ns;
	return 0;
}

int gn_worker_arm(struct gn_worker *worker)
{
	uint64_t at_ns = gn_worker_timer(worker);

	if (at_ns != 0 && (at_ns <= worker->now_ns || set_timer(worker, at_ns) != 0))
		return 1;
	return gn_worker_arm_all(worker);
}

int gn_worker_fd(const struct gn_worker *worker)
{
	return worker->epoll_fd;
}

int gn_worker_open_timer(struct gn_worker *worker)
{
	struct epoll_event ev = {.events = EPOLLIN};

	worker->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	ev.data.fd = worker->timer_fd;
	if (worker->timer_fd < 0 ||
	    epoll_ctl(worker->epoll_fd, EPOLL_CTL_ADD, worker->timer_fd, &ev) != 0)
		return -errno;
	return 0;
}
