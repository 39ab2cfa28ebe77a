/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * noop - a stage that does nothing: the example to copy for a stage of your own.
 *
 * In a configuration: stages = ( { type = "noop"; } );
 *
 * It is complete as it stands: slots that are left out get a default. `submit` then passes the
 * descriptor down, `complete` passes it back. To make it do something, read <gantry/stage.h> and
 * add, in this order:
 *
 *     submit      look at the descriptor, then `return gantry_submit(io);`
 *     complete    look at its status, then `gantry_complete(io);`
 *     open        when there are options: a struct for them, a table of struct gantry_option, and a
 *                 stage to make
 *     start       when there is something to count: give each lane a part of its own, and no lock
 *                 is needed
 *     poll, drain when it keeps descriptors
 */
#include <gantry/stage.h>

static const struct gantry_stage_ops ops = {0};

GANTRY_PLUGIN(noop) = {
	GANTRY_PLUGIN_HEAD,
	.kind = GANTRY_KIND_STAGE,
	.name = "noop",
	.version = "1",
	.summary = "does nothing: what a stage costs, and the example to copy",
	.ops_size = sizeof ops,
	.ops = &ops,
};
