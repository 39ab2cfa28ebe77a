/* SPDX-License-Identifier: BSD-3-Clause */
/* The observer that shows progress as a line on the standard error. */
#include "cli/progress_line.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <gantry/observer.h>

#include "base/log.h"
#include "unity.h"

#define ERASE "\r\033[K"
#define SECOND 1000000000ull

static int terminal, memory; /* standard error, and the file that takes its place in a test */
static char out[1024];
static void *observer;

static const struct gantry_observer_ops *ops(void)
{
	return gn_progress_line.ops;
}

/* Returns what was written since the last call. */
static const char *written(void)
{
	ssize_t n = pread(memory, out, sizeof(out) - 1, 0);

	out[n > 0 ? n : 0] = '\0';
	TEST_ASSERT_EQUAL_INT(0, ftruncate(memory, 0));
	lseek(memory, 0, SEEK_SET);
	return out;
}

void setUp(void)
{
	memory = memfd_create("stderr", MFD_CLOEXEC);
	terminal = dup(STDERR_FILENO);
	dup2(memory, STDERR_FILENO);
	TEST_ASSERT_EQUAL_INT(0, ops()->open(NULL, NULL, &observer));
}

void tearDown(void)
{
	if (observer)
		ops()->close(observer);
	dup2(terminal, STDERR_FILENO);
	close(terminal);
	close(memory);
}

static void report(const char *role, unsigned seconds, enum gantry_progress_state state)
{
	const struct gantry_progress p = {.role = role,
					  .elapsed_ns = seconds * SECOND,
					  .done = seconds,
					  .target = 8,
					  .unit = "ops",
					  .ops = 1000ull * seconds,
					  .bytes = 4194304ull * seconds,
					  .state = state};

	ops()->progress(observer, &p);
}

static void a_role_has_a_bar_and_rates(void)
{
	report("load", 2, GANTRY_PROGRESS_WORKING);
	TEST_ASSERT_EQUAL_STRING(ERASE "load 2s [#####...............]  25%  1000 IO/s  4MiB/s",
				 written());
	ops()->progress(observer, &(struct gantry_progress){.role = "load",
							    .elapsed_ns = 4 * SECOND,
							    .unit = "",
							    .ops = 12000,
							    .bytes = 8388608,
							    .state = GANTRY_PROGRESS_WORKING});
	TEST_ASSERT_EQUAL_STRING(ERASE "load 4s  5000 IO/s  0/s", written());
}

static void a_role_without_io_waits(void)
{
	ops()->progress(observer, &(struct gantry_progress){.role = "load",
							    .elapsed_ns = SECOND,
							    .unit = "",
							    .state = GANTRY_PROGRESS_WAITING});
	TEST_ASSERT_EQUAL_STRING(ERASE "load 1s  no IO yet: waiting for its peer", written());
}

static void the_first_role_is_shown_until_it_ends(void)
{
	report("a", 1, GANTRY_PROGRESS_WORKING);
	written();
	report("b", 1, GANTRY_PROGRESS_WORKING);
	TEST_ASSERT_EQUAL_STRING("", written());
	report("a", 2, GANTRY_PROGRESS_FAILED);
	TEST_ASSERT_EQUAL_STRING(ERASE, written());
	report("a", 2, GANTRY_PROGRESS_FAILED);
	TEST_ASSERT_EQUAL_STRING("", written());
	report("b", 2, GANTRY_PROGRESS_WORKING);
	TEST_ASSERT_EQUAL_STRING(ERASE "b 2s [#####...............]  25%  1000 IO/s  4MiB/s",
				 written());
}

static void other_output_erases_the_line(void)
{
	report("load", 1, GANTRY_PROGRESS_WORKING);
	written();
	gn_log_erase_line();
	TEST_ASSERT_EQUAL_STRING(ERASE, written());
	gn_log_erase_line();
	TEST_ASSERT_EQUAL_STRING("", written());
	report("load", 2, GANTRY_PROGRESS_WORKING);
	written();
	ops()->close(observer);
	observer = NULL;
	TEST_ASSERT_EQUAL_STRING(ERASE, written());
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(a_role_has_a_bar_and_rates);
	RUN_TEST(a_role_without_io_waits);
	RUN_TEST(the_first_role_is_shown_until_it_ends);
	RUN_TEST(other_output_erases_the_line);
	return UNITY_END();
}
