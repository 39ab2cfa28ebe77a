/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * role_held.c - logs which parts of a role hold IOs, for a role or session that does not end. Any
 * thread.
 */
#include "session/session_priv.h"

/* owner: as in gn_lane_count_held(). Returns the number of held IOs. */
static uint32_t log_lane(struct gn_role *role, uint32_t lane, const void *owner,
			 enum gn_log_level level)
{
	uint32_t held[GN_CHAIN_PLACES], sum = 0;

	gn_lane_count_held(&role->lanes[lane], owner, held);
	for (uint32_t place = 0; place < GN_CHAIN_PLACES; place++) {
		char name[GN_PLACE_NAME];

		if (held[place] == 0)
			continue;
		gn_lane_name_place(&role->lanes[lane], place, name);
		gn_log(level, role->host.name,
		       "IOs are not completed: %s holds them or has lost them (n=%u, lane=%u)",
		       name, held[place], lane);
		sum += held[place];
	}
	return sum;
}

uint32_t gn_role_log_held(struct gn_role *role, enum gn_log_level level)
{
	uint32_t sum = 0;

	for (uint32_t i = 0; i < role->n_lanes; i++)
		sum += log_lane(role, i, NULL, level);
	return sum;
}

void gn_session_log_held(const struct gantry_session *s, enum gn_log_level level)
{
	for (uint32_t i = 0; i < s->n_lanes; i++)
		log_lane(s->role, i % s->role->n_lanes, s->lanes[i].resp, level);
}
