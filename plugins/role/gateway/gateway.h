/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gateway.h - shared by gateway.c (the plugin), relay.c (one session) and route.c (which target has
 * a byte).
 */
#ifndef GATEWAY_H
#define GATEWAY_H

#include <gantry/role.h>

struct gateway {
	const struct gantry_role_host *rh;
};

/* One target behind a relayed session. */
struct leg {
	struct relay *relay;
	struct gantry_client *client;
	struct gantry_volume_info volume;
	uint64_t base; /* where it begins in the volume that is shown */
	int done;      /* with the step that is being relayed */
	int closed;
};

/*
 * A session of an initiator, relayed to every target: each step is done when all legs have done it.
 */
struct relay {
	struct gateway *gateway;
	struct gantry_session *session;
	int tearing_down; /* it has ended, and waits for the legs to be closed */
	uint32_t depth;
	uint32_t n_lanes;
	struct route **routes; /* by lane of the session; NULL with one target */
	uint32_t n_legs;
	struct leg legs[];
};

extern const struct gantry_server_ops relay_ops;

/*
 * The volume of one more target behind `sum`. What is 0 is not known, and is not of the sum either.
 * 0, -ERANGE: too large.
 */
int route_append(struct gantry_volume_info *sum, const struct gantry_volume_info *next);

/* The terminal hop of one lane when there are several targets. */
int route_create(struct relay *relay, struct gantry_lane *lane, uint32_t index,
		 struct route **route_p, struct gantry_hop *terminal);
void route_destroy(struct route *route, const struct gantry_role_host *rh);

#endif
