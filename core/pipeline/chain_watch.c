/* SPDX-License-Identifier: BSD-3-Clause */
/* chain_watch.c - watching hops; chain_watch.h has the model. Lane's thread. */
#include "pipeline/chain_watch.h"

#include "base/clock.h"
#include "base/log.h"
#include "pipeline/pipeline_priv.h"

void gn_watch_double(struct gn_lane *lane)
{
	uint32_t n_stages = lane->pipeline ? gn_pipeline_length(lane->pipeline) : 0;
	char name[GN_PLACE_NAME];

	gantry_count(lane->double_completions, 1);
	if (!lane->pipeline || (!lane->check_stages && n_stages != 0))
		return;
	gantry_count(&lane->doubled[lane->running], 1);
	if (lane->doubled[lane->running] != 1)
		return;
	gn_lane_name_place(lane, lane->running == 0 ? n_stages + 1 : lane->running, name);
	gn_log(GN_LOG_WARN, gn_pipeline_owner(lane->pipeline),
	       "plugin bug: %s completed an IO that it does not hold (lane=%u): the completion is ignored, the report counts further ones",
	       name, lane->pub.index);
}

/* -- times -- */

void gn_watch_enter(const struct gn_watch *watch, const struct gantry_io *io)
{
	watch->visits[io->slot].start_ns = gn_fast_ns();
	if (!watch->is_last)
		watch[1].visits[io->slot] = (struct gn_visit){.start_ns = 0};
}

static void leave(const struct gn_watch *watch, const struct gantry_io *io)
{
	struct gn_visit *visit = &watch->visits[io->slot];
	uint64_t took, below;

	if (visit->start_ns == 0)
		return;
	took = gn_fast_ns() - visit->start_ns;
	below = watch->is_last ? 0 : watch[1].visits[io->slot].spent_ns;
	visit->start_ns = 0;
	visit->spent_ns += took;
	gantry_histogram_record(watch->own_time, took > below ? took - below : 0);
}

/* -- hops -- */

static int watch_submit(void *self, struct gantry_io *io)
{
	const struct gn_watch *watch = self;
	const uint32_t caller = watch->lane->running;
	int rc;

	if (watch->lane->measures && watch->visits)
		gn_watch_enter(watch, io);
	watch->lane->running = watch->running;
	rc = watch->hop.submit(watch->hop.self, io);
	watch->lane->running = caller;
	if (rc != 0 && watch->visits)
		watch->visits[io->slot].start_ns = 0;
	return rc;
}

/* A completion by the next hop. */
static void watch_complete(void *self, struct gantry_io *io)
{
	const struct gn_watch *watch = self;
	const uint32_t caller = watch->lane->running;

	if (watch->lane->check_stages && caller != watch->next) {
		io->hop++;
		gn_watch_double(watch->lane);
		return;
	}
	if (watch->lane->measures)
		leave(watch + 1, io);
	watch->lane->running = watch->running;
	watch->hop.complete(watch->hop.self, io);
	watch->lane->running = caller;
}

struct gantry_hop gn_watch_hop(struct gn_watch *watch)
{
	struct gantry_hop hop = watch->hop;

	hop.submit = watch_submit;
	hop.complete = watch_complete;
	hop.self = watch;
	return hop;
}

int gn_watch_poll(void *self)
{
	const struct gn_watch_poller *poller = self;
	int n;

	poller->lane->running = poller->running;
	n = poller->ops->poll(poller->self);
	poller->lane->running = 0;
	return n;
}

uint64_t gn_watch_wake_ns(void *self)
{
	const struct gn_watch_poller *poller = self;

	return poller->ops->wake_ns(poller->self);
}
