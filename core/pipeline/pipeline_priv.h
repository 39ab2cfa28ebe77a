/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GN_PIPELINE_PIPELINE_PRIV_H
#define GN_PIPELINE_PIPELINE_PRIV_H

#include "pipeline/pipeline.h"

/* The hop of stage i on a lane. */
void gn_pipeline_hop(const struct gn_pipeline *pipeline, uint32_t i, uint32_t lane,
		     struct gantry_hop *hop);

/* The lane goes: chains that are still there do not touch it any more. */
void gn_chain_leave_all(struct gn_lane *lane);

#endif
