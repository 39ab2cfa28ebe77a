/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fanout.h - one parent descriptor with several children; the first error decides its status. The
 * functions have the contracts of fanout_create, fanout_destroy and fanout_submit of struct
 * gantry_role_host.
 */
#ifndef GN_PIPELINE_FANOUT_H
#define GN_PIPELINE_FANOUT_H

#include "pipeline/pipeline.h"

int gn_fanout_create(struct gn_lane *lane, const struct gantry_hop *terminals, uint32_t n_terminals,
		     uint32_t n_parents, uint32_t max_pieces, struct gantry_fanout **fanout_p);
void gn_fanout_destroy(struct gantry_fanout *fanout);
int gn_fanout_submit(struct gantry_fanout *fanout, struct gantry_io *parent,
		     const struct gantry_piece *pieces, uint32_t n);

#endif
