/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * session_server.c - the server end of sessions: accept, receive frames, end, free. Control thread.
 *
 *      accept -> requests, one at a time (frame.h) -> RUNNING -> STOP -> BYE
 *                   \______________ gn_session_end(), at any time ______________/
 *
 * The end of a session has these steps: 1. The responders take no more requests, and the IOs in
 * flight complete. 2. teardown(): the role releases the regions, which can take a while
 * (-EINPROGRESS). 3. destroy(): release queues and regions, disconnect, free the session.
 */
#include "session/session_priv.h"

#include "base/clock.h"
#include "base/log.h"
#include "io/status.h"
#include "memory/region.h"
#include "session/session_client.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void set_deadline(struct gantry_session *s)
{
	int waits = s->phase != GN_SESSION_OPEN || (s->pending == 0 && s->state != GN_RUNNING);

	gn_loop_set_timer(s->role->loop, &s->deadline,
			  waits ? gn_now_ns() + s->ep->control_timeout_ns : 0);
}

/*
 * Returns true if the caller must log a warning about this peer. A peer that never reached RUNNING
 * can connect again at any rate, so its warnings are limited.
 */
static bool warning_permitted(const struct gantry_session *s)
{
	struct gn_role *role = s->role;

	return s->state >= GN_RUNNING ||
	       gn_log_ratelimit(&role->server.refusals, GN_LOG_WARN, role->host.name);
}

static void answer(struct gantry_session *s, int rc)
{
	struct gn_verdict verdict = {.status = rc != 0 ? (int32_t)gantry_status_of_errno(rc) : 0};

	if (rc != 0) {
		snprintf(verdict.text, sizeof(verdict.text), "%s",
			 s->refusal[0] != '\0' ? s->refusal : strerror(-rc));
		s->refused = s->state < GN_RUNNING;
		if (s->refused && warning_permitted(s))
			gn_log(GN_LOG_WARN, s->role->host.name,
			       "session refused id=%016llx step=%s pid=%d reason=\"%s\"",
			       (unsigned long long)s->ch.session, gn_frame_name(s->pending),
			       s->peer.pid, verdict.text);
		gantry_count(s->role->server.refused, 1);
	}
	gn_channel_send(&s->ch, s->pending, s->pending_id, &verdict, &s->answer,
			rc == 0 ? s->answer_len : 0);
}

static void finish_step(struct gantry_session *s, int rc)
{
	const bool starts = s->pending == GN_FRAME_START;

	if (rc == 0)
		rc = gn_step_finish(s, s->pending);
	answer(s, rc);
	s->pending = 0;
	if (rc != 0) {
		gn_session_end(s, rc);
		return;
	}
	if (s->state != s->pending_next)
		s->state_ns = gn_now_ns();
	s->state = s->pending_next;
	if (starts)
		gn_session_watch_volume(s);
	if (starts)
		gn_log(GN_LOG_INFO, s->role->host.name,
		       "session started id=%016llx lanes=%u depth=%u pid=%d%s%s%s",
		       (unsigned long long)s->ch.session, s->attr.lanes, s->attr.depth, s->peer.pid,
		       s->identity[0] != '\0' ? " identity=" : "", s->identity,
		       s->rights.read_only ? " access=ro" : "");
	set_deadline(s);
	if (s->state == GN_ENDED)
		gn_session_end(s, 0);
}

static void destroy(void *arg);

/*
 * The call is ignored while the request waits for lanes to drain or for other sessions to end,
 * because the role has no step to finish in that time.
 */
void gn_session_continue(struct gantry_session *s, int rc)
{
	if (s->phase == GN_SESSION_CLOSING) {
		s->phase = GN_SESSION_CLOSED;
		gn_loop_post_own(s->role->loop, &s->last, destroy, s);
	} else if (s->phase == GN_SESSION_OPEN && s->pending != 0 && s->n_busy == 0 &&
		   s->n_draining == 0 && !s->start.waits) {
		finish_step(s, rc);
	}
}

void gn_session_refuse(struct gantry_session *s, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(s->refusal, sizeof(s->refusal), fmt, ap);
	va_end(ap);
}

static void broke_protocol(struct gantry_session *s, const char *what)
{
	gn_session_refuse(s, "protocol error: %s in state %s", what, gn_state_name(s->state));
	gn_session_end(s, -EPROTO);
}

static void on_message(void *arg, void *conn, const void *msg, size_t len)
{
	struct gantry_session *s = arg;
	struct gn_parsed p;
	int next, rc;

	(void)conn;
	if (s->phase != GN_SESSION_OPEN)
		return;
	if (gn_frame_parse(msg, len, &p) != 0) {
		broke_protocol(s, "malformed frame");
		return;
	}
	gn_channel_received(&s->ch, &p);
	if (p.type == GN_FRAME_END) {
		gn_session_refuse(s, "%s", p.verdict.text);
		gn_session_end(s, -ECONNRESET);
		return;
	}
	next = p.answer ? -EPROTO : gn_state_next(s->state, p.type);
	if (p.type == GN_FRAME_PING && !p.answer && s->pending == GN_FRAME_HELLO)
		/*
		 * permit PING while HELLO is unanswered: a gateway can need several heartbeat
		 * intervals for the answer
		 */
		next = s->state;
	if (next < 0 || (s->ch.session != 0 && p.head.session != s->ch.session)) {
		broke_protocol(s, gn_frame_name(p.type));
		return;
	}
	if (p.type == GN_FRAME_PING) {
		if (gn_channel_take_ping(&s->ch, p.head.id))
			gn_start_check_waiting(s->role);
		return;
	}
	if (s->pending != 0) {
		broke_protocol(s, "second request before the answer to the first");
		return;
	}
	if (s->state == GN_NEW)
		s->ch.session = p.head.session;
	s->pending = p.type;
	s->pending_id = p.head.id;
	s->pending_next = (enum gn_state)next;
	s->answer_len = 0;
	s->refusal[0] = '\0';
	set_deadline(s);
	rc = gn_step_begin(s, p.type, p.payload);
	if (rc != -EINPROGRESS)
		finish_step(s, rc);
}

static void on_consumer(void *arg, void *conn, uint32_t id, int up)
{
	(void)arg;
	(void)conn;
	(void)id;
	(void)up; /* the frame QUEUES names the consumers of a session */
}

static void on_revoke(void *arg, void *conn, uint32_t handle)
{
	struct gantry_session *s = arg;

	(void)conn;
	if (s->phase != GN_SESSION_OPEN)
		return; /* the end of the session releases the region */
	gn_log(GN_LOG_WARN, s->role->host.name,
	       "client revoked region %u while in use id=%016llx: session ends", handle,
	       (unsigned long long)s->ch.session);
	gn_session_end(s, -ECONNRESET);
}

/*
 * Returns true if the log of the device states why the connection ended before the first request: a
 * protocol error, a handshake timeout, or too many handshakes. The session then logs nothing.
 */
static bool is_logged(const struct gantry_session *s, int reason)
{
	return s->state == GN_NEW && s->pending == 0 &&
	       (reason == -EPROTO ||
		((reason == -ETIMEDOUT || reason == -EBUSY) && gn_rights_unproved(s)));
}

static void on_closed(void *arg, void *conn, int reason)
{
	struct gantry_session *s = arg;

	(void)conn;
	if (is_logged(s, reason))
		s->refused = true;
	gn_session_end(s, reason);
}

static void on_silent(void *arg)
{
	struct gantry_session *s = arg;

	gn_session_refuse(s, "no heartbeat for %llu ms",
			  (unsigned long long)(4 * s->ep->heartbeat_ns / GN_NS_PER_MS));
	gn_session_end(s, -ETIMEDOUT);
}

/* The session has ended, and waits for IO that a stage or backend has not completed: name them. */
static void log_late_end(const struct gantry_session *s)
{
	if (s->n_busy == 0)
		return;
	gn_log(GN_LOG_WARN, s->role->host.name,
	       "session has ended, but IOs are still in flight id=%016llx lanes=%u",
	       (unsigned long long)s->ch.session, s->n_busy);
	gn_session_log_held(s, GN_LOG_WARN);
}

static void on_deadline(void *arg)
{
	struct gantry_session *s = arg;

	if (s->phase != GN_SESSION_OPEN) {
		log_late_end(s);
		return;
	}
	gn_session_refuse(s, "no request for %llu ms in state %s",
			  (unsigned long long)(s->ep->control_timeout_ns / GN_NS_PER_MS),
			  gn_state_name(s->state));
	gn_session_end(s, -ETIMEDOUT);
}

static int on_accept(void *arg, void *conn, const struct gantry_peer *peer, void **conn_arg_p)
{
	struct gn_role *role = arg;
	struct gantry_session *s = calloc(1, sizeof(*s));
	int rc = -ENOMEM;

	if (s) {
		s->role = role;
		s->ep = role->spec.listen;
		s->peer = *peer;
		rc = gn_admit_peer(s);
	}
	if (rc != 0) {
		free(s);
		return rc;
	}
	s->deadline = (struct gn_timer){.fn = on_deadline, .arg = s};
	s->state_ns = gn_now_ns();
	s->rules.io_timeout_ns = s->ep->io_timeout_ns;
	gn_channel_init(&s->ch, s->ep->device, s->ep->heartbeat_ns, false, on_silent, s);
	s->ch.conn = conn;
	LIST_INSERT_HEAD(&role->server.sessions, s, link);
	role->server.n_sessions++;
	*conn_arg_p = s;
	s->turned_away = gn_admit_half_open(s) != 0;
	/*
	 * Accept the connection and send END: a rejection by the transport could not carry the
	 * reason.
	 */
	if (s->turned_away) {
		gn_session_end(s, -EBUSY);
		return 0;
	}
	gn_channel_start(&s->ch);
	gantry_count(role->server.opened, 1);
	set_deadline(s);
	return 0;
}

static const struct gantry_conn_events events = {
	.accept = on_accept,
	.message = on_message,
	.consumer = on_consumer,
	.revoke = on_revoke,
	.closed = on_closed,
};

void gn_server_check_finished(struct gn_role *role)
{
	struct gn_server *sv = &role->server;
	uint64_t exit_after;

	if (!sv->ops)
		return;
	exit_after = role->spec.listen->exit_after;
	if (sv->n_sessions == 0 && gn_client_all_closed(role) &&
	    (sv->stopping || (exit_after != 0 && sv->n_ended >= exit_after)))
		gn_role_finish(role, role->status);
}

/* -- the end of a session -- */

static void destroy_responders(struct gantry_session *s)
{
	for (uint32_t i = 0; i < s->n_lanes; i++) {
		if (s->lanes[i].resp)
			gn_responder_add_counts(s->lanes[i].resp, &s->counts);
		gn_responder_destroy(&s->lanes[i].resp);
	}
}

/* Get what the lanes of a session have counted since the session started. */
static void sum_counts(const struct gantry_session *s, struct gn_io_counts *sum)
{
	*sum = s->counts;
	for (uint32_t i = 0; i < s->n_lanes; i++)
		if (s->lanes[i].resp)
			gn_responder_add_counts(s->lanes[i].resp, sum);
}

/* A value that is lower than the last one was read while a lane counted an IO: skip it. */
static void add_gain(uint64_t *counter, uint64_t *before, uint64_t now)
{
	if (now <= *before)
		return;
	gantry_count(counter, now - *before);
	*before = now;
}

static void add_to_role(struct gantry_session *s)
{
	const struct gn_server *sv = &s->role->server;
	struct gn_io_counts counts;

	sum_counts(s, &counts);
	add_gain(sv->ops_done, &s->in_role.done, gn_io_counts_done(&counts));
	add_gain(sv->ops_failed, &s->in_role.failed, counts.failed);
	add_gain(sv->list_bounces, &s->in_role.list_bounces, counts.list_bounces);
}

void gn_server_update_counters(struct gn_role *role)
{
	struct gantry_session *s;

	LIST_FOREACH (s, &role->server.sessions, link)
		add_to_role(s);
}

/*
 * The last step of the end. Runs in a separate turn of the loop, when no function of the session is
 * on the stack.
 */
static void destroy(void *arg)
{
	struct gantry_session *s = arg;
	struct gn_role *role = s->role;

	add_to_role(s);
	gn_session_release(s);
	gn_loop_clear_timer(role->loop, &s->deadline);
	gn_channel_stop(&s->ch);
	LIST_REMOVE(s, link);
	role->server.n_sessions--;
	if (s->hello_delivered)
		role->server.n_ended++;
	if (!s->turned_away)
		gantry_count(role->server.ended, 1);
	gn_admit_release(s);
	gn_session_resume_waiting(s);
	gn_start_check_waiting(role);
	free(s->rules.regions);
	free(s->lanes);
	explicit_bzero(s, sizeof(*s)); /* the secret is in `secret` and in `answer` */
	free(s);
	gn_server_check_finished(role);
}

/*
 * The step before destroy(). Runs in a separate turn of the loop, as destroy() does. The role, to
 * which the regions were given, releases them before the session does.
 */
static void teardown(void *arg)
{
	struct gantry_session *s = arg;
	struct gn_role *role = s->role;

	destroy_responders(s);
	s->phase = GN_SESSION_CLOSING;
	if (!s->hello_delivered ||
	    role->server.ops->closed(role->role, s, s->reason) != -EINPROGRESS)
		destroy(s);
}

void gn_session_idle(struct gantry_session *s)
{
	int rc;

	if (s->phase == GN_SESSION_ENDING) {
		gn_loop_post_own(s->role->loop, &s->last, teardown, s);
		return;
	}
	destroy_responders(s);
	rc = s->role->server.ops->stop(s->role->role, s);
	if (rc != -EINPROGRESS)
		finish_step(s, rc);
}

static void abandon_responders(struct gantry_session *s)
{
	for (uint32_t i = 0; i < s->n_lanes; i++)
		if (s->phase != GN_SESSION_OPEN && s->lanes[i].resp)
			gn_responder_abandon(s->lanes[i].resp);
}

void gn_session_quiesce(struct gantry_session *s)
{
	/* the responders are quiescing already, but a lost session must not wait for its peer */
	if (s->n_busy != 0) {
		abandon_responders(s);
		return;
	}
	for (uint32_t i = 0; i < s->n_lanes; i++)
		if (s->lanes[i].resp)
			s->n_busy++;
	if (s->n_busy == 0) {
		gn_session_idle(s);
		return;
	}
	for (uint32_t i = 0; i < s->n_lanes; i++)
		if (s->lanes[i].resp)
			gn_responder_quiesce(s->lanes[i].resp);
	abandon_responders(s);
}

static void release_lane(struct gantry_session *s, struct gn_session_lane *sl)
{
	const struct gantry_transport_ops *ops = s->ep->device->ops;

	if (sl->rma)
		ops->rma_destroy(sl->rma);
	if (sl->producer)
		ops->producer_destroy(sl->producer);
	ops->consumer_destroy(sl->consumer);
	if (sl->move_memory)
		ops->unregister_region(s->ch.conn, sl->move_memory);
	gn_region_destroy(&sl->move_memory, 1);
	gn_loop_withdraw(s->role->loop, &sl->broken_post);
	gn_loop_withdraw(s->role->loop, &sl->idle_post);
	gn_loop_withdraw(s->role->loop, &sl->drained_post);
	*sl = (struct gn_session_lane){.session = s};
}

void gn_session_release(struct gantry_session *s)
{
	const struct gantry_transport_ops *ops = s->ep->device->ops;

	for (uint32_t i = 0; i < s->n_lanes; i++)
		release_lane(s, &s->lanes[i]);
	s->n_lanes = 0;
	if (s->store.addr)
		ops->unregister_region(s->ch.conn, &s->store);
	s->store.addr = NULL;
	if (s->importing)
		ops->release_region(s->ch.conn, s->importing);
	s->importing = NULL;
	for (uint32_t i = 0; i < s->rules.n_regions; i++) {
		if (s->rules.regions[i])
			ops->release_region(s->ch.conn, s->rules.regions[i]);
		s->rules.regions[i] = NULL;
	}
	gn_admit_memory_released(s);
}

/* Report the loss to the peer and to the log. */
static void report_lost(struct gantry_session *s)
{
	struct gn_verdict verdict = {.status = (int32_t)gantry_status_of_errno(s->reason)};
	bool stops = s->reason == -ECANCELED;

	if (s->refusal[0] == '\0')
		gn_session_refuse(s, "%s", strerror(-s->reason));
	snprintf(verdict.text, sizeof(verdict.text), "%s", s->refusal);
	gn_channel_send(&s->ch, GN_FRAME_END, 0, &verdict, NULL, 0);
	gantry_count(s->turned_away ? s->role->server.refused : s->role->server.lost, 1);
	if (s->refused || (!stops && !warning_permitted(s)))
		return;
	if (s->turned_away)
		gn_log(GN_LOG_WARN, s->role->host.name,
		       "connection refused pid=%d peer=\"%s\" reason=\"%s\"", s->peer.pid,
		       s->account->name, s->refusal);
	else
		gn_log(stops ? GN_LOG_INFO : GN_LOG_WARN, s->role->host.name,
		       "session %s id=%016llx pid=%d peer=\"%s\" state=%s reason=\"%s\"",
		       s->state >= GN_RUNNING ? "lost" : "not started",
		       (unsigned long long)s->ch.session, s->peer.pid, s->account->name,
		       gn_state_name(s->state), s->refusal);
}

void gn_session_end(struct gantry_session *s, int reason)
{
	if (s->phase != GN_SESSION_OPEN)
		return;
	s->phase = GN_SESSION_ENDING;
	s->ended_ns = gn_now_ns();
	s->reason = reason;
	gn_start_forget(s);
	set_deadline(s);
	if (reason != 0)
		report_lost(s);
	else
		gn_log(GN_LOG_INFO, s->role->host.name, "session ended id=%016llx",
		       (unsigned long long)s->ch.session);
	if (reason != 0 && s->hello_delivered && s->role->server.ops->lost)
		s->role->server.ops->lost(s->role->role, s);
	gn_session_quiesce(s);
}

int gn_server_start(struct gn_role *role, const struct gantry_server_ops *ops)
{
	struct gn_server *sv = &role->server;
	const struct gn_endpoint *ep = role->spec.listen;
	const struct gantry_host *host = &role->host.pub;
	char words[GN_SERVICE_WORDS];
	int rc;

	if (!ep || sv->ops)
		return -EINVAL;
	sv->opened = host->counter(host, "sessions_opened");
	sv->ended = host->counter(host, "sessions_ended");
	sv->lost = host->counter(host, "sessions_lost");
	sv->refused = host->counter(host, "sessions_refused");
	sv->direct = host->counter(host, "sessions_direct");
	sv->ops_done = host->counter(host, "ops_done");
	sv->ops_failed = host->counter(host, "ops_failed");
	sv->list_bounces = host->counter(host, "list_bounces_ops");
	if (!sv->opened || !sv->ended || !sv->lost || !sv->refused || !sv->direct ||
	    !sv->ops_done || !sv->ops_failed || !sv->list_bounces)
		return -ENOMEM;
	rc = ep->device->ops->listen(ep->device->dev, ep->service, &events, role, &sv->listener);
	if (rc != 0) {
		gn_log(GN_LOG_ERROR, role->host.name,
		       "%s: cannot listen on device %s as \"%s\": %s%s", ep->where,
		       ep->device->name, ep->service, strerror(-rc),
		       rc == -EADDRINUSE ? "; another listener has this name" : "");
		return rc;
	}
	gn_log(GN_LOG_INFO, role->host.name, "listening device=%s %s", ep->device->name,
	       gn_service_words(words, ep, gn_role_address(role)));
	sv->ops = ops;
	return 0;
}

const char *gn_service_words(char buf[GN_SERVICE_WORDS], const struct gn_endpoint *endpoint,
			     const char *address)
{
	if (!address && strcmp(endpoint->service, endpoint->name))
		address = endpoint->service;
	snprintf(buf, GN_SERVICE_WORDS, "service=%s%s%s", endpoint->name,
		 address ? " address=" : "", address ? address : "");
	return buf;
}

const char *gn_role_address(const struct gn_role *role)
{
	const struct gn_endpoint *ep = role->spec.listen;
	const char *address = NULL;

	if (!ep)
		return NULL;
	if (role->server.listener)
		address = ep->device->ops->listener_address(role->server.listener);
	if (!address)
		address = ep->service;
	return strcmp(address, ep->name) ? address : NULL;
}

void gn_server_unlisten(struct gn_role *role)
{
	if (role->server.listener)
		role->spec.listen->device->ops->unlisten(role->server.listener);
	role->server.listener = NULL;
}

void gn_server_stop(struct gn_role *role)
{
	struct gn_server *sv = &role->server;
	struct gantry_session *s;

	sv->stopping = 1;
	gn_server_unlisten(role);
	LIST_FOREACH (s, &sv->sessions, link) {
		/*
		 * BUSY lets a client without a session retry until connect.timeout, because the
		 * role could be restarted.
		 */
		if (s->phase == GN_SESSION_OPEN)
			gn_session_refuse(s, "%s%s stops", s->state == GN_NEW ? "busy: " : "",
					  role->host.name);
		gn_session_end(s, s->state == GN_NEW ? -EBUSY : -ECANCELED);
	}
	gn_server_check_finished(role);
}

void gn_server_report(const struct gn_role *role, struct gantry_writer *w)
{
	const char *address = gn_role_address(role);
	const struct gantry_session *s;

	if (address)
		w->string(w, "address", address);
	w->array(w, "sessions");
	LIST_FOREACH (s, &role->server.sessions, link) {
		struct gn_io_counts counts;
		char id[24];

		snprintf(id, sizeof(id), "%016llx", (unsigned long long)s->ch.session);
		w->object(w, NULL);
		w->string(w, "id", id);
		w->string(w, "state",
			  s->phase != GN_SESSION_OPEN ? "ending" : gn_state_name(s->state));
		w->u64(w, "in_state_ns",
		       gn_now_ns() - (s->phase != GN_SESSION_OPEN ? s->ended_ns : s->state_ns));
		w->boolean(w, "waits", s->start.waits || s->waits_for_predecessor);
		w->u64(w, "epoch", s->attr.epoch);
		w->boolean(w, "checksums", (s->features & GN_FEATURE_CRC) != 0);
		w->u64(w, "lanes", s->attr.lanes);
		w->u64(w, "depth", s->attr.depth);
		w->u64(w, "peer_pid", s->peer.pid > 0 ? (uint64_t)s->peer.pid : 0);
		w->string(w, "identity", s->identity);
		w->boolean(w, "read_only", s->rights.read_only);
		sum_counts(s, &counts);
		gn_io_counts_report(&counts, w);
		w->end(w);
	}
	w->end(w);
	w->array(w, "peers");
	gn_peers_report(&role->server.peers, w);
	w->end(w);
}

void gn_session_set(struct gantry_session *s, void *user)
{
	s->user = user;
}

void *gn_session_user(struct gantry_session *s)
{
	return s->user;
}

uint64_t gn_session_id(struct gantry_session *s)
{
	return s->ch.session;
}

void gn_session_secret(const struct gantry_session *s, uint8_t secret[GANTRY_SECRET_BYTES])
{
	memcpy(secret, s->secret, sizeof(s->secret));
}
