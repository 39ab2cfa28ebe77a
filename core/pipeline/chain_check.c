/* SPDX-License-Identifier: BSD-3-Clause */
/* chain_check.c - checking hops; chain_check.h has the model. Lane's thread. */
#include "pipeline/chain_check.h"

#include "base/log.h"
#include "pipeline/pipeline_priv.h"

void gn_check_double(struct gn_lane *lane)
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

static int check_submit(void *self, struct gantry_io *io)
{
	const struct gn_check *check = self;
	uint32_t caller = check->lane->running;
	int rc;

	check->lane->running = check->running;
	rc = check->hop.submit(check->hop.self, io);
	check->lane->running = caller;
	return rc;
}

static void check_complete(void *self, struct gantry_io *io)
{
	const struct gn_check *check = self;
	uint32_t caller = check->lane->running;

	if (caller != check->next) {
		io->hop++;
		gn_check_double(check->lane);
		return;
	}
	check->lane->running = check->running;
	check->hop.complete(check->hop.self, io);
	check->lane->running = caller;
}

struct gantry_hop gn_check_hop(struct gn_check *check)
{
	struct gantry_hop hop = check->hop;

	hop.submit = check_submit;
	hop.complete = check_complete;
	hop.self = check;
	return hop;
}

int gn_check_poll(void *self)
{
	const struct gn_check_poller *poller = self;
	int n;

	poller->lane->running = poller->running;
	n = poller->ops->poll(poller->self);
	poller->lane->running = 0;
	return n;
}

uint64_t gn_check_wake_ns(void *self)
{
	const struct gn_check_poller *poller = self;

	return poller->ops->wake_ns(poller->self);
}
