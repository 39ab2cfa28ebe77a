/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pipeline_priv.h - shared by pipeline.c, chain.c and chain_watch.c
 */
#ifndef GN_PIPELINE_PIPELINE_PRIV_H
#define GN_PIPELINE_PIPELINE_PRIV_H

#include "pipeline/pipeline.h"

/* Write the hop of stage i on a lane to *hop. */
void gn_pipeline_hop(const struct gn_pipeline *pipeline, uint32_t i, uint32_t lane,
		     struct gantry_hop *hop);

/* Let stage i change the properties of a volume. Returns 0 or -errno of the stage. Any thread. */
int gn_pipeline_stage_volume(const struct gn_pipeline *pipeline, uint32_t i,
			     struct gantry_volume_info *volume);

/* The owner of a pipeline, as gn_pipeline_open() got it. */
const char *gn_pipeline_owner(const struct gn_pipeline *pipeline);

/* Returns true if stage i needs bounce buffers. */
bool gn_pipeline_needs_bounce(const struct gn_pipeline *pipeline, uint32_t i);

/* Detach all chains from a lane that is destroyed: they do not access it any more. */
void gn_chain_leave_all(struct gn_lane *lane);

#endif
