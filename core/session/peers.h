/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * peers.h - usage and limits of each peer of a listener
 *
 * If the transport reports the user of the other process, a peer is a user: all processes of a user
 * are one peer. Otherwise a peer is the host part of the address, without the port: all processes
 * of a host are one peer.
 *
 * The table has an entry for each peer that has a connection. Control thread.
 */
#ifndef GN_SESSION_PEERS_H
#define GN_SESSION_PEERS_H

#include "session/session_role.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

enum gn_quota {
	GN_QUOTA_HALF_OPEN,    /* connections without HELLO */
	GN_QUOTA_SESSIONS,     /* sessions, from HELLO until the last resource is released */
	GN_QUOTA_REGION_BYTES, /* bytes of imported regions */
	GN_QUOTA_QUEUE_MEMORY, /* bytes of queues, lists and bounce buffers */
	GN_QUOTAS
};

#define GN_PEER_NAME 72 /* bytes of "host " and any address */

/* Limit of the half-open connections of all peers, as a multiple of the limit of one peer. */
#define GN_HALF_OPEN_PEERS 4u

/* Amounts of each quota: limits, or what is in use. */
struct gn_amounts {
	uint64_t of[GN_QUOTAS];
};

struct gn_peer {
	LIST_ENTRY(gn_peer) link;
	char name[GN_PEER_NAME]; /* such as "uid 1000" or "host 192.0.2.7" */
	uint32_t refs;
	struct gn_amounts limit, used;
};

struct gn_peers { /* peers of a listener; initialise to zero */
	LIST_HEAD(, gn_peer) list;
	struct gn_amounts used; /* sums of all peers */
};

/*
 * gn_peer_name - write the name of a peer, which is its key in the table and its name in messages
 *
 * peer     as the transport reports it
 * name     GN_PEER_NAME bytes
 */
void gn_peer_name(const struct gantry_peer *peer, char *name);

/*
 * gn_peer_limits - compute the limits of one peer of a listener
 *
 * alone    no other peer can connect, so no share is reserved for other peers
 *
 * Default of max_peer_sessions: max_sessions if alone, else three quarters of it, but at least 1.
 * Default of max_peer_region_bytes: max_region_bytes for each of max_sessions sessions if alone,
 * else for four.
 */
void gn_peer_limits(const struct gn_endpoint *listen, bool alone, struct gn_amounts *limit);

/* gn_peer_weight - returns the weight of a peer; 1 if listen.weights does not list it. */
uint32_t gn_peer_weight(const struct gn_endpoint *listen, const char *name);

/*
 * gn_peers_get - find the entry of a peer, or create it with these limits. Each get needs a put.
 * Returns NULL if out of memory.
 */
struct gn_peer *gn_peers_get(struct gn_peers *peers, const char *name,
			     const struct gn_amounts *limit);
/*
 * gn_peers_put - release a reference. The last put frees the entry, which must not use any quota at
 * that time. NULL has no effect.
 */
void gn_peers_put(struct gn_peer *peer);

/*
 * gn_peers_take - take n of a quota for a peer
 *
 * Returns 0,
 * -EBUSY   the limit is reached now: retry when the peer uses less
 * -EACCES  n alone exceeds the limit
 */
int gn_peers_take(struct gn_peers *peers, struct gn_peer *peer, enum gn_quota quota, uint64_t n);
/* Undo gn_peers_take(). */
void gn_peers_give(struct gn_peers *peers, struct gn_peer *peer, enum gn_quota quota, uint64_t n);

/*
 * gn_peers_largest - find the peer that must release part of a quota in favour of `peer`
 *
 * Returns the peer that uses most of the quota, if that is more than `peer` uses; otherwise NULL.
 */
struct gn_peer *gn_peers_largest(const struct gn_peers *peers, const struct gn_peer *peer,
				 enum gn_quota quota);

/* Returns the option that sets the limit, such as "listen.max_half_open". */
const char *gn_quota_option(enum gn_quota quota);

/* Append an object with the usage of each peer to the open array. */
void gn_peers_report(const struct gn_peers *peers, struct gantry_writer *w);

#endif
