/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * thread_start.c - a program that stores the handles of its threads late; cli/doca.bats runs it
 * with `gantry doca run --thread-start-shim`. It prints how many threads started before their
 * handle was stored.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define THREADS 200

static atomic_bool is_stored;
static atomic_int n_early, n_started;

static void *look(void *arg)
{
	if (!atomic_load(&is_stored))
		atomic_fetch_add(&n_early, 1);
	atomic_fetch_add(&n_started, 1);
	return arg;
}

static void *run_only(void *arg)
{
	atomic_fetch_add(&n_started, 1);
	return arg;
}

static void must(bool ok, const char *what)
{
	if (ok)
		return;
	printf("failed: %s\n", what);
	exit(1);
}

/* The creator gives its processor to the new thread before it stores the handle. */
static void store_late(void)
{
	for (int i = 0; i < THREADS; i++) {
		pthread_t thread;
		void *result;

		atomic_store(&is_stored, false);
		must(!pthread_create(&thread, NULL, look, &is_stored), "pthread_create");
		for (int j = 0; j < 20; j++)
			sched_yield();
		atomic_store(&is_stored, true);
		pthread_join(thread, &result);
		must(result == &is_stored, "argument and result");
	}
}

/* The creator does not sleep before the thread runs. */
static void spin_until_started(void)
{
	int before = atomic_load(&n_started);
	pthread_t thread;

	must(!pthread_create(&thread, NULL, run_only, NULL), "pthread_create");
	while (atomic_load(&n_started) == before)
		continue;
	pthread_join(thread, NULL);
}

static void *create_and_end(void *arg)
{
	must(!pthread_create(arg, NULL, run_only, NULL), "pthread_create");
	return NULL;
}

/* The creator ends before the thread runs. */
static void end_at_once(void)
{
	pthread_t creator, thread;

	must(!pthread_create(&creator, NULL, create_and_end, &thread), "pthread_create");
	pthread_join(creator, NULL);
	pthread_join(thread, NULL);
}

static void fail_to_create(void)
{
	pthread_attr_t attr;
	pthread_t thread;

	must(!pthread_attr_init(&attr), "pthread_attr_init");
	must(!pthread_attr_setstacksize(&attr, (size_t)1 << 50), "pthread_attr_setstacksize");
	must(pthread_create(&thread, &attr, run_only, NULL) != 0, "a stack that is too large");
	pthread_attr_destroy(&attr);
}

int main(void)
{
	store_late();
	spin_until_started();
	end_at_once();
	fail_to_create();
	printf("early: %d\n", atomic_load(&n_early));
	return 0;
}
