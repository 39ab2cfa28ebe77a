/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * session_client.c - the client end of a session: open, receive frames, end, free. Control thread.
 *
 *      connect (retried until connect.timeout) -> HELLO -> QUERY -> event `ready`
 *         ^------- no listener, or peer busy -------'
 *      EXPORT -> event `exported`
 *      QUEUES -> START -> event `started`
 *      STOP -> BYE -> revoke the regions -> event `closed`
 *
 * If HELLO is not answered after a second, the client logs what it waits for, once.
 *
 * The client sends one request at a time; client_steps.c has the requests. Every failure calls
 * gn_client_end(): it stops the requesters, so that each IO in flight completes, and then the event
 * `closed` follows.
 */
#include "session/client_priv.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/units.h"
#include "io/io_check.h"
#include "io/status.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define RETRY_NS (50 * GN_NS_PER_MS)
/* a shorter wait is not logged: the roles of a machine often start at the same time */
#define NOTICE_NS GN_NS_PER_S

/*
 * Call the event `closed`. Runs in a separate turn of the loop, so that `closed` is never called
 * inside a function that the role has called.
 */
static void destroy(void *arg)
{
	struct gantry_client *c = arg;
	struct gn_role *role = c->role;

	gn_client_drop_queues(c);
	gn_channel_stop(&c->ch);
	c->released = c->released || gn_client_disconnect_revokes(c);
	gn_client_keep_holders(c);
	c->phase = GN_CLIENT_CLOSED;
	c->events->closed(c->arg, c, c->reason, c->text); /* the callback can free c */
	gn_server_check_finished(role);
}

/*
 * After BYE only the revocation of regions is pending. So a lost connection is not an error of the
 * session, but regions without a confirmed revocation are not released.
 */
static void end_teardown(struct gantry_client *c)
{
	bool revoked = true;

	for (uint32_t i = 0; i < c->n_exports; i++)
		revoked &= c->exports[i].revoked;
	c->released |= revoked;
	if (c->n_revokes_pending != 0)
		gn_log(GN_LOG_WARN, c->role->host.name,
		       "session id=%016llx: the peer has not released %u regions: %s",
		       (unsigned long long)c->attr.id, c->n_revokes_pending, c->text);
	c->reason = 0;
	snprintf(c->text, sizeof(c->text), "closed");
}

/* Returns true if the session is or was running. */
static bool has_started(const struct gantry_client *c)
{
	return c->state >= GN_RUNNING;
}

/*
 * Log the end of the session. If the session belongs to a relay and never started, this is only
 * information: the server end of the relay reports the reason when it rejects its own client.
 */
static void log_end(const struct gantry_client *c)
{
	const bool relays = c->role->spec.listen != NULL;
	char words[GN_SERVICE_WORDS];

	if (c->reason == 0)
		gn_log(GN_LOG_INFO, c->role->host.name, "session closed id=%016llx",
		       (unsigned long long)c->attr.id);
	else if (!c->is_logged)
		gn_log(!has_started(c) && relays ? GN_LOG_INFO : GN_LOG_WARN, c->role->host.name,
		       "session %s id=%016llx device=%s %s reason=\"%s\"",
		       has_started(c) ? "lost" : "not started", (unsigned long long)c->attr.id,
		       c->ep->device->name, gn_service_words(words, c->ep, NULL), c->text);
}

void gn_client_end(struct gantry_client *c, int reason, const char *fmt, ...)
{
	va_list ap;

	if (c->phase >= GN_CLIENT_ENDED)
		return;
	c->reason = reason;
	va_start(ap, fmt);
	vsnprintf(c->text, sizeof(c->text), fmt, ap);
	va_end(ap);
	if (c->phase == GN_CLIENT_RELEASING)
		end_teardown(c);
	if (c->phase < GN_CLIENT_CLOSING)
		c->state_ns = gn_now_ns();
	c->phase = GN_CLIENT_ENDED;
	c->pending = 0;
	gn_loop_clear_timer(c->role->loop, &c->retry);
	gn_loop_clear_timer(c->role->loop, &c->deadline);
	gn_loop_clear_timer(c->role->loop, &c->alloc);
	gn_loop_clear_timer(c->role->loop, &c->wait);
	gn_loop_clear_timer(c->role->loop, &c->notice);
	gn_client_stop_requesters(c);
	log_end(c);
	if (!has_started(c) && c->reason != 0)
		snprintf(c->role->no_session, sizeof(c->role->no_session), "%s", c->text);
	gn_loop_post_own(c->role->loop, &c->last, destroy, c);
}

/*
 * The peer can delay the answer to START for its own control_timeout. After that it answers with
 * the reason, so wait twice as long.
 */
static uint64_t answer_within_ns(const struct gantry_client *c, unsigned type)
{
	return type == GN_FRAME_START ? 2 * c->ep->control_timeout_ns : c->ep->control_timeout_ns;
}

int gn_client_request(struct gantry_client *c, unsigned type, const void *payload, size_t len)
{
	int rc;

	if (c->pending != 0)
		return -EBUSY;
	c->pending = type;
	c->pending_id++;
	rc = gn_channel_send(&c->ch, type, c->pending_id, NULL, payload, len);
	/*
	 * If HELLO fails because the peer has closed the connection, do not end here: the END frame
	 * that is still to be read can report that the peer is busy.
	 */
	if (rc != 0 && (rc != -ENOTCONN || type != GN_FRAME_HELLO)) {
		c->pending = 0;
		gn_client_end(c, rc, "%s: cannot send %s: %s", c->ep->where, gn_frame_name(type),
			      strerror(-rc));
		return rc;
	}
	gn_loop_set_timer(c->role->loop, &c->deadline, gn_now_ns() + answer_within_ns(c, type));
	return 0;
}

static bool can_retry(const struct gantry_client *c)
{
	return c->phase <= GN_CLIENT_OPEN && c->state == GN_NEW &&
	       gn_now_ns() < c->connect_until_ns;
}

/*
 * The peer has no listener (-ECONNREFUSED), or is busy (-EBUSY): connect again later. text:
 * explains the reason. The timer closes this connection first, which must not happen inside its
 * callback.
 */
static void retry_later(struct gantry_client *c, int reason, const char *text)
{
	c->phase = GN_CLIENT_RETRYING;
	c->failed_connect = reason;
	snprintf(c->text, sizeof(c->text), "%s", text);
	c->pending = 0;
	gn_loop_clear_timer(c->role->loop, &c->deadline);
	gn_loop_set_timer(c->role->loop, &c->retry, gn_now_ns() + RETRY_NS);
}

static void take_answer(struct gantry_client *c, const struct gn_parsed *p)
{
	unsigned type = c->pending;

	if (p->verdict.status == GANTRY_S_BUSY && can_retry(c)) {
		retry_later(c, -EBUSY, p->verdict.text);
		return;
	}
	c->pending = 0;
	gn_loop_clear_timer(c->role->loop, &c->deadline);
	if (p->verdict.status != 0) {
		gn_client_end(c, gn_errno_of_status((unsigned)p->verdict.status),
			      "%s: refused at %s: %s", c->ep->where, gn_frame_name(type),
			      p->verdict.text);
		return;
	}
	c->state = (enum gn_state)gn_state_next(c->state, type);
	if (type == GN_FRAME_START)
		c->state_ns = gn_now_ns();
	if (c->phase == GN_CLIENT_CLOSING && type != GN_FRAME_STOP && type != GN_FRAME_BYE)
		gn_client_go_on_closing(c);
	else
		gn_client_answered(c, type, p->payload);
}

static void take_end(struct gantry_client *c, const struct gn_parsed *p)
{
	if (p->verdict.status == GANTRY_S_BUSY && can_retry(c))
		retry_later(c, -EBUSY, p->verdict.text);
	else if (p->head.session == 0)
		gn_client_end(c, gn_errno_of_status((unsigned)p->verdict.status),
			      "%s: cannot connect to \"%s\" on device %s: %s", c->ep->where,
			      c->ep->service, c->ep->device->name, p->verdict.text);
	else
		gn_client_end(c,
			      p->verdict.status != 0
				      ? gn_errno_of_status((unsigned)p->verdict.status)
				      : -ECONNRESET,
			      "%s: the peer ended the session: %s", c->ep->where, p->verdict.text);
}

/* The size of the volume has changed. */
static void take_volume(struct gantry_client *c, const void *payload)
{
	struct gn_volume_change change;
	const char *fault;

	memcpy(&change, payload, sizeof(change));
	c->volume.size = change.size;
	fault = gn_volume_fault(&c->volume);
	if (fault)
		gn_client_end(c, -EPROTO,
			      "%s: the peer describes an impossible change of the volume: %s",
			      c->ep->where, fault);
	if (fault || c->phase != GN_CLIENT_OPEN)
		return;
	gn_log(GN_LOG_INFO, c->role->host.name, "size of the volume changed id=%016llx bytes=%llu",
	       (unsigned long long)c->attr.id, (unsigned long long)c->volume.size);
	if (c->events->resized)
		c->events->resized(c->arg, c, c->volume.size);
}

/*
 * True for a frame of this session, and for an END that rejects the connection: its sender has read
 * no HELLO, so it does not know the id.
 */
static bool is_of_session(const struct gantry_client *c, const struct gn_parsed *p)
{
	return p->head.session == c->attr.id || (p->head.session == 0 && p->type == GN_FRAME_END &&
						 p->verdict.status != 0 && c->state == GN_NEW);
}

/* Returns true unless the connection is ignored, because it will be closed. */
static bool is_connected(const struct gantry_client *c)
{
	return c->phase != GN_CLIENT_RETRYING && c->phase < GN_CLIENT_ENDED;
}

static void on_message(void *arg, void *conn, const void *msg, size_t len)
{
	struct gantry_client *c = arg;
	struct gn_parsed p;

	(void)conn;
	if (!is_connected(c))
		return;
	if (gn_frame_parse(msg, len, &p) != 0 || !is_of_session(c, &p)) {
		gn_client_end(c, -EPROTO, "%s: malformed frame", c->ep->where);
		return;
	}
	gn_channel_received(&c->ch, &p);
	if (p.type == GN_FRAME_PING && !p.answer) {
		gn_channel_take_ping(&c->ch, p.head.id);
		return;
	}
	if (p.type == GN_FRAME_VOLUME && (c->features & GN_FEATURE_VOLUME) != 0 &&
	    c->state == GN_RUNNING)
		take_volume(c, p.payload);
	else if (p.type == GN_FRAME_END)
		take_end(c, &p);
	else if (!p.answer || p.type != c->pending || p.head.id != c->pending_id)
		gn_client_end(c, -EPROTO, "%s: unexpected %s", c->ep->where, gn_frame_name(p.type));
	else
		take_answer(c, &p);
}

static void on_connected(void *arg, void *conn, const struct gantry_peer *peer)
{
	struct gantry_client *c = arg;

	(void)conn;
	(void)peer;
	if (c->phase != GN_CLIENT_CONNECTING)
		return;
	c->phase = GN_CLIENT_OPEN;
	if (c->failed_connect == -ECONNREFUSED)
		/*
		 * the peer has accepted the connection, but can still reject HELLO because it is
		 * busy
		 */
		c->failed_connect = 0;
	gn_channel_start(&c->ch);
	gn_client_hello(c);
}

/* End the session because the connection was not established. */
static void end_unconnected(struct gantry_client *c, int reason)
{
	const struct gn_device *device = c->ep->device;
	struct gantry_device_info info = {.caps = 0};
	const char *why = device->ops->refusal(c->ch.conn);

	device->ops->info(device->dev, &info);
	c->is_logged = reason == -EPROTO; /* by the transport */
	if (!why && c->is_logged)
		why = "protocol error or failed handshake: see the log of this process";
	if (!why)
		why = reason == -EACCES
			      ? "the role rejects this user (listen.uids) or is stopping; its log has the reason"
			      : strerror(-reason);
	if (reason == -ECONNREFUSED)
		gn_client_end(
			c, reason,
			"%s: cannot connect to \"%s\" on device %s: no listener there; start the role that serves "
			"it first (%s: %s)",
			c->ep->where, c->ep->service, device->name, device->name, info.detail);
	else
		gn_client_end(c, reason, "%s: cannot connect to \"%s\" on device %s: %s",
			      c->ep->where, c->ep->service, device->name, why);
}

static void on_closed(void *arg, void *conn, int reason)
{
	struct gantry_client *c = arg;

	(void)conn;
	if (!is_connected(c))
		return;
	if (c->phase == GN_CLIENT_CONNECTING && (reason == -ECONNREFUSED || reason == -EBUSY) &&
	    can_retry(c)) {
		const char *why = c->ep->device->ops->refusal(c->ch.conn);

		retry_later(c, reason, why ? why : strerror(-reason));
		gn_channel_stop(&c->ch);
	} else if (c->phase == GN_CLIENT_CONNECTING) {
		end_unconnected(c, reason);
	} else {
		const char *why = c->ep->device->ops->refusal(c->ch.conn);

		gn_client_end(c, reason, "%s: the peer is gone: %s", c->ep->where,
			      why ? why : strerror(-reason));
	}
}

static void on_revoke(void *arg, void *conn, uint32_t handle)
{
	(void)arg;
	(void)conn;
	(void)handle; /* a client imports no region */
}

/* The region of an UNEXPORT is revoked. */
static void unexported(struct gantry_client *c, struct gn_client_export *e, int rc)
{
	const uint32_t handle = e->handle;

	if (rc != 0) {
		gn_client_end(c, rc, "%s: the peer has not released region %u: %s", c->ep->where,
			      handle, strerror(-rc));
		return;
	}
	c->exported_bytes -= e->bytes;
	*e = c->exports[--c->n_exports];
	c->n_revokes_pending--;
	gn_holders_any(c->holders); /* forgets the processes that have unmapped the region */
	c->events->unexported(c->arg, c, handle);
}

static void on_revoked(void *arg, void *conn, uint32_t handle, int rc)
{
	struct gantry_client *c = arg;
	struct gn_client_export *e = gn_client_find_export(c, handle);

	(void)conn;
	if (c->phase >= GN_CLIENT_ENDED || !e || !e->revoking)
		return; /* the session has ended already, and `closed` follows */
	if (c->phase != GN_CLIENT_RELEASING) {
		unexported(c, e, rc);
		return;
	}
	e->revoking = false;
	e->revoked = rc == 0;
	if (--c->n_revokes_pending == 0)
		gn_client_end(c, 0, "closed");
}

static void on_consumer(void *arg, void *conn, uint32_t id, int up)
{
	(void)arg;
	(void)conn;
	(void)id;
	(void)up; /* the frame QUEUES names the consumers of a session */
}

static const struct gantry_conn_events conn_events = {
	.connected = on_connected,
	.message = on_message,
	.consumer = on_consumer,
	.revoke = on_revoke,
	.revoked = on_revoked,
	.closed = on_closed,
};

static void try_connect(void *arg)
{
	struct gantry_client *c = arg;
	const struct gn_endpoint *ep = c->ep;
	uint64_t until_ns = gn_now_ns() + ep->control_timeout_ns;
	char words[GN_SERVICE_WORDS];
	int rc;

	gn_channel_stop(&c->ch); /* end the connection of the previous attempt */
	c->phase = GN_CLIENT_CONNECTING;
	gn_log(GN_LOG_DEBUG, c->role->host.name, "connecting id=%016llx device=%s %s",
	       (unsigned long long)c->attr.id, ep->device->name, gn_service_words(words, ep, NULL));
	rc = ep->device->ops->connect(ep->device->dev, ep->service, &conn_events, c, &c->ch.conn);
	gn_device_kick(ep->device);
	gn_loop_set_timer(c->role->loop, &c->deadline,
			  until_ns > c->connect_until_ns ? until_ns : c->connect_until_ns);
	if (rc != 0)
		gn_client_end(c, rc, "%s: cannot connect to \"%s\" on device %s: %s", ep->where,
			      ep->service, ep->device->name, strerror(-rc));
}

/* Log once what the session waits for, if it is not open yet. */
static void on_notice(void *arg)
{
	const struct gantry_client *c = arg;
	const struct gn_endpoint *ep = c->ep;
	const char *source = c->role->host.name, *service = ep->service, *device = ep->device->name;
	char limit[GN_UNITS_BYTES];

	if (c->phase > GN_CLIENT_OPEN || c->state != GN_NEW)
		return;
	gn_time_format(limit, sizeof(limit), ep->connect_timeout_ns);
	if (c->failed_connect == -ECONNREFUSED)
		gn_log(GN_LOG_WARN, source,
		       "waiting for a listener at \"%s\" on device %s (connect.timeout=%s)",
		       service, device, limit);
	else if (c->failed_connect)
		gn_log(GN_LOG_WARN, source,
		       "waiting for \"%s\" on device %s: %s (connect.timeout=%s)", service, device,
		       c->text, limit);
	else if (c->phase == GN_CLIENT_CONNECTING)
		gn_log(GN_LOG_WARN, source,
		       "waiting for a connection to \"%s\" on device %s (connect.timeout=%s)",
		       service, device, limit);
	else
		gn_log(GN_LOG_WARN, source,
		       "waiting for the answer to %s from \"%s\" on device %s (control_timeout=%s)",
		       gn_frame_name(c->pending), service, device,
		       gn_time_format(limit, sizeof(limit), answer_within_ns(c, c->pending)));
}

static void on_silent(void *arg)
{
	struct gantry_client *c = arg;

	if (c->phase == GN_CLIENT_RETRYING)
		return;
	gn_client_end(c, -ETIMEDOUT, "%s: no heartbeat for %llu ms", c->ep->where,
		      (unsigned long long)(4 * c->ep->heartbeat_ns / GN_NS_PER_MS));
}

static void on_deadline(void *arg)
{
	struct gantry_client *c = arg;

	if (c->phase == GN_CLIENT_CONNECTING)
		gn_client_end(c, -ETIMEDOUT, "%s: cannot connect to \"%s\" on device %s: no answer",
			      c->ep->where, c->ep->service, c->ep->device->name);
	else if (c->phase == GN_CLIENT_RELEASING)
		gn_client_end(c, -ETIMEDOUT, "%s: no answer within %llu ms", c->ep->where,
			      (unsigned long long)(c->ep->control_timeout_ns / GN_NS_PER_MS));
	else
		gn_client_end(c, -ETIMEDOUT, "%s: no answer to %s within %llu ms", c->ep->where,
			      gn_frame_name(c->pending),
			      (unsigned long long)(answer_within_ns(c, c->pending) / GN_NS_PER_MS));
}

static uint64_t choose_id(void)
{
	uint64_t id = 0;

	if (getrandom(&id, sizeof(id), GRND_NONBLOCK) != sizeof(id) || id == 0)
		id = gn_now_ns() | 1;
	return id;
}

int gn_client_create_counters(struct gn_role *role)
{
	const struct gantry_host *host = &role->host.pub;

	role->late_replies = calloc(role->n_lanes, sizeof(*role->late_replies));
	if (!role->late_replies)
		return -ENOMEM;
	for (uint32_t i = 0; i < role->n_lanes; i++) {
		role->late_replies[i] = host->counter(host, "late_replies");
		if (!role->late_replies[i])
			return -ENOMEM;
	}
	return 0;
}

int gn_client_open(struct gn_role *role, uint32_t connect, const struct gantry_session_attr *attr,
		   const struct gantry_client_events *events, void *arg,
		   struct gantry_client **client_p)
{
	struct gantry_client *c;

	if (connect >= role->spec.n_connects || attr->lanes == 0 || attr->lanes > GN_MAX_LANES ||
	    attr->depth == 0)
		return -EINVAL;
	c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	c->role = role;
	c->ep = &role->spec.connects[connect];
	c->attr = *attr;
	c->region_limit = UINT64_MAX;
	c->attr.id = attr->id != 0 ? attr->id : choose_id();
	c->events = events;
	c->arg = arg;
	c->retry = (struct gn_timer){.fn = try_connect, .arg = c};
	c->deadline = (struct gn_timer){.fn = on_deadline, .arg = c};
	c->alloc = (struct gn_timer){.fn = gn_client_make_more, .arg = c};
	c->wait = (struct gn_timer){.fn = gn_client_become_ready, .arg = c};
	c->notice = (struct gn_timer){.fn = on_notice, .arg = c};
	c->released = 1;
	c->state_ns = gn_now_ns();
	c->connect_until_ns = c->state_ns + c->ep->connect_timeout_ns;
	gn_channel_init(&c->ch, c->ep->device, c->ep->heartbeat_ns, true, on_silent, c);
	c->ch.session = c->attr.id;
	gn_fence_init(&c->fence);
	c->lanes = calloc(attr->lanes, sizeof(*c->lanes));
	c->exports = calloc(attr->regions + 1ull, sizeof(*c->exports));
	if (!c->lanes || !c->exports) {
		gn_fence_fini(&c->fence);
		free(c->exports);
		free(c->lanes);
		free(c);
		return -ENOMEM;
	}
	LIST_INSERT_HEAD(&role->clients, c, link);
	role->had_client = 1;
	gn_loop_set_timer(role->loop, &c->retry, gn_now_ns());
	gn_loop_set_timer(role->loop, &c->notice, gn_now_ns() + NOTICE_NS);
	*client_p = c;
	return 0;
}

void gn_client_close(struct gantry_client *c)
{
	if (c->phase >= GN_CLIENT_CLOSING)
		return;
	c->phase = GN_CLIENT_CLOSING;
	c->state_ns = gn_now_ns();
	gn_loop_clear_timer(c->role->loop, &c->alloc);
	gn_loop_clear_timer(c->role->loop, &c->wait);
	if (c->pending == 0)
		gn_client_go_on_closing(c);
}

void gn_client_abandon(struct gantry_client *c, int reason, const char *text)
{
	struct gn_verdict verdict = {.status = GANTRY_S_CANCELED};

	if (c->phase >= GN_CLIENT_ENDED)
		return;
	snprintf(verdict.text, sizeof(verdict.text), "%s", text);
	gn_channel_send(&c->ch, GN_FRAME_END, 0, &verdict, NULL, 0);
	gn_client_end(c, reason, "%s", verdict.text);
}

void gn_client_abort(struct gantry_client *c)
{
	gn_client_abandon(c, -ECANCELED,
			  c->role->spec.listen ? "the session that it relays is lost"
					       : "the client has given up the session");
}

void gn_client_free(struct gantry_client *c)
{
	if (!c)
		return;
	LIST_REMOVE(c, link);
	gn_loop_clear_timer(c->role->loop, &c->retry);
	gn_loop_clear_timer(c->role->loop, &c->deadline);
	gn_loop_clear_timer(c->role->loop, &c->alloc);
	gn_loop_clear_timer(c->role->loop, &c->wait);
	gn_loop_clear_timer(c->role->loop, &c->notice);
	gn_client_stop_requesters(c);
	gn_client_drop_queues(c);
	gn_channel_stop(&c->ch);
	gn_loop_withdraw(c->role->loop, &c->last);
	for (uint32_t i = 0; i < c->attr.lanes; i++) {
		gn_requester_free(&c->lanes[i].req);
		gn_loop_withdraw(c->role->loop, &c->lanes[i].broken_post);
	}
	gn_fence_fini(&c->fence);
	gn_holders_free(c->holders);
	free(c->exports);
	free(c->lanes);
	explicit_bzero(c->secret, sizeof(c->secret));
	free(c);
}

uint64_t gn_client_id(const struct gantry_client *c)
{
	return c->attr.id;
}

int gn_client_regions_released(const struct gantry_client *c)
{
	return c->phase == GN_CLIENT_CLOSED
		       ? c->released
		       : gn_client_disconnect_revokes(c) && !gn_holders_any(c->holders);
}

uint64_t gn_client_settled_ns(const struct gantry_client *c, uint32_t index)
{
	return gn_requester_settled_ns(c->lanes[index].req);
}

void gn_client_expect(struct gantry_client *c, const struct gantry_volume_info *volume)
{
	c->expected = *volume;
}

void gn_client_use_secret(struct gantry_client *c, const uint8_t secret[GANTRY_SECRET_BYTES])
{
	memcpy(c->secret, secret, sizeof(c->secret));
}

void gn_client_secret(const struct gantry_client *c, uint8_t secret[GANTRY_SECRET_BYTES])
{
	memcpy(secret, c->secret, sizeof(c->secret));
}

uint32_t gn_client_late_writes(const struct gantry_client *c, uint32_t index)
{
	return gn_requester_late_writes(c->lanes[index].req);
}

uint64_t gn_client_common_features(const struct gn_role *role, uint64_t id)
{
	uint64_t features = UINT64_MAX;
	const struct gantry_client *c;

	LIST_FOREACH (c, &role->clients, link)
		if (c->attr.id == id && c->phase < GN_CLIENT_ENDED)
			features &= c->features;
	return features;
}

uint64_t gn_client_common_region_limit(const struct gn_role *role, uint64_t id, uint64_t limit)
{
	const struct gantry_client *c;

	LIST_FOREACH (c, &role->clients, link)
		if (c->attr.id == id && c->phase < GN_CLIENT_ENDED && c->region_limit < limit)
			limit = c->region_limit;
	return limit;
}

void gn_client_report(const struct gn_role *role, struct gantry_writer *w)
{
	const struct gantry_client *c;

	w->array(w, "client_sessions");
	LIST_FOREACH (c, &role->clients, link) {
		char id[24];

		snprintf(id, sizeof(id), "%016llx", (unsigned long long)c->attr.id);
		w->object(w, NULL);
		w->string(w, "id", id);
		w->string(w, "service", c->ep->name);
		w->string(w, "device", c->ep->device->name);
		w->string(w, "state",
			  c->phase >= GN_CLIENT_CLOSING ? "ending"
			  : c->state >= GN_RUNNING      ? gn_state_name(c->state)
							: "waiting");
		w->u64(w, "in_state_ns", gn_now_ns() - c->state_ns);
		w->u64(w, "epoch", c->attr.epoch);
		w->u64(w, "lanes", c->attr.lanes);
		w->u64(w, "depth", c->attr.depth);
		w->end(w);
	}
	w->end(w);
}

int gn_client_all_closed(const struct gn_role *role)
{
	const struct gantry_client *c;

	LIST_FOREACH (c, &role->clients, link)
		if (c->phase != GN_CLIENT_CLOSED)
			return 0;
	return 1;
}

void gn_client_close_all(const struct gn_role *role)
{
	struct gantry_client *c;

	LIST_FOREACH (c, &role->clients, link)
		gn_client_close(c);
}

void gn_client_free_all(struct gn_role *role)
{
	while (!LIST_EMPTY(&role->clients))
		gn_client_free(LIST_FIRST(&role->clients));
}
