/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * noop.c - a stage without effect: the template for a new stage.
 *
 * In a configuration: stages = ( { type = "noop"; } );
 *
 * The stage is complete: operations that are NULL get a default. The default `submit` passes the
 * descriptor down; the default `complete` passes it back. To add a function, read <gantry/stage.h>
 * and define, in this order:
 *
 *     submit       inspect the descriptor, then `return gantry_submit(io);`
 *     complete     inspect its status, then `gantry_complete(io);`
 *     open         if the stage has options: a struct for them, a table of struct gantry_option,
 *                  and allocation of the stage
 *     start        if the stage counts: per-lane state, so that no lock is needed
 *     poll, drain  if the stage holds descriptors
 */
#define GANTRY_API_VERSION 1

#include <gantry/stage.h>

static const struct gantry_stage_ops ops = {0};

GANTRY_PLUGIN(noop) = {
	GANTRY_PLUGIN_HEAD,
	.kind = GANTRY_KIND_STAGE,
	.name = "noop",
	.version = "1",
	.summary = "does nothing: measures the cost of a stage, template for new stages",
	.ops_size = sizeof ops,
	.ops = &ops,
};
