/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "base/clock.h"
#include "host.h"
#include "worker.h"

static uint64_t now_ns;

static uint64_t fake_now(void)
{
	return __atomic_load_n(&now_ns, __ATOMIC_ACQUIRE);
}

void fake_clock_start(void)
{
	now_ns = 1000 * GN_NS_PER_S;
	gn_clock_set_fake(fake_now);
}

void fake_clock_stop(void)
{
	gn_clock_set_fake(NULL);
}

/* Release order: a thread that reads the new time sees the earlier actions of the test. */
void fake_clock_advance(uint64_t ns)
{
	__atomic_fetch_add(&now_ns, ns, __ATOMIC_RELEASE);
}

void fake_worker_start(struct fake_worker *fw)
{
	struct gn_worker_attr attr = {.name = "lane", .cpu = -1, .spin_ns = 0};

	if (gn_worker_create(&attr, &fw->worker) != 0)
		fake_fail("worker: cannot be started");
	gn_host_init(&fw->host, "roles.test");
	if (gn_lane_init(&fw->lane, 0, 1, &fw->host, fw->worker) != 0 ||
	    gn_pipeline_open("roles.test", NULL, 0, &fw->lane, 1, &fw->pipeline) != 0)
		fake_fail("worker: no lane");
}

void fake_worker_stop(struct fake_worker *fw)
{
	gn_pipeline_close(&fw->pipeline);
	gn_lane_fini(&fw->lane);
	gn_worker_destroy(&fw->worker);
	gn_host_fini(&fw->host);
}

static void nothing(void *arg)
{
	(void)arg;
}

/*
 * The worker runs a call at the start of a turn, after it has read the clock. The first of the
 * three calls can run in a turn with the old time; the turn of the second has the new time, and
 * polls all pollers before the third call runs.
 */
void fake_settle(struct fake_worker *fw)
{
	for (int i = 0; i < 3; i++)
		gn_worker_call(fw->worker, nothing, NULL);
}
