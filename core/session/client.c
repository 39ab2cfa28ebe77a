/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * client.c - a session, at the side that opened it.
 *
 *      connect (again and again, until the deadline) -> hello -> query -> `ready`
 *      export -> `exported`;  queues -> start -> `started`;  stop -> bye -> `closed`
 *
 * One request at a time. Whatever goes wrong, lose() is called: the links give back what is in flight, then `closed`.
 */
#include "session/client.h"

#include "base/clock.h"
#include "base/log.h"
#include "io/check.h"
#include "io/status.h"
#include "session/channel.h"
#include "session/role_priv.h"
#include "transport/link.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define RETRY_NS (50 * GN_NS_PER_MS)

struct client_lane {
	struct gantry_client *client;
	struct gn_link *link;
	void *consumer, *producer;
	uint32_t consumer_id;
	int broken; /* why; written by the lane before it posts */
};

struct gantry_client {
	struct gn_role *role;
	const struct gn_endpoint *ep;
	struct gantry_client *next;
	struct gn_channel ch;
	struct gn_timer retry;    /* of the connect */
	struct gn_timer deadline; /* of the answer that is due */
	uint64_t connect_until_ns;
	enum gn_state state;
	struct gantry_session_attr attr;
	uint64_t features; /* agreed: GN_FEATURE_* */
	const struct gantry_client_events *events;
	void *arg;

	unsigned pending; /* request that is not answered; 0: none */
	uint32_t pending_id;
	const struct gantry_region *exporting;
	struct gantry_volume volume;
	struct client_lane *lanes;
	uint32_t n_queues; /* lanes with a consumer */
	uint64_t *stale;

	int connecting, closing, lost, buried;
	int reason;
	char text[GN_FRAME_TEXT + 64];
};

static void lose(struct gantry_client *c, int reason, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

static void drop_queues(struct gantry_client *c)
{
	const struct gantry_transport_ops *ops = c->ep->device->ops;

	for (uint32_t i = 0; i < c->n_queues; i++) {
		struct client_lane *cl = &c->lanes[i];

		if (cl->producer != NULL)
			ops->producer_destroy(cl->producer);
		ops->consumer_destroy(cl->consumer);
		cl->producer = cl->consumer = NULL;
	}
	c->n_queues = 0;
}

/* At a turn of the loop of its own. */
static void bury(void *arg)
{
	struct gantry_client *c = arg;
	struct gn_role *role = c->role;

	drop_queues(c);
	gn_channel_stop(&c->ch);
	c->buried = 1;
	c->events->closed(c->arg, c, c->reason, c->text); /* may free it */
	gn_server_check_finished(role);
}

static void lose(struct gantry_client *c, int reason, const char *fmt, ...)
{
	va_list ap;

	if (c->lost)
		return;
	c->lost = 1;
	c->reason = reason;
	va_start(ap, fmt);
	vsnprintf(c->text, sizeof(c->text), fmt, ap);
	va_end(ap);
	c->state = GN_ENDED;
	c->pending = 0;
	gn_loop_clear_timer(c->role->loop, &c->retry);
	gn_loop_clear_timer(c->role->loop, &c->deadline);
	for (uint32_t i = 0; i < c->attr.lanes; i++)
		gn_link_stop(c->lanes[i].link);
	if (reason == 0)
		gn_log(GN_LOG_INFO, c->role->host.name, "session closed id=%llx", (unsigned long long)c->attr.id);
	else
		gn_log(GN_LOG_WARN, c->role->host.name, "session lost id=%llx device=%s service=%s reason=\"%s\"",
		       (unsigned long long)c->attr.id, c->ep->device->name, c->ep->service, c->text);
	gn_loop_must_post(c->role->loop, bury, c);
}

static int request(struct gantry_client *c, unsigned type, const void *payload, size_t len)
{
	int rc;

	if (c->pending != 0)
		return -EBUSY;
	c->pending = type;
	c->pending_id++;
	rc = gn_channel_send(&c->ch, type, c->pending_id, NULL, payload, len);
	if (rc != 0) {
		c->pending = 0;
		lose(c, rc, "%s: cannot send %s: %s", c->ep->where, gn_frame_name(type), strerror(-rc));
		return rc;
	}
	gn_loop_set_timer(c->role->loop, &c->deadline, gn_now_ns() + c->ep->control_timeout_ns);
	return 0;
}

static void go_on_closing(struct gantry_client *c)
{
	if (c->state == GN_RUNNING)
		request(c, GN_FRAME_STOP, NULL, 0);
	else if (c->state == GN_NEW || c->state == GN_ENDED)
		lose(c, 0, "closed");
	else
		request(c, GN_FRAME_BYE, NULL, 0);
}

static void answered_hello(struct gantry_client *c, const void *payload)
{
	struct gn_hello_answer h;

	memcpy(&h, payload, sizeof(h));
	if (h.version != GN_FRAME_VERSION || h.epoch != c->attr.epoch)
		lose(c, -EPROTO, "%s: the peer agreed to version %u, epoch %u; asked for were %u, %u", c->ep->where, h.version,
		     h.epoch, GN_FRAME_VERSION, c->attr.epoch);
	else if ((h.features & ~GN_FEATURES) != 0)
		lose(c, -EPROTO, "%s: the peer agreed to features that were not offered", c->ep->where);
	else
		request(c, GN_FRAME_QUERY, NULL, 0);
	c->features = h.features;
}

static void answered_query(struct gantry_client *c, const void *payload)
{
	memcpy(&c->volume, payload, sizeof(c->volume));
	if (!gn_volume_ok(&c->volume)) {
		lose(c, -EPROTO, "%s: the peer describes an impossible volume", c->ep->where);
		return;
	}
	c->events->ready(c->arg, c, &c->volume);
}

static void answered_export(struct gantry_client *c, const void *payload)
{
	(void)payload;
	c->events->exported(c->arg, c, c->exporting);
}

static void answered_queues(struct gantry_client *c, const void *payload)
{
	const struct gantry_transport_ops *ops = c->ep->device->ops;
	struct gantry_queue_attr attr = {.depth = 2 * c->attr.depth};
	struct gn_queues q;
	int rc = 0;

	memcpy(&q, payload, sizeof(q));
	if (q.n != c->attr.lanes)
		rc = -EPROTO;
	for (uint32_t i = 0; i < c->attr.lanes && rc == 0; i++) {
		struct client_lane *cl = &c->lanes[i];

		attr.lane = i;
		rc = ops->producer_create(c->ch.conn, q.consumer[i], &attr, &cl->producer);
		if (rc == 0)
			rc = gn_link_start(cl->link, cl->consumer, cl->producer);
	}
	if (rc != 0)
		lose(c, rc, "%s: queues cannot be made: %s", c->ep->where, strerror(-rc));
	else
		request(c, GN_FRAME_START, NULL, 0);
}

static void answered_start(struct gantry_client *c, const void *payload)
{
	(void)payload;
	gn_log(GN_LOG_INFO, c->role->host.name, "session started id=%llx device=%s service=%s lanes=%u depth=%u",
	       (unsigned long long)c->attr.id, c->ep->device->name, c->ep->service, c->attr.lanes, c->attr.depth);
	c->events->started(c->arg, c);
}

static void answered_stop(struct gantry_client *c, const void *payload)
{
	(void)payload;
	for (uint32_t i = 0; i < c->attr.lanes; i++)
		gn_link_stop(c->lanes[i].link);
	go_on_closing(c);
}

static void answered_bye(struct gantry_client *c, const void *payload)
{
	(void)payload;
	lose(c, 0, "closed");
}

static void (*const answered[GN_FRAME_TYPES])(struct gantry_client *c, const void *payload) = {
	[GN_FRAME_HELLO] = answered_hello,   [GN_FRAME_QUERY] = answered_query, [GN_FRAME_EXPORT] = answered_export,
	[GN_FRAME_QUEUES] = answered_queues, [GN_FRAME_START] = answered_start, [GN_FRAME_STOP] = answered_stop,
	[GN_FRAME_BYE] = answered_bye,
};

static void take_answer(struct gantry_client *c, const struct gn_parsed *p)
{
	unsigned type = c->pending;

	c->pending = 0;
	gn_loop_clear_timer(c->role->loop, &c->deadline);
	if (p->verdict.status != 0) {
		lose(c, gn_errno_of_status((unsigned)p->verdict.status), "%s: refused at %s: %s", c->ep->where,
		     gn_frame_name(type), p->verdict.text);
		return;
	}
	c->state = (enum gn_state)gn_state_next(c->state, type);
	if (c->closing && type != GN_FRAME_STOP && type != GN_FRAME_BYE)
		go_on_closing(c);
	else
		answered[type](c, p->payload);
}

static void on_message(void *arg, void *conn, const void *msg, size_t len)
{
	struct gantry_client *c = arg;
	struct gn_parsed p;

	(void)conn;
	if (c->lost)
		return;
	if (gn_frame_parse(msg, len, &p) != 0 || p.head.session != c->attr.id) {
		lose(c, -EPROTO, "%s: malformed frame", c->ep->where);
		return;
	}
	gn_channel_heard(&c->ch);
	if (p.type == GN_FRAME_PING && !p.answer) {
		gn_channel_echo(&c->ch, p.head.id);
		return;
	}
	if (p.type == GN_FRAME_END)
		lose(c, p.verdict.status != 0 ? gn_errno_of_status((unsigned)p.verdict.status) : -ECONNRESET,
		     "%s: the peer ended the session: %s", c->ep->where, p.verdict.text);
	else if (!p.answer || p.type != c->pending || p.head.id != c->pending_id)
		lose(c, -EPROTO, "%s: unexpected %s", c->ep->where, gn_frame_name(p.type));
	else
		take_answer(c, &p);
}

static void on_connected(void *arg, void *conn, const struct gantry_peer *peer)
{
	struct gantry_client *c = arg;
	struct gn_hello h = {
		.version_min = GN_FRAME_VERSION,
		.version_max = GN_FRAME_VERSION,
		.epoch = c->attr.epoch,
		.features = GN_FEATURES,
		.lanes = c->attr.lanes,
		.depth = c->attr.depth,
		.regions = c->attr.regions,
	};

	(void)conn;
	(void)peer;
	if (c->lost)
		return;
	c->connecting = 0;
	gn_channel_start(&c->ch);
	request(c, GN_FRAME_HELLO, &h, sizeof(h));
}

static void on_closed(void *arg, void *conn, int reason)
{
	struct gantry_client *c = arg;

	(void)conn;
	if (c->connecting && reason == -ECONNREFUSED && !c->lost && gn_now_ns() < c->connect_until_ns) {
		gn_channel_stop(&c->ch);
		gn_loop_clear_timer(c->role->loop, &c->deadline);
		gn_loop_set_timer(c->role->loop, &c->retry, gn_now_ns() + RETRY_NS);
		return;
	}
	if (c->connecting)
		lose(c, reason, "%s: cannot connect to \"%s\" on device %s: %s", c->ep->where, c->ep->service,
		     c->ep->device->name,
		     reason == -ECONNREFUSED ? "nobody listens there; start that role first"
		     : reason == -EACCES     ? "turned away; the log of that role says why"
					     : strerror(-reason));
	else
		lose(c, reason, "%s: the peer is gone: %s", c->ep->where, strerror(-reason));
}

static void on_revoke(void *arg, void *conn, uint32_t handle)
{
	(void)arg;
	(void)conn;
	(void)handle; /* a client imports nothing */
}

static void on_revoked(void *arg, void *conn, uint32_t handle, int rc)
{
	(void)arg;
	(void)conn;
	(void)handle;
	(void)rc;
}

static void on_consumer(void *arg, void *conn, uint32_t id, int up)
{
	(void)arg;
	(void)conn;
	(void)id;
	(void)up; /* the queues of a session are named in its frames */
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
	int rc = ep->device->ops->connect(ep->device->dev, ep->service, &conn_events, c, &c->ch.conn);

	gn_device_kick(ep->device);
	gn_loop_set_timer(c->role->loop, &c->deadline, until_ns > c->connect_until_ns ? until_ns : c->connect_until_ns);
	if (rc != 0)
		lose(c, rc, "%s: cannot connect to \"%s\" on device %s: %s", ep->where, ep->service, ep->device->name,
		     strerror(-rc));
}

static void on_silent(void *arg)
{
	struct gantry_client *c = arg;

	lose(c, -ETIMEDOUT, "%s: no heartbeat for %llu ms", c->ep->where,
	     (unsigned long long)(4 * c->ep->heartbeat_ns / GN_NS_PER_MS));
}

static void on_deadline(void *arg)
{
	struct gantry_client *c = arg;

	if (c->connecting)
		lose(c, -ETIMEDOUT, "%s: cannot connect to \"%s\" on device %s: no answer", c->ep->where, c->ep->service,
		     c->ep->device->name);
	else
		lose(c, -ETIMEDOUT, "%s: no answer to %s within %llu ms", c->ep->where, gn_frame_name(c->pending),
		     (unsigned long long)(c->ep->control_timeout_ns / GN_NS_PER_MS));
}

static uint64_t choose_id(void)
{
	uint64_t id = 0;

	if (getrandom(&id, sizeof(id), GRND_NONBLOCK) != sizeof(id) || id == 0)
		id = gn_now_ns() | 1;
	return id;
}

int gn_client_open(struct gn_role *role, uint32_t connect, const struct gantry_session_attr *attr,
		   const struct gantry_client_events *events, void *arg, struct gantry_client **client_p)
{
	struct gantry_client *c;

	if (connect >= role->spec.n_connects || attr->lanes == 0 || attr->lanes > GN_MAX_LANES || attr->depth == 0)
		return -EINVAL;
	c = calloc(1, sizeof(*c));
	if (c == NULL)
		return -ENOMEM;
	c->role = role;
	c->ep = &role->spec.connects[connect];
	c->attr = *attr;
	c->attr.id = attr->id != 0 ? attr->id : choose_id();
	c->events = events;
	c->arg = arg;
	c->retry = (struct gn_timer){.fn = try_connect, .arg = c};
	c->deadline = (struct gn_timer){.fn = on_deadline, .arg = c};
	c->connecting = 1;
	c->connect_until_ns = gn_now_ns() + c->ep->connect_timeout_ns;
	gn_channel_init(&c->ch, c->ep->device, c->ep->heartbeat_ns, on_silent, c);
	c->ch.session = c->attr.id;
	c->stale = role->host.pub.counter(&role->host.pub, "late_answers");
	c->lanes = calloc(attr->lanes, sizeof(*c->lanes));
	if (c->lanes == NULL || c->stale == NULL) {
		free(c->lanes);
		free(c);
		return -ENOMEM;
	}
	c->next = role->clients;
	role->clients = c;
	gn_loop_set_timer(role->loop, &c->retry, gn_now_ns());
	*client_p = c;
	return 0;
}

int gn_client_export(struct gantry_client *c, const struct gantry_region *region, uint32_t rights, uint32_t handle)
{
	struct gantry_token token;
	int rc;

	if (c->state != GN_KNOWN || c->pending != 0)
		return -EBUSY;
	rc = c->ep->device->ops->export_region(c->ch.conn, region, rights, handle, &token);
	if (rc != 0)
		return rc;
	c->exporting = region;
	return request(c, GN_FRAME_EXPORT, &token, sizeof(token));
}

static int make_consumers(struct gantry_client *c, struct gn_queues *q)
{
	const struct gantry_transport_ops *ops = c->ep->device->ops;
	struct gantry_queue_attr attr = {.depth = 2 * c->attr.depth};

	for (uint32_t i = 0; i < c->attr.lanes; i++) {
		struct client_lane *cl = &c->lanes[i];
		int rc;

		attr.lane = i;
		rc = cl->link == NULL ? -EINVAL : ops->consumer_create(c->ch.conn, &attr, &cl->consumer_id, &cl->consumer);
		if (rc != 0)
			return rc;
		c->n_queues = i + 1;
		q->consumer[i] = cl->consumer_id;
		rc = ops->post_recv(cl->consumer, NULL, attr.depth);
		if (rc != 0)
			return rc;
	}
	return 0;
}

int gn_client_start(struct gantry_client *c)
{
	struct gn_queues q = {.n = c->attr.lanes, .depth = c->attr.depth};
	int rc;

	if (c->state != GN_KNOWN || c->pending != 0)
		return -EBUSY;
	rc = make_consumers(c, &q);
	if (rc != 0) {
		drop_queues(c);
		return rc;
	}
	return request(c, GN_FRAME_QUEUES, &q, sizeof(q));
}

static void broken_posted(void *arg)
{
	struct client_lane *cl = arg;
	int reason = cl->broken;

	lose(cl->client, reason, "%s: %s", cl->client->ep->where,
	     reason == -EPROTO      ? "the peer answered what was not asked, or wrote nonsense into a queue"
	     : reason == -ETIMEDOUT ? "no IO was answered before its deadline"
				    : strerror(-reason));
}

/* Once, on the lane. It comes before the client is buried: the link has been stopped by then. */
static void link_broken(void *arg, int reason)
{
	struct client_lane *cl = arg;

	cl->broken = reason;
	gn_loop_must_post(cl->client->role->loop, broken_posted, cl);
}

int gn_client_hop(struct gantry_client *c, uint32_t index, struct gantry_lane *lane, struct gantry_hop *terminal)
{
	struct client_lane *cl;
	struct gn_link_attr attr = {
		.lane = lane->core,
		.ops = c->ep->device->ops,
		.depth = c->attr.depth,
		.io_timeout_ns = c->ep->io_timeout_ns,
		.broken = link_broken,
		.stale = c->stale,
		.left_out = (c->features & GN_FEATURE_CRC) != 0 ? 0 : GANTRY_IO_CRC,
	};

	if (index >= c->attr.lanes)
		return -EINVAL;
	cl = &c->lanes[index];
	cl->client = c;
	attr.arg = cl;
	if (cl->link == NULL) {
		int rc = gn_link_create(&attr, &cl->link);

		if (rc != 0)
			return rc;
	}
	gn_link_hop(cl->link, terminal);
	return 0;
}

void gn_client_close(struct gantry_client *c)
{
	if (c->closing || c->lost)
		return;
	c->closing = 1;
	if (c->pending == 0)
		go_on_closing(c);
}

void gn_client_abort(struct gantry_client *c)
{
	struct gn_verdict verdict = {.status = GANTRY_S_CANCELED, .text = "the session that it served is lost"};

	if (c->lost)
		return;
	gn_channel_send(&c->ch, GN_FRAME_END, 0, &verdict, NULL, 0);
	lose(c, -ECANCELED, "%s", verdict.text);
}

void gn_client_free(struct gantry_client *c)
{
	struct gantry_client **p;

	if (c == NULL)
		return;
	for (p = &c->role->clients; *p != c; p = &(*p)->next)
		;
	*p = c->next;
	for (uint32_t i = 0; i < c->attr.lanes; i++)
		gn_link_free(&c->lanes[i].link);
	free(c->lanes);
	free(c);
}

int gn_client_all_closed(const struct gn_role *role)
{
	for (const struct gantry_client *c = role->clients; c != NULL; c = c->next)
		if (!c->buried)
			return 0;
	return 1;
}

void gn_client_close_all(const struct gn_role *role)
{
	for (struct gantry_client *c = role->clients; c != NULL; c = c->next)
		gn_client_close(c);
}

void gn_client_free_all(struct gn_role *role)
{
	while (role->clients != NULL) {
		struct gantry_client *c = role->clients;

		gn_loop_clear_timer(role->loop, &c->retry);
		gn_loop_clear_timer(role->loop, &c->deadline);
		for (uint32_t i = 0; i < c->attr.lanes; i++)
			gn_link_stop(c->lanes[i].link);
		drop_queues(c);
		gn_channel_stop(&c->ch);
		gn_client_free(c);
	}
}
