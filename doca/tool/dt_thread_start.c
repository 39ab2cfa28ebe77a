/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dt_thread_start.c - a library for LD_PRELOAD that delays the start of threads
 *
 * Some programs store the handle of a new thread in an object that the new thread reads at once.
 * The thread can run before pthread_create() has returned in its creator, and before the creator
 * has moved the handle to its place, as an assignment to a std::thread does. The program then
 * crashes.
 *
 * With this library the new thread waits until one of these is true:
 * - its creator has used STORE_NS of processor time since pthread_create() returned;
 * - its creator sleeps, or has ended: it has reached a later system call;
 * - LIMIT_NS have passed, where /proc cannot be read and the creator may sleep.
 * The creator does not wait. Threads of thrd_create(3) start without delay.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/*
 * Processor time to store a handle. Less than a microsecond is sufficient, but the clock also
 * counts time that a hypervisor takes from the processor: up to 0.8 ms at once were measured.
 */
#define STORE_NS 20000000
#define POLL_NS 100000 /* between two looks at the creator */
#define LIMIT_NS 1000000000

typedef int create_fn(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

/* A thread that waits to start. It frees this; its creator does if there is no thread. */
struct start {
	void *(*run)(void *);
	void *arg;
	pid_t creator;
	clockid_t used; /* processor time of the creator */
	long long used_at_return;
	atomic_bool has_returned; /* pthread_create() in the creator */
};

static long long now_ns(clockid_t clock)
{
	struct timespec t;

	if (clock_gettime(clock, &t))
		return -1;
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

/* The state of a thread, a letter as in proc(5). 0: unknown; 'X': the thread has ended. */
static char state_of(pid_t thread)
{
	char path[64], text[128];
	const char *state;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)thread);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT && !access("/proc/self/task", F_OK) ? 'X' : 0;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[n < 0 ? 0 : n] = '\0';
	state = strrchr(text, ')'); /* the name of the thread, in parentheses, may have any text */
	return state && state[1] ? state[2] : 'X';
}

/* True if the creator has stored the handle; since: when the new thread began to wait. */
static bool is_stored(const struct start *start, long long since)
{
	long long used;

	if (!atomic_load_explicit(&start->has_returned, memory_order_acquire))
		return false;
	used = now_ns(start->used);
	if (used < 0 || used - start->used_at_return >= STORE_NS)
		return true;
	switch (state_of(start->creator)) {
	case 'S':
	case 'X':
	case 'Z':
		return true;
	case 0:
		return now_ns(CLOCK_MONOTONIC) - since >= LIMIT_NS;
	default:
		return false;
	}
}

static void *start_later(void *arg)
{
	const struct timespec poll = {.tv_nsec = POLL_NS};
	const long long since = now_ns(CLOCK_MONOTONIC);
	struct start *start = arg;
	void *(*run)(void *) = start->run;

	while (!is_stored(start, since))
		nanosleep(&poll, NULL);
	arg = start->arg;
	free(start);
	return run(arg);
}

__attribute__((visibility("default"))) int pthread_create(pthread_t *handle,
							  const pthread_attr_t *attr,
							  void *(*run)(void *), void *arg)
{
	create_fn *create = (create_fn *)dlsym(RTLD_NEXT, "pthread_create");
	struct start *start = malloc(sizeof(*start));
	int rc;

	if (!create || !start) {
		free(start);
		return EAGAIN;
	}
	*start = (struct start){.run = run, .arg = arg, .creator = gettid()};
	rc = pthread_getcpuclockid(pthread_self(), &start->used);
	if (!rc)
		rc = create(handle, attr, start_later, start);
	if (rc) {
		free(start);
		return rc;
	}
	start->used_at_return = now_ns(start->used);
	atomic_store_explicit(&start->has_returned, true, memory_order_release);
	return 0;
}
