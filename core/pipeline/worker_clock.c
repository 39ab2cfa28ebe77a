/* SPDX-License-Identifier: BSD-3-Clause */
/* worker_clock.c - the time of a worker and of its lanes. Worker's thread. */
#include "pipeline/worker_priv.h"

#include "base/clock.h"

#define SMALL_NS 200ull   /* events that take less than this share a reading of the clock */
#define COARSE_NS 1000ull /* longest time between two readings for such events */
#define MAX_SMALL 32      /* limit of such events that share one reading */

inline void gn_worker_tick(struct gn_worker *worker)
{
	uint64_t now_ns = gn_fast_ns(), **clocks = worker->clocks;

	worker->now_ns = now_ns;
	for (unsigned i = 0, n = worker->n_clocks; i < n; i++)
		*clocks[i] = now_ns;
}

/*
 * Returns how many events can share the next reading of the clock, if n_events events took took_ns.
 */
static uint32_t events_per_reading(uint32_t n_events, uint64_t took_ns)
{
	if (took_ns >= n_events * SMALL_NS)
		return 1;
	if (took_ns < COARSE_NS * n_events / MAX_SMALL)
		return MAX_SMALL;
	return (uint32_t)(COARSE_NS * n_events / took_ns);
}

void gn_worker_clock_update_coarse(struct gn_worker *worker)
{
	struct gn_worker_small *small = &worker->small;

	if (gn_worker_clock_is_fresh(worker))
		return;
	gn_worker_tick(worker);
	small->most = events_per_reading(small->done + 1, worker->now_ns - worker->looked_ns) - 1;
	small->done = 0;
	worker->looked_ns = worker->now_ns;
}
