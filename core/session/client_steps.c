/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * client_steps.c - the requests of the client end of a session, and what their answers do. Control
 * thread.
 */
#include "session/client_priv.h"

#include "base/clock.h"
#include "base/log.h"
#include "io/io_check.h"
#include "memory/region.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAKE_BYTES (16ull << 20) /* bytes allocated in one turn of the loop */

void gn_client_drop_queues(struct gantry_client *c)
{
	const struct gantry_transport_ops *ops = c->ep->device->ops;

	for (uint32_t i = 0; i < c->n_queues; i++) {
		struct gn_client_lane *cl = &c->lanes[i];

		if (cl->producer)
			ops->producer_destroy(cl->producer);
		ops->consumer_destroy(cl->consumer);
		cl->producer = cl->consumer = NULL;
	}
	c->n_queues = 0;
}

void gn_client_stop_requesters(struct gantry_client *c)
{
	for (uint32_t i = 0; i < c->attr.lanes; i++)
		gn_requester_stop_sending(c->lanes[i].req);
	for (uint32_t i = 0; i < c->attr.lanes; i++)
		gn_requester_stop(c->lanes[i].req);
}

void gn_client_go_on_closing(struct gantry_client *c)
{
	if (c->state == GN_RUNNING)
		gn_client_request(c, GN_FRAME_STOP, NULL, 0);
	else if (c->state == GN_NEW)
		gn_client_end(c, 0, "closed");
	else
		gn_client_request(c, GN_FRAME_BYE, NULL, 0);
}

void gn_client_hello(struct gantry_client *c)
{
	struct gn_hello h = {
		.version_min = GN_FRAME_VERSION,
		.version_max = GN_FRAME_VERSION,
		.epoch = c->attr.epoch,
		.features = gn_features_over(c->ep->device),
		.lanes = c->attr.lanes,
		.depth = c->attr.depth,
		.regions = c->attr.regions,
		.verifier = c->expected.verifier,
	};

	memcpy(h.uuid, c->expected.uuid, sizeof(h.uuid));
	memcpy(h.secret, c->secret, sizeof(h.secret));
	gn_rights_client(c->role, c->attr.id, h.client);
	gn_client_request(c, GN_FRAME_HELLO, &h, sizeof(h));
	explicit_bzero(h.secret, sizeof(h.secret));
}

/* True if the answer has a secret, which for a resumed session is the secret of that session. */
static bool is_secret_sound(const struct gantry_client *c, const struct gn_hello_answer *h)
{
	return gn_secret_is_set(h->secret) &&
	       (!gn_secret_is_set(c->secret) || gn_secret_equal(h->secret, c->secret));
}

static void answered_hello(struct gantry_client *c, const void *payload)
{
	struct gn_hello_answer h;

	memcpy(&h, payload, sizeof(h));
	if (h.version != GN_FRAME_VERSION || h.epoch != c->attr.epoch)
		gn_client_end(
			c, -EPROTO,
			"%s: protocol error: the peer answered with another version or epoch (version=%u, epoch=%u, requested %u, %u)",
			c->ep->where, h.version, h.epoch, GN_FRAME_VERSION, c->attr.epoch);
	else if ((h.features & ~gn_features_over(c->ep->device)) != 0)
		gn_client_end(
			c, -EPROTO,
			"%s: protocol error: the peer answered with features that were not offered",
			c->ep->where);
	else if (!is_secret_sound(c, &h))
		gn_client_end(c, -EPROTO, "%s: protocol error: the peer answered with %s",
			      c->ep->where,
			      gn_secret_is_set(h.secret) ? "another secret than that of the session"
							 : "no secret");
	else
		gn_client_request(c, GN_FRAME_QUERY, NULL, 0);
	c->features = h.features;
	c->region_limit = gn_limit_unpack(h.region_limit);
	memcpy(c->secret, h.secret, sizeof(c->secret));
	explicit_bzero(h.secret, sizeof(h.secret));
}

static void answered_query(struct gantry_client *c, const void *payload)
{
	const char *fault;

	memcpy(&c->volume, payload, sizeof(c->volume));
	fault = gn_volume_fault(&c->volume);
	if (fault) {
		gn_client_end(c, -EPROTO, "%s: the peer describes an impossible volume: %s",
			      c->ep->where, fault);
		return;
	}
	gn_client_become_ready(c);
}

static void answered_export(struct gantry_client *c, const void *payload)
{
	(void)payload;
	c->events->exported(c->arg, c, c->exporting);
}

static void answered_queues(struct gantry_client *c, const void *payload)
{
	const struct gantry_transport_ops *ops = c->ep->device->ops;
	struct gantry_queue_attr attr = {
		.depth = gn_device_queue_depth(c->ep->device, c->attr.depth)};
	struct gn_queues q;
	int rc = 0;

	memcpy(&q, payload, sizeof(q));
	if (q.n != c->attr.lanes || q.depth != c->attr.depth) {
		gn_client_end(
			c, -EPROTO,
			"%s: protocol error: the peer created %u queues of depth %u (requested %u of depth %u)",
			c->ep->where, q.n, q.depth, c->attr.lanes, c->attr.depth);
		return;
	}
	for (uint32_t i = 0; i < c->attr.lanes && rc == 0; i++) {
		struct gn_client_lane *cl = &c->lanes[i];

		attr.lane = i;
		attr.thread = gn_requester_thread(cl->req);
		rc = ops->producer_create(c->ch.conn, q.consumer[i], &attr, &cl->producer);
		if (rc == 0)
			rc = gn_requester_start(cl->req, cl->consumer, cl->producer);
	}
	c->released = 0;
	if (rc != 0)
		gn_client_end(c, rc, "%s: cannot create queues: %s", c->ep->where, strerror(-rc));
	else
		gn_client_request(c, GN_FRAME_START, NULL, 0);
}

static void answered_start(struct gantry_client *c, const void *payload)
{
	char words[GN_SERVICE_WORDS];

	(void)payload;
	c->role->had_session = 1;
	gn_log(GN_LOG_INFO, c->role->host.name,
	       "session started id=%016llx device=%s %s lanes=%u depth=%u",
	       (unsigned long long)c->attr.id, c->ep->device->name,
	       gn_service_words(words, c->ep, NULL), c->attr.lanes, c->attr.depth);
	c->events->started(c->arg, c);
}

static void answered_stop(struct gantry_client *c, const void *payload)
{
	(void)payload;
	gn_client_stop_requesters(c);
	gn_client_go_on_closing(c);
}

struct gn_client_export *gn_client_find_export(struct gantry_client *c, uint32_t handle)
{
	for (uint32_t i = 0; i < c->n_exports; i++)
		if (c->exports[i].handle == handle)
			return &c->exports[i];
	return NULL;
}

/* Revoke an export by the transport, unless that is in progress. Returns 0 or -errno. */
static int revoke(struct gantry_client *c, struct gn_client_export *e)
{
	int rc = 0;

	if (e->revoking)
		return 0;
	rc = c->ep->device->ops->revoke_region(c->ch.conn, e->handle);
	if (rc != 0)
		return rc;
	e->revoking = true;
	c->n_revokes_pending++;
	return 0;
}

/*
 * The peer has released the region. This process must not reuse the memory until the transport of
 * the peer has confirmed the revocation.
 */
static void answered_unexport(struct gantry_client *c, const void *payload)
{
	int rc = revoke(c, gn_client_find_export(c, c->unexporting));

	(void)payload;
	if (rc != 0)
		gn_client_end(c, rc, "%s: cannot revoke region %u: %s", c->ep->where,
			      c->unexporting, strerror(-rc));
}

/*
 * The peer has released its queues and regions. Revoke each export: this process must not reuse the
 * memory until the transport of the peer has confirmed.
 */
static void answered_bye(struct gantry_client *c, const void *payload)
{
	(void)payload;
	c->phase = GN_CLIENT_RELEASING;
	for (uint32_t i = 0; i < c->n_exports; i++)
		revoke(c, &c->exports[i]);
	if (c->n_revokes_pending == 0)
		gn_client_end(c, 0, "closed");
	else
		gn_loop_set_timer(c->role->loop, &c->deadline,
				  gn_now_ns() + c->ep->control_timeout_ns);
}

static int export_now(struct gantry_client *c)
{
	struct gantry_token token;
	int rc = gn_client_ask_holders(c);

	if (rc == 0)
		rc = c->ep->device->ops->export_region(
			c->ch.conn, c->exporting, c->exporting_rights, c->exporting_handle, &token);
	if (rc != 0)
		return rc;
	c->exports[c->n_exports++] = (struct gn_client_export){.handle = c->exporting_handle,
							       .bytes = c->exporting->length};
	c->exported_bytes += c->exporting->length;
	return gn_client_request(c, GN_FRAME_EXPORT, &token, sizeof(token));
}

/*
 * Returns true if the device locks memory. limit_p: longest region that both ends accept, in bytes.
 */
static int locks_memory(const struct gantry_client *c, uint64_t *limit_p)
{
	struct gantry_device_info info = {.caps = 0};
	int yes;

	c->ep->device->ops->info(c->ep->device->dev, &info);
	yes = (info.caps & GANTRY_CAP_PINS) != 0;
	*limit_p = c->ep->device->ops->export_limit(c->ch.conn);
	if (info.max_region_bytes < *limit_p)
		*limit_p = info.max_region_bytes;
	return yes;
}

uint64_t gn_client_export_limit(const struct gantry_client *c)
{
	uint64_t limit;

	locks_memory(c, &limit);
	return limit;
}

uint64_t gn_client_export_quota(const struct gantry_client *c)
{
	if (c->region_limit == UINT64_MAX)
		return UINT64_MAX;
	return c->exported_bytes < c->region_limit ? c->region_limit - c->exported_bytes : 0;
}

/*
 * True if pages must be allocated before the export, because the kernel charges a page to the
 * process that touches it first. Only this process can touch memory without a memfd, and the owner
 * of an imported region allocates its pages. Memory of these two kinds needs its pages before the
 * export only if the device locks memory.
 */
static int lacks_pages(const struct gantry_client *c)
{
	const struct gantry_region *region = c->exporting;
	uint64_t limit;
	int locked = locks_memory(c, &limit);

	if (region->length > limit || gn_region_has_pages(region))
		return 0; /* the export will fail, and the device reports why */
	if (region->fd < 0 || region->domain != 0)
		return locked && (region->addr || region->fd >= 0);
	return 1;
}

/*
 * Allocate a part of the pages in each turn of the loop, so that the loop sends heartbeats between
 * the parts. Returns 1: more is left; 0: all are allocated; -errno.
 */
static int allocate_part(struct gantry_client *c)
{
	const struct gantry_region *region = c->exporting;
	uint64_t left = region->length - c->allocated, n = left < MAKE_BYTES ? left : MAKE_BYTES;
	int rc;

	if (n == 0 || !lacks_pages(c))
		return 0;
	rc = gn_region_make_pages(region, c->allocated, n);
	c->allocated += n;
	if (rc != 0 || n == left)
		return rc;
	gn_loop_set_timer(c->role->loop, &c->alloc, gn_now_ns());
	return 1;
}

/* Export the region, now or when all its pages are allocated. Returns 0 or -errno. */
static int allocate_and_export(struct gantry_client *c)
{
	int rc = allocate_part(c);

	return rc > 0 ? 0 : rc < 0 ? rc : export_now(c);
}

void gn_client_make_more(void *arg)
{
	struct gantry_client *c = arg;
	int rc = allocate_and_export(c);

	if (rc != 0)
		gn_client_end(c, rc, "%s: cannot export a region of %llu bytes: %s", c->ep->where,
			      (unsigned long long)c->exporting->length,
			      rc == -E2BIG ? "longer than the device accepts" : strerror(-rc));
}

static int busy(const struct gantry_client *c)
{
	return c->pending != 0 || c->alloc.at_ns != 0;
}

/* Returns 0 if a request for regions is possible now, or -errno. */
static int check_regions(const struct gantry_client *c, bool optional)
{
	if (c->phase >= GN_CLIENT_ENDED)
		return -ENOTCONN;
	if (c->phase != GN_CLIENT_OPEN || (c->state != GN_KNOWN && c->state != GN_RUNNING) ||
	    busy(c))
		return -EBUSY;
	return optional && (c->features & GN_FEATURE_UNEXPORT) == 0 ? -ENOTSUP : 0;
}

int gn_client_export(struct gantry_client *c, const struct gantry_region *region, uint32_t rights,
		     uint32_t handle)
{
	int rc = check_regions(c, c->state == GN_RUNNING);

	if (rc != 0)
		return rc;
	if (c->n_exports == c->attr.regions)
		return -ENOSPC;
	if (gn_client_find_export(c, handle))
		return -EEXIST;
	c->exporting = region;
	c->exporting_rights = rights;
	c->exporting_handle = handle;
	c->allocated = 0;
	return allocate_and_export(c);
}

int gn_client_unexport(struct gantry_client *c, uint32_t handle)
{
	const struct gn_client_export *e = gn_client_find_export(c, handle);
	const struct gn_unexport u = {.handle = handle};
	int rc = check_regions(c, true);

	if (rc != 0)
		return rc;
	if (!e || e->revoking)
		return -ENOENT;
	c->unexporting = handle;
	return gn_client_request(c, GN_FRAME_UNEXPORT, &u, sizeof(u));
}

static int create_consumers(struct gantry_client *c, struct gn_queues *q)
{
	const struct gantry_transport_ops *ops = c->ep->device->ops;
	struct gantry_queue_attr attr = {
		.depth = gn_device_queue_depth(c->ep->device, c->attr.depth)};

	for (uint32_t i = 0; i < c->attr.lanes; i++) {
		struct gn_client_lane *cl = &c->lanes[i];
		int rc;

		attr.lane = i;
		if (!cl->req)
			return -EINVAL;
		attr.flags = gn_requester_is_edge_triggered(cl->req) ? GANTRY_QUEUE_EDGES : 0;
		attr.thread = gn_requester_thread(cl->req);
		rc = ops->consumer_create(c->ch.conn, &attr, &cl->consumer_id, &cl->consumer);
		if (rc != 0)
			return rc;
		c->n_queues = i + 1;
		q->consumer[i] = cl->consumer_id;
		rc = ops->post_recv(cl->consumer, attr.depth);
		if (rc != 0)
			return rc;
	}
	return 0;
}

int gn_client_start(struct gantry_client *c)
{
	struct gn_queues q = {.n = c->attr.lanes, .depth = c->attr.depth};
	int rc;

	if (c->phase != GN_CLIENT_OPEN || c->state != GN_KNOWN || busy(c))
		return -EBUSY;
	rc = create_consumers(c, &q);
	if (rc != 0) {
		gn_client_drop_queues(c);
		return rc;
	}
	return gn_client_request(c, GN_FRAME_QUEUES, &q, sizeof(q));
}

static void broken_posted(void *arg)
{
	struct gn_client_lane *cl = arg;
	int reason = cl->broken;

	if (reason == -ETIME)
		gn_client_end(
			cl->client, -ETIMEDOUT,
			"%s: no answer to an IO that timed out (fence_timeout=%llu ms)",
			cl->client->ep->where,
			(unsigned long long)(cl->client->ep->fence_timeout_ns / GN_NS_PER_MS));
	else
		gn_client_end(cl->client, reason, "%s: %s", cl->client->ep->where,
			      reason == -EPROTO
				      ? "protocol error: unexpected reply or corrupt queue entry"
			      : reason == -ETIMEDOUT ? "no IO was answered before its deadline"
						     : strerror(-reason));
}

/*
 * Called once, on the lane. The post runs before the client is freed: gn_client_free() stops the
 * requester and withdraws the post.
 */
static void on_requester_broken(void *arg, int reason)
{
	struct gn_client_lane *cl = arg;

	cl->broken = reason;
	gn_loop_post_own(cl->client->role->loop, &cl->broken_post, broken_posted, cl);
}

int gn_client_hop(struct gantry_client *c, uint32_t index, struct gantry_lane *lane,
		  struct gantry_hop *terminal)
{
	struct gn_client_lane *cl;
	struct gn_requester_attr attr = {
		.lane = lane->core,
		.ops = c->ep->device->ops,
		.depth = c->attr.depth,
		.io_timeout_ns = c->ep->io_timeout_ns,
		.relays = c->role->spec.listen != NULL,
		.fence = &c->fence,
		.late_timeout_ns = c->ep->fence_timeout_ns,
		.broken = on_requester_broken,
		.stale = c->role->late_replies[lane->index],
		.left_out = (c->features & GN_FEATURE_CRC) != 0 ? 0 : GANTRY_IO_CRC,
		.notes = (c->features & GN_FEATURE_NOTES) != 0,
	};

	if (index >= c->attr.lanes)
		return -EINVAL;
	cl = &c->lanes[index];
	cl->client = c;
	attr.arg = cl;
	if (!cl->req) {
		int rc = gn_requester_create(&attr, &cl->req);

		if (rc != 0)
			return rc;
	}
	gn_requester_hop(cl->req, terminal);
	return 0;
}

static void (*const answered[GN_FRAME_TYPES])(struct gantry_client *c, const void *payload) = {
	[GN_FRAME_HELLO] = answered_hello,   [GN_FRAME_QUERY] = answered_query,
	[GN_FRAME_EXPORT] = answered_export, [GN_FRAME_QUEUES] = answered_queues,
	[GN_FRAME_START] = answered_start,   [GN_FRAME_STOP] = answered_stop,
	[GN_FRAME_BYE] = answered_bye,       [GN_FRAME_UNEXPORT] = answered_unexport,
};

void gn_client_answered(struct gantry_client *c, unsigned type, const void *payload)
{
	answered[type](c, payload);
}
