/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * role_held.c - logs which parts of a role hold IOs, for a role or session that does not end. Any
 * thread.
 */
#include "session/role_priv.h"

uint32_t gn_role_log_held(struct gn_role *role, enum gn_log_level level)
{
	uint32_t sum = 0;

	for (uint32_t i = 0; i < role->n_lanes; i++) {
		uint32_t held[GN_CHAIN_PLACES];

		gn_lane_count_held(&role->lanes[i], held);
		for (uint32_t place = 0; place < GN_CHAIN_PLACES; place++) {
			char name[GN_PLACE_NAME];

			if (held[place] == 0)
				continue;
			gn_lane_name_place(&role->lanes[i], place, name);
			gn_log(level, role->host.name,
			       "IOs are not completed: %s holds them or has lost them (n=%u, lane=%u)",
			       name, held[place], i);
			sum += held[place];
		}
	}
	return sum;
}
