/* SPDX-License-Identifier: BSD-3-Clause */
/* kit_observer.c - cases of observers: progress of any role in any state. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "fake/shortage.h"
#include "gantry/observer.h"
#include "kit/kit_program.h"

#define ROLES 100
#define CALLS 1000

static struct fake_host host;
static void *conf, *observer;

static const struct gantry_observer_ops *ops(void)
{
	return kit_program.loaded->ops;
}

static void open_observer(void)
{
	conf = kit_conf_copy();
	fake_host_init(&host, "test");
	RIG_RC(0, ops()->open(&host.pub, conf, &observer), host.log);
}

static void close_observer(void)
{
	ops()->close(observer);
	free(conf);
}

static void report(const char *role, uint64_t done, uint64_t target, uint32_t state)
{
	const struct gantry_progress p = {
		.role = role,
		.elapsed_ns = done,
		.done = done,
		.target = target,
		.unit = target ? "bytes" : "",
		.ops = done,
		.bytes = done,
		.state = state,
	};

	ops()->progress(observer, &p);
}

static void work_of_many_roles(void)
{
	static char name[80]; /* valid later too: arguments_are_not_kept() is about that */

	for (unsigned i = 0; i < ROLES; i++) {
		snprintf(name, sizeof(name), "role-%u", i);
		report(name, 0, CALLS, GANTRY_PROGRESS_WAITING);
		for (uint64_t done = 0; done < CALLS; done += CALLS / 10)
			report(name, done, CALLS, GANTRY_PROGRESS_WORKING);
		report(name, CALLS, CALLS, GANTRY_PROGRESS_DONE);
	}
}

static void progress_with_a_known_end(void)
{
	open_observer();
	work_of_many_roles();
	report("large", UINT64_MAX / 2, UINT64_MAX, GANTRY_PROGRESS_WORKING);
	report("large", UINT64_MAX, UINT64_MAX, GANTRY_PROGRESS_DONE);
	close_observer();
}

static void progress_without_a_known_end(void)
{
	open_observer();
	report("server", 0, 0, GANTRY_PROGRESS_WAITING);
	report("server", 0, 0, GANTRY_PROGRESS_WORKING);
	report("server", 0, 0, GANTRY_PROGRESS_FAILED);
	close_observer();
}

/* The arguments are valid only during the call: in the next call nothing can read them. */
static void arguments_are_not_kept(void)
{
	const size_t size = 4096;
	char *pages = mmap(NULL, 2 * size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	RIG_HOLDS(pages != MAP_FAILED, "memory for the arguments");
	open_observer();
	for (unsigned i = 0; i < 4; i++) {
		struct gantry_progress *p = (void *)(pages + i % 2 * size);
		char *name = (char *)(p + 1);

		mprotect(p, size, PROT_READ | PROT_WRITE);
		snprintf(name, 16, "role-%u", i / 2);
		*p = (struct gantry_progress){
			.role = name,
			.unit = "ops",
			.done = i,
			.target = 4,
			.state = GANTRY_PROGRESS_WORKING,
		};
		ops()->progress(observer, p);
		mprotect(p, size, PROT_NONE);
	}
	close_observer();
}

static void close_after_progress_leaves_nothing(void)
{
	long blocks, fds;

	progress_with_a_known_end(); /* do not count what libraries allocate once and keep */
	blocks = shortage_blocks();
	fds = shortage_entries("/proc/self/fd");
	progress_with_a_known_end();
	RIG_NUM((uint64_t)fds, (uint64_t)shortage_entries("/proc/self/fd"),
		"open descriptors after close");
	RIG_NUM((uint64_t)blocks, (uint64_t)shortage_blocks(), "blocks of memory after close");
}

void kit_observer_cases(void)
{
	RIG_CASE(progress_with_a_known_end);
	RIG_CASE(progress_without_a_known_end);
	RIG_CASE(arguments_are_not_kept);
	RIG_CASE(close_after_progress_leaves_nothing);
}
