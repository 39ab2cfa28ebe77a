/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * role_report.c - reports of a role: what it does, and, for `gantry check`, what it will request.
 */
#include "session/role_priv.h"
#include "session/session_client.h"

void gn_role_report(struct gn_role *role, struct gantry_writer *w)
{
	uint32_t terminal = gn_pipeline_length(role->pipeline) + 1;
	struct gn_place_counts counts;

	gn_pipeline_count(role->pipeline, &counts);
	w->object(w, role->spec.name);
	w->string(w, "role", role->spec.part.name);
	w->u64(w, "lanes", role->n_lanes);
	role->ops->report(role->role, w);
	gn_server_update_counters(role);
	gn_host_report(&role->host, w);
	if (role->server.ops)
		gn_server_report(role, w);
	if (role->spec.n_connects)
		gn_client_report(role, w);
	gn_pipeline_report(role->pipeline, &counts, w);
	w->object(w, role->backend_ops ? "backend" : "connect");
	if (role->backend_ops) {
		w->string(w, "type", role->spec.backend->name);
		role->backend_ops->report(role->backend, w);
		gn_host_report(&role->backend_host, w);
	}
	gn_place_report(&counts, terminal, w);
	w->end(w);
	w->end(w);
}

const char *gn_role_no_session(const struct gn_role *role)
{
	return role->had_client && !role->had_session ? role->no_session : NULL;
}

/* -- gantry check -- */

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

void gn_role_fill_check(struct gn_role *role, struct gantry_check *check)
{
	check->host = &role->host.pub;
	check->role = role->role;
	check->n_connects = role->spec.n_connects;
	for (uint32_t i = 0; i < check->n_connects; i++)
		if (role->spec.listen)
			gn_role_plan_listen(role, &check->plans[i]);
		else
			check->plans[i] = (struct gantry_plan){.sessions = 1,
							       .lanes = role->spec.n_lanes,
							       .lanes_option = "lanes"};
}

int gn_role_stage_volume(const struct gn_role *role, struct gantry_volume_info *volume)
{
	return gn_pipeline_volume(role->pipeline, volume);
}

static void describe_endpoint(const struct gn_endpoint *ep, const char *key, const char *address,
			      struct gantry_writer *w)
{
	struct gantry_device_info info = {.caps = 0};

	ep->device->ops->info(ep->device->dev, &info);
	w->object(w, key);
	w->string(w, "device", ep->device->name);
	w->string(w, "transport", ep->device->plugin_name);
	w->string(w, "service", ep->name);
	if (address)
		w->string(w, "address", address);
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
	uint64_t queues = ep->max_sessions * ep->max_lanes,
		 depth = gn_device_queue_depth(ep->device, ep->max_depth);

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
	w->string(w, NULL, role->backend_ops ? role->spec.backend->name : "link");
	w->end(w);
	if (role->spec.listen) {
		describe_endpoint(role->spec.listen, "listen", gn_role_address(role), w);
		describe_credits(role->spec.listen, w);
	}
	w->array(w, "connects");
	for (uint32_t i = 0; i < role->spec.n_connects; i++) {
		const struct gn_endpoint *ep = &role->spec.connects[i];

		describe_endpoint(ep, NULL, ep->service != ep->name ? ep->service : NULL, w);
	}
	w->end(w);
	w->end(w);
}
