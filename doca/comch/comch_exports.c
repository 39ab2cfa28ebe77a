/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * comch_exports.c - exports of maps, so that consumers of the peer can read the data of producers
 *
 * Each map is exported once for each connection and takes a slot. A producer keeps holds on the
 * slots that it uses. If all slots are taken, the first slot without a hold is revoked. If all
 * slots have holds, the connection is marked `crowded`, and producers release the holds that no
 * task in flight uses.
 */
#include <stdlib.h>
#include <string.h>

#include "comch/comch_fast.h"

static bool is_of(const struct gd_shared *s, const struct doca_mmap *mmap)
{
	return s->state == GD_SHARED_LIVE && memcmp(&s->id, &mmap->id, sizeof(s->id)) == 0 &&
	       s->moves == __atomic_load_n(&mmap->moves, __ATOMIC_ACQUIRE);
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

/* Revoke an unused slot. Returns true if a slot is being revoked, so that it will become free. */
static bool revoke_unused(struct doca_comch_connection *conn,
			  const struct gantry_transport_ops *ops)
{
	bool revoking = false;

	for (uint32_t i = 0; i < GD_COMCH_SHARED; i++) {
		struct gd_shared *s = &conn->shared[i];

		revoking |= s->state == GD_SHARED_LEAVING;
		if (s->state != GD_SHARED_LIVE || s->users)
			continue;
		s->state = GD_SHARED_LEAVING;
		ops->revoke_region(conn->link, s->handle);
		return true;
	}
	return revoking;
}

/* Lock held. */
static doca_error_t share(struct doca_comch_connection *conn,
			  const struct gantry_transport_ops *ops, const struct doca_mmap *mmap,
			  uint32_t moves, const struct gantry_region *region,
			  struct gd_shared **shared_p)
{
	struct gd_shared *s = find_free(conn);
	struct gantry_token token;
	int rc;

	if (!s) {
		if (!revoke_unused(conn, ops))
			__atomic_store_n(&conn->crowded, 1, __ATOMIC_RELAXED);
		return DOCA_ERROR_AGAIN;
	}
	__atomic_store_n(&conn->crowded, 0, __ATOMIC_RELAXED);
	s->id = mmap->id;
	s->moves = moves;
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

/*
 * Without the lock. Get the slot of a map and count the caller as a user. AGAIN: all slots are in
 * use.
 */
static doca_error_t get(struct doca_comch_connection *conn, struct doca_mmap *mmap,
			struct gd_shared **shared_p)
{
	struct gantry_region region = {.fd = -1};
	const struct gantry_transport_ops *ops;
	/* read first: if the pages move later, the map is exported again */
	const uint32_t moves = __atomic_load_n(&mmap->moves, __ATOMIC_ACQUIRE);
	doca_error_t result = gd_mmap_region(mmap, GD_REGION_COMMON, &region);
	struct gd_shared *s = NULL;

	if (result != DOCA_SUCCESS)
		return result;
	/* the program sends this data, so the peer has the right to read it in any case */
	region.rights |= GANTRY_REMOTE_READ;
	ops = gd_conn_lock(conn);
	if (!conn->shared)
		conn->shared = calloc(GD_COMCH_SHARED, sizeof(*conn->shared));
	if (conn->state != GD_CONN_OPEN)
		result = DOCA_ERROR_NOT_CONNECTED;
	else if (!conn->shared)
		result = DOCA_ERROR_NO_MEMORY;
	else if (!(s = find(conn, mmap)))
		result = share(conn, ops, mmap, moves, &region, &s);
	if (s)
		s->users++;
	gd_conn_unlock(conn);
	*shared_p = s;
	return result;
}

void gd_shared_revoked(struct doca_comch_connection *conn, uint32_t handle)
{
	for (uint32_t i = 0; conn->shared && i < GD_COMCH_SHARED; i++)
		if (conn->shared[i].state != GD_SHARED_FREE && conn->shared[i].handle == handle)
			conn->shared[i].state = GD_SHARED_FREE;
}

/* -- holds of producers -- */

static bool is_for(const struct gd_hold *h, const struct doca_mmap *mmap)
{
	return h->shared && h->mmap == mmap && memcmp(&h->id, &mmap->id, sizeof(h->id)) == 0 &&
	       h->shared->moves == __atomic_load_n(&mmap->moves, __ATOMIC_ACQUIRE);
}

/* Lock held. */
static void release_hold(struct doca_comch_producer *p, struct gd_hold *h)
{
	h->shared->users--;
	h->shared = NULL;
	p->n_held--;
}

static doca_error_t fill_hold(struct doca_comch_producer *p, struct gd_hold *h,
			      struct doca_mmap *mmap)
{
	doca_error_t result;

	if (h->shared) {
		gd_conn_lock(p->conn);
		release_hold(p, h);
		gd_conn_unlock(p->conn);
	}
	h->mmap = mmap;
	h->id = mmap->id;
	result = get(p->conn, mmap, &h->shared);
	p->n_held += h->shared != NULL;
	return result;
}

static bool is_idle(const struct gd_hold *h)
{
	return h->shared && h->n_inflight == 0;
}

void gd_hold_release_idle(struct doca_comch_producer *p)
{
	for (uint32_t i = 0; i < GD_FAST_HOLDS; i++)
		if (is_idle(&p->holds[i]))
			release_hold(p, &p->holds[i]);
}

void gd_hold_free_slots(struct doca_comch_producer *p)
{
	bool has_idle = false;

	for (uint32_t i = 0; i < GD_FAST_HOLDS; i++)
		has_idle |= is_idle(&p->holds[i]);
	if (!has_idle)
		return;
	gd_conn_lock(p->conn);
	gd_hold_release_idle(p);
	gd_conn_unlock(p->conn);
}

doca_error_t gd_hold_map(struct doca_comch_producer *p, struct doca_mmap *mmap,
			 struct gd_hold **hold_p)
{
	for (uint32_t i = 0; i < GD_FAST_HOLDS; i++) {
		*hold_p = &p->holds[i];
		if (is_for(*hold_p, mmap))
			return DOCA_SUCCESS;
	}
	for (uint32_t i = 0; i < GD_FAST_HOLDS; i++) {
		*hold_p = &p->holds[p->next_hold++ % GD_FAST_HOLDS];
		if ((*hold_p)->n_inflight == 0)
			return fill_hold(p, *hold_p, mmap);
	}
	return DOCA_ERROR_AGAIN;
}
