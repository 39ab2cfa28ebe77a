/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * active.c - the consumers and producers of a connection that run, and those that have stopped but are not idle yet.
 *
 * One that runs uses the link of the transport, so the link stays until it stops. One that is not idle has tasks that
 * will still end, so until then the program cannot disconnect the connection.
 */
#include "comch/comch.h"

void gd_active_add(struct doca_comch_connection *conn, struct gd_active *active, struct doca_ctx *ctx)
{
	active->ctx = ctx;
	active->next = conn->active;
	conn->active = active;
	conn->n_busy++;
}

void gd_active_remove(struct doca_comch_connection *conn, struct gd_active *active)
{
	struct gd_active **p = &conn->active;

	while (*p != active)
		p = &(*p)->next;
	*p = active->next;
	gd_conn_settle(conn);
	if (conn->end)
		gd_end_check(conn->end);
}

void gd_active_wake(const struct doca_comch_connection *conn)
{
	for (const struct gd_active *active = conn->active; active; active = active->next)
		gd_pe_wake(active->ctx->pe);
}

void gd_active_idle(struct doca_comch_connection *conn)
{
	gd_conn_lock(conn);
	conn->n_busy--;
	gd_conn_unlock(conn);
}
