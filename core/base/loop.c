/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/loop.h"

#include "base/clock.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct watch {
	struct watch *next;
	int fd;
	int dead; /* removed; freed at the end of the turn, since epoll may have reported it already */
	void (*fn)(void *arg);
	void *arg;
};

struct post {
	struct post *next;
	void (*fn)(void *arg);
	void *arg;
};

struct gn_loop {
	int epoll_fd;
	int wake_fd;
	int quit;
	int status;
	uint32_t turn; /* counts passes over the timers */
	struct watch *watches;
	struct gn_timer *timers; /* a handful: a list will do */
	pthread_mutex_t lock;    /* guards posts */
	struct post *posts, **posts_end;
};

static void drain_wake(void *arg)
{
	struct gn_loop *loop = arg;
	uint64_t n;

	if (read(loop->wake_fd, &n, sizeof(n)) < 0)
		return; /* EAGAIN: somebody read it before */
}

struct gn_loop *gn_loop_create(void)
{
	struct gn_loop *loop = calloc(1, sizeof(*loop));

	if (loop == NULL)
		return NULL;
	loop->posts_end = &loop->posts;
	pthread_mutex_init(&loop->lock, NULL);
	loop->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (loop->wake_fd < 0 || loop->epoll_fd < 0 || gn_loop_add_fd(loop, loop->wake_fd, drain_wake, loop) != 0)
		gn_loop_destroy(&loop);
	return loop;
}

static void reap(struct gn_loop *loop, int all)
{
	struct watch **p = &loop->watches;

	while (*p != NULL) {
		struct watch *w = *p;

		if (all || w->dead) {
			*p = w->next;
			free(w);
		} else {
			p = &w->next;
		}
	}
}

static struct post *take_posts(struct gn_loop *loop)
{
	struct post *list;

	pthread_mutex_lock(&loop->lock);
	list = loop->posts;
	loop->posts = NULL;
	loop->posts_end = &loop->posts;
	pthread_mutex_unlock(&loop->lock);
	return list;
}

void gn_loop_destroy(struct gn_loop **loop_p)
{
	struct gn_loop *loop = *loop_p;

	*loop_p = NULL;
	if (loop == NULL)
		return;
	reap(loop, 1);
	for (struct post *p = take_posts(loop), *next; p != NULL; p = next) {
		next = p->next;
		free(p);
	}
	if (loop->epoll_fd >= 0)
		close(loop->epoll_fd);
	if (loop->wake_fd >= 0)
		close(loop->wake_fd);
	pthread_mutex_destroy(&loop->lock);
	free(loop);
}

int gn_loop_add_fd(struct gn_loop *loop, int fd, void (*fn)(void *arg), void *arg)
{
	struct watch *w = malloc(sizeof(*w));
	struct epoll_event ev = {.events = EPOLLIN, .data.ptr = w};

	if (w == NULL)
		return -ENOMEM;
	*w = (struct watch){.next = loop->watches, .fd = fd, .fn = fn, .arg = arg};
	if (epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, fd, &ev) != 0) {
		int rc = -errno;

		free(w);
		return rc;
	}
	loop->watches = w;
	return 0;
}

void gn_loop_remove_fd(struct gn_loop *loop, int fd)
{
	for (struct watch *w = loop->watches; w != NULL; w = w->next)
		if (w->fd == fd && !w->dead) {
			epoll_ctl(loop->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
			w->dead = 1;
		}
}

void gn_loop_clear_timer(struct gn_loop *loop, struct gn_timer *timer)
{
	(void)loop;
	if (timer->at_ns == 0)
		return;
	timer->at_ns = 0;
	*timer->prev_p = timer->next;
	if (timer->next != NULL)
		timer->next->prev_p = timer->prev_p;
}

void gn_loop_set_timer(struct gn_loop *loop, struct gn_timer *timer, uint64_t at_ns)
{
	gn_loop_clear_timer(loop, timer);
	if (at_ns == 0)
		return;
	timer->at_ns = at_ns;
	timer->turn = loop->turn;
	timer->next = loop->timers;
	timer->prev_p = &loop->timers;
	if (loop->timers != NULL)
		loop->timers->prev_p = &timer->next;
	loop->timers = timer;
}

int gn_loop_post(struct gn_loop *loop, void (*fn)(void *arg), void *arg)
{
	struct post *p = malloc(sizeof(*p));
	uint64_t one = 1;

	if (p == NULL)
		return -ENOMEM;
	*p = (struct post){.fn = fn, .arg = arg};
	pthread_mutex_lock(&loop->lock);
	*loop->posts_end = p;
	loop->posts_end = &p->next;
	pthread_mutex_unlock(&loop->lock);
	if (write(loop->wake_fd, &one, sizeof(one)) < 0)
		return 0; /* the counter is full: the loop is awake anyway */
	return 0;
}

void gn_loop_must_post(struct gn_loop *loop, void (*fn)(void *arg), void *arg)
{
	while (gn_loop_post(loop, fn, arg) != 0)
		sched_yield();
}

static struct gn_timer *first_timer(struct gn_loop *loop)
{
	struct gn_timer *first = NULL;

	for (struct gn_timer *t = loop->timers; t != NULL; t = t->next)
		if (first == NULL || t->at_ns < first->at_ns)
			first = t;
	return first;
}

static int wait_ms(struct gn_loop *loop, int timeout_ms)
{
	struct gn_timer *first = first_timer(loop);
	uint64_t now, left;

	if (first == NULL)
		return timeout_ms;
	now = gn_now_ns();
	left = first->at_ns > now ? (first->at_ns - now + 999999) / 1000000 : 0;
	if (timeout_ms >= 0 && left > (uint64_t)timeout_ms)
		return timeout_ms;
	return left > 60000 ? 60000 : (int)left;
}

static struct gn_timer *due_timer(const struct gn_loop *loop, uint64_t now)
{
	struct gn_timer *first = NULL;

	for (struct gn_timer *t = loop->timers; t != NULL; t = t->next)
		if (t->turn != loop->turn && t->at_ns <= now && (first == NULL || t->at_ns < first->at_ns))
			first = t;
	return first;
}

/* A timer that is set again while they run waits for the next turn: it must not starve the fds. */
static void run_timers(struct gn_loop *loop)
{
	uint64_t now = gn_now_ns();
	struct gn_timer *t;

	loop->turn++;
	while ((t = due_timer(loop, now)) != NULL) {
		gn_loop_clear_timer(loop, t);
		t->fn(t->arg);
	}
}

static void run_posts(struct gn_loop *loop)
{
	for (struct post *p = take_posts(loop), *next; p != NULL; p = next) {
		next = p->next;
		p->fn(p->arg);
		free(p);
	}
}

int gn_loop_turn(struct gn_loop *loop, int timeout_ms)
{
	struct epoll_event ev[16];
	int n = epoll_wait(loop->epoll_fd, ev, 16, wait_ms(loop, timeout_ms));

	if (n < 0 && errno != EINTR)
		return -errno;
	for (int i = 0; i < n; i++) {
		struct watch *w = ev[i].data.ptr;

		if (!w->dead)
			w->fn(w->arg);
	}
	run_timers(loop);
	run_posts(loop);
	reap(loop, 0);
	return n < 0 ? 0 : n;
}

int gn_loop_run(struct gn_loop *loop)
{
	while (!loop->quit) {
		int rc = gn_loop_turn(loop, -1);

		if (rc < 0)
			return rc;
	}
	loop->quit = 0;
	return loop->status;
}

void gn_loop_quit(struct gn_loop *loop, int status)
{
	loop->quit = 1;
	loop->status = status;
}
