/* SPDX-License-Identifier: BSD-3-Clause */
/* role_host.c - the services of the core for a role plugin: struct gantry_role_host. */
#include "session/role_priv.h"

#include "base/clock.h"
#include "engine/engine_ops.h"
#include "memory/region.h"
#include "pipeline/fanout.h"
#include "session/session_client.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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

static int rh_chain_create(struct gantry_lane *lane, const struct gantry_hop *owner,
			   const struct gantry_hop *terminal,
			   const struct gantry_volume_info *volume, uint32_t n,
			   struct gantry_chain **chain_p, struct gantry_io **ios_p)
{
	return gn_chain_create(lane->core, owner, terminal, volume, n, chain_p, ios_p);
}

static int rh_fanout_create(struct gantry_lane *lane, const struct gantry_hop *terminals,
			    uint32_t n_terminals, uint32_t n_parents, uint32_t max_pieces,
			    struct gantry_fanout **fanout_p)
{
	return gn_fanout_create(lane->core, terminals, n_terminals, n_parents, max_pieces,
				fanout_p);
}

static int rh_region_create(const struct gantry_role_host *rh, uint64_t bytes, int flags,
			    struct gantry_region **region_p)
{
	(void)rh;
	return gn_region_create(bytes, flags, region_p);
}

static void rh_region_destroy(const struct gantry_role_host *rh, struct gantry_region *region,
			      int quiet)
{
	(void)rh;
	gn_region_destroy(&region, quiet);
}

static int rh_region_withdraw(const struct gantry_role_host *rh, struct gantry_region *region)
{
	(void)rh;
	return gn_region_withdraw(region);
}

static int rh_region_map(const struct gantry_role_host *rh, int fd, uint64_t offset, uint64_t bytes,
			 struct gantry_region **region_p, const char **reason_p)
{
	(void)rh;
	return gn_region_map(fd, offset, bytes, region_p, reason_p);
}

static int rh_fd_watch(const struct gantry_role_host *rh, int fd, void (*fn)(void *arg), void *arg)
{
	const struct gn_role *role = rh->core;

	return gn_loop_add_fd(role->loop, fd, fn, arg);
}

static void rh_fd_unwatch(const struct gantry_role_host *rh, int fd)
{
	const struct gn_role *role = rh->core;

	gn_loop_remove_fd(role->loop, fd);
}

static int rh_client_open(const struct gantry_role_host *rh, uint32_t connect,
			  const struct gantry_session_attr *attr,
			  const struct gantry_client_events *events, void *arg,
			  struct gantry_client **client_p)
{
	return gn_client_open(rh->core, connect, attr, events, arg, client_p);
}

static int rh_serve(const struct gantry_role_host *rh, const struct gantry_server_ops *ops,
		    void *plugin_role)
{
	(void)plugin_role; /* the core has had this pointer since `open` */
	return gn_server_start(rh->core, ops);
}

static void rh_backend_volume(const struct gantry_role_host *rh, struct gantry_volume_info *volume)
{
	const struct gn_role *role = rh->core;

	memset(volume, 0, sizeof(*volume));
	if (role->backend_ops)
		role->backend_ops->volume(role->backend, volume);
}

static int rh_backend_hop(const struct gantry_role_host *rh, struct gantry_lane *lane,
			  struct gantry_hop *terminal)
{
	const struct gn_role *role = rh->core;

	if (!role->backend_ops)
		return -EINVAL;
	*terminal = (struct gantry_hop){.submit = role->backend_ops->submit,
					.self = role->backend_lanes[lane->index]};
	return 0;
}

static void rh_finished(const struct gantry_role_host *rh, int status)
{
	struct gn_role *role = rh->core;

	if (role->finished)
		return;
	if (!role->server.ops) {
		gn_role_finish(role, status);
		return;
	}
	/* sessions use the role, so they end first */
	if (status != 0)
		role->status = status;
	gn_client_close_all(role);
	gn_server_stop(role);
	gn_role_drain(role);
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

/* -- timers -- */

struct gn_role_timer {
	struct gn_timer timer;
	struct gn_role *role;
	void (*fn)(void *arg);
	void *arg;
	LIST_ENTRY(gn_role_timer) link; /* in role->timers */
};

static void drop_timer(struct gn_role_timer *t)
{
	LIST_REMOVE(t, link);
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

void gn_role_drop_timers(struct gn_role *role)
{
	while (!LIST_EMPTY(&role->timers))
		drop_timer(LIST_FIRST(&role->timers));
}

static int rh_after(const struct gantry_role_host *rh, uint64_t ns, void (*fn)(void *arg),
		    void *arg)
{
	struct gn_role *role = rh->core;
	struct gn_role_timer *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	t->timer = (struct gn_timer){.fn = on_timer, .arg = t};
	t->role = role;
	t->fn = fn;
	t->arg = arg;
	LIST_INSERT_HEAD(&role->timers, t, link);
	gn_loop_set_timer(role->loop, &t->timer, gn_now_ns() + ns);
	return 0;
}

static void rh_after_cancel(const struct gantry_role_host *rh, const void *arg)
{
	const struct gn_role *role = rh->core;
	struct gn_role_timer *t = LIST_FIRST(&role->timers), *next;

	for (; t; t = next) {
		next = LIST_NEXT(t, link);
		if (t->arg == arg)
			drop_timer(t);
	}
}

/* -- the table -- */

void gn_role_fill_host(struct gn_role *role)
{
	role->rh = (struct gantry_role_host){
		.struct_size = sizeof(role->rh),
		.n_lanes = role->spec.n_lanes,
		.n_connects = role->spec.n_connects,
		.host = &role->host.pub,
		.core = role,
		.engine = &gn_engine_ops,
		.lane = rh_lane,
		.poller_add = rh_poller_add,
		.poller_remove = rh_poller_remove,
		.chain_create = rh_chain_create,
		.chain_destroy = gn_chain_destroy,
		.chain_resize = gn_chain_set_size,
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
		.client_regions_released = gn_client_regions_released,
		.connect_resume = rh_connect_resume,
		.client_id = gn_client_id,
		.after = rh_after,
		.after_cancel = rh_after_cancel,
		.lane_call = rh_lane_call,
		.client_settled_ns = gn_client_settled_ns,
		.client_export_limit = gn_client_export_limit,
		.client_expect = gn_client_expect,
		.client_late_writes = gn_client_late_writes,
		.region_withdraw = rh_region_withdraw,
		.client_use_secret = gn_client_use_secret,
		.client_secret = gn_client_secret,
		.session_secret = gn_session_secret,
		.client_unexport = gn_client_unexport,
		.session_resize = gn_session_resize,
		.region_map = rh_region_map,
		.fd_watch = rh_fd_watch,
		.fd_unwatch = rh_fd_unwatch,
		.client_export_quota = gn_client_export_quota,
	};
}
