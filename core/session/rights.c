/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rights.c - who the peer of a session is, and what `listen.allow` permits to it. Control thread.
 *
 * The peer of a connection is an identity that the record filter has authenticated, or a user that
 * the kernel reports. If the row of the peer has `relay`, the session belongs to the identity in
 * HELLO, the client of that gateway, and the rows of both limit it.
 */
#include "session/session_priv.h"

#include "base/log.h"
#include "secure/auth.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Get the identity that the peer of the connection has proved. NULL: none. */
static const char *proved(const struct gantry_session *s)
{
	const struct gn_auth *auth = s->ep->device->host.auth;

	return auth ? gn_auth_identity(auth, s->ch.conn) : NULL;
}

bool gn_rights_unproved(const struct gantry_session *s)
{
	return s->ep->device->host.auth && !proved(s);
}

static const struct gn_allow *find(const struct gantry_session *s, const char *identity)
{
	return gn_access_find(s->ep->access, s->ep->name, identity, &s->peer);
}

/* A process in another PID namespace has a uid, but no pid. */
bool gn_rights_user(const struct gantry_session *s)
{
	const struct gn_endpoint *ep = s->ep;

	if (s->peer.uid == UINT32_MAX)
		return (ep->device->ops->flags & GANTRY_TRANSPORT_UIDS) == 0;
	if (ep->access)
		return find(s, NULL) != NULL;
	if (ep->n_uids == 0)
		return s->peer.uid == getuid();
	for (uint32_t i = 0; i < ep->n_uids; i++)
		if (ep->uids[i] == s->peer.uid)
			return true;
	return false;
}

bool gn_rights_same_peer(const struct gantry_session *s, const struct gantry_session *t)
{
	return strcmp(s->identity, t->identity) == 0 &&
	       (s->identity[0] != '\0' || s->peer.uid == t->peer.uid);
}

static uint64_t lower(uint64_t limit, uint64_t other)
{
	return other != 0 && other < limit ? other : limit;
}

static void limit_by(struct gn_rights *rights, const struct gn_allow *row)
{
	rights->read_only |= row->read_only;
	rights->lanes = lower(rights->lanes, row->lanes);
	rights->sessions = lower(rights->sessions, row->sessions);
	rights->region_bytes = lower(rights->region_bytes, row->region_bytes);
}

static int no_row(struct gantry_session *s, const char *identity)
{
	if (identity)
		gn_session_refuse(
			s, "no access (identity=%s, service=%s): add the identity to listen.allow",
			identity, s->ep->name);
	else
		gn_session_refuse(s, "no access (uid=%u, service=%s): add the user to listen.allow",
				  s->peer.uid, s->ep->name);
	return -EACCES;
}

/* Set the identity and the rights of the session. Returns 0, or -EACCES with a reason. */
static int decide(struct gantry_session *s, const char *client)
{
	const char *identity = proved(s);
	const struct gn_allow *row;

	s->rights = (struct gn_rights){.lanes = s->ep->max_lanes,
				       .sessions = UINT64_MAX,
				       .region_bytes = s->ep->max_region_bytes};
	snprintf(s->identity, sizeof(s->identity), "%s", identity ? identity : "");
	if (!s->ep->access)
		return 0;
	row = find(s, identity);
	if (!row)
		return no_row(s, identity);
	limit_by(&s->rights, row);
	if (!row->relay || client[0] == '\0')
		return 0;
	row = find(s, client);
	if (!row)
		return no_row(s, client);
	limit_by(&s->rights, row);
	snprintf(s->identity, sizeof(s->identity), "%s", client);
	return 0;
}

/* Count the other sessions of this peer that have not begun to end. */
static uint64_t count_others(const struct gantry_session *s)
{
	const struct gantry_session *t;
	uint64_t n = 0;

	LIST_FOREACH (t, &s->role->server.sessions, link)
		n += t != s && t->admitted && t->phase == GN_SESSION_OPEN &&
		     t->ch.session != s->ch.session && gn_rights_same_peer(s, t);
	return n;
}

int gn_rights_hello(struct gantry_session *s, const char client[GN_IDENTITY_MAX + 1],
		    uint32_t lanes)
{
	int rc;

	if (!memchr(client, 0, GN_IDENTITY_MAX + 1) ||
	    (client[0] != '\0' && !gn_identity_ok(client))) {
		gn_session_refuse(s, "the identity of the client is malformed");
		return -EINVAL;
	}
	memcpy(s->client, client, sizeof(s->client));
	rc = decide(s, client);
	if (rc != 0)
		return rc;
	if (lanes > s->rights.lanes) {
		gn_session_refuse(s, "lanes out of range (lanes=%u, limit lanes=%llu of %s)", lanes,
				  (unsigned long long)s->rights.lanes,
				  s->rights.lanes == s->ep->max_lanes ? "listen.max_lanes"
								      : "listen.allow");
		return -EINVAL;
	}
	if (count_others(s) >= s->rights.sessions) {
		gn_session_refuse(s, "busy: sessions=%llu of listen.allow reached by %s",
				  (unsigned long long)s->rights.sessions,
				  s->identity[0] != '\0' ? s->identity : s->account->name);
		return -EBUSY;
	}
	return 0;
}

/* Returns true if the peer would get at least the rights that the session has. */
static bool still_holds(struct gantry_session *s)
{
	const struct gn_auth *auth = s->ep->device->host.auth;
	const struct gn_rights had = s->rights;
	char identity[GN_IDENTITY_MAX + 1];
	const char *peer = proved(s);
	bool holds;

	if (auth && peer && !gn_auth_knows(auth, s->ch.conn))
		return false;
	if (s->state == GN_NEW)
		return gn_rights_user(s);
	memcpy(identity, s->identity, sizeof(identity));
	holds = decide(s, s->client) == 0 && s->rights.read_only <= had.read_only &&
		strcmp(identity, s->identity) == 0;
	s->rights.read_only = had.read_only;
	return holds;
}

void gn_rights_check(struct gn_role *role)
{
	struct gantry_session *s, *next;

	for (s = LIST_FIRST(&role->server.sessions); s; s = next) {
		next = LIST_NEXT(s, link);
		if (s->phase != GN_SESSION_OPEN || still_holds(s))
			continue;
		gn_log(GN_LOG_WARN, role->host.name,
		       "access was withdrawn: session ends id=%016llx identity=%s uid=%d",
		       (unsigned long long)s->ch.session, s->identity, (int)s->peer.uid);
		gn_session_refuse(s, "access was withdrawn: ask the administrator of the server");
		gn_session_end(s, -EACCES);
	}
}

void gn_rights_client(const struct gn_role *role, uint64_t id, char client[GN_IDENTITY_MAX + 1])
{
	const struct gantry_session *s;

	memset(client, 0, GN_IDENTITY_MAX + 1);
	LIST_FOREACH (s, &role->server.sessions, link)
		if (s->admitted && s->phase == GN_SESSION_OPEN && s->ch.session == id)
			memcpy(client, s->identity, sizeof(s->identity));
}
