/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gateway.h - internal interface of the gateway.
 *
 *     gateway.c  plugin interface
 *     relay.c    one relayed session
 *     route.c    one volume composed of several targets
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
	uint64_t base; /* offset in the composed volume, bytes */
	int done;      /* the leg has finished the step that is being relayed */
	int closed;
};

/* A session of an initiator, relayed to each target. A step is done when all legs have done it. */
struct relay {
	struct gateway *gateway;
	struct gantry_session *session;
	int tearing_down; /* the session has ended and waits for its legs to close */
	uint32_t depth;
	uint32_t n_lanes;
	struct route **routes; /* indexed by lane of the session; NULL: the relay has one target */
	uint32_t n_legs;
	struct leg legs[];
};

extern const struct gantry_server_ops relay_ops;

/*
 * Append the volume of one more target to `sum`. A field that is 0 in either volume is unknown, and
 * is 0 in the sum. Returns 0; -ERANGE: the sum of the sizes does not fit 64 bits.
 */
int route_append(struct gantry_volume_info *sum, const struct gantry_volume_info *next);

/*
 * Create the terminal hop of one lane of a relay with several targets. Returns 0 or -errno. Thread:
 * control.
 */
int route_create(struct relay *relay, struct gantry_lane *lane, uint32_t index,
		 struct route **route_p, struct gantry_hop *terminal);
void route_destroy(struct route *route, const struct gantry_role_host *rh);

#endif
