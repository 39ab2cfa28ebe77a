/* SPDX-License-Identifier: BSD-3-Clause */
/* active.c - the consumers and producers of a connection that run. They use the link of the transport: it stays until they stop. */
#include "comch/comch.h"

void gd_active_add(struct doca_comch_connection *conn, struct gd_active *active, struct doca_ctx *ctx)
{
	active->ctx = ctx;
	active->next = conn->active;
	conn->active = active;
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
