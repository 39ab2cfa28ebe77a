/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * role.c - put a role together, and hand it the services of the host.
 */
#include "session/role.h"

#include "base/clock.h"
#include "base/log.h"
#include "memory/region.h"
#include "pipeline/fanout.h"
#include "session/client.h"
#include "session/role_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* -- services -- */

static struct gantry_lane *rh_lane(const struct gantry_role_host *rh, uint32_t index)
{
	struct gn_role *role = rh->core;

	return index < role->n_lanes ? &role->lanes[index].pub : NULL;
}

static int rh_poller_add(struct gantry_lane *lane, const struct gantry_poller *poller)
{
	struct gn_lane *l = lane->core;

	return gn_worker_add(l->worker, poller);
}

static void rh_poller_remove(struct gantry_lane *lane, void *self)
{
	struct gn_lane *l = lane->core;

	gn_worker_remove(l->worker, self);
}

static void rh_lane_call(struct gantry_lane *lane, void (*fn)(void *arg), void *arg)
{
	struct gn_lane *l = lane->core;

	gn_worker_call(l->worker, fn, arg);
}

static int rh_chain_create(struct gantry_lane *lane, const struct gantry_hop *owner, const struct gantry_hop *terminal,
			   uint32_t n, struct gantry_chain **chain_p, struct gantry_io **ios_p)
{
	return gn_chain_create(lane->core, owner, terminal, n, chain_p, ios_p);
}

static int rh_fanout_create(struct gantry_lane *lane, const struct gantry_hop *terminals, uint32_t n_terminals,
			    uint32_t n_parents, uint32_t max_pieces, struct gantry_fanout **fanout_p)
{
	return gn_fanout_create(lane->core, terminals, n_terminals, n_parents, max_pieces, fanout_p);
}

static int rh_region_create(const struct gantry_role_host *rh, uint64_t bytes, int flags, struct gantry_region **region_p)
{
	(void)rh;
	return gn_region_create(bytes, flags, region_p);
}

static void rh_region_destroy(const struct gantry_role_host *rh, struct gantry_region *region, int quiet)
{
	(void)rh;
	gn_region_destroy(&region, quiet);
}

static int rh_client_open(const struct gantry_role_host *rh, uint32_t connect, const struct gantry_session_attr *attr,
			  const struct gantry_client_events *events, void *arg, struct gantry_client **client_p)
{
	return gn_client_open(rh->core, connect, attr, events, arg, client_p);
}

static int rh_serve(const struct gantry_role_host *rh, const struct gantry_server_ops *ops, void *plugin_role)
{
	(void)plugin_role; /* known since open */
	return gn_server_start(rh->core, ops);
}

static void rh_backend_volume(const struct gantry_role_host *rh, struct gantry_volume_info *volume)
{
	const struct gn_role *role = rh->core;

	memset(volume, 0, sizeof(*volume));
	if (role->backend_ops != NULL)
		role->backend_ops->volume(role->backend, volume);
}

static int rh_backend_hop(const struct gantry_role_host *rh, struct gantry_lane *lane, struct gantry_hop *terminal)
{
	const struct gn_role *role = rh->core;

	if (role->backend_ops == NULL)
		return -EINVAL;
	*terminal = (struct gantry_hop){.submit = role->backend_ops->submit, .self = role->backend_lanes[lane->index]};
	return 0;
}

static void drain_on_lane(void *arg)
{
	gn_pipeline_drain(arg, NULL);
}

/* When nothing comes any more: what came after it would stay with the stages. */
static void drain(struct gn_role *role)
{
	for (uint32_t i = 0; i < role->n_lanes; i++)
		gn_worker_call(role->lanes[i].worker, drain_on_lane, &role->lanes[i]);
}

static void rh_finished(const struct gantry_role_host *rh, int status)
{
	struct gn_role *role = rh->core;

	if (role->finished)
		return;
	if (role->server.ops == NULL) {
		gn_role_finish(role, status);
		return;
	}
	/* its sessions end first: they lean on the role */
	if (status != 0)
		role->status = status;
	gn_client_close_all(role);
	gn_server_stop(role);
	drain(role);
}

static uint64_t rh_connect_resume(const struct gantry_role_host *rh, uint32_t connect)
{
	const struct gn_role *role = rh->core;

	return connect < role->spec.n_connects ? role->spec.connects[connect].resume_ns : 0;
}

static void rh_post(const struct gantry_role_host *rh, void (*fn)(void *arg), void *arg)
{
	const struct gn_role *role = rh->core;

	gn_loop_must_post(role->loop, fn, arg);
}

/* -- timers of the plugin -- */

struct gn_role_timer {
	struct gn_timer timer;
	struct gn_role *role;
	void (*fn)(void *arg);
	void *arg;
	struct gn_role_timer *next;
};

static void drop_timer(struct gn_role_timer *t)
{
	struct gn_role_timer **p;

	for (p = &t->role->timers; *p != t; p = &(*p)->next)
		;
	*p = t->next;
	gn_loop_clear_timer(t->role->loop, &t->timer);
	free(t);
}

static void on_timer(void *arg)
{
	struct gn_role_timer *t = arg;
	void (*fn)(void *arg) = t->fn;
	void *fn_arg = t->arg;

	drop_timer(t);
	fn(fn_arg);
}

static int rh_after(const struct gantry_role_host *rh, uint64_t ns, void (*fn)(void *arg), void *arg)
{
	struct gn_role *role = rh->core;
	struct gn_role_timer *t = calloc(1, sizeof(*t));

	if (t == NULL)
		return -ENOMEM;
	t->timer = (struct gn_timer){.fn = on_timer, .arg = t};
	t->role = role;
	t->fn = fn;
	t->arg = arg;
	t->next = role->timers;
	role->timers = t;
	gn_loop_set_timer(role->loop, &t->timer, gn_now_ns() + ns);
	return 0;
}

static void rh_after_cancel(const struct gantry_role_host *rh, const void *arg)
{
	const struct gn_role *role = rh->core;
	struct gn_role_timer *t = role->timers, *next;

	for (; t != NULL; t = next) {
		next = t->next;
		if (t->arg == arg)
			drop_timer(t);
	}
}

static void fill_services(struct gn_role *role)
{
	role->rh = (struct gantry_role_host){
		.struct_size = sizeof(role->rh),
		.n_lanes = role->spec.n_lanes,
		.n_connects = role->spec.n_connects,
		.host = &role->host.pub,
		.core = role,
		.lane = rh_lane,
		.poller_add = rh_poller_add,
		.poller_remove = rh_poller_remove,
		.chain_create = rh_chain_create,
		.chain_destroy = gn_chain_destroy,
		.fanout_create = rh_fanout_create,
		.fanout_destroy = gn_fanout_destroy,
		.fanout_submit = gn_fanout_submit,
		.region_create = rh_region_create,
		.region_destroy = rh_region_destroy,
		.client_open = rh_client_open,
		.client_export = gn_client_export,
		.client_start = gn_client_start,
		.client_hop = gn_client_hop,
		.client_close = gn_client_close,
		.client_abort = gn_client_abort,
		.client_free = gn_client_free,
		.serve = rh_serve,
		.session_continue = gn_session_continue,
		.session_refuse = gn_session_refuse,
		.session_end = gn_session_end,
		.session_set = gn_session_set,
		.session_user = gn_session_user,
		.session_id = gn_session_id,
		.backend_volume = rh_backend_volume,
		.backend_hop = rh_backend_hop,
		.finished = rh_finished,
		.post = rh_post,
		.client_quiet = gn_client_quiet,
		.connect_resume = rh_connect_resume,
		.client_id = gn_client_id,
		.after = rh_after,
		.after_cancel = rh_after_cancel,
		.lane_call = rh_lane_call,
		.client_settled_ns = gn_client_settled_ns,
	};
}

/* -- making and unmaking -- */

static int open_lanes(struct gn_role *role)
{
	role->lanes = gantry_zalloc_lines(role->spec.n_lanes * sizeof(*role->lanes));
	if (role->lanes == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < role->spec.n_lanes; i++) {
		int rc = gn_lane_init(&role->lanes[i], i, role->spec.n_lanes, &role->host, role->spec.workers[i]);

		if (rc != 0)
			return rc;
		role->n_lanes++;
	}
	return 0;
}

/* What can be in flight on one lane: lanes of a session go to those of the role in turn. */
static uint32_t backend_depth(const struct gn_role *role)
{
	const struct gn_endpoint *ep = role->spec.listen;
	uint64_t depth = 1;

	if (ep != NULL)
		depth = (uint64_t)ep->max_depth * ep->max_sessions * ((ep->max_lanes + role->n_lanes - 1) / role->n_lanes);
	return depth > UINT32_MAX ? UINT32_MAX : (uint32_t)depth;
}

static int start_backend_lane(struct gn_role *role, struct gn_lane *lane)
{
	const struct gantry_backend_ops *ops = role->backend_ops;
	void *self = NULL;
	struct gantry_poller poller = {.poll = ops->poll, .arm = ops->arm, .disarm = ops->disarm, .fd = ops->fd};
	int rc = ops->start(role->backend, &lane->pub, backend_depth(role), &self);

	if (rc != 0)
		return rc;
	role->backend_lanes[role->n_backend_lanes++] = self;
	poller.self = self;
	return gn_worker_add(lane->worker, &poller);
}

static int open_backend(struct gn_role *role)
{
	const struct gn_part *part = role->spec.backend;
	int rc;

	if (part == NULL)
		return 0;
	role->backend_lanes = calloc(role->n_lanes, sizeof(*role->backend_lanes));
	if (role->backend_lanes == NULL)
		return -ENOMEM;
	gn_host_init(&role->backend_host, "%s.backend", role->host.name);
	role->backend_ops = part->ops;
	rc = role->backend_ops->open(&role->backend_host.pub, part->conf, &role->backend);
	if (rc != 0) {
		gn_log(GN_LOG_ERROR, role->backend_host.name, "%s: cannot be opened: %s", part->name, strerror(-rc));
		role->backend_ops = NULL;
		gn_host_fini(&role->backend_host);
		return rc;
	}
	for (uint32_t i = 0; i < role->n_lanes && rc == 0; i++)
		rc = start_backend_lane(role, &role->lanes[i]);
	return rc;
}

static void close_backend(struct gn_role *role)
{
	const struct gantry_backend_ops *ops = role->backend_ops;

	if (ops != NULL) {
		for (uint32_t i = 0; i < role->n_backend_lanes; i++) {
			gn_worker_remove(role->lanes[i].worker, role->backend_lanes[i]);
			ops->stop(role->backend_lanes[i]);
		}
		ops->close(role->backend);
		gn_host_fini(&role->backend_host);
	}
	free(role->backend_lanes);
}

int gn_role_create(struct gn_loop *loop, const struct gn_role_spec *spec, struct gn_role **role_p)
{
	struct gn_role *role = calloc(1, sizeof(*role));
	int rc;

	if (role == NULL)
		return -ENOMEM;
	role->spec = *spec;
	role->ops = spec->part.ops;
	role->loop = loop;
	gn_host_init(&role->host, "roles.%s", spec->name);
	fill_services(role);
	rc = open_lanes(role);
	if (rc == 0)
		rc = open_backend(role);
	if (rc == 0)
		rc = gn_pipeline_open(role->host.name, spec->stages, spec->n_stages, role->lanes, role->n_lanes, &role->pipeline);
	if (rc == 0) {
		rc = role->ops->open(&role->rh, spec->part.conf, &role->role);
		role->opened = rc == 0;
		if (rc != 0)
			gn_log(GN_LOG_ERROR, role->host.name, "%s: cannot be opened: %s", spec->part.name, strerror(-rc));
	}
	if (rc != 0) {
		gn_role_destroy(&role);
		return rc;
	}
	*role_p = role;
	return 0;
}

int gn_role_start(struct gn_role *role)
{
	return role->ops->start(role->role);
}

void gn_role_stop(struct gn_role *role)
{
	role->ops->stop(role->role);
	if (role->server.ops != NULL)
		gn_server_stop(role);
	drain(role);
}

static void tell_finished(void *arg)
{
	struct gn_role *role = arg;

	role->spec.finished(role->spec.arg, role->status);
}

void gn_role_finish(struct gn_role *role, int status)
{
	uint64_t doubled = gn_host_counter(&role->host, "double_completions");

	if (role->finished)
		return;
	if (doubled != 0)
		gn_log(GN_LOG_WARN, role->host.name, "a stage or backend completed descriptors twice double_completions=%llu",
		       (unsigned long long)doubled);
	role->finished = 1;
	role->status = status;
	rh_post(&role->rh, tell_finished, role);
}

void gn_role_unlisten(struct gn_role *role)
{
	gn_server_unlisten(role);
}

void gn_role_destroy(struct gn_role **role_p)
{
	struct gn_role *role = *role_p;

	*role_p = NULL;
	if (role == NULL)
		return;
	gn_server_unlisten(role);
	if (role->opened)
		role->ops->close(role->role);
	while (role->timers != NULL)
		drop_timer(role->timers);
	gn_client_free_all(role);
	gn_pipeline_close(&role->pipeline);
	close_backend(role);
	for (uint32_t i = 0; i < role->n_lanes; i++)
		gn_lane_fini(&role->lanes[i]);
	free(role->lanes);
	free(role->server.ops_done);
	free(role->server.ops_failed);
	gn_host_fini(&role->host);
	free(role);
}

void gn_role_plan_listen(const struct gn_role *role, struct gantry_plan *plan)
{
	const struct gn_endpoint *ep = role->spec.listen;

	*plan = (struct gantry_plan){
		.sessions = ep->max_sessions,
		.lanes = ep->max_lanes,
		.depth = ep->max_depth,
		.regions = ep->max_regions,
		.region_bytes = ep->max_region_bytes,
		.sessions_option = "listen.max_sessions",
		.lanes_option = "listen.max_lanes",
		.depth_option = "listen.max_depth",
		.regions_option = "listen.max_regions",
		.bytes_option = "listen.max_region_bytes",
	};
}

void gn_role_plan(const struct gn_role *role, uint32_t connect, struct gantry_plan *plan)
{
	if (role->spec.listen != NULL)
		gn_role_plan_listen(role, plan);
	else
		*plan = (struct gantry_plan){.sessions = 1, .lanes = role->spec.n_lanes, .lanes_option = "lanes"};
	role->ops->plan(role->role, connect, plan);
}

/* -- reports -- */

void gn_role_report(struct gn_role *role, struct gantry_writer *w)
{
	w->object(w, role->spec.name);
	w->string(w, "role", role->spec.part.name);
	w->u64(w, "lanes", role->n_lanes);
	role->ops->report(role->role, w);
	gn_host_report(&role->host, w);
	if (role->server.ops != NULL)
		gn_server_report(role, w);
	gn_pipeline_report(role->pipeline, w);
	if (role->backend_ops != NULL) {
		w->object(w, "backend");
		w->string(w, "type", role->spec.backend->name);
		role->backend_ops->report(role->backend, w);
		gn_host_report(&role->backend_host, w);
		w->end(w);
	}
	w->end(w);
}

static void describe_endpoint(const struct gn_endpoint *ep, const char *key, struct gantry_writer *w)
{
	struct gantry_device_info info = {.caps = 0};

	ep->device->ops->info(ep->device->dev, &info);
	w->object(w, key);
	w->string(w, "device", ep->device->name);
	w->string(w, "transport", ep->device->plugin_name);
	w->string(w, "service", ep->service);
	w->u64(w, "max_queue_depth", info.max_depth);
	if (ep->connect_timeout_ns)
		w->u64(w, "connect_timeout_ns", ep->connect_timeout_ns);
	w->u64(w, "control_timeout_ns", ep->control_timeout_ns);
	w->u64(w, "heartbeat_ns", ep->heartbeat_ns);
	w->u64(w, "io_timeout_ns", ep->io_timeout_ns);
	w->end(w);
}

static void describe_credits(const struct gn_endpoint *ep, struct gantry_writer *w)
{
	uint64_t queues = (uint64_t)ep->max_sessions * ep->max_lanes, depth = gn_device_queue_depth(ep->device, ep->max_depth);

	w->object(w, "credits");
	w->u64(w, "sessions", ep->max_sessions);
	w->u64(w, "lanes", ep->max_lanes);
	w->u64(w, "depth", ep->max_depth);
	w->u64(w, "receives_per_queue", depth);
	w->u64(w, "receives_total", depth * queues);
	w->u64(w, "descriptor_bytes", queues * ep->max_depth * sizeof(struct gantry_io));
	w->u64(w, "region_bytes", ep->max_region_bytes * ep->max_sessions);
	w->end(w);
}

void gn_role_describe(struct gn_role *role, struct gantry_writer *w)
{
	w->object(w, role->spec.name);
	w->string(w, "role", role->spec.part.name);
	w->u64(w, "lanes", role->n_lanes);
	w->array(w, "pipeline");
	for (uint32_t i = 0; i < gn_pipeline_length(role->pipeline); i++)
		w->string(w, NULL, gn_pipeline_stage_name(role->pipeline, i));
	w->string(w, NULL, role->backend_ops != NULL ? role->spec.backend->name : "link");
	w->end(w);
	if (role->spec.listen != NULL) {
		describe_endpoint(role->spec.listen, "listen", w);
		describe_credits(role->spec.listen, w);
	}
	w->array(w, "connects");
	for (uint32_t i = 0; i < role->spec.n_connects; i++)
		describe_endpoint(&role->spec.connects[i], NULL, w);
	w->end(w);
	w->end(w);
}
