/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * peers.h - what each peer of a listener uses, and how much of it the peer may use
 *
 * A peer is a user where the transport knows the process at the other end. Else it is the host part
 * of the address of the connection, so that another port is not another peer. All processes of one
 * user are one peer, and all processes of one host on a network are one peer.
 *
 * The table has an entry for each peer that has a connection. Control thread only.
 */
#ifndef GN_SESSION_PEERS_H
#define GN_SESSION_PEERS_H

#include "session/role.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum gn_quota {
	GN_QUOTA_HALF_OPEN,    /* connections without HELLO */
	GN_QUOTA_SESSIONS,     /* from HELLO until the last resource is released */
	GN_QUOTA_REGION_BYTES, /* of imported regions */
	GN_QUOTA_QUEUE_MEMORY, /* bytes of queues, and of buffers that data is moved through */
	GN_QUOTAS
};

#define GN_PEER_NAME 72 /* bytes: "host " and any address */

/* Half-open connections of all peers together, as a multiple of what one peer may have. */
#define GN_HALF_OPEN_PEERS 4u

/* Amounts of each quota: limits, or what is in use. */
struct gn_amounts {
	uint64_t of[GN_QUOTAS];
};

struct gn_peer {
	struct gn_peer *next;
	char name[GN_PEER_NAME]; /* "uid 1000", "host 192.0.2.7" */
	uint32_t refs;
	struct gn_amounts limit, used;
};

struct gn_peers { /* all zero at first */
	struct gn_peer *list;
	struct gn_amounts used; /* by all peers */
};

/*
 * gn_peer_name - name a peer: the key of the table, and its name in messages
 *
 * peer     of the transport
 * name     GN_PEER_NAME bytes
 */
void gn_peer_name(const struct gantry_peer *peer, char *name);

/*
 * gn_peer_limits - limits of one peer of a listener
 *
 * alone    no other peer may connect, so no place has to be kept for one
 *
 * If max_peer_sessions is 0: all of max_sessions if alone, else three quarters of it, but at least
 * 1.
 * If max_peer_region_bytes is 0: max_region_bytes for each of max_sessions if alone, else for four
 * sessions.
 */
void gn_peer_limits(const struct gn_endpoint *listen, bool alone, struct gn_amounts *limit);

/* The weight of a peer of this listener; 1 if it is not listed. */
uint32_t gn_peer_weight(const struct gn_endpoint *listen, const char *name);

/*
 * The entry of a peer, made with these limits if there is none. Each get needs a put. NULL: no
 * memory.
 */
struct gn_peer *gn_peers_get(struct gn_peers *peers, const char *name,
			     const struct gn_amounts *limit);
/* Drop a reference. The last one frees the entry, which then uses nothing. NULL: does nothing. */
void gn_peers_put(struct gn_peers *peers, struct gn_peer *peer);

/*
 * gn_peers_take - let a peer use n more of a quota
 *
 * Returns
 *	0        taken
 *	-EBUSY   the limit of the peer is reached: later, when it uses less
 *	-EACCES  n alone is more than the limit: never
 */
int gn_peers_take(struct gn_peers *peers, struct gn_peer *peer, enum gn_quota quota, uint64_t n);
/* Undo gn_peers_take(). */
void gn_peers_give(struct gn_peers *peers, struct gn_peer *peer, enum gn_quota quota, uint64_t n);

/*
 * gn_peers_largest - the peer that must make room for another one
 *
 * Returns the peer that uses most of the quota, if that is more than `peer` uses; NULL if there is
 * none.
 */
struct gn_peer *gn_peers_largest(const struct gn_peers *peers, const struct gn_peer *peer,
				 enum gn_quota quota);

/* The option that sets the limit: "listen.max_half_open". */
const char *gn_quota_option(enum gn_quota quota);

/* Entries of the array that is open: what each peer uses. */
void gn_peers_report(const struct gn_peers *peers, struct gantry_writer *w);

#endif
