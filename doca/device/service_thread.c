/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * service_thread.c - the service thread, which runs a control loop. The first use starts it; the
 * process joins it at exit. In a child of fork(2), the service of the parent is kept but not used.
 */
#include "device/service_thread.h"

#include "common/gd_log.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define EXIT_WAIT_S 1 /* limit for the join at exit, in case a callback blocks */

struct service {
	struct service *inherited; /* service of the parent process */
	struct gn_loop *loop;
	pthread_t thread;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the variables below */
static struct service *service; /* service of this process; NULL: not started */
static struct service *inherited;

/* -- start and stop -- */

static void *run(void *arg)
{
	gn_loop_run(arg);
	return NULL;
}

/* Start the thread with all signals blocked: threads of the program handle signals. */
static int start_thread(struct service *s)
{
	sigset_t all, before;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(&s->thread, NULL, run, s->loop);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (rc == 0)
		pthread_setname_np(s->thread, "gantry-doca");
	return rc;
}

/* 0 or an errno. */
static int start(void)
{
	struct service *s = calloc(1, sizeof(*s));
	int rc = ENOMEM;

	if (!s)
		return rc;
	s->inherited = inherited;
	s->loop = gn_loop_create();
	rc = !s->loop ? errno : start_thread(s);
	if (rc == 0) {
		service = s;
		return 0;
	}
	gn_loop_destroy(&s->loop);
	free(s);
	return rc;
}

/* At exit: end the thread. Free nothing, because other threads can still be in the library. */
static void stop(void)
{
	struct timespec until;
	struct service *s;

	pthread_mutex_lock(&lock);
	s = service;
	pthread_mutex_unlock(&lock);
	if (!s)
		return;
	gn_loop_quit(s->loop, 0);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += EXIT_WAIT_S;
	if (!pthread_equal(pthread_self(), s->thread))
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
	if (service) {
		/* closing the copies does not affect the epoll set of the parent */
		gn_loop_abandon(service->loop);
		inherited = service;
		service = NULL;
	}
	pthread_mutex_unlock(&lock);
}

static void prepare(void)
{
	pthread_atfork(before_fork, after_fork_parent, after_fork_child);
	atexit(stop);
}

void gd_service_watch_forks(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, prepare);
}

/* Returns the loop of this process; NULL: not started. */
static struct gn_loop *loop_if_any(void)
{
	struct gn_loop *loop;

	pthread_mutex_lock(&lock);
	loop = service ? service->loop : NULL;
	pthread_mutex_unlock(&lock);
	return loop;
}

/*
 * Returns the loop of this process, and starts it if needed. NULL: failed, the error was logged.
 * After stop(), while the process exits, the function still returns the loop.
 */
static struct gn_loop *loop_of_process(void)
{
	struct gn_loop *loop;
	int rc;

	gd_service_watch_forks();
	pthread_mutex_lock(&lock);
	rc = !service ? start() : 0;
	loop = rc == 0 ? service->loop : NULL;
	pthread_mutex_unlock(&lock);
	if (rc != 0)
		gd_log(DOCA_LOG_LEVEL_ERROR, "service thread cannot be started: %s", strerror(rc));
	return loop;
}

/* -- interface -- */

doca_error_t gd_service_add_fd(int fd, void (*fn)(void *arg), void *arg)
{
	struct gn_loop *loop = loop_of_process();
	int rc = loop ? gn_loop_add_fd(loop, fd, fn, arg) : -ENOMEM;

	if (rc == 0)
		return DOCA_SUCCESS;
	return rc == -ENOMEM ? DOCA_ERROR_NO_MEMORY : DOCA_ERROR_OPERATING_SYSTEM;
}

void gd_service_remove_fd(int fd)
{
	struct gn_loop *loop = loop_if_any();

	if (loop)
		gn_loop_remove_fd(loop, fd);
}

void gd_service_set_timer(struct gn_timer *timer, uint64_t at_ns)
{
	struct gn_loop *loop = loop_of_process();

	if (loop)
		gn_loop_set_timer(loop, timer, at_ns);
}
