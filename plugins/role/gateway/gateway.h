/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gateway.h - internal interface of the gateway.
 *
 *     gateway.c  plugin interface
 *     relay.c    one relayed session
 *     layout.c   one volume composed of those of several targets
 *     route.c    divides the descriptors of such a volume
 */
#ifndef GATEWAY_H
#define GATEWAY_H

#include <gantry/role.h>

enum gateway_mode { GATEWAY_CONCAT, GATEWAY_STRIPE, GATEWAY_FAILOVER };

struct gateway_conf {
	uint32_t mode;    /* enum gateway_mode */
	uint64_t chunk;   /* bytes */
	const char *uuid; /* UUID that the composed volume must have; empty: any */
};

struct gateway {
	const struct gantry_role_host *rh;
	/* with GATEWAY_FAILOVER: the entry of `connect` that new sessions try first */
	uint32_t path;
	const struct gateway_conf *conf;
};

/* One target behind a relayed session. */
struct leg {
	struct relay *relay;
	struct gantry_client *client;
	uint32_t connect; /* the entry of `connect` */
	int done;         /* the leg has finished the step that is being relayed */
	int closed;
};

/* A session of an initiator, relayed to each target. A step is done when all legs have done it. */
struct relay {
	struct gateway *gateway;
	struct gantry_session *session;
	int tearing_down;                /* the session has ended and waits for its legs to close */
	int is_lost;                     /* the initiator is lost, and the legs were aborted */
	struct gantry_session_attr attr; /* of the session; its legs have the same */
	uint32_t n_tried;                /* with GATEWAY_FAILOVER: paths that have failed */
	int is_ready;                    /* the volume is known */
	struct route **routes; /* indexed by lane of the session; NULL: the relay has one target */
	struct gantry_volume_info volume;   /* composed of `volumes` */
	struct gantry_volume_info *volumes; /* those of the legs, in their order */
	uint32_t n_legs;
	struct leg legs[];
};

extern const struct gantry_server_ops relay_ops;

#define LAYOUT_WHY 200 /* bytes of the text with the reason for an error */

/*
 * Compose volumes to `sum`. A field that is 0 in one of them is unknown, and is 0 in `sum`.
 *
 * n        number of volumes, at least 1
 * why      out, after an error: the reason
 * returns  0
 *          -EINVAL: the sizes, the block size and `chunk` do not fit together
 *          -ERANGE: the sum of the sizes does not fit 64 bits
 * thread   any
 */
int layout_compose(const struct gateway_conf *conf, const struct gantry_volume_info *volumes,
		   uint32_t n, struct gantry_volume_info *sum, char why[LAYOUT_WHY]);

/* Compare the UUID of a composed volume with the option. Returns 0; -ESTALE: see `why`. */
int layout_check_uuid(const struct gateway_conf *conf, const struct gantry_volume_info *sum,
		      char why[LAYOUT_WHY]);

/* Get the largest number of pieces of an IO of `sum`. */
uint32_t layout_max_pieces(const struct gateway_conf *conf, const struct gantry_volume_info *sum,
			   uint32_t n);

struct layout {
	const struct gateway_conf *conf;
	const struct gantry_volume_info *volumes;
	uint32_t n;
};

/*
 * Divide an IO.
 *
 * pieces   out: space for layout_max_pieces()
 * returns  the number of pieces
 */
uint32_t layout_split(const struct layout *layout, const struct gantry_io *io,
		      struct gantry_piece *pieces);

/*
 * Create the terminal hop of one lane of a relay with several targets. Returns 0 or -errno. Thread:
 * control.
 */
int route_create(struct relay *relay, struct gantry_lane *lane, uint32_t index,
		 struct route **route_p, struct gantry_hop *terminal);
void route_destroy(struct route *route, const struct gantry_role_host *rh);

#endif
