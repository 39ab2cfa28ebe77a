/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * session_server.h - the sessions that peers open with a role. Control thread. The gn_session_
 * functions implement those of struct gantry_role_host with the same name, which
 * include/gantry/role.h documents.
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
	LIST_HEAD(, gantry_session) sessions;
	uint32_t n_sessions;
	struct gn_peers peers;
	uint64_t n_ended;
	int stopping;
	struct gn_timer watch;  /* asks the backend for its volume, see volume_change.c */
	uint64_t volume_size;   /* size that the last call returned */
	uint64_t rejected_size; /* last size that a session could not take */
	/* number of the current pass over waiting sessions, see start_order.c */
	uint32_t start_round;
	/*
	 * limits warnings: a peer that is rejected, or leaves before START, can connect again
	 * immediately
	 */
	struct gn_log_limit refusals;
	/*
	 * counters of sessions. direct: sessions whose device moves data directly to and from the
	 * volume
	 */
	uint64_t *opened, *ended, *lost, *refused, *direct;
	/* counters of IOs: sums of what the sessions have counted */
	uint64_t *ops_done, *ops_failed, *list_bounces;
};

/*
 * gn_server_start - listen. Returns 0; -EINVAL: the role has no `listen`, or listens already;
 * -ENOMEM; another -errno of the transport, which is logged.
 */
int gn_server_start(struct gn_role *role, const struct gantry_server_ops *ops);
/* Stop listening; sessions continue. A second call has no effect. */
void gn_server_unlisten(struct gn_role *role);
/* Stop listening and end all sessions. The role finishes after the last session has ended. */
void gn_server_stop(struct gn_role *role);
/*
 * Finish the role if it has no session and no open client, and is stopping or has reached
 * listen.exit_after.
 */
void gn_server_check_finished(struct gn_role *role);
/* Add what the sessions have counted since the last call to the counters of the role. */
void gn_server_update_counters(struct gn_role *role);
/*
 * The keys of devices or the rows of listen.allow have changed: end the sessions whose peers have
 * fewer rights than before.
 */
void gn_rights_check(struct gn_role *role);
/*
 * Get the identity of the open session with this id at the listener of the role, which a gateway
 * passes on to its server. client: out; "" if there is none
 */
void gn_rights_client(const struct gn_role *role, uint64_t id, char client[GN_IDENTITY_MAX + 1]);
/* Write the arrays `sessions` and `peers` into the open object. */
void gn_server_report(const struct gn_role *role, struct gantry_writer *w);

void gn_session_continue(struct gantry_session *session, int rc);
void gn_session_refuse(struct gantry_session *session, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void gn_session_end(struct gantry_session *session, int reason);
void gn_session_set(struct gantry_session *session, void *user);
void *gn_session_user(struct gantry_session *session);
uint64_t gn_session_id(struct gantry_session *session);
int gn_session_resize(struct gantry_session *session, uint64_t size);
void gn_session_secret(const struct gantry_session *session, uint8_t secret[GANTRY_SECRET_BYTES]);

#endif
