/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * service.c - the one thread that the library has in a process: it waits for descriptors and times, and runs calls.
 *
 * It is started at the first use and joined when the process exits. A program may fork: the child has no such thread, and
 * starts its own, with nothing to wait for, at its first use; what its parent had is kept aside, not touched.
 */
#include "service.h"

#include "base/clock.h"
#include "log.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#define EVENTS_PER_TURN 16
#define EXIT_WAIT_S 1 /* for a thread that somebody keeps from ending */

struct watch {
	struct watch *next;
	int fd;
	bool dead; /* removed; freed at the end of the turn, since epoll may have reported it already */
	uint64_t at_ns;
	void (*fn)(void *arg);
	void *arg;
};

struct call {
	struct call *next;
	void (*fn)(void *arg);
	void *arg;
};

struct service {
	struct service *inherited; /* of the process that forked this one */
	int epoll_fd, wake_fd;
	bool started, quit;
	pthread_t thread; /* once started */
	pthread_cond_t idle; /* a callback has returned */
	struct watch *watches, *current;
	struct call *calls, **calls_end;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct service *service;

static bool on_the_thread(const struct service *s)
{
	return s->started && pthread_equal(pthread_self(), s->thread);
}

static void wake(struct service *s)
{
	uint64_t one = 1;

	if (write(s->wake_fd, &one, sizeof(one)) < 0)
		return; /* full: it wakes anyway */
}

/* -- the thread; the lock is held but while it waits and while a callback runs -- */

static int wait_ms(const struct service *s)
{
	uint64_t first = 0, now;

	for (const struct watch *w = s->watches; w != NULL; w = w->next)
		if (!w->dead && w->at_ns != 0 && (first == 0 || w->at_ns < first))
			first = w->at_ns;
	if (s->quit || s->calls != NULL)
		return 0;
	if (first == 0)
		return -1;
	now = gn_now_ns();
	if (first <= now)
		return 0;
	return first - now > 60 * GN_NS_PER_S ? 60000 : (int)((first - now + 999999) / 1000000);
}

static void run_watch(struct service *s, struct watch *w)
{
	if (w->dead)
		return;
	w->at_ns = 0;
	s->current = w;
	pthread_mutex_unlock(&lock);
	w->fn(w->arg);
	pthread_mutex_lock(&lock);
	s->current = NULL;
	pthread_cond_broadcast(&s->idle);
}

static void run_due(struct service *s)
{
	uint64_t now = gn_now_ns();

	for (struct watch *w = s->watches; w != NULL; w = w->next) /* new ones come to the head, none is freed meanwhile */
		if (w->at_ns != 0 && w->at_ns <= now)
			run_watch(s, w);
}

static void run_calls(struct service *s)
{
	struct call *list = s->calls;

	s->calls = NULL;
	s->calls_end = &s->calls;
	pthread_mutex_unlock(&lock);
	for (struct call *c = list, *next; c != NULL; c = next) {
		next = c->next;
		c->fn(c->arg);
		free(c);
	}
	pthread_mutex_lock(&lock);
}

static void reap(struct service *s)
{
	for (struct watch **p = &s->watches, *w; (w = *p) != NULL;) {
		if (w->dead) {
			*p = w->next;
			free(w);
		} else {
			p = &w->next;
		}
	}
}

static void turn(struct service *s)
{
	struct epoll_event ev[EVENTS_PER_TURN];
	int timeout = wait_ms(s), n;
	uint64_t count;

	pthread_mutex_unlock(&lock);
	n = epoll_wait(s->epoll_fd, ev, EVENTS_PER_TURN, timeout);
	pthread_mutex_lock(&lock);
	for (int i = 0; i < n; i++) {
		if (ev[i].data.ptr != NULL)
			run_watch(s, ev[i].data.ptr);
		else if (read(s->wake_fd, &count, sizeof(count)) < 0)
			continue; /* somebody else's read */
	}
	run_due(s);
	run_calls(s);
	reap(s);
}

static void *run(void *arg)
{
	struct service *s = arg;

	pthread_mutex_lock(&lock);
	while (!s->quit)
		turn(s);
	pthread_mutex_unlock(&lock);
	return NULL;
}

/* -- its life -- */

static void destroy(struct service *s)
{
	if (s->epoll_fd >= 0)
		close(s->epoll_fd);
	if (s->wake_fd >= 0)
		close(s->wake_fd);
	pthread_cond_destroy(&s->idle);
	free(s);
}

static struct service *create(void)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.ptr = NULL};
	struct service *s = calloc(1, sizeof(*s));

	if (s == NULL)
		return NULL;
	s->calls_end = &s->calls;
	pthread_cond_init(&s->idle, NULL);
	s->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	s->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (s->epoll_fd >= 0 && s->wake_fd >= 0 && epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, s->wake_fd, &ev) == 0)
		return s;
	destroy(s);
	return NULL;
}

/* The program's signals are for the program's threads. */
static int start_thread(struct service *s)
{
	sigset_t all, before;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(&s->thread, NULL, run, s);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (rc != 0)
		return -rc;
	pthread_setname_np(s->thread, "gantry-doca");
	s->started = true;
	return 0;
}

/* At exit. Nothing is taken apart: other threads of the program may still be in the library. */
static void stop_thread(void)
{
	struct timespec until;
	struct service *s;
	bool join;

	pthread_mutex_lock(&lock);
	s = service;
	join = s != NULL && s->started && !s->quit && !on_the_thread(s);
	if (join) {
		s->quit = true;
		wake(s);
	}
	pthread_mutex_unlock(&lock);
	if (!join)
		return;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += EXIT_WAIT_S;
	pthread_timedjoin_np(s->thread, NULL, &until);
}

static void before_fork(void)
{
	pthread_mutex_lock(&lock);
}

static void after_fork_parent(void)
{
	pthread_mutex_unlock(&lock);
}

static void after_fork_child(void)
{
	struct service *s = service;

	/* closing our copies does not end what the parent watches */
	if (s != NULL) {
		close(s->epoll_fd);
		close(s->wake_fd);
		s->epoll_fd = s->wake_fd = -1;
		s->started = false;
	}
	pthread_mutex_unlock(&lock);
}

static void prepare(void)
{
	pthread_atfork(before_fork, after_fork_parent, after_fork_child);
	atexit(stop_thread);
}

void gd_service_watch_forks(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, prepare);
}

/* The service of this process, with the lock held; NULL with nothing held. */
static struct service *enter(void)
{
	int rc = -ENOMEM;

	gd_service_watch_forks();
	pthread_mutex_lock(&lock);
	if (service != NULL && service->epoll_fd >= 0)
		return service; /* also when it was stopped: the process exits */
	struct service *s = create();
	if (s != NULL) {
		s->inherited = service;
		rc = start_thread(s);
		if (rc == 0) {
			service = s;
			return s;
		}
		destroy(s);
	}
	pthread_mutex_unlock(&lock);
	gd_log(DOCA_LOG_LEVEL_ERROR, "the library's thread cannot be started: %s", strerror(-rc));
	return NULL;
}

/* -- what others use -- */

doca_error_t gd_service_add_fd(int fd, void (*fn)(void *arg), void *arg)
{
	struct epoll_event ev = {.events = EPOLLIN | EPOLLRDHUP};
	struct watch *w = malloc(sizeof(*w));
	doca_error_t result = DOCA_SUCCESS;
	struct service *s = enter();

	if (w == NULL || s == NULL) {
		result = DOCA_ERROR_NO_MEMORY;
		goto out;
	}
	*w = (struct watch){.next = s->watches, .fd = fd, .fn = fn, .arg = arg};
	ev.data.ptr = w;
	if (epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, fd, &ev) != 0) {
		result = DOCA_ERROR_OPERATING_SYSTEM;
		goto out;
	}
	s->watches = w;
	w = NULL;
out:
	if (s != NULL)
		pthread_mutex_unlock(&lock);
	free(w);
	return result;
}

static struct watch *find(struct service *s, int fd)
{
	struct watch *w = s->watches;

	while (w != NULL && (w->fd != fd || w->dead))
		w = w->next;
	return w;
}

void gd_service_remove_fd(int fd)
{
	struct service *s;
	struct watch *w;

	pthread_mutex_lock(&lock);
	s = service;
	w = s != NULL && s->epoll_fd >= 0 ? find(s, fd) : NULL;
	if (w != NULL) {
		epoll_ctl(s->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
		w->dead = true;
		if (!on_the_thread(s))
			wake(s); /* it frees w */
	}
	while (s != NULL && s->current != NULL && s->current->fd == fd && !on_the_thread(s))
		pthread_cond_wait(&s->idle, &lock); /* also when it has removed itself */
	pthread_mutex_unlock(&lock);
}

void gd_service_set_time(int fd, uint64_t at_ns)
{
	struct service *s;
	struct watch *w;

	pthread_mutex_lock(&lock);
	s = service;
	w = s != NULL && s->epoll_fd >= 0 ? find(s, fd) : NULL;
	if (w != NULL) {
		w->at_ns = at_ns;
		if (at_ns != 0 && !on_the_thread(s))
			wake(s);
	}
	pthread_mutex_unlock(&lock);
}

doca_error_t gd_service_call(void (*fn)(void *arg), void *arg)
{
	struct call *c = malloc(sizeof(*c));
	struct service *s = enter();

	if (c == NULL || s == NULL) {
		if (s != NULL)
			pthread_mutex_unlock(&lock);
		free(c);
		return DOCA_ERROR_NO_MEMORY;
	}
	*c = (struct call){.fn = fn, .arg = arg};
	*s->calls_end = c;
	s->calls_end = &c->next;
	wake(s);
	pthread_mutex_unlock(&lock);
	return DOCA_SUCCESS;
}
