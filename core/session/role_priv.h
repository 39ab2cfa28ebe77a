/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * role_priv.h - struct gn_role, shared by session_role.c (create to destroy), role_host.c (services
 * for the plugin), role_report.c, and the sessions of a role
 */
#ifndef GN_SESSION_ROLE_PRIV_H
#define GN_SESSION_ROLE_PRIV_H

#include "session/frame.h"
#include "session/holders.h"
#include "session/session_role.h"
#include "session/session_server.h"

struct gn_role {
	struct gn_role_spec spec;
	const struct gantry_role_ops *ops;
	struct gn_loop *loop;
	struct gn_host host;
	struct gantry_role_host rh;
	void *role; /* instance of the plugin */
	struct gn_lane *lanes;
	uint32_t n_lanes;       /* lanes that are initialised */
	char terminal_name[64]; /* for messages: key of the terminals, and their plugin */
	struct gn_pipeline *pipeline;

	struct gn_host backend_host;
	const struct gantry_backend_ops *backend_ops;
	void *backend;
	void **backend_lanes; /* `self` of the backend for each lane */
	uint32_t n_backend_lanes;

	struct gn_server server;
	LIST_HEAD(, gantry_client) clients;
	struct gn_holders_list former; /* processes that map memory of clients that have ended */
	/*
	 * had_client: the role has opened a client. had_session: a session of one of its clients
	 * has started
	 */
	int had_client, had_session;
	char no_session[GN_FRAME_TEXT + 64]; /* why the last client did not start a session */
	/* counters of late replies, one for each lane; NULL: the role has no connects */
	uint64_t **late_replies;
	LIST_HEAD(, gn_role_timer) timers; /* timers of the plugin */

	int opened;   /* `open` of the plugin succeeded */
	int finished; /* gn_role_finish() was called */
	struct gn_post finished_post;
	int status;
};

/* Fill role->rh from role->spec. */
void gn_role_fill_host(struct gn_role *role);
/* Cancel and free all timers of the plugin. */
void gn_role_drop_timers(struct gn_role *role);
/*
 * Let the stages complete the descriptors that they hold. Call it when no more IO is submitted: a
 * stage could hold an IO that is submitted after the call.
 */
void gn_role_drain(struct gn_role *role);

/*
 * The role has finished: call spec.finished in the next turn of the loop. A second call has no
 * effect.
 */
void gn_role_finish(struct gn_role *role, int status);

#endif
