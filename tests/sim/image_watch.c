/* SPDX-License-Identifier: BSD-3-Clause */
/* image_watch.c - checks each IO between the chain of a target and the backend `file` */
#include "image_watch.h"

#include <gantry/io.h>
#include <gantry/plugin.h>

#include "image.h"
#include "sim.h"

#define LANES 64u

static struct gantry_backend_ops real;
static struct {
	void *self;
	const struct gantry_lane *lane;
} lanes[LANES];
static uint32_t n_lanes;

static int start(void *backend, struct gantry_lane *lane, uint32_t depth, void **self_p)
{
	int rc = real.start(backend, lane, depth, self_p);

	if (rc == 0 && n_lanes == LANES)
		sim_fail("too many lanes");
	if (rc == 0) {
		lanes[n_lanes].self = *self_p;
		lanes[n_lanes++].lane = lane;
	}
	return rc;
}

/*
 * The clock of a lane does not advance within a turn, so an IO that passed the check of the
 * responder in this turn passes here.
 */
static int submit(void *self, struct gantry_io *io)
{
	uint64_t now_ns = 0;

	for (uint32_t i = 0; i < n_lanes; i++)
		if (lanes[i].self == self)
			now_ns = lanes[i].lane->now_ns;
	if (io->deadline_us != 0 && now_ns >= io->start_ns + io->deadline_us * 1000ull)
		sim_wrong("an IO reaches the backend %llu us after its deadline",
			  (unsigned long long)((now_ns - io->start_ns) / 1000 - io->deadline_us));
	return real.submit(self, io);
}

void sim_watch_backend(struct gantry_backend_ops *ops)
{
	if (!ops->start || ops->submit == submit)
		return;
	real = *ops;
	n_lanes = 0;
	ops->start = start;
	ops->submit = submit;
}
