/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * route.c - composes several targets to one volume, in the order of their configuration. A route
 * passes a descriptor to the target that holds its range. A descriptor that crosses a boundary is
 * divided into one child for each target concerned. A flush has one child for each target.
 */
#include "gateway.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct route {
	struct relay *relay;
	struct gantry_fanout *fanout;
	const struct gantry_role_host *rh;
	struct gantry_piece *pieces; /* n_legs entries, for the IO that is being submitted */
};

/*
 * Map x to a 64-bit number with the finalizer of splitmix64. For each `chosen_by` the map is a
 * bijection.
 */
static uint64_t mix(uint64_t chosen_by, uint64_t x)
{
	x += chosen_by + 0x9e3779b97f4a7c15ull;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

/*
 * Combine the verifiers of two volumes. The result depends on both values and on their order.
 * Returns 0 (unknown) if one of them is 0.
 */
static uint64_t combine_verifiers(uint64_t first, uint64_t second)
{
	uint64_t both = mix(mix(0, first), second);

	if (first == 0 || second == 0)
		return 0;
	return both ? both : 1;
}

static void combine_uuids(uint8_t sum[16], const uint8_t next[16])
{
	static const uint8_t unknown[16];
	uint64_t in[4], out[2] = {1, 2};

	memcpy(&in[0], sum, 16);
	memcpy(&in[2], next, 16);
	if (memcmp(sum, unknown, 16) == 0 || memcmp(next, unknown, 16) == 0) {
		memset(sum, 0, 16);
		return;
	}
	for (unsigned i = 0; i < 4; i++) {
		out[0] = mix(out[0], in[i]);
		out[1] = mix(out[1], in[i]);
	}
	memcpy(sum, out, 16);
	sum[6] = (sum[6] & 0x0f) | 0x80; /* version 8: vendor-specific */
	sum[8] = (sum[8] & 0x3f) | 0x80; /* the variant of RFC 9562 */
}

int route_append(struct gantry_volume_info *sum, const struct gantry_volume_info *next)
{
	uint64_t size;

	if (__builtin_add_overflow(sum->size, next->size, &size))
		return -ERANGE;
	sum->size = sum->size && next->size ? size : 0;
	if (!next->block_size || (sum->block_size && next->block_size > sum->block_size))
		sum->block_size = next->block_size;
	if (next->max_io < sum->max_io)
		sum->max_io = next->max_io;
	/* the extents of several targets cannot be joined in one buffer */
	sum->ops &= next->ops & ~(1u << GANTRY_OP_EXTENTS);
	sum->flags |= next->flags;
	sum->flags &= ~GANTRY_VOLUME_LISTS; /* a list cannot be divided */
	combine_uuids(sum->uuid, next->uuid);
	sum->verifier = combine_verifiers(sum->verifier, next->verifier);
	return 0;
}

static uint32_t split(struct route *route, const struct gantry_io *io)
{
	const struct relay *relay = route->relay;
	/* cannot overflow: gn_check_io() has checked the range */
	uint64_t end = io->offset + io->length;
	uint32_t n = 0;

	for (uint32_t i = 0; i < relay->n_legs; i++) {
		const struct leg *leg = &relay->legs[i];
		uint64_t from = io->offset > leg->base ? io->offset : leg->base;
		uint64_t to = leg->base + leg->volume.size;

		if (to > end)
			to = end;
		if (from < to)
			route->pieces[n++] = (struct gantry_piece){
				.terminal = i,
				.length = (uint32_t)(to - from),
				.offset = from - leg->base,
				.skip = from - io->offset,
			};
	}
	return n;
}

static uint32_t all(struct route *route)
{
	for (uint32_t i = 0; i < route->relay->n_legs; i++)
		route->pieces[i] = (struct gantry_piece){.terminal = i};
	return route->relay->n_legs;
}

static int route_submit(void *self, struct gantry_io *io)
{
	struct route *route = self;
	uint32_t n = gantry_op_has_range(io->opcode) ? split(route, io) : all(route);

	return route->rh->fanout_submit(route->fanout, io, route->pieces, n);
}

int route_create(struct relay *relay, struct gantry_lane *lane, uint32_t index,
		 struct route **route_p, struct gantry_hop *terminal)
{
	const struct gantry_role_host *rh = relay->gateway->rh;
	struct gantry_hop *hops = calloc(relay->n_legs, sizeof(*hops));
	struct route *route = calloc(1, sizeof(*route));
	int rc = -ENOMEM;

	if (!hops || !route)
		goto out;
	route->relay = relay;
	route->rh = rh;
	route->pieces = calloc(relay->n_legs, sizeof(*route->pieces));
	if (!route->pieces)
		goto out;
	rc = 0;
	for (uint32_t i = 0; i < relay->n_legs && rc == 0; i++)
		rc = rh->client_hop(relay->legs[i].client, index, lane, &hops[i]);
	if (rc == 0)
		rc = rh->fanout_create(lane, hops, relay->n_legs, relay->depth, relay->n_legs,
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
