/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * os_thread.c - threads, mutexes, condition variables, semaphores
 *
 * Their state lies in the first bytes of the objects of libc, which the product initialises
 * statically or by the functions here.
 */
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <string.h>
#include <time.h>

#include "os.h"

/* -- threads -- */

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *arg),
			  void *arg)
{
	struct sim_thread *t;

	(void)attr;
	sim_call();
	t = sim_memory_fails() ? NULL : sim_thread_start(sim_proc_self(), "thread", fn, arg);
	if (!t)
		return EAGAIN;
	*thread = (pthread_t)t;
	return 0;
}

static bool has_ended(void *arg)
{
	return sim_thread_ended(arg);
}

int __wrap_pthread_join(pthread_t thread, void **result)
{
	struct sim_thread *t = (struct sim_thread *)thread;
	void *value;

	sim_call();
	if (!has_ended(t))
		sim_block(has_ended, t, SIM_NEVER);
	value = sim_thread_result(t);
	if (result)
		*result = value;
	return 0;
}

int __wrap_pthread_timedjoin_np(pthread_t thread, void **result, const struct timespec *until)
{
	struct sim_thread *t = (struct sim_thread *)thread;

	(void)until; /* `until` is ignored: the product joins threads that are about to end */
	return __wrap_pthread_join((pthread_t)t, result);
}

pthread_t __wrap_pthread_self(void)
{
	return (pthread_t)sim_self();
}

int __wrap_pthread_setname_np(pthread_t thread, const char *name)
{
	struct sim_thread *t = (struct sim_thread *)thread;

	strncpy(t->name, name, sizeof(t->name) - 1);
	return 0;
}

int __wrap_pthread_setaffinity_np(pthread_t thread, size_t bytes, const cpu_set_t *set)
{
	(void)thread;
	(void)bytes;
	(void)set;
	return 0;
}

int __wrap_sched_setaffinity(pid_t pid, size_t bytes, const cpu_set_t *set)
{
	(void)pid;
	(void)bytes;
	(void)set;
	return 0;
}

int __wrap_sched_getaffinity(pid_t pid, size_t bytes, cpu_set_t *set)
{
	(void)pid;
	CPU_ZERO_S(bytes, set);
	CPU_SET_S(0, bytes, set);
	CPU_SET_S(1, bytes, set);
	return 0;
}

int __wrap_sched_yield(void)
{
	sim_yield();
	return 0;
}

int __wrap_pthread_sigmask(int how, const sigset_t *set, sigset_t *old)
{
	(void)how;
	(void)set;
	(void)old;
	return 0;
}

struct once {
	uint32_t state; /* 0 (PTHREAD_ONCE_INIT): not called; 1: running; 2: done */
};

static bool once_done(void *arg)
{
	return ((struct once *)arg)->state == 2;
}

int __wrap_pthread_once(pthread_once_t *control, void (*fn)(void))
{
	struct once *once = (struct once *)control;

	sim_call();
	if (once->state == 0) {
		once->state = 1;
		fn();
		once->state = 2;
		sim_changed();
	} else if (once->state == 1) {
		sim_block(once_done, once, SIM_NEVER);
	}
	return 0;
}

/* -- mutexes -- */

struct mutex {
	struct sim_thread *owner;
	uint32_t count; /* further locks, of a recursive mutex */
	uint32_t recursive;
	uint32_t n_waiting; /* threads that wait until owner is NULL */
};
_Static_assert(sizeof(struct mutex) <= sizeof(pthread_mutex_t), "fits");

static bool is_unlocked(void *arg)
{
	return !((struct mutex *)arg)->owner;
}

static void take(struct mutex *m)
{
	m->n_waiting++;
	while (m->owner)
		sim_block(is_unlocked, m, SIM_NEVER);
	m->n_waiting--;
	m->owner = sim_self();
}

/* Most releases wake no thread: then the scheduler need not look for one. */
static void release(struct mutex *m)
{
	m->owner = NULL;
	if (m->n_waiting != 0)
		sim_changed();
}

int __wrap_pthread_mutex_init(pthread_mutex_t *mutex, const pthread_mutexattr_t *attr)
{
	struct mutex *m = (struct mutex *)mutex;

	memset(mutex, 0, sizeof(*mutex));
	m->recursive = attr != NULL; /* gantry sets no attribute except `recursive` */
	return 0;
}

int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex)
{
	struct mutex *m = (struct mutex *)mutex;

	sim_call();
	if (!sim_self())
		return 0; /* a constructor of the image runs without a simulated thread */
	if (m->owner == sim_self()) {
		if (!m->recursive)
			sim_fail("a thread locks a mutex that it has locked");
		m->count++;
		return 0;
	}
	take(m);
	return 0;
}

int __wrap_pthread_mutex_trylock(pthread_mutex_t *mutex)
{
	struct mutex *m = (struct mutex *)mutex;

	sim_call();
	if (m->owner && (m->owner != sim_self() || !m->recursive))
		return EBUSY;
	m->count += m->owner != NULL;
	m->owner = sim_self();
	return 0;
}

int __wrap_pthread_mutex_unlock(pthread_mutex_t *mutex)
{
	struct mutex *m = (struct mutex *)mutex;

	sim_call();
	if (m->owner != sim_self())
		sim_fail("a thread unlocks a mutex that it has not locked");
	if (m->count != 0) {
		m->count--;
		return 0;
	}
	release(m);
	return 0;
}

int __wrap_pthread_mutex_destroy(pthread_mutex_t *mutex)
{
	if (((struct mutex *)mutex)->owner)
		sim_fail("a locked mutex is destroyed");
	return 0;
}

/* -- condition variables -- */

struct cond {
	uint64_t signals, taken; /* wake-ups: sent, and consumed by a waiter */
	uint32_t waiters;
};
_Static_assert(sizeof(struct cond) <= sizeof(pthread_cond_t), "fits");

struct cond_wait {
	struct cond *cond;
	uint64_t since; /* signals when the wait began */
};

/* Whether a signal was sent after the waiter began to wait. */
static bool is_signaled(void *arg)
{
	const struct cond_wait *wait = arg;

	return wait->cond->signals > wait->since && wait->cond->taken < wait->cond->signals;
}

int __wrap_pthread_cond_init(pthread_cond_t *cond, const pthread_condattr_t *attr)
{
	(void)attr;
	memset(cond, 0, sizeof(*cond));
	return 0;
}

int __wrap_pthread_cond_destroy(pthread_cond_t *cond)
{
	if (((struct cond *)cond)->waiters != 0)
		sim_fail("a condition variable with waiters is destroyed");
	return 0;
}

static int cond_wait_until(struct cond *c, pthread_mutex_t *mutex, uint64_t deadline)
{
	struct mutex *m = (struct mutex *)mutex;
	struct cond_wait wait = {c, c->signals};
	bool in_time = true;

	if (m->owner != sim_self() || m->count != 0)
		sim_fail("a wait with a mutex that is not locked once");
	if (c->waiters == 0)
		c->taken = c->signals;
	c->waiters++;
	release(m);
	/* one wait of 16 ends without a signal, as POSIX allows */
	if (sim_draw(16) != 0)
		in_time = sim_block(is_signaled, &wait, deadline);
	else
		sim_call();
	c->waiters--;
	if (in_time && c->signals > wait.since && c->taken < c->signals)
		c->taken++;
	take(m);
	return in_time ? 0 : ETIMEDOUT;
}

int __wrap_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex)
{
	return cond_wait_until((struct cond *)cond, mutex, SIM_NEVER);
}

/* All condition variables of gantry use CLOCK_MONOTONIC. */
int __wrap_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex,
				  const struct timespec *at)
{
	return cond_wait_until((struct cond *)cond, mutex,
			       (uint64_t)at->tv_sec * 1000000000u + (uint64_t)at->tv_nsec);
}

int __wrap_pthread_cond_signal(pthread_cond_t *cond)
{
	struct cond *c = (struct cond *)cond;

	sim_call();
	if (c->signals - c->taken < c->waiters) {
		c->signals++;
		sim_changed();
	}
	return 0;
}

int __wrap_pthread_cond_broadcast(pthread_cond_t *cond)
{
	struct cond *c = (struct cond *)cond;

	sim_call();
	c->signals = c->taken + c->waiters;
	sim_changed();
	return 0;
}

/* -- semaphores -- */

static bool is_posted(void *arg)
{
	return *(uint32_t *)arg != 0;
}

int __wrap_sem_init(sem_t *sem, int shared, unsigned value)
{
	(void)shared;
	*(uint32_t *)sem = value;
	return 0;
}

int __wrap_sem_destroy(sem_t *sem)
{
	(void)sem;
	return 0;
}

int __wrap_sem_wait(sem_t *sem)
{
	sim_call();
	while (*(uint32_t *)sem == 0)
		sim_block(is_posted, sem, SIM_NEVER);
	(*(uint32_t *)sem)--;
	return 0;
}

int __wrap_sem_post(sem_t *sem)
{
	sim_call();
	(*(uint32_t *)sem)++;
	sim_changed();
	return 0;
}
