/* SPDX-License-Identifier: BSD-3-Clause */
/* session_role.c - create, start, stop and destroy a role. Control thread. */
#include "session/role_priv.h"

#include "base/log.h"
#include "io/io_check.h"
#include "session/session_client.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int open_lanes(struct gn_role *role)
{
	const struct gn_plugin_instance *backend = role->spec.backend;

	snprintf(role->terminal_name, sizeof(role->terminal_name), "%s%s",
		 backend ? "backend type=" : "connect", backend ? backend->name : "");
	role->lanes = gantry_zalloc_lines(role->spec.n_lanes * sizeof(*role->lanes));
	if (!role->lanes)
		return -ENOMEM;
	for (uint32_t i = 0; i < role->spec.n_lanes; i++) {
		int rc = gn_lane_init(&role->lanes[i], i, role->spec.n_lanes, &role->host,
				      role->spec.workers[i]);

		if (rc != 0)
			return rc;
		role->lanes[i].terminal_name = role->terminal_name;
		role->lanes[i].check_stages = role->spec.check_stages;
		role->n_lanes++;
	}
	return 0;
}

/*
 * Returns the largest number of IOs in flight on one lane. The lanes of a session are assigned to
 * the lanes of the role round robin.
 */
static uint32_t backend_depth(const struct gn_role *role)
{
	const struct gn_endpoint *ep = role->spec.listen;
	uint64_t depth = 1;

	if (ep)
		depth = ep->max_depth * ep->max_sessions *
			((ep->max_lanes + role->n_lanes - 1) / role->n_lanes);
	return depth > UINT32_MAX ? UINT32_MAX : (uint32_t)depth;
}

static int start_backend_lane(struct gn_role *role, struct gn_lane *lane)
{
	const struct gantry_backend_ops *ops = role->backend_ops;
	void *self = NULL;
	struct gantry_poller poller = {
		.poll = ops->poll, .arm = ops->arm, .disarm = ops->disarm, .fd = ops->fd};
	int rc = ops->start(role->backend, &lane->pub, backend_depth(role), &self);

	rc = gn_host_returned(&role->backend_host, role->spec.backend->name, "start", rc);
	if (rc != 0)
		return rc;
	role->backend_lanes[role->n_backend_lanes++] = self;
	poller.self = self;
	return gn_worker_add(lane->worker, &poller);
}

/* Report an invalid volume when the backend is opened, not when the first session is. */
static int check_volume(const struct gn_role *role)
{
	struct gantry_volume_info volume;
	const char *fault;

	role->rh.backend_volume(&role->rh, &volume);
	fault = gn_volume_fault(&volume);
	if (!fault)
		return 0;
	gn_log(GN_LOG_ERROR, role->backend_host.name, "%s: describes an impossible volume: %s",
	       role->spec.backend->name, fault);
	return -EINVAL;
}

static int open_backend(struct gn_role *role)
{
	const struct gn_plugin_instance *part = role->spec.backend;
	int rc;

	if (!part)
		return 0;
	role->backend_lanes = calloc(role->n_lanes, sizeof(*role->backend_lanes));
	if (!role->backend_lanes)
		return -ENOMEM;
	gn_host_init(&role->backend_host, "%s.backend", role->host.name);
	role->backend_ops = part->ops;
	rc = role->backend_ops->open(&role->backend_host.pub, part->conf, &role->backend);
	rc = gn_host_returned(&role->backend_host, part->name, "open", rc);
	if (rc != 0) {
		gn_log(GN_LOG_ERROR, role->backend_host.name, "%s: cannot be opened: %s",
		       part->name, strerror(-rc));
		role->backend_ops = NULL;
		gn_host_fini(&role->backend_host);
		return rc;
	}
	rc = check_volume(role);
	for (uint32_t i = 0; i < role->n_lanes && rc == 0; i++) {
		rc = start_backend_lane(role, &role->lanes[i]);
		if (rc != 0)
			gn_log(GN_LOG_ERROR, role->backend_host.name,
			       "%s: cannot be started on lane %u: %s", part->name, i,
			       strerror(-rc));
	}
	return rc;
}

static void close_backend(struct gn_role *role)
{
	const struct gantry_backend_ops *ops = role->backend_ops;

	if (ops) {
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

	if (!role)
		return -ENOMEM;
	role->spec = *spec;
	role->ops = spec->part.ops;
	role->loop = loop;
	gn_host_init(&role->host, "roles.%s", spec->name);
	gn_role_fill_host(role);
	rc = open_lanes(role);
	if (rc == 0 && spec->n_connects != 0)
		rc = gn_client_create_counters(role);
	if (rc == 0)
		rc = open_backend(role);
	if (rc == 0)
		rc = gn_pipeline_open(role->host.name, spec->stages, spec->n_stages, role->lanes,
				      role->n_lanes, &role->pipeline);
	if (rc == 0) {
		gn_role_measure(role, spec->stage_times);
		rc = gn_host_returned(&role->host, spec->part.name, "open",
				      role->ops->open(&role->rh, spec->part.conf, &role->role));
		role->opened = rc == 0;
		if (rc != 0)
			gn_log(GN_LOG_ERROR, role->host.name, "%s: cannot be opened: %s",
			       spec->part.name, strerror(-rc));
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
	return gn_host_returned(&role->host, role->spec.part.name, "start",
				role->ops->start(role->role));
}

static void drain_on_lane(void *arg)
{
	gn_pipeline_drain(arg, NULL);
}

void gn_role_drain(struct gn_role *role)
{
	for (uint32_t i = 0; i < role->n_lanes; i++)
		gn_worker_call(role->lanes[i].worker, drain_on_lane, &role->lanes[i]);
}

void gn_role_stop(struct gn_role *role)
{
	role->ops->stop(role->role);
	if (role->server.ops)
		gn_server_stop(role);
	gn_role_drain(role);
}

static void report_finished(void *arg)
{
	struct gn_role *role = arg;

	/* no IO is in flight: stages flush buffered output before the final report */
	gn_role_drain(role);
	role->spec.finished(role->spec.arg, role->status);
}

void gn_role_finish(struct gn_role *role, int status)
{
	uint64_t doubled = gn_host_counter(&role->host, "double_completions");

	if (role->finished)
		return;
	if (doubled != 0)
		gn_log(GN_LOG_WARN, role->host.name,
		       "a stage or backend completed IOs twice (double_completions=%llu)%s",
		       (unsigned long long)doubled,
		       role->spec.check_stages || role->spec.n_stages == 0
			       ? ""
			       : ": check_stages = true names it");
	role->finished = 1;
	role->status = status;
	gn_loop_post_own(role->loop, &role->finished_post, report_finished, role);
}

void gn_role_unlisten(struct gn_role *role)
{
	gn_server_unlisten(role);
}

void *gn_role_instance(const struct gn_role *role, unsigned kind, uint32_t stage)
{
	if (kind == GANTRY_KIND_STAGE)
		return gn_pipeline_stage(role->pipeline, stage);
	return kind == GANTRY_KIND_BACKEND ? role->backend : role->role;
}

void gn_role_measure(struct gn_role *role, bool on)
{
	for (uint32_t i = 0; i < role->n_lanes; i++)
		if (gn_lane_measure(&role->lanes[i], on) != 0)
			gn_log(GN_LOG_ERROR, role->host.name,
			       "lane %u: the times of its stages are not measured: out of memory",
			       i);
}

bool gn_role_has_sessions(const struct gn_role *role)
{
	return role->server.n_sessions != 0;
}

void gn_role_destroy(struct gn_role **role_p)
{
	struct gn_role *role = *role_p;

	*role_p = NULL;
	if (!role)
		return;
	gn_server_unlisten(role);
	if (role->opened)
		role->ops->close(role->role);
	gn_role_drop_timers(role);
	gn_loop_clear_timer(role->loop, &role->server.watch);
	gn_loop_withdraw(role->loop, &role->finished_post);
	gn_client_free_all(role);
	gn_holders_free_all(&role->former);
	gn_pipeline_close(&role->pipeline);
	close_backend(role);
	for (uint32_t i = 0; i < role->n_lanes; i++)
		gn_lane_fini(&role->lanes[i]);
	free(role->lanes);
	free(role->late_replies);
	gn_host_fini(&role->host);
	free(role);
}
