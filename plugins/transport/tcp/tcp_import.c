/* SPDX-License-Identifier: BSD-3-Clause */
/* tcp_import.c - imported memory, of the peer. Thread: control. */
#include <errno.h>

#include "tcp.h"

static struct tcp_import *find(struct tcp_conn *conn, uint64_t name)
{
	for (uint32_t i = 0; i < TCP_REGIONS; i++)
		if (conn->imports[i].name == name)
			return &conn->imports[i];
	return NULL;
}

static bool handle_in_use(const struct tcp_conn *conn, uint32_t handle)
{
	for (uint32_t i = 0; i < TCP_REGIONS; i++)
		if (conn->imports[i].name && (uint32_t)conn->imports[i].name == handle &&
		    !conn->imports[i].revoking)
			return true;
	return false;
}

int tcp_on_region(struct tcp_conn *conn, const struct tcp_ctrl_region *r)
{
	struct tcp_import *im = find(conn, 0);
	struct tcp_owner *owner;
	int rc;

	if (!im || r->name.generation <= conn->announced || r->length == 0 || !r->rights ||
	    (r->rights & ~TCP_RIGHTS) || handle_in_use(conn, r->name.handle))
		return -EPROTO;
	rc = tcp_direct_find(conn, r, &owner);
	if (rc)
		return rc;
	im->conn = conn;
	LIST_INIT(&im->relays);
	im->wire = *r;
	im->owner = owner;
	im->name = tcp_number(&r->name);
	im->revoking = false;
	im->pub = (struct gantry_region){.length = r->length,
					 .fd = -1,
					 .rights = r->rights,
					 .handle = r->name.handle,
					 .domain = TCP_DOMAIN,
					 .transport = im,
					 .unordered = owner != NULL};
	conn->announced = r->name.generation;
	return 0;
}

/* Confirm the release of a revoked region, if the user has released it and no relay uses it. */
static void sign_off(struct tcp_conn *conn, struct tcp_import *im)
{
	struct tcp_name name = {.handle = (uint32_t)im->name,
				.generation = (uint32_t)(im->name >> 32)};
	int rc;

	if (!im->revoking || im->n_users || __atomic_load_n(&im->n_relayed, __ATOMIC_ACQUIRE))
		return;
	im->name = 0;
	im->revoking = false;
	conn->n_revoking--;
	rc = tcp_control_put(conn, TCP_CTRL_RELEASED, &name, sizeof(name));
	if (rc)
		tcp_conn_fail(conn, rc);
}

int tcp_on_revoke(struct tcp_conn *conn, const struct tcp_name *name)
{
	struct tcp_import *im = find(conn, tcp_number(name));

	if (name->generation == 0 || !im || im->revoking)
		return -EPROTO;
	im->revoking = true;
	conn->n_revoking++;
	if (im->n_users) {
		conn->dev->n_events++;
		conn->events->revoke(conn->arg, conn, (uint32_t)im->name);
	} else {
		sign_off(conn, im);
	}
	return 0;
}

int tcp_import(void *arg, const struct gantry_token *token, uint32_t flags,
	       struct gantry_region **region_p)
{
	struct tcp_conn *conn = arg;
	const struct tcp_name name = {token->handle, token->generation};
	struct tcp_import *im;
	int rc;

	if (!tcp_usable(conn->dev))
		return -EPERM;
	if (!tcp_conn_usable(conn))
		return -ENOTCONN;
	im = token->generation ? find(conn, tcp_number(&name)) : NULL;
	if (!im || im->revoking)
		return -ENOENT;
	if (flags & GANTRY_IMPORT_MAP)
		return -ENOTSUP;
	rc = im->owner ? tcp_direct_want_all(conn, im->owner) : 0;
	if (rc)
		return rc;
	im->n_users++;
	*region_p = &im->pub;
	return 0;
}

void tcp_release(void *arg, struct gantry_region *region)
{
	struct tcp_conn *conn = arg;
	struct tcp_import *im;

	if (!region || !tcp_usable(conn->dev))
		return;
	im = region->transport;
	im->n_users--;
	sign_off(conn, im);
}

void tcp_imports_progress(struct tcp_conn *conn)
{
	for (uint32_t i = 0; i < TCP_REGIONS && conn->n_revoking && !conn->freed; i++)
		if (conn->imports[i].revoking)
			sign_off(conn, &conn->imports[i]);
}

void tcp_imports_end(struct tcp_conn *conn)
{
	for (uint32_t i = 0; i < TCP_REGIONS; i++)
		while (!LIST_EMPTY(&conn->imports[i].relays))
			tcp_export_orphan(LIST_FIRST(&conn->imports[i].relays));
}
