/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * start_order.c - delay the start of a session until no write of an ended session can reach the
 * volume any more. Control thread.
 *
 *      START -> the peer of every other running session answers a PING, or that session ends
 *            -> all IO of every ending session has completed, and its relays are closed
 *            -> the backend is quiescent
 *            -> the role starts the session; or BUSY after control_timeout
 *
 * The first step finds a peer that ended its session although no notification reached the server.
 * Such a peer does not answer a PING that the server sends later. Without this step its writes
 * could reach the volume after the new session has started.
 */
#include "session/session_priv.h"

#include "base/clock.h"

#include <errno.h>
#include <string.h>

#define BACKEND_POLL_NS (10 * GN_NS_PER_MS)

/* Why a session must wait. */
struct obstacle {
	uint32_t n_ending, n_silent;
	uint64_t since_ns; /* when the first of the ending sessions began to end */
	int backend;       /* result of `quiesce` of the backend; 0: no writes are left */
};

/*
 * Returns false if the peer of t has answered a PING that was sent after START of s arrived.
 * Otherwise sends a PING.
 */
static bool is_silent(const struct gantry_session *s, struct gantry_session *t)
{
	if (t->ch.answered_ns >= s->start.asked_ns)
		return false;
	gn_channel_ask(&t->ch);
	return true;
}

static bool has_io(const struct gantry_session *t)
{
	return t->state == GN_RUNNING;
}

static bool find_obstacle(struct gantry_session *s, struct obstacle *o)
{
	struct gn_role *role = s->role;
	struct gantry_session *t;

	*o = (struct obstacle){.since_ns = UINT64_MAX};
	LIST_FOREACH (t, &role->server.sessions, link) {
		if (t == s || !has_io(t))
			continue;
		if (t->phase == GN_SESSION_OPEN) {
			o->n_silent += is_silent(s, t);
			continue;
		}
		o->n_ending++;
		if (t->ended_ns < o->since_ns)
			o->since_ns = t->ended_ns;
	}
	if (o->n_ending == 0 && o->n_silent == 0 && role->backend_ops)
		o->backend = role->backend_ops->quiesce(role->backend, &s->start.mark);
	return o->n_ending != 0 || o->n_silent != 0 || o->backend != 0;
}

static uint32_t count_writes(const struct gn_role *role)
{
	struct gantry_session *t;
	uint32_t n = 0;

	LIST_FOREACH (t, &role->server.sessions, link)
		for (uint32_t i = 0; t->phase != GN_SESSION_OPEN && i < t->n_lanes; i++)
			if (t->lanes[i].resp)
				n += gn_responder_count_writes(t->lanes[i].resp);
	return n;
}

static int refuse_busy(struct gantry_session *s, const struct obstacle *o)
{
	uint64_t now_ns = gn_now_ns(),
		 since_ns = o->n_ending != 0 ? o->since_ns : s->start.asked_ns;

	if (o->n_ending == 0 && o->n_silent != 0)
		gn_session_refuse(s, "busy (silent sessions=%u, since=%llu ms): try again",
				  o->n_silent,
				  (unsigned long long)((now_ns - since_ns) / GN_NS_PER_MS));
	else if (o->n_ending == 0)
		gn_session_refuse(s,
				  "busy (since=%llu ms): the store can still execute earlier "
				  "writes: try again",
				  (unsigned long long)((now_ns - since_ns) / GN_NS_PER_MS));
	else
		gn_session_refuse(
			s, "busy (writes=%u, since=%llu ms): writes of an ended session: try again",
			count_writes(s->role),
			(unsigned long long)((now_ns - since_ns) / GN_NS_PER_MS));
	return -EBUSY;
}

/* Start the session if nothing delays it. Returns the same values as gn_start_await(). */
static int try_start(struct gantry_session *s)
{
	uint64_t now_ns = gn_now_ns();
	struct obstacle o;

	if (!find_obstacle(s, &o)) {
		gn_start_forget(s);
		return s->role->server.ops->start(s->role->role, s);
	}
	if (o.backend != 0 && o.backend != -EAGAIN) {
		gn_start_forget(s);
		gn_session_refuse(
			s,
			"the backend cannot determine whether the writes of ended sessions are complete: %s",
			strerror(-o.backend));
		return o.backend;
	}
	if (now_ns >= s->start.until_ns) {
		gn_start_forget(s);
		return refuse_busy(s, &o);
	}
	gn_loop_set_timer(s->role->loop, &s->start.timer,
			  o.backend != 0 ? now_ns + BACKEND_POLL_NS : s->start.until_ns);
	return -EINPROGRESS;
}

static void retry_start(struct gantry_session *s)
{
	int rc = try_start(s);

	if (rc != -EINPROGRESS)
		gn_session_continue(s, rc);
}

static void on_timer(void *arg)
{
	retry_start(arg);
}

int gn_start_await(struct gantry_session *s)
{
	s->start.waits = true;
	s->start.mark = 0;
	s->start.asked_ns = gn_now_ns();
	s->start.until_ns = s->start.asked_ns + s->ep->control_timeout_ns;
	s->start.timer = (struct gn_timer){.fn = on_timer, .arg = s};
	return try_start(s);
}

void gn_start_forget(struct gantry_session *s)
{
	if (s->start.waits)
		gn_loop_clear_timer(s->role->loop, &s->start.timer);
	s->start.waits = false;
}

static struct gantry_session *next_waiting(struct gantry_session *s)
{
	while (s && (!s->start.waits || s->phase != GN_SESSION_OPEN ||
		     s->start.round == s->role->server.start_round))
		s = LIST_NEXT(s, link);
	return s;
}

void gn_start_check_waiting(struct gn_role *role)
{
	struct gantry_session *s;

	role->server.start_round++;
	/*
	 * restart the search each time: the rejection of one session can end other sessions and so
	 * change the list
	 */
	while ((s = next_waiting(LIST_FIRST(&role->server.sessions)))) {
		s->start.round = role->server.start_round;
		retry_start(s);
	}
}
