/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * role_priv.h - shared by role.c (life), role_host.c (what the host does for it), role_report.c,
 * and the sessions of a role
 */
#ifndef GN_SESSION_ROLE_PRIV_H
#define GN_SESSION_ROLE_PRIV_H

#include "session/role.h"
#include "session/server.h"

struct gn_role {
	struct gn_role_spec spec;
	const struct gantry_role_ops *ops;
	struct gn_loop *loop;
	struct gn_host host;
	struct gantry_role_host rh;
	void *role; /* the plugin's */
	struct gn_lane *lanes;
	uint32_t n_lanes; /* initialised */
	struct gn_pipeline *pipeline;

	struct gn_host backend_host;
	const struct gantry_backend_ops *backend_ops;
	void *backend;
	void **backend_lanes; /* one for each lane */
	uint32_t n_backend_lanes;

	struct gn_server server;
	struct gantry_client *clients;
	uint64_t **late_answers; /* counter, a cell for each lane; NULL before the first client */
	struct gn_role_timer *timers; /* of the plugin */

	int opened;   /* the plugin's open was done */
	int finished; /* said so */
	struct gn_post finished_post;
	int status;
};

/* role->rh, from role->spec. */
void gn_role_fill_host(struct gn_role *role);
void gn_role_drop_timers(struct gn_role *role);
/*
 * Stages give back what they hold. When nothing comes any more: what came after it would stay with
 * them.
 */
void gn_role_drain(struct gn_role *role);

/* Role is done; tells whoever made it, at the next turn of the loop. Idempotent. */
void gn_role_finish(struct gn_role *role, int status);

#endif
