/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * supersede.c - a client opens its session again while the server still has an older session of the same id
 *
 *      HELLO -> the older sessions end and are drained -> the role's hello -> the answer
 */
#include "session/session_priv.h"

#include <errno.h>

/* The next other session with the id of s after `from`; the first one if `from` is NULL. */
static struct gantry_session *find_same_id(const struct gantry_session *s, const struct gantry_session *from)
{
	struct gantry_session *t = from != NULL ? from->next : s->role->server.sessions;

	while (t != NULL && (t == s || t->ch.session != s->ch.session))
		t = t->next;
	return t;
}

static int is_of_another(const struct gantry_session *s, const struct gantry_session *t)
{
	return s->peer.pid != -1 && t->peer.pid != -1 && s->peer.uid != t->peer.uid;
}

int gn_session_supersede(struct gantry_session *s, uint32_t epoch)
{
	int rc = 0;

	for (struct gantry_session *t = find_same_id(s, NULL); t != NULL; t = find_same_id(s, t)) {
		if (is_of_another(s, t)) {
			gn_session_refuse(s, "this session is there already, of another user");
			return -EACCES;
		}
		if (t->attr.epoch == epoch) {
			gn_session_refuse(s, "this session is here already, with epoch %u; a gateway may lead here by one way only",
					  epoch);
			return -EACCES;
		}
		if (t->attr.epoch > epoch) {
			gn_session_refuse(s, "this session is there already with epoch %u; epoch %u is not above", t->attr.epoch,
					  epoch);
			return -EACCES;
		}
	}
	for (struct gantry_session *t = find_same_id(s, NULL); t != NULL; t = find_same_id(s, t)) {
		if (!t->ending)
			gn_session_refuse(t, "its client has connected again, with epoch %u", epoch);
		gn_session_end(t, -ECONNRESET);
		rc = -EINPROGRESS;
	}
	return rc;
}

void gn_session_resume_waiting(const struct gantry_session *gone)
{
	for (struct gantry_session *s = find_same_id(gone, NULL); s != NULL; s = find_same_id(gone, s)) {
		int rc;

		if (!s->behind || s->ending || find_same_id(s, NULL) != NULL)
			continue;
		rc = gn_step_hello(s);
		if (rc != -EINPROGRESS)
			gn_session_continue(s, rc);
		return;
	}
}
