/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/event_loop.h"

#include "base/clock.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define RESERVE 64 /* posts; more than all roles of a process have pending at the same time */

struct watch {
	struct watch *next;
	int fd;
	/*
	 * the watch was removed. It is freed at the end of the turn, because epoll can have
	 * reported it already
	 */
	int dead;
	void (*fn)(void *arg);
	void *arg;
};

/* where the memory of a post is from: malloc(3), the reserve, or the caller */
enum place { ALLOCATED, RESERVED, CALLERS };

/*
 * The lock guards all fields after it. A turn holds it except while it waits and while it runs a
 * callback.
 */
struct gn_loop {
	int epoll_fd;
	int wake_fd;
	pthread_mutex_t lock;
	pthread_cond_t idle;   /* signalled when a callback of a watch has returned */
	pthread_t thread;      /* thread that runs the current turn */
	struct watch *current; /* watch whose callback runs */
	int waiting;
	int quit;
	int status;
	uint32_t turn; /* number of passes over the timers */
	struct watch *watches;
	/*
	 * list of the first timer of each time, sorted by time. A new timer is usually the last, so
	 * add_timer() searches from `last`
	 */
	struct gn_timer *first, *last;
	struct gn_post *posts, **posts_end;
	struct gn_post *batch; /* posts of this turn that have not run yet */
	/* free entries of the reserve, for gn_loop_must_post() when out of memory */
	struct gn_post *unused;
	struct gn_post reserve[RESERVE];
};

/* Wake the loop, so that it handles a change now. Lock held. */
static void wake(struct gn_loop *loop)
{
	uint64_t one = 1;

	if (loop->waiting && write(loop->wake_fd, &one, sizeof(one)) < 0)
		return; /* the counter is full: the loop is awake anyway */
}

static void drain_wake(void *arg)
{
	struct gn_loop *loop = arg;
	uint64_t n;

	if (read(loop->wake_fd, &n, sizeof(n)) < 0)
		return; /* EAGAIN: an earlier read has cleared the counter */
}

struct gn_loop *gn_loop_create(void)
{
	struct gn_loop *loop = calloc(1, sizeof(*loop));

	if (!loop)
		return NULL;
	loop->posts_end = &loop->posts;
	for (int i = 0; i < RESERVE; i++) {
		loop->reserve[i] = (struct gn_post){.next = loop->unused, .place = RESERVED};
		loop->unused = &loop->reserve[i];
	}
	pthread_mutex_init(&loop->lock, NULL);
	pthread_cond_init(&loop->idle, NULL);
	loop->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (loop->wake_fd < 0 || loop->epoll_fd < 0 ||
	    gn_loop_add_fd(loop, loop->wake_fd, drain_wake, loop) != 0)
		gn_loop_destroy(&loop);
	return loop;
}

static void reap(struct gn_loop *loop, int all)
{
	struct watch **p = &loop->watches;

	while (*p) {
		struct watch *w = *p;

		if (all || w->dead) {
			*p = w->next;
			free(w);
		} else {
			p = &w->next;
		}
	}
}

static void unlink_post(struct gn_loop *loop, struct gn_post *p)
{
	*p->at = p->next;
	if (p->next)
		p->next->at = p->at;
	else if (loop->posts_end == &p->next)
		loop->posts_end = p->at;
	p->at = NULL;
}

/* Free a post that has run or is cancelled. A post of the caller must not be accessed any more. */
static void drop_post(struct gn_loop *loop, struct gn_post *p, int place)
{
	if (place == ALLOCATED) {
		free(p);
	} else if (place == RESERVED) {
		p->next = loop->unused;
		loop->unused = p;
	}
}

void gn_loop_destroy(struct gn_loop **loop_p)
{
	struct gn_loop *loop = *loop_p;

	*loop_p = NULL;
	if (!loop)
		return;
	reap(loop, 1);
	for (struct gn_post *p; (p = loop->posts);) {
		unlink_post(loop, p);
		drop_post(loop, p, p->place);
	}
	gn_loop_abandon(loop);
	pthread_cond_destroy(&loop->idle);
	pthread_mutex_destroy(&loop->lock);
	free(loop);
}

void gn_loop_abandon(struct gn_loop *loop)
{
	if (loop->epoll_fd >= 0)
		close(loop->epoll_fd);
	if (loop->wake_fd >= 0)
		close(loop->wake_fd);
}

static int add_watch(struct gn_loop *loop, int fd, uint32_t events, void (*fn)(void *arg),
		     void *arg)
{
	struct watch *w = malloc(sizeof(*w));
	struct epoll_event ev = {.events = events, .data.ptr = w};
	int rc = 0;

	if (!w)
		return -ENOMEM;
	*w = (struct watch){.fd = fd, .fn = fn, .arg = arg};
	pthread_mutex_lock(&loop->lock);
	if (epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, fd, &ev) == 0) {
		w->next = loop->watches;
		loop->watches = w;
	} else {
		rc = -errno;
		free(w);
	}
	pthread_mutex_unlock(&loop->lock);
	return rc;
}

int gn_loop_add_fd(struct gn_loop *loop, int fd, void (*fn)(void *arg), void *arg)
{
	return add_watch(loop, fd, EPOLLIN, fn, arg);
}

int gn_loop_add_writer(struct gn_loop *loop, int fd, void (*fn)(void *arg), void *arg)
{
	return add_watch(loop, fd, EPOLLOUT, fn, arg);
}

static bool runs_elsewhere(const struct gn_loop *loop, int fd)
{
	return loop->current && loop->current->fd == fd &&
	       !pthread_equal(loop->thread, pthread_self());
}

void gn_loop_remove_fd(struct gn_loop *loop, int fd)
{
	pthread_mutex_lock(&loop->lock);
	for (struct watch *w = loop->watches; w; w = w->next)
		if (w->fd == fd && !w->dead) {
			epoll_ctl(loop->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
			w->dead = 1;
			wake(loop); /* the loop frees w at the end of its turn */
		}
	/*
	 * wait even if there is no such watch: a callback that has removed its own fd can still be
	 * running
	 */
	while (runs_elsewhere(loop, fd))
		pthread_cond_wait(&loop->idle, &loop->lock);
	pthread_mutex_unlock(&loop->lock);
}

/*
 * Hundreds of sessions set keepalive timers for few distinct times. So timers of one time form a
 * circular list, and only the first of them is in the list of times, for which this function
 * returns true. A new timer finds its position without a search over all timers.
 */
static bool is_first_of_time(const struct gn_loop *loop, const struct gn_timer *timer)
{
	return timer->prev || loop->first == timer;
}

/*
 * Insert a timer between prev and next in the list of times, or replace the timer that is between
 * them.
 */
static void link_between(struct gn_loop *loop, struct gn_timer *prev, struct gn_timer *timer,
			 struct gn_timer *next)
{
	timer->prev = prev;
	timer->next = next;
	*(prev != NULL ? &prev->next : &loop->first) = timer;
	*(next != NULL ? &next->prev : &loop->last) = timer;
}

static void clear_timer(struct gn_loop *loop, struct gn_timer *timer)
{
	if (timer->at_ns == 0)
		return;
	timer->at_ns = 0;
	timer->same->same_prev = timer->same_prev;
	timer->same_prev->same = timer->same;
	if (!is_first_of_time(loop, timer))
		return;
	if (timer->same != timer) {
		link_between(loop, timer->prev, timer->same, timer->next);
		return;
	}
	*(timer->prev != NULL ? &timer->prev->next : &loop->first) = timer->next;
	*(timer->next != NULL ? &timer->next->prev : &loop->last) = timer->prev;
}

static void join(struct gn_timer *first, struct gn_timer *timer)
{
	timer->prev = timer->next = NULL;
	timer->same = first;
	timer->same_prev = first->same_prev;
	first->same_prev->same = timer;
	first->same_prev = timer;
}

static void add_timer(struct gn_loop *loop, struct gn_timer *timer, uint64_t at_ns)
{
	struct gn_timer *before = loop->last;

	while (before && before->at_ns > at_ns)
		before = before->prev;
	timer->at_ns = at_ns;
	timer->turn = loop->turn;
	if (before && before->at_ns == at_ns) {
		join(before, timer);
		return;
	}
	timer->same = timer->same_prev = timer;
	link_between(loop, before, timer, before ? before->next : loop->first);
	if (!before)
		wake(loop);
}

void gn_loop_set_timer(struct gn_loop *loop, struct gn_timer *timer, uint64_t at_ns)
{
	pthread_mutex_lock(&loop->lock);
	clear_timer(loop, timer);
	if (at_ns != 0)
		add_timer(loop, timer, at_ns);
	pthread_mutex_unlock(&loop->lock);
}

void gn_loop_clear_timer(struct gn_loop *loop, struct gn_timer *timer)
{
	gn_loop_set_timer(loop, timer, 0);
}

/* Lock held. */
static void add_post(struct gn_loop *loop, struct gn_post *p, void (*fn)(void *arg), void *arg)
{
	p->next = NULL;
	p->fn = fn;
	p->arg = arg;
	p->at = loop->posts_end;
	*p->at = p;
	loop->posts_end = &p->next;
	wake(loop);
}

int gn_loop_post(struct gn_loop *loop, void (*fn)(void *arg), void *arg)
{
	struct gn_post *p = malloc(sizeof(*p));

	if (!p)
		return -ENOMEM;
	p->place = ALLOCATED;
	pthread_mutex_lock(&loop->lock);
	add_post(loop, p, fn, arg);
	pthread_mutex_unlock(&loop->lock);
	return 0;
}

static int post_reserve(struct gn_loop *loop, void (*fn)(void *arg), void *arg)
{
	struct gn_post *p;

	pthread_mutex_lock(&loop->lock);
	p = loop->unused;
	if (p) {
		loop->unused = p->next;
		add_post(loop, p, fn, arg);
	}
	pthread_mutex_unlock(&loop->lock);
	return p ? 0 : -ENOMEM;
}

void gn_loop_post_own(struct gn_loop *loop, struct gn_post *post, void (*fn)(void *arg), void *arg)
{
	pthread_mutex_lock(&loop->lock);
	if (!post->at) {
		post->place = CALLERS;
		add_post(loop, post, fn, arg);
	}
	pthread_mutex_unlock(&loop->lock);
}

void gn_loop_withdraw(struct gn_loop *loop, struct gn_post *post)
{
	pthread_mutex_lock(&loop->lock);
	if (post->at)
		unlink_post(loop, post);
	pthread_mutex_unlock(&loop->lock);
}

void gn_loop_must_post(struct gn_loop *loop, void (*fn)(void *arg), void *arg)
{
	while (gn_loop_post(loop, fn, arg) != 0 && post_reserve(loop, fn, arg) != 0)
		sched_yield();
}

/* -- a turn; lock held -- */

static int wait_ms(struct gn_loop *loop, int timeout_ms)
{
	const struct gn_timer *first = loop->first;
	uint64_t now, left;

	if (loop->quit || loop->posts)
		return 0;
	if (!first)
		return timeout_ms;
	now = gn_now_ns();
	left = first->at_ns > now ? (first->at_ns - now + 999999) / 1000000 : 0;
	if (timeout_ms >= 0 && left > (uint64_t)timeout_ms)
		return timeout_ms;
	return left > 60000 ? 60000 : (int)left;
}

static void call(struct gn_loop *loop, void (*fn)(void *arg), void *arg)
{
	pthread_mutex_unlock(&loop->lock);
	fn(arg);
	pthread_mutex_lock(&loop->lock);
}

static void run_watch(struct gn_loop *loop, struct watch *w)
{
	if (w->dead)
		return;
	loop->current = w;
	call(loop, w->fn, w->arg);
	loop->current = NULL;
	pthread_cond_broadcast(&loop->idle);
}

static struct gn_timer *due_timer(const struct gn_loop *loop, uint64_t now)
{
	for (struct gn_timer *first = loop->first; first && first->at_ns <= now;
	     first = first->next) {
		struct gn_timer *t = first;

		do {
			if (t->turn != loop->turn)
				return t;
			t = t->same;
		} while (t != first);
	}
	return NULL;
}

/*
 * Run the timers that are due. A timer that a callback sets waits for the next turn, so that timers
 * cannot starve the fds.
 */
static void run_timers(struct gn_loop *loop)
{
	uint64_t now = gn_now_ns();
	struct gn_timer *t;

	loop->turn++;
	while ((t = due_timer(loop, now))) {
		clear_timer(loop, t);
		call(loop, t->fn, t->arg);
	}
}

/* Run the posts. A post that a callback adds waits for the next turn. */
static void run_posts(struct gn_loop *loop)
{
	struct gn_post *p = loop->posts;

	if (!p)
		return;
	loop->batch = p;
	p->at = &loop->batch;
	loop->posts = NULL;
	loop->posts_end = &loop->posts;
	while ((p = loop->batch)) {
		int place = p->place;

		unlink_post(loop, p);
		call(loop, p->fn, p->arg);
		drop_post(loop, p, place);
	}
}

/* Wait for fds, at most timeout_ms. Returns the result of epoll_wait(2), or -errno. */
static int wait_for_events(struct gn_loop *loop, struct epoll_event *ev, int max, int timeout_ms)
{
	int n;

	loop->thread = pthread_self();
	loop->waiting = 1;
	pthread_mutex_unlock(&loop->lock);
	n = epoll_wait(loop->epoll_fd, ev, max, timeout_ms);
	if (n < 0)
		n = errno == EINTR ? 0 : -errno;
	pthread_mutex_lock(&loop->lock);
	loop->waiting = 0;
	return n;
}

static int turn(struct gn_loop *loop, int timeout_ms)
{
	struct epoll_event ev[16];
	int n = wait_for_events(loop, ev, 16, wait_ms(loop, timeout_ms));

	if (n < 0)
		return n;
	for (int i = 0; i < n; i++)
		run_watch(loop, ev[i].data.ptr);
	run_timers(loop);
	run_posts(loop);
	reap(loop, 0);
	return n;
}

int gn_loop_turn(struct gn_loop *loop, int timeout_ms)
{
	int rc;

	pthread_mutex_lock(&loop->lock);
	rc = turn(loop, timeout_ms);
	pthread_mutex_unlock(&loop->lock);
	return rc;
}

int gn_loop_run(struct gn_loop *loop)
{
	int rc = 0;

	pthread_mutex_lock(&loop->lock);
	while (!loop->quit && rc >= 0)
		rc = turn(loop, -1);
	if (rc >= 0) {
		loop->quit = 0;
		rc = loop->status;
	}
	pthread_mutex_unlock(&loop->lock);
	return rc;
}

void gn_loop_quit(struct gn_loop *loop, int status)
{
	pthread_mutex_lock(&loop->lock);
	loop->quit = 1;
	loop->status = status;
	wake(loop);
	pthread_mutex_unlock(&loop->lock);
}
