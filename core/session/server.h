/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * server.h - the sessions that peers open with a role. Control thread.
 */
#ifndef GN_SESSION_SERVER_H
#define GN_SESSION_SERVER_H

#include "base/log.h"
#include "session/peers.h"

#include <gantry/role.h>

struct gn_role;

struct gn_server {
	const struct gantry_server_ops *ops; /* NULL: the role does not serve */
	void *listener;
	struct gantry_session *sessions;
	uint32_t n_sessions;
	struct gn_peers peers;
	uint64_t n_ended;
	int stopping;
	uint32_t start_round; /* of start_order.c */
	/* whoever is turned away, or breaks off before IO, may come again at once */
	struct gn_log_limit refusals;
	/* counters; direct: whose data moves straight to and from the store */
	uint64_t *opened, *ended, *lost, *refused, *direct;
	uint64_t **ops_done, **ops_failed; /* counters, a cell for each lane */
};

int gn_server_start(struct gn_role *role, const struct gantry_server_ops *ops);
/* Listen no more; the sessions live on. Idempotent. */
void gn_server_unlisten(struct gn_role *role);
/* Listen no more, end all sessions; the role finishes when the last is gone. */
void gn_server_stop(struct gn_role *role);
/* Finish the role when it is to end and nothing of it is open any more. */
void gn_server_check_finished(struct gn_role *role);
void gn_server_report(const struct gn_role *role, struct gantry_writer *w);

void gn_session_continue(struct gantry_session *session, int rc);
void gn_session_refuse(struct gantry_session *session, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void gn_session_end(struct gantry_session *session, int reason);
void gn_session_set(struct gantry_session *session, void *user);
void *gn_session_user(struct gantry_session *session);
uint64_t gn_session_id(struct gantry_session *session);
void gn_session_secret(const struct gantry_session *session, uint8_t secret[GANTRY_SECRET_BYTES]);

#endif
