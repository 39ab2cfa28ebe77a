/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * comch_shared.c - maps whose memory a peer may read, so that its consumers copy data out of it: each is exported once for a
 * connection. A producer holds on to those that it uses; when all slots are taken the first that nobody holds is asked back.
 */
#include <stdlib.h>
#include <string.h>

#include "comch.h"

static bool is_of(const struct gd_shared *s, const struct doca_mmap *mmap)
{
	return s->state == GD_SHARED_LIVE && memcmp(&s->id, &mmap->id, sizeof(s->id)) == 0;
}

static struct gd_shared *find(struct doca_comch_connection *conn, const struct doca_mmap *mmap)
{
	for (uint32_t i = 0; i < GD_COMCH_SHARED; i++)
		if (is_of(&conn->shared[i], mmap))
			return &conn->shared[i];
	return NULL;
}

static struct gd_shared *find_free(struct doca_comch_connection *conn)
{
	for (uint32_t i = 0; i < GD_COMCH_SHARED; i++)
		if (conn->shared[i].state == GD_SHARED_FREE)
			return &conn->shared[i];
	return NULL;
}

static void ask_one_back(struct doca_comch_connection *conn, const struct gantry_transport_ops *ops)
{
	for (uint32_t i = 0; i < GD_COMCH_SHARED; i++) {
		struct gd_shared *s = &conn->shared[i];

		if (s->state != GD_SHARED_LIVE || s->users)
			continue;
		s->state = GD_SHARED_LEAVING;
		ops->revoke_region(conn->link, s->handle);
		return;
	}
}

/* Lock. */
static doca_error_t share(struct doca_comch_connection *conn, const struct gantry_transport_ops *ops,
			  const struct doca_mmap *mmap, const struct gantry_region *region, struct gd_shared **shared_p)
{
	struct gd_shared *s = find_free(conn);
	struct gantry_token token;
	int rc;

	if (!s) {
		ask_one_back(conn, ops);
		return DOCA_ERROR_AGAIN;
	}
	s->id = mmap->id;
	s->region = *region;
	s->handle = ++conn->next_handle;
	s->users = 0;
	rc = ops->export_region(conn->link, &s->region, GANTRY_REMOTE_READ, s->handle, &token);
	if (rc)
		return gd_comch_error(rc);
	s->state = GD_SHARED_LIVE;
	*shared_p = s;
	return DOCA_SUCCESS;
}

doca_error_t gd_shared_get(struct doca_comch_connection *conn, struct doca_mmap *mmap, struct gd_shared **shared_p)
{
	struct gantry_region region = { .fd = -1 };
	const struct gantry_transport_ops *ops;
	doca_error_t result = gd_mmap_region(mmap, 1, &region);
	struct gd_shared *s = NULL;

	if (result != DOCA_SUCCESS)
		return result;
	region.rights |= GANTRY_REMOTE_READ; /* what a peer of ours gets is what the program sends it */
	ops = gd_conn_lock(conn);
	if (!conn->shared)
		conn->shared = calloc(GD_COMCH_SHARED, sizeof(*conn->shared));
	if (conn->state != GD_CONN_OPEN)
		result = DOCA_ERROR_NOT_CONNECTED;
	else if (!conn->shared)
		result = DOCA_ERROR_NO_MEMORY;
	else if (!(s = find(conn, mmap)))
		result = share(conn, ops, mmap, &region, &s);
	if (s)
		s->users++;
	gd_conn_unlock(conn);
	*shared_p = s;
	return result;
}

void gd_shared_put(struct gd_shared *shared)
{
	shared->users--;
}

void gd_shared_revoked(struct doca_comch_connection *conn, uint32_t handle)
{
	for (uint32_t i = 0; conn->shared && i < GD_COMCH_SHARED; i++)
		if (conn->shared[i].state != GD_SHARED_FREE && conn->shared[i].handle == handle)
			conn->shared[i].state = GD_SHARED_FREE;
}
