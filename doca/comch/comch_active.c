/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * comch_active.c - the list of running consumers and producers of a connection, and the count of
 * those that are not idle
 *
 * A running consumer or producer uses the link of the transport, so the link exists until it stops.
 * One that is not idle has pending tasks, so the program cannot disconnect the connection until it
 * is idle.
 */
#include "comch/comch.h"
#include "common/gd_log.h"

doca_error_t gd_active_check(const struct doca_comch_connection *conn, const char *what)
{
	if (conn->state != GD_CONN_OPEN)
		return DOCA_ERROR_BAD_STATE;
	if (conn->end->on_consumer)
		return DOCA_SUCCESS;
	gd_log(DOCA_LOG_LEVEL_ERROR,
	       "Comch %s cannot start: \"%s\" has no callback for new consumers: call doca_comch_%s_event_consumer_register() before its start",
	       what, conn->end->name, conn->is_server ? "server" : "client");
	return DOCA_ERROR_INVALID_VALUE;
}

void gd_active_add(struct doca_comch_connection *conn, struct gd_active *active,
		   struct doca_ctx *ctx)
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

void gd_active_idle(struct doca_comch_connection *conn)
{
	gd_conn_lock(conn);
	conn->n_busy--;
	gd_conn_unlock(conn);
}
