/* SPDX-License-Identifier: BSD-3-Clause */
/* role_held.c - logs which parts of a role hold IOs, for a role that does not end. Any thread. */
#include "session/role_priv.h"

#include <stdio.h>

#define PLACE_MAX 64 /* bytes of the text of name_place() */

/*
 * Write the name of the hop with index `place` in the result of gn_lane_count_held(): the key of
 * that hop in the configuration, and the name of its plugin.
 */
static void name_place(const struct gn_role *role, uint32_t place, char name[PLACE_MAX])
{
	uint32_t n_stages = gn_pipeline_length(role->pipeline);

	if (place == 0)
		snprintf(name, PLACE_MAX, "session");
	else if (place <= n_stages)
		snprintf(name, PLACE_MAX, "stages[%u] type=%s", place - 1,
			 gn_pipeline_stage_name(role->pipeline, place - 1));
	else if (role->spec.backend)
		snprintf(name, PLACE_MAX, "backend type=%s", role->spec.backend->name);
	else
		snprintf(name, PLACE_MAX, "connect");
}

uint32_t gn_role_log_held(struct gn_role *role, enum gn_log_level level)
{
	uint32_t sum = 0;

	for (uint32_t i = 0; i < role->n_lanes; i++) {
		uint32_t held[GN_CHAIN_PLACES];

		gn_lane_count_held(&role->lanes[i], held);
		for (uint32_t place = 0; place < GN_CHAIN_PLACES; place++) {
			char name[PLACE_MAX];

			if (held[place] == 0)
				continue;
			name_place(role, place, name);
			gn_log(level, role->host.name,
			       "IOs are not completed: %s holds them or has lost them (n=%u, lane=%u)",
			       name, held[place], i);
			sum += held[place];
		}
	}
	return sum;
}
