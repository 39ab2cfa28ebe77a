/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * steps.c - the requests of a session at its server end. Each step has a first half, which calls
 * the role, and a second half, after the role has accepted. Control thread.
 */
#include "session/session_priv.h"

#include "base/log.h"
#include "io/io_check.h"
#include "io/list.h"
#include "memory/pages.h"
#include "memory/region.h"
#include "pipeline/split.h"
#include "session/session_client.h"
#include "transport/bounce.h"

#include <gantry/uuid.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const struct gantry_server_ops *ops_of(const struct gantry_session *s)
{
	return s->role->server.ops;
}

static int hello(struct gantry_session *s, const void *payload)
{
	const struct gn_endpoint *ep = s->ep;
	struct gn_hello h;
	int rc;

	memcpy(&h, payload, sizeof(h));
	if (s->ch.session == 0) {
		gn_session_refuse(s, "session id is 0: use another id");
		return -EINVAL;
	}
	if (h.version_min > GN_FRAME_VERSION || h.version_max < GN_FRAME_VERSION) {
		gn_session_refuse(s,
				  "protocol version not supported (offered %u to %u, supported %u)",
				  h.version_min, h.version_max, GN_FRAME_VERSION);
		return -EOPNOTSUPP;
	}
	if (h.lanes == 0 || h.lanes > ep->max_lanes || h.lanes > GN_MAX_LANES) {
		gn_session_refuse(s, "lanes out of range (lanes=%u, limit listen.max_lanes=%u)",
				  h.lanes, (uint32_t)ep->max_lanes);
		return -EINVAL;
	}
	if (h.depth == 0 || h.depth > ep->max_depth) {
		gn_session_refuse(s, "depth out of range (depth=%u, limit listen.max_depth=%u)",
				  h.depth, (uint32_t)ep->max_depth);
		return -EINVAL;
	}
	rc = gn_rights_hello(s, h.client, h.lanes);
	if (rc != 0)
		return rc;
	if (h.regions > ep->max_regions) {
		gn_session_refuse(s, "too many regions (regions=%u, limit listen.max_regions=%u)",
				  h.regions, (uint32_t)ep->max_regions);
		return -EINVAL;
	}
	if (h.epoch == 0 || h.epoch > GANTRY_EPOCH_MAX) {
		gn_session_refuse(
			s, "epoch out of range (epoch=%u, limits 1 and %u): open a new session",
			h.epoch, GANTRY_EPOCH_MAX);
		return -EINVAL;
	}
	rc = gn_session_supersede(s, h.epoch, h.secret);
	if (rc != 0 && rc != -EINPROGRESS)
		return rc;
	if (gn_admit_session(s) != 0) {
		s->admitted = false;
		return -EBUSY;
	}
	s->attr = (struct gantry_session_attr){.id = s->ch.session,
					       .epoch = h.epoch,
					       .lanes = h.lanes,
					       .depth = h.depth,
					       .regions = h.regions};
	memcpy(s->expected_uuid, h.uuid, sizeof(s->expected_uuid));
	s->expected_verifier = h.verifier;
	s->rules.regions = calloc(h.regions + 1, sizeof(struct gantry_region *));
	s->lanes = calloc(h.lanes, sizeof(*s->lanes));
	if (!s->rules.regions || !s->lanes)
		return -ENOMEM;
	s->rules.n_regions = h.regions + 1;
	s->features = h.features & gn_features_over(ep->device);
	if (!ops_of(s)->unexport)
		s->features &= ~GN_FEATURE_UNEXPORT;
	s->rules.refused_flags = (s->features & GN_FEATURE_CRC) != 0 ? 0 : GANTRY_IO_CRC;
	s->answer.hello = (struct gn_hello_answer){
		.version = GN_FRAME_VERSION, .epoch = h.epoch, .features = s->features};
	memcpy(s->answer.hello.secret, s->secret, sizeof(s->secret));
	s->answer_len = sizeof(s->answer.hello);
	s->waits_for_predecessor = rc == -EINPROGRESS;
	return s->waits_for_predecessor ? -EINPROGRESS : gn_step_hello(s);
}

int gn_step_hello(struct gantry_session *s)
{
	s->waits_for_predecessor = 0;
	s->hello_delivered = 1;
	return ops_of(s)->hello(s->role->role, s, &s->attr);
}

/* A relay relays UNEXPORT, so each of its own servers must support that. */
static int hello_done(struct gantry_session *s)
{
	s->features &= ~GN_FEATURE_UNEXPORT | gn_client_common_features(s->role, s->attr.id);
	s->answer.hello.features = s->features;
	s->answer.hello.region_limit = gn_limit_pack(
		gn_client_common_region_limit(s->role, s->attr.id, s->rights.region_bytes));
	return 0;
}

static int query(struct gantry_session *s, const void *payload)
{
	(void)payload;
	s->answer_len = sizeof(s->answer.volume);
	memset(&s->answer.volume, 0, sizeof(s->answer.volume));
	return ops_of(s)->query(s->role->role, s, &s->answer.volume);
}

static uint32_t caps_of(const struct gantry_session *s)
{
	struct gantry_device_info info = {.caps = 0};

	s->ep->device->ops->info(s->ep->device->dev, &info);
	return info.caps;
}

/*
 * Returns true if data must be moved by remote reads and writes: the role accesses the data, but
 * the device cannot map regions.
 */
static int needs_bounce(const struct gantry_session *s)
{
	return ops_of(s)->map_regions && (caps_of(s) & GANTRY_CAP_MAPPED) == 0;
}

/*
 * A session resumes only on the same volume, and only if the data of that volume is not lost.
 * Returns 0, or -ESTALE with a reason in s->refusal.
 */
static int check_expected(struct gantry_session *s)
{
	const struct gantry_volume_info *volume = &s->answer.volume;
	char is[GANTRY_UUID_TEXT], was[GANTRY_UUID_TEXT];

	if (gantry_uuid_is_other(volume->uuid, s->expected_uuid)) {
		gn_session_refuse(s, "another volume (uuid=%s, the session had uuid=%s)",
				  gantry_uuid_text(volume->uuid, is),
				  gantry_uuid_text(s->expected_uuid, was));
		return -ESTALE;
	}
	if ((volume->flags & GANTRY_VOLUME_VOLATILE) != 0 && volume->verifier != 0 &&
	    s->expected_verifier != 0 && volume->verifier != s->expected_verifier) {
		gn_session_refuse(
			s,
			"the volume has lost its data: volatile, and its target was restarted "
			"(verifier=%016llx, the session had %016llx)",
			(unsigned long long)volume->verifier,
			(unsigned long long)s->expected_verifier);
		return -ESTALE;
	}
	return 0;
}

/*
 * Returns true if the device can move data directly to and from the volume: the backend stores the
 * volume in memory, there are no stages, and the volume is within listen.direct_memory. The result
 * of GANTRY_OP_EXTENTS needs a buffer outside the volume.
 */
static bool is_direct(const struct gantry_session *s, const struct gantry_volume_info *volume,
		      void **addr_p)
{
	const struct gn_role *role = s->role;

	return role->backend_ops && role->spec.n_stages == 0 &&
	       volume->size <= s->ep->direct_memory &&
	       !gantry_op_in(GANTRY_OP_EXTENTS, volume->ops) &&
	       role->backend_ops->memory(role->backend, addr_p) == 0;
}

/*
 * A target accepts lists for each backend. A list needs a buffer outside the volume, so a volume
 * that the device accesses directly has no lists.
 */
static void offer_lists(struct gantry_session *s, struct gantry_volume_info *volume)
{
	void *addr;

	s->rules.relays = !s->role->backend_ops;
	s->takes_lists = (volume->flags & GANTRY_VOLUME_LISTS) != 0 &&
			 gn_pipeline_count_bouncing(s->role->pipeline) == 0;
	if (s->role->backend_ops)
		volume->flags |= GANTRY_VOLUME_LISTS;
	if ((s->features & GN_FEATURE_LISTS) == 0 ||
	    (needs_bounce(s) && is_direct(s, volume, &addr)))
		volume->flags &= ~GANTRY_VOLUME_LISTS;
}

static int query_done(struct gantry_session *s)
{
	struct gantry_volume_info *volume = &s->answer.volume;
	const char *fault;

	volume->max_io = gn_bounce_limit(volume->max_io, needs_bounce(s) ? s->ep->move_memory : 0,
					 gn_pipeline_count_bouncing(s->role->pipeline) != 0);
	offer_lists(s, volume);
	if (s->rights.read_only)
		volume->flags |= GANTRY_VOLUME_READ_ONLY;
	s->terminal_volume = *volume;
	if (gn_pipeline_volume(s->role->pipeline, volume) != 0) {
		gn_session_refuse(s, "a stage rejects the volume; see the log of the server");
		return -EINVAL;
	}
	fault = gn_volume_fault(volume);
	if (fault) {
		gn_session_refuse(s, "the role describes an impossible volume: %s", fault);
		return -EINVAL;
	}
	s->rules.volume = *volume;
	gn_io_rules_ready(&s->rules);
	return check_expected(s);
}

static int export(struct gantry_session *s, const void *payload)
{
	const struct gn_device *device = s->ep->device;
	const int map = ops_of(s)->map_regions && !needs_bounce(s);
	const uint32_t flags = GANTRY_IMPORT_KEEPS_PAGES | (map ? GANTRY_IMPORT_MAP : 0);
	struct gantry_token token;
	int rc;

	memcpy(&token, payload, sizeof(token));
	if (s->state == GN_RUNNING && (s->features & GN_FEATURE_UNEXPORT) == 0) {
		gn_session_refuse(s, "EXPORT while the session runs was not negotiated");
		return -EOPNOTSUPP;
	}
	if (token.handle == 0 || token.handle >= s->rules.n_regions ||
	    s->rules.regions[token.handle]) {
		gn_session_refuse(s, "region handle %u is in use or not in 1 .. %u", token.handle,
				  s->attr.regions);
		return -EINVAL;
	}
	rc = device->ops->import_region(s->ch.conn, &token, flags, &s->importing);
	if (rc != 0) {
		const char *why = device->ops->import_error(s->ch.conn);

		gn_session_refuse(s, "region %u cannot be imported: %s", token.handle,
				  *why ? why : strerror(-rc));
		return rc;
	}
	if (s->importing->handle != token.handle) {
		gn_session_refuse(s, "region %u was imported with handle %u", token.handle,
				  s->importing->handle);
		return -EPROTO;
	}
	if (map && !s->importing->addr) {
		gn_session_refuse(s,
				  "region %u was not mapped, although device %s has the capability",
				  token.handle, device->name);
		return -EOPNOTSUPP;
	}
	if (!gantry_range_ok(s->region_bytes, s->importing->length, s->rights.region_bytes)) {
		gn_session_refuse(s, "regions too large (used=%llu, asked=%llu, limit %s=%llu)",
				  (unsigned long long)s->region_bytes,
				  (unsigned long long)s->importing->length,
				  s->rights.region_bytes == s->ep->max_region_bytes
					  ? "listen.max_region_bytes"
					  : "region_bytes of listen.allow",
				  (unsigned long long)s->rights.region_bytes);
		return -EACCES;
	}
	rc = gn_admit_memory(s, GN_QUOTA_REGION_BYTES, s->importing->length);
	return rc ? rc : ops_of(s)->region(s->role->role, s, s->importing);
}

static int export_done(struct gantry_session *s)
{
	const uint32_t handle = s->importing->handle;

	s->region_bytes += s->importing->length;
	s->rules.regions[handle] = s->importing;
	s->importing = NULL;
	for (uint32_t i = 0; i < s->n_lanes; i++)
		if (s->lanes[i].resp)
			gn_responder_add_region(s->lanes[i].resp, handle);
	return 0;
}

/* No IO in flight uses the region: the role ends its own use of it. */
static int unexport_drained(struct gantry_session *s)
{
	return ops_of(s)->unexport(s->role->role, s, s->unexporting);
}

static void drained_posted(void *arg)
{
	struct gantry_session *s = arg;
	int rc;

	if (--s->n_draining != 0 || s->phase != GN_SESSION_OPEN)
		return;
	rc = unexport_drained(s);
	if (rc != -EINPROGRESS)
		gn_session_continue(s, rc);
}

static void on_region_drained(void *arg)
{
	struct gn_session_lane *sl = arg;

	gn_loop_post_own(sl->session->role->loop, &sl->drained_post, drained_posted, sl->session);
}

/* Reject new IO that names the region, and let the IO in flight that uses it complete. */
static int unexport(struct gantry_session *s, const void *payload)
{
	struct gn_unexport u;

	memcpy(&u, payload, sizeof(u));
	if ((s->features & GN_FEATURE_UNEXPORT) == 0) {
		gn_session_refuse(s, "UNEXPORT was not negotiated");
		return -EOPNOTSUPP;
	}
	if (u.handle >= s->rules.n_regions || !s->rules.regions[u.handle]) {
		gn_session_refuse(s, "region handle %u is not in use", u.handle);
		return -EINVAL;
	}
	s->unexporting = s->rules.regions[u.handle];
	for (uint32_t i = 0; i < s->n_lanes; i++)
		s->n_draining += s->lanes[i].resp != NULL;
	for (uint32_t i = 0; i < s->n_lanes; i++)
		if (s->lanes[i].resp)
			gn_responder_drain_region(s->lanes[i].resp, u.handle);
	return s->n_draining != 0 ? -EINPROGRESS : unexport_drained(s);
}

static int unexport_done(struct gantry_session *s)
{
	const uint64_t length = s->unexporting->length;

	s->rules.regions[s->unexporting->handle] = NULL;
	s->ep->device->ops->release_region(s->ch.conn, s->unexporting);
	s->unexporting = NULL;
	s->region_bytes -= length;
	gn_admit_return(s, GN_QUOTA_REGION_BYTES, length);
	return 0;
}

/*
 * Use the volume itself as bounce memory: let the device move data directly to and from it. Returns
 * 0, or -errno: use bounce buffers.
 */
static int register_volume(struct gantry_session *s, const struct gantry_hop *terminal)
{
	const struct gn_role *role = s->role;
	struct gantry_region store = {.fd = -1};
	struct gantry_volume_info volume;
	int rc;

	if (s->store.addr)
		return 0;
	if (!role->backend_ops || terminal->submit != role->backend_ops->submit)
		return -ENOTSUP;
	role->backend_ops->volume(role->backend, &volume);
	if (volume.size != s->rules.volume.size || !is_direct(s, &volume, &store.addr))
		return -ENOTSUP;
	store.length = volume.size;
	s->store = store;
	rc = s->ep->device->ops->register_region(s->ch.conn, &s->store);
	if (rc == 0) {
		gantry_count(s->role->server.direct, 1);
		return 0;
	}
	gn_log(GN_LOG_INFO, role->host.name,
	       "cannot register the volume with device %s: %s; data is copied through bounce buffers%s",
	       s->ep->device->name, strerror(-rc), rc == -ENOMEM ? "; raise ulimit -l" : "");
	s->store.addr = NULL;
	return rc;
}

/* Returns the bytes of bounce memory of a lane: no more than all its IOs can use together. */
static uint64_t bounce_bytes(const struct gantry_session *s)
{
	uint64_t all = (uint64_t)s->attr.depth * gn_page_count(s->rules.volume.max_io) *
		       GN_PAGE_BYTES;

	return all < s->ep->move_memory ? all : s->ep->move_memory;
}

static int create_bounce_memory(struct gantry_session *s, struct gn_session_lane *sl)
{
	uint64_t bytes = bounce_bytes(s);
	struct gantry_region *memory;
	int rc = gn_region_create(bytes, 0, &memory);

	if (rc == 0) {
		rc = s->ep->device->ops->register_region(s->ch.conn, memory);
		if (rc != 0)
			gn_region_destroy(&memory, 1);
	}
	if (rc != 0)
		gn_session_refuse(
			s, "cannot allocate bounce buffers (bytes=%llu): %s%s",
			(unsigned long long)bytes, strerror(-rc),
			rc == -ENOMEM
				? "; raise ulimit -l of the server, or lower its listen.move_memory"
				: "");
	else
		sl->move_memory = memory;
	return rc;
}

/* Returns the bytes of the bounce buffers of stages for a lane, see gantry_bounce_begin(). */
static uint64_t stage_memory(const struct gantry_session *s)
{
	return (uint64_t)gn_pipeline_count_bouncing(s->role->pipeline) * s->attr.depth *
	       s->rules.volume.max_io;
}

/* Returns the bytes for lists of a lane, see gn_responder_lists_create(). */
static uint64_t list_memory(const struct gantry_session *s)
{
	if (s->rules.relays || (s->rules.volume.flags & GANTRY_VOLUME_LISTS) == 0)
		return 0;
	return s->attr.depth * sizeof(struct gn_list) +
	       (needs_bounce(s) || s->takes_lists ? 0 : GANTRY_LIST_BYTES);
}

/*
 * Returns the largest memory that the queues of the session need, in bytes. Each lane needs memory
 * for two rings, one for each direction, for the descriptors, for what the device adds, for lists,
 * and for bounce buffers of stages and of the device.
 */
static uint64_t queue_memory(const struct gantry_session *s)
{
	struct gantry_device_info info = {.caps = 0};
	uint64_t lane;

	s->ep->device->ops->info(s->ep->device->dev, &info);
	lane = 2ull * gn_device_queue_depth(s->ep->device, s->attr.depth) * GANTRY_IO_WIRE_BYTES +
	       s->attr.depth * sizeof(struct gantry_io) + info.lane_bytes + list_memory(s) +
	       stage_memory(s);
	if (needs_bounce(s))
		lane += bounce_bytes(s);
	return info.conn_bytes + s->attr.lanes * lane;
}

static int create_lane(struct gantry_session *s, uint32_t i)
{
	const struct gantry_transport_ops *ops = s->ep->device->ops;
	struct gn_session_lane *sl = &s->lanes[i];
	struct gn_lane *lane = &s->role->lanes[i % s->role->n_lanes];
	struct gantry_queue_attr attr = {
		.depth = gn_device_queue_depth(s->ep->device, s->attr.depth),
		.lane = i,
		.thread = lane->worker};
	int rc;

	sl->session = s;
	attr.flags = gn_worker_is_edge_triggered(lane->worker) ? GANTRY_QUEUE_EDGES : 0;
	rc = ops->consumer_create(s->ch.conn, &attr, &sl->consumer_id, &sl->consumer);
	if (rc != 0)
		return rc;
	s->n_lanes = i + 1;
	rc = ops->post_recv(sl->consumer, attr.depth);
	if (rc != 0)
		return rc;
	rc = ops->producer_create(s->ch.conn, sl->peer_consumer_id, &attr, &sl->producer);
	if (rc == 0)
		rc = ops_of(s)->lane(s->role->role, s, &lane->pub, i, &sl->terminal);
	if (rc != 0 || !needs_bounce(s))
		return rc;
	if (register_volume(s, &sl->terminal) != 0)
		rc = create_bounce_memory(s, sl);
	return rc != 0 ? rc : ops->rma_create(s->ch.conn, &attr, &sl->rma);
}

static int queues(struct gantry_session *s, const void *payload)
{
	struct gn_queues q;
	int rc;

	memcpy(&q, payload, sizeof(q));
	if (q.n != s->attr.lanes || q.depth != s->attr.depth) {
		gn_session_refuse(
			s,
			"queues differ from HELLO (queues=%u, depth=%u, HELLO has %u of depth %u)",
			q.n, q.depth, s->attr.lanes, s->attr.depth);
		return -EINVAL;
	}
	rc = gn_admit_memory(s, GN_QUOTA_QUEUE_MEMORY, queue_memory(s));
	if (rc != 0)
		return rc;
	s->answer_len = sizeof(s->answer.queues);
	s->answer.queues = (struct gn_queues){.n = q.n, .depth = q.depth};
	for (uint32_t i = 0; i < q.n; i++) {
		s->lanes[i].peer_consumer_id = q.consumer[i];
		rc = create_lane(s, i);
		if (rc != 0) {
			if (s->refusal[0] == '\0')
				gn_session_refuse(s, "cannot create queue %u: %s", i,
						  strerror(-rc));
			return rc;
		}
		s->answer.queues.consumer[i] = s->lanes[i].consumer_id;
	}
	return 0;
}

static int start(struct gantry_session *s, const void *payload)
{
	(void)payload;
	return gn_start_await(s);
}

static void broken_posted(void *arg)
{
	const struct gn_session_lane *sl = arg;

	gn_session_end(sl->session, sl->broken);
}

/*
 * Called once, on the lane. The post runs before the session is destroyed, because the responder
 * posts that it is idle after this post.
 */
static void on_responder_broken(void *arg, int reason)
{
	struct gn_session_lane *sl = arg;

	sl->broken = reason;
	gn_loop_post_own(sl->session->role->loop, &sl->broken_post, broken_posted, sl);
}

static void idle_posted(void *arg)
{
	struct gantry_session *s = arg;

	if (--s->n_busy == 0)
		gn_session_idle(s);
}

static void on_responder_idle(void *arg)
{
	struct gn_session_lane *sl = arg;

	gn_loop_post_own(sl->session->role->loop, &sl->idle_post, idle_posted, sl->session);
}

/*
 * Returns the quantum of each responder of the session, in bytes. Peers with the largest weight get
 * the whole GN_SPLIT_QUANTUM, so that weights do not make a turn longer. The responders that a
 * session has on one lane of the role share the quantum.
 */
static uint32_t responder_quantum(const struct gantry_session *s)
{
	uint32_t n_resps = (s->n_lanes + s->role->n_lanes - 1) / s->role->n_lanes;
	uint32_t quantum = GN_SPLIT_QUANTUM;

	if (s->ep->n_weights != 0)
		quantum = quantum / s->ep->max_weight * gn_peer_weight(s->ep, s->account->name);
	return quantum / n_resps;
}

static int start_done(struct gantry_session *s)
{
	const uint32_t quantum = responder_quantum(s);

	for (uint32_t i = 0; i < s->n_lanes; i++) {
		struct gn_session_lane *sl = &s->lanes[i];
		struct gn_responder_attr attr = {
			.lane = &s->role->lanes[i % s->role->n_lanes],
			.ops = s->ep->device->ops,
			.rules = &s->rules,
			.terminal = sl->terminal,
			.volume = &s->terminal_volume,
			.session = s,
			.depth = s->attr.depth,
			.quantum = quantum,
			.consumer = sl->consumer,
			.producer = sl->producer,
			.rma = sl->rma,
			.move_memory = sl->move_memory ? sl->move_memory : &s->store,
			.moves_store = !sl->move_memory,
			.relays = !s->role->backend_ops,
			.takes_lists = s->takes_lists,
			.ordered = (caps_of(s) & GANTRY_CAP_ORDERED) != 0,
			.notes = (s->features & GN_FEATURE_NOTES) != 0,
			.broken = on_responder_broken,
			.idle = on_responder_idle,
			.drained = on_region_drained,
			.arg = sl,
		};
		int rc = gn_responder_create(&attr, &sl->resp);

		if (rc != 0)
			return rc;
	}
	return 0;
}

static int stop(struct gantry_session *s, const void *payload)
{
	(void)payload;
	gn_session_quiesce(s); /* gn_session_idle() continues */
	return -EINPROGRESS;
}

static int stop_done(struct gantry_session *s)
{
	gn_session_release(s);
	return 0;
}

static int bye(struct gantry_session *s, const void *payload)
{
	(void)s;
	(void)payload;
	return 0;
}

static int no_second_half(struct gantry_session *s)
{
	(void)s;
	return 0;
}

static const struct {
	int (*begin)(struct gantry_session *s, const void *payload);
	int (*finish)(struct gantry_session *s);
} steps[GN_FRAME_TYPES] = {
	[GN_FRAME_HELLO] = {hello, hello_done},    [GN_FRAME_QUERY] = {query, query_done},
	[GN_FRAME_EXPORT] = {export, export_done}, [GN_FRAME_QUEUES] = {queues, no_second_half},
	[GN_FRAME_START] = {start, start_done},    [GN_FRAME_STOP] = {stop, stop_done},
	[GN_FRAME_BYE] = {bye, no_second_half},    [GN_FRAME_UNEXPORT] = {unexport, unexport_done},
};

int gn_step_begin(struct gantry_session *s, unsigned type, const void *payload)
{
	return steps[type].begin(s, payload);
}

int gn_step_finish(struct gantry_session *s, unsigned type)
{
	return steps[type].finish(s);
}
