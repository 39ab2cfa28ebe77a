/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * supersede.c - replaces an older session when its client opens the same session again. Control
 * thread.
 *
 *      HELLO -> check that the peer has the secret of the older sessions
 *            -> end and drain them
 *            -> call event hello of the role
 *            -> answer
 *
 * The id of a session is in logs, in reports and in each frame. The secret is in HELLO and its
 * answer only. All sessions of one id at a server have the same secret.
 */
#include "session/session_priv.h"

#include <errno.h>
#include <string.h>

/*
 * Returns the next other session with the id of s, after `from`, or the first one if `from` is
 * NULL. Skips sessions that were rejected: a peer must not delay a session of another client by
 * using its id.
 */
static struct gantry_session *find_same_id(const struct gantry_session *s,
					   const struct gantry_session *from)
{
	struct gantry_session *t = from ? LIST_NEXT(from, link)
					: LIST_FIRST(&s->role->server.sessions);

	while (t && (t == s || !t->admitted || t->ch.session != s->ch.session))
		t = LIST_NEXT(t, link);
	return t;
}

static int check_older(struct gantry_session *s, uint32_t epoch,
		       const uint8_t secret[GANTRY_SECRET_BYTES])
{
	const unsigned long long id = s->ch.session;

	for (struct gantry_session *t = find_same_id(s, NULL); t; t = find_same_id(s, t)) {
		if (!gn_rights_same_peer(s, t)) {
			gn_session_refuse(
				s,
				"session: already open by another user (id=%016llx): close it there first",
				id);
			return -EACCES;
		}
		if (!gn_secret_equal(t->secret, secret)) {
			gn_session_refuse(
				s,
				"session: already open, with another secret (id=%016llx): close it there first",
				id);
			return -EACCES;
		}
		if (t->attr.epoch == epoch) {
			gn_session_refuse(
				s,
				"session: already running with this epoch (id=%016llx, epoch=%u, peer=%s): lead each "
				"gateway to this listener by one path only",
				id, epoch, t->account->name);
			return -EACCES;
		}
		if (t->attr.epoch > epoch) {
			gn_session_refuse(
				s,
				"session: already running with a later epoch (id=%016llx, epoch=%u, asked=%u, peer=%s): "
				"close it there first",
				id, t->attr.epoch, epoch, t->account->name);
			return -EACCES;
		}
	}
	return 0;
}

static int take_secret(struct gantry_session *s, const uint8_t secret[GANTRY_SECRET_BYTES])
{
	int rc = 0;

	if (gn_secret_is_set(secret))
		memcpy(s->secret, secret, sizeof(s->secret));
	else
		rc = gn_secret_make(s->secret);
	if (rc != 0)
		gn_session_refuse(
			s,
			"no secret for the session: the kernel has no random numbers yet: try again");
	return rc;
}

int gn_session_supersede(struct gantry_session *s, uint32_t epoch,
			 const uint8_t secret[GANTRY_SECRET_BYTES])
{
	int rc = check_older(s, epoch, secret);

	if (rc == 0)
		rc = take_secret(s, secret);
	if (rc != 0)
		return rc;
	s->admitted = true;
	for (struct gantry_session *t = find_same_id(s, NULL); t; t = find_same_id(s, t)) {
		if (t->phase == GN_SESSION_OPEN)
			gn_session_refuse(t, "its client has connected again, with epoch %u",
					  epoch);
		gn_session_end(t, -ECONNRESET);
		gn_admit_yield(t);
		rc = -EINPROGRESS;
	}
	return rc;
}

void gn_session_resume_waiting(const struct gantry_session *gone)
{
	for (struct gantry_session *s = find_same_id(gone, NULL); s; s = find_same_id(gone, s)) {
		int rc;

		if (!s->waits_for_predecessor || s->phase != GN_SESSION_OPEN ||
		    find_same_id(s, NULL))
			continue;
		rc = gn_step_hello(s);
		if (rc != -EINPROGRESS)
			gn_session_continue(s, rc);
		return;
	}
}
