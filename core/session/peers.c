/* SPDX-License-Identifier: BSD-3-Clause */
#include "session/peers.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* number of sessions with max_region_bytes each that the automatic limit permits */
#define REGION_SESSIONS 4u

static const struct {
	const char *option, *key; /* option: name in the configuration. key: key in reports */
} quotas[GN_QUOTAS] = {
	[GN_QUOTA_HALF_OPEN] = {"listen.max_half_open", "half_open"},
	[GN_QUOTA_SESSIONS] = {"listen.max_peer_sessions", "sessions"},
	[GN_QUOTA_REGION_BYTES] = {"listen.max_peer_region_bytes", "region_bytes"},
	[GN_QUOTA_QUEUE_MEMORY] = {"listen.max_peer_queue_memory", "queue_memory"},
};

/*
 * Returns the length of the host in "HOST:PORT" or "[HOST]:PORT", or the whole length of an address
 * without a port, such as "2001:db8::7".
 */
static size_t host_length(const char *address, size_t length)
{
	const char *colon = memchr(address, ':', length), *bracket = memchr(address, ']', length);

	if (address[0] == '[' && bracket)
		return (size_t)(bracket - address) + 1;
	if (!colon || memchr(colon + 1, ':', length - (size_t)(colon - address) - 1))
		return length;
	return (size_t)(colon - address);
}

void gn_peer_name(const struct gantry_peer *peer, char *name)
{
	size_t length = strnlen(peer->address, sizeof(peer->address));

	if (peer->uid != UINT32_MAX)
		snprintf(name, GN_PEER_NAME, "uid %u", peer->uid);
	else
		snprintf(name, GN_PEER_NAME, "host %.*s", (int)host_length(peer->address, length),
			 peer->address);
}

static uint64_t at_least_one(uint64_t n)
{
	return n != 0 ? n : 1;
}

void gn_peer_limits(const struct gn_endpoint *listen, bool alone, struct gn_amounts *limit)
{
	uint64_t sessions = alone ? listen->max_sessions
				  : at_least_one(listen->max_sessions * 3ull / 4);
	uint64_t regions = listen->max_region_bytes *
			   (alone ? listen->max_sessions : REGION_SESSIONS);

	*limit = (struct gn_amounts){
		.of = {
			[GN_QUOTA_HALF_OPEN] = listen->max_half_open,
			[GN_QUOTA_SESSIONS] = listen->max_peer_sessions != 0
						      ? listen->max_peer_sessions
						      : sessions,
			[GN_QUOTA_REGION_BYTES] = listen->max_peer_region_bytes != 0
							  ? listen->max_peer_region_bytes
							  : regions,
			[GN_QUOTA_QUEUE_MEMORY] = listen->max_peer_queue_memory,
		}};
}

uint32_t gn_peer_weight(const struct gn_endpoint *listen, const char *name)
{
	for (uint32_t i = 0; i < listen->n_weights; i++)
		if (strcmp(listen->weights[i].peer, name) == 0)
			return listen->weights[i].weight;
	return 1;
}

struct gn_peer *gn_peers_get(struct gn_peers *peers, const char *name,
			     const struct gn_amounts *limit)
{
	struct gn_peer *peer;

	LIST_FOREACH (peer, &peers->list, link)
		if (strcmp(peer->name, name) == 0)
			break;
	if (!peer) {
		peer = calloc(1, sizeof(*peer));
		if (!peer)
			return NULL;
		snprintf(peer->name, sizeof(peer->name), "%s", name);
		peer->limit = *limit;
		LIST_INSERT_HEAD(&peers->list, peer, link);
	}
	peer->refs++;
	return peer;
}

void gn_peers_put(struct gn_peer *peer)
{
	if (!peer || --peer->refs != 0)
		return;
	LIST_REMOVE(peer, link);
	free(peer);
}

int gn_peers_take(struct gn_peers *peers, struct gn_peer *peer, enum gn_quota quota, uint64_t n)
{
	uint64_t limit = peer->limit.of[quota];

	if (n > limit)
		return -EACCES;
	if (n > limit - peer->used.of[quota])
		return -EBUSY;
	peer->used.of[quota] += n;
	peers->used.of[quota] += n;
	return 0;
}

void gn_peers_give(struct gn_peers *peers, struct gn_peer *peer, enum gn_quota quota, uint64_t n)
{
	peer->used.of[quota] -= n;
	peers->used.of[quota] -= n;
}

struct gn_peer *gn_peers_largest(const struct gn_peers *peers, const struct gn_peer *peer,
				 enum gn_quota quota)
{
	struct gn_peer *largest = NULL, *p;
	uint64_t most = peer->used.of[quota];

	LIST_FOREACH (p, &peers->list, link)
		if (p->used.of[quota] > most) {
			most = p->used.of[quota];
			largest = p;
		}
	return largest;
}

const char *gn_quota_option(enum gn_quota quota)
{
	return quotas[quota].option;
}

void gn_peers_report(const struct gn_peers *peers, struct gantry_writer *w)
{
	const struct gn_peer *p;

	LIST_FOREACH (p, &peers->list, link) {
		w->object(w, NULL);
		w->string(w, "peer", p->name);
		for (unsigned i = 0; i < GN_QUOTAS; i++)
			w->u64(w, quotas[i].key, p->used.of[i]);
		w->end(w);
	}
}
