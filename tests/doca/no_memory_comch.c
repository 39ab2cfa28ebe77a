/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A Comch server and a client start, connect and stop in one process while one allocation of any
 * thread fails: the first, then the second, and so on; or while this and all later allocations
 * fail. Each context runs, or reports an error and is idle. Nothing leaks, and the next start
 * succeeds. Each case runs in a separate process.
 */
#include <doca_log.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "comch_rig.h"
#include "fake/shortage.h"

#define PATIENCE 60 /* seconds: a process that takes longer hangs */
#define MOST 2000   /* limit of allocations in a case */

struct held {
	long fds, regions;
};

static struct shared {
	struct shortage shortage;
	/* held after two starts without failures: includes the table of devices, which stays */
	struct held held;
} * shared;

static struct side server, client; /* the sides of this process */

void setUp(void)
{
	if (!shortage_can())
		TEST_IGNORE_MESSAGE("allocations cannot fail in this build");
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	TEST_ASSERT_TRUE(shared != MAP_FAILED);
}

void tearDown(void)
{
	if (shared)
		munmap(shared, sizeof(*shared));
	shared = NULL;
}

/* -- in the process whose allocations fail -- */

static int progress(void)
{
	return doca_pe_progress(server.pe) + doca_pe_progress(client.pe);
}

static void until_idle(struct side *s)
{
	const uint64_t until = rig_now() + RIG_DEADLINE_NS;

	while (state_of(s->ctx) != DOCA_CTX_STATE_IDLE) {
		NEED(rig_now() < until);
		if (!progress())
			rig_yield();
	}
}

/* A failed start returns an error, or the context becomes idle. */
static bool starts(struct side *s)
{
	const doca_error_t result = doca_ctx_start(s->ctx);
	const uint64_t until = rig_now() + RIG_DEADLINE_NS;

	if (result != DOCA_SUCCESS && result != DOCA_ERROR_IN_PROGRESS) {
		NEED(result == DOCA_ERROR_NO_MEMORY || result == DOCA_ERROR_INITIALIZATION);
		NEED(state_of(s->ctx) == DOCA_CTX_STATE_IDLE);
		return false;
	}
	while (state_of(s->ctx) == DOCA_CTX_STATE_STARTING ||
	       state_of(s->ctx) == DOCA_CTX_STATE_STOPPING) {
		NEED(rig_now() < until);
		if (!progress())
			rig_yield();
	}
	return state_of(s->ctx) == DOCA_CTX_STATE_RUNNING;
}

static void stop(struct side *s)
{
	doca_error_t result;

	if (state_of(s->ctx) == DOCA_CTX_STATE_IDLE)
		return;
	result = doca_ctx_stop(s->ctx);
	if (result != DOCA_SUCCESS && result != DOCA_ERROR_IN_PROGRESS)
		NEED_RESULT(DOCA_ERROR_NO_MEMORY, result);
	if (result != DOCA_ERROR_NO_MEMORY)
		until_idle(s);
}

static void side_free(struct side *s)
{
	stop(s);
	NEED(state_of(s->ctx) == DOCA_CTX_STATE_IDLE);
	side_close(s);
	memset(s, 0, sizeof(*s));
}

static void make(void)
{
	side_server(&server, RIG_NAME);
	side_client(&client, RIG_NAME);
}

static bool once(void)
{
	bool all;

	make();
	shortage_use(&shared->shortage);
	all = starts(&server) && starts(&client);
	stop(&client);
	stop(&server);
	shortage_use(NULL);
	side_free(&client);
	side_free(&server);
	return all;
}

static void process(void)
{
	struct held held;

	alarm(PATIENCE);
	NEED(once() || shared->shortage.failed);
	/* no allocation fails any more */
	memset(&shared->shortage.at, 0, sizeof(shared->shortage.at));
	NEED(once());
	held = (struct held){shortage_entries("/proc/self/fd"), shortage_regions()};
	if (!shared->held.fds)
		shared->held = held;
	NEED(held.fds <= shared->held.fds);
	NEED(held.regions <= shared->held.regions);
}

static bool run(uint32_t at, uint32_t lasts)
{
	char text[200];
	bool has_failed;
	int status;
	pid_t pid;

	shared->shortage = (struct shortage){.at = at, .lasts = lasts};
	pid = rig_fork(process);
	TEST_ASSERT_EQUAL_INT(pid, waitpid(pid, &status, 0));
	has_failed = shared->shortage.failed;
	snprintf(text, sizeof(text), "allocation %u, of %s, status %#x", at, shared->shortage.file,
		 (unsigned)status);
	TEST_ASSERT_EQUAL_INT_MESSAGE(0, status, text);
	return has_failed;
}

static void walk(uint32_t lasts)
{
	uint32_t n = 0;

	rig_begin();
	run(0, 0);
	while (run(++n, lasts))
		TEST_ASSERT_LESS_THAN(MOST, n);
	TEST_ASSERT_GREATER_THAN(20, n);
}

static void test_one_allocation_fails(void)
{
	walk(0);
}

static void test_all_allocations_fail_from_one_on(void)
{
	walk(1);
}

int main(void)
{
	if (getenv("GANTRY_PLUGINS"))
		setenv("GANTRY_PLUGIN_PATH", getenv("GANTRY_PLUGINS"), 1);
	/* no output: the library logs each failure */
	(void)doca_log_level_set_global_sdk_limit(DOCA_LOG_LEVEL_DISABLE);
	rig_init();
	UNITY_BEGIN();
	RUN_TEST(test_one_allocation_fails);
	RUN_TEST(test_all_allocations_fail_from_one_on);
	rig_fini();
	return UNITY_END();
}
