/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * admit.c - which connections and sessions a listener admits, and how much memory each peer can
 * use. Control thread.
 *
 *      accept -> half-open (max_half_open)
 *             -> HELLO -> session (max_sessions, max_peer_sessions)
 *             -> regions, queues (max_peer_region_bytes, max_peer_queue_memory)
 *
 * A half-open connection does not count as a session, so connections without HELLO cannot use up
 * the sessions. Their number is limited for each peer, and for all peers together. If the second
 * limit is reached, the peer with the most half-open connections loses the oldest of them, but only
 * to a peer that has fewer.
 */
#include "session/session_priv.h"

#include "base/log.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define REMEDY "raise it or close connections"

static const char *refuse_reason(const struct gantry_session *s)
{
	const struct gn_role *role = s->role;

	if (!gn_rights_user(s))
		return s->ep->access ? "its user is not allowed (listen.allow)"
				     : "its uid is not allowed (listen.uids)";
	return role->server.stopping || role->finished ? "the role is stopping" : NULL;
}

int gn_admit_peer(struct gantry_session *s)
{
	struct gn_server *sv = &s->role->server;
	const char *why = refuse_reason(s);
	int rc = why ? -EACCES : 0;
	struct gn_amounts limit;
	char name[GN_PEER_NAME];

	if (rc == 0) {
		gn_peer_name(&s->peer, name);
		gn_peer_limits(s->ep, s->peer.uid != UINT32_MAX && s->ep->n_uids <= 1, &limit);
		s->account = gn_peers_get(&sv->peers, name, &limit);
		if (s->account)
			return 0;
		why = "out of memory";
		rc = -ENOMEM;
	}
	if (gn_log_ratelimit(&sv->refusals, GN_LOG_WARN, s->role->host.name))
		gn_log(GN_LOG_WARN, s->role->host.name,
		       "connection refused pid=%d uid=%u reason=\"%s\"", s->peer.pid, s->peer.uid,
		       why);
	gantry_count(sv->refused, 1);
	return rc;
}

static int take(struct gantry_session *s, enum gn_quota quota, uint64_t n)
{
	int rc = gn_peers_take(&s->role->server.peers, s->account, quota, n);

	if (rc == 0)
		s->held.of[quota] += n;
	return rc;
}

/*
 * Take one connection or session of a quota. On failure s->refusal has the reason. Returns 0 or
 * -EBUSY.
 */
static int take_one(struct gantry_session *s, enum gn_quota quota)
{
	if (take(s, quota, 1) == 0)
		return 0;
	gn_session_refuse(s, "busy: %s=%llu reached by %s: " REMEDY, gn_quota_option(quota),
			  (unsigned long long)s->account->limit.of[quota], s->account->name);
	return -EBUSY;
}

static void give(struct gantry_session *s, enum gn_quota quota)
{
	gn_peers_give(&s->role->server.peers, s->account, quota, s->held.of[quota]);
	s->held.of[quota] = 0;
}

/* Returns the oldest half-open connection of a peer. NULL: it has none. */
static struct gantry_session *oldest_half_open(const struct gn_role *role,
					       const struct gn_peer *peer)
{
	struct gantry_session *oldest = NULL, *s;

	/* the list has the newest session first */
	LIST_FOREACH (s, &role->server.sessions, link)
		if (s->account == peer && s->held.of[GN_QUOTA_HALF_OPEN] != 0 &&
		    s->phase == GN_SESSION_OPEN)
			oldest = s;
	return oldest;
}

/*
 * Evict the oldest half-open connection of the peer that has the most. Returns false if no peer has
 * more than the peer of this session.
 */
static bool evict_half_open(const struct gantry_session *s)
{
	const struct gn_role *role = s->role;
	const struct gn_peer *peer = gn_peers_largest(&role->server.peers, s->account,
						      GN_QUOTA_HALF_OPEN);
	struct gantry_session *oldest = peer ? oldest_half_open(role, peer) : NULL;

	if (!oldest)
		return false;
	gn_session_refuse(
		oldest,
		"busy: %u x listen.max_half_open=%u reached by all peers together, most by %s: " REMEDY,
		GN_HALF_OPEN_PEERS, (uint32_t)s->ep->max_half_open, peer->name);
	give(oldest, GN_QUOTA_HALF_OPEN);
	gn_session_end(oldest, -EBUSY);
	return true;
}

int gn_admit_half_open(struct gantry_session *s)
{
	uint64_t limit = s->ep->max_half_open * GN_HALF_OPEN_PEERS;
	int rc = take_one(s, GN_QUOTA_HALF_OPEN);

	if (rc != 0 || s->role->server.peers.used.of[GN_QUOTA_HALF_OPEN] <= limit ||
	    evict_half_open(s))
		return rc;
	give(s, GN_QUOTA_HALF_OPEN);
	gn_session_refuse(
		s, "busy: %u x listen.max_half_open=%u reached by all peers together: " REMEDY,
		GN_HALF_OPEN_PEERS, (uint32_t)s->ep->max_half_open);
	return -EBUSY;
}

int gn_admit_session(struct gantry_session *s)
{
	const struct gn_peers *peers = &s->role->server.peers;
	int rc;

	if (peers->used.of[GN_QUOTA_SESSIONS] >= s->ep->max_sessions) {
		gn_session_refuse(
			s, "busy: listen.max_sessions=%u reached by all peers together: " REMEDY,
			(uint32_t)s->ep->max_sessions);
		return -EBUSY;
	}
	rc = take_one(s, GN_QUOTA_SESSIONS);
	if (rc == 0)
		give(s, GN_QUOTA_HALF_OPEN);
	return rc;
}

void gn_admit_yield(struct gantry_session *s)
{
	give(s, GN_QUOTA_SESSIONS);
}

int gn_admit_memory(struct gantry_session *s, enum gn_quota quota, uint64_t bytes)
{
	int rc = take(s, quota, bytes);

	if (rc != 0)
		gn_session_refuse(s, "%s%s=%llu %s by %s (used=%llu, asked=%llu): %s",
				  rc == -EBUSY ? "busy: " : "", gn_quota_option(quota),
				  (unsigned long long)s->account->limit.of[quota],
				  rc == -EBUSY ? "reached" : "exceeded", s->account->name,
				  (unsigned long long)s->account->used.of[quota],
				  (unsigned long long)bytes,
				  rc == -EBUSY ? REMEDY : "raise it or ask for less");
	return rc;
}

void gn_admit_return(struct gantry_session *s, enum gn_quota quota, uint64_t bytes)
{
	gn_peers_give(&s->role->server.peers, s->account, quota, bytes);
	s->held.of[quota] -= bytes;
}

void gn_admit_memory_released(struct gantry_session *s)
{
	give(s, GN_QUOTA_REGION_BYTES);
	give(s, GN_QUOTA_QUEUE_MEMORY);
}

void gn_admit_release(struct gantry_session *s)
{
	for (int i = 0; i < GN_QUOTAS; i++)
		give(s, (enum gn_quota)i);
	gn_peers_put(s->account);
}
