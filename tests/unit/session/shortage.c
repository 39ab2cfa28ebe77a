/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * All sessions of a process end at the same time, while no memory can be allocated: each client
 * gets `closed`, and the loop continues.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/log.h"
#include "fake/allocator.h"
#include "fake/core.h"
#include "fake/host.h"
#include "unity.h"

#define SESSIONS 200u

static atomic_bool none_left;

#ifdef ALLOCATOR_OURS
static bool is_granted(void *caller)
{
	(void)caller;
	if (!none_left)
		return true;
	errno = ENOMEM;
	return false;
}

static void hold(long blocks)
{
	(void)blocks;
}
#endif

static struct fake_core fc;
static struct gantry_client *clients[SESSIONS];
static unsigned n_closed;

static void on_closed(void *arg, struct gantry_client *c, int reason, const char *text)
{
	(void)text;
	TEST_ASSERT_EQUAL_PTR(*(struct gantry_client **)arg, c);
	TEST_ASSERT_EQUAL_INT(-ECANCELED, reason);
	n_closed++;
}

static const struct gantry_client_events events = {.closed = on_closed};

void setUp(void)
{
	gn_log_set_level(GN_LOG_ERROR);
	fake_core_init(&fc);
	fake_core_start(&fc, 0);
}

void tearDown(void)
{
	gn_role_stop(fc.role);
	fake_core_turn(&fc);
	fake_core_fini(&fc);
}

static void all_sessions_end_at_once(void)
{
	const struct gantry_session_attr attr = {.lanes = 1, .depth = 1, .regions = 1};

	for (unsigned i = 0; i < SESSIONS; i++)
		TEST_ASSERT_EQUAL_INT(
			0, fc.rh->client_open(fc.rh, 0, &attr, &events, &clients[i], &clients[i]));
	none_left = true;
	for (unsigned i = 0; i < SESSIONS; i++)
		fc.rh->client_abort(clients[i]);
	fake_core_turn(&fc);
	none_left = false;
	TEST_ASSERT_EQUAL_UINT(SESSIONS, n_closed);
	for (unsigned i = 0; i < SESSIONS; i++)
		fc.rh->client_free(clients[i]);
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(all_sessions_end_at_once);
	return UNITY_END();
}
