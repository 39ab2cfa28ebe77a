/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * route.c - the terminal hop of a relay with several targets. A route passes a descriptor to the
 * target that holds its range. A descriptor that crosses a boundary is divided into one child for
 * each part. A flush has one child for each target.
 */
#include "gateway.h"

#include <errno.h>
#include <stdlib.h>

struct route {
	struct layout layout;
	struct gantry_fanout *fanout;
	const struct gantry_role_host *rh;
	struct gantry_piece *pieces; /* those of the IO that is being submitted */
};

static int route_submit(void *self, struct gantry_io *io)
{
	struct route *route = self;
	uint32_t n = layout_split(&route->layout, io, route->pieces);

	return route->rh->fanout_submit(route->fanout, io, route->pieces, n);
}

int route_create(struct relay *relay, struct gantry_lane *lane, uint32_t index,
		 struct route **route_p, struct gantry_hop *terminal)
{
	const struct gantry_role_host *rh = relay->gateway->rh;
	uint32_t max_pieces = layout_max_pieces(relay->gateway->conf, &relay->volume,
						relay->n_legs);
	struct gantry_hop *hops = calloc(relay->n_legs, sizeof(*hops));
	struct route *route = calloc(1, sizeof(*route));
	int rc = -ENOMEM;

	if (!hops || !route)
		goto out;
	route->layout = (struct layout){
		.conf = relay->gateway->conf, .volumes = relay->volumes, .n = relay->n_legs};
	route->rh = rh;
	route->pieces = calloc(max_pieces, sizeof(*route->pieces));
	if (!route->pieces)
		goto out;
	rc = 0;
	for (uint32_t i = 0; i < relay->n_legs && rc == 0; i++)
		rc = rh->client_hop(relay->legs[i].client, index, lane, &hops[i]);
	if (rc == 0)
		rc = rh->fanout_create(lane, hops, relay->n_legs, relay->attr.depth, max_pieces,
				       &route->fanout);
	if (rc == 0) {
		*terminal = (struct gantry_hop){.submit = route_submit, .self = route};
		*route_p = route;
		route = NULL;
	}
out:
	free(hops);
	if (route)
		route_destroy(route, rh);
	return rc;
}

void route_destroy(struct route *route, const struct gantry_role_host *rh)
{
	if (!route)
		return;
	rh->fanout_destroy(route->fanout);
	free(route->pieces);
	free(route);
}
