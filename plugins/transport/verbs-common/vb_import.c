/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * vb_import.c - imported memory, of the peer or of a third party, and registered memory of this
 * process for remote reads and writes.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verbs.h"

/* Name of an import. It is never 0, because generations begin at 1. */
static uint64_t name_of(uint32_t handle, uint32_t generation)
{
	return (uint64_t)generation << 32 | handle;
}

static int get_address(const struct vb_ctrl_region *wire, struct sockaddr_storage *addr)
{
	if (wire->session == 0 || wire->secret == 0)
		return -EINVAL;
	return tc_address_get(addr, wire->family, wire->port, wire->address);
}

static struct vb_import *find_import(struct vb_conn *conn, uint64_t name)
{
	for (int i = 0; i < VB_REGIONS; i++)
		if (__atomic_load_n(&conn->imports[i].name, __ATOMIC_ACQUIRE) == name)
			return &conn->imports[i];
	return NULL;
}

static bool handle_in_use(const struct vb_conn *conn, uint32_t handle)
{
	for (uint32_t i = 0; i < conn->imports_used; i++)
		if (conn->imports[i].name && (uint32_t)conn->imports[i].name == handle &&
		    !conn->imports[i].revoking)
			return true;
	return false;
}

/*
 * Find the process that owns the memory, if it is not the peer. For an address outside
 * direct_networks, returns 0 and does not set *peer_p.
 */
static int find_peer(struct vb_conn *conn, const struct vb_ctrl_keyed_region *keyed,
		     struct vb_import_peer **peer_p)
{
	const struct vb_ctrl_region *r = &keyed->region;
	struct vb_import_peer *peer;
	struct sockaddr_storage addr;
	int n = 0;

	if (get_address(r, &addr) != 0)
		return -EPROTO;
	if (!tc_networks_have(&conn->t->direct_networks, (const struct sockaddr *)&addr))
		return 0;
	for (peer = conn->peers; peer; peer = peer->next, n++)
		if (peer->session == r->session && peer->secret == r->secret &&
		    memcmp(peer->key, keyed->direct_key, sizeof(peer->key)) == 0)
			break;
	if (!peer) {
		if (n >= VB_PEERS)
			return -EPROTO;
		peer = calloc(1, sizeof(*peer));
		if (!peer)
			return -ENOMEM;
		peer->session = r->session;
		peer->secret = r->secret;
		memcpy(peer->key, keyed->direct_key, sizeof(peer->key));
		peer->addr = addr;
		peer->next = conn->peers;
		conn->peers = peer;
	}
	*peer_p = peer;
	return 0;
}

int vb_on_region(struct vb_conn *conn, const struct vb_ctrl_keyed_region *keyed)
{
	const struct vb_ctrl_region *r = &keyed->region;
	struct vb_import_peer *peer = NULL;
	struct vb_import *im = find_import(conn, 0);
	int rc = 0;

	if (!im || r->generation <= conn->announced || r->length == 0 ||
	    r->addr > UINT64_MAX - r->length || !r->rights || (r->rights & ~VB_RIGHTS) ||
	    handle_in_use(conn, r->handle))
		return -EPROTO;
	if (r->direct)
		rc = find_peer(conn, keyed, &peer);
	if (rc)
		return rc;
	if (im - conn->imports >= conn->imports_used)
		conn->imports_used = (uint32_t)(im - conn->imports) + 1;
	im->conn = conn;
	im->wire = *r;
	memcpy(im->direct_key, keyed->direct_key, sizeof(im->direct_key));
	im->peer = peer;
	im->pub = (struct gantry_region){.length = r->length,
					 .fd = -1,
					 .rights = r->rights,
					 .handle = r->handle,
					 .domain = VB_DOMAIN,
					 .transport = im,
					 .unordered = r->direct != 0};
	__atomic_store_n(&im->name, name_of(r->handle, r->generation), __ATOMIC_RELEASE);
	__atomic_store_n(&conn->announced, r->generation, __ATOMIC_RELEASE);
	return 0;
}

/*
 * Confirm the release of a revoked region, if the user has released it and no lane fetches from it.
 */
static void sign_off(struct vb_conn *conn, struct vb_import *im)
{
	struct vb_ctrl_handle body = {.handle = im->wire.handle, .generation = im->wire.generation};
	int rc;

	if (!im->revoking || im->n_users || __atomic_load_n(&im->fetching, __ATOMIC_SEQ_CST))
		return;
	__atomic_store_n(&im->name, 0, __ATOMIC_RELEASE);
	/* store `revoking` after `name`: vb_fetch_begin() loads the two in the opposite order */
	__atomic_store_n(&im->revoking, 0, __ATOMIC_RELEASE);
	rc = vb_control_send(conn, VB_CTRL_RELEASED, &body, sizeof(body));
	if (rc)
		vb_conn_fail(conn, rc);
}

void vb_imports_progress(struct vb_conn *conn)
{
	for (uint32_t i = 0; i < conn->imports_used && !conn->freed; i++)
		if (conn->imports[i].revoking)
			sign_off(conn, &conn->imports[i]);
}

int vb_on_revoke(struct vb_conn *conn, const struct vb_ctrl_handle *h)
{
	struct vb_import *im = find_import(conn, name_of(h->handle, h->generation));

	if (h->generation == 0 || !im || im->revoking)
		return -EPROTO;
	__atomic_store_n(&im->revoking, 1, __ATOMIC_SEQ_CST);
	if (im->n_users) {
		conn->t->n_events++;
		conn->events->revoke(conn->arg, conn, im->wire.handle);
	} else {
		sign_off(conn, im);
	}
	return 0;
}

static int connect_to_owner(struct vb_conn *conn, struct vb_import_peer *peer)
{
	int rc = 0;

	for (struct vb_lane *lane = conn->lanes; lane && !rc; lane = lane->next)
		if (lane->has_rma)
			rc = vb_pipe_want_direct(conn, peer, lane->number);
	return rc;
}

/*
 * The address that the peer named is not in direct_networks. The text is short, because each
 * gateway prepends text.
 */
static int refuse_address(struct vb_conn *conn, const struct vb_import *im)
{
	struct sockaddr_storage addr;
	char text[64];

	get_address(&im->wire, &addr);
	tc_address_print((const struct sockaddr *)&addr, text, sizeof(text));
	snprintf(conn->import_error, sizeof(conn->import_error), "%s is not in %s.direct_networks",
		 text, conn->t->host->name);
	return -EACCES;
}

const char *vb_import_error(void *arg)
{
	return ((const struct vb_conn *)arg)->import_error;
}

int vb_import_region(void *arg, const struct gantry_token *token, uint32_t flags,
		     struct gantry_region **region_p)
{
	struct vb_conn *conn = arg;
	struct vb_import *im;
	int rc;

	conn->import_error[0] = 0;
	if (!vb_usable(conn->t))
		return -EPERM;
	if (!vb_conn_usable(conn))
		return -ENOTCONN;
	im = find_import(conn, name_of(token->handle, token->generation));
	if (token->generation == 0 || !im || im->revoking)
		return -ENOENT;
	if (flags & GANTRY_IMPORT_MAP)
		return -ENOTSUP;
	if (im->wire.direct && !im->peer)
		return refuse_address(conn, im);
	rc = im->peer ? connect_to_owner(conn, im->peer) : 0;
	if (rc)
		return rc;
	im->n_users++;
	*region_p = &im->pub;
	return 0;
}

void vb_release(void *arg, struct gantry_region *region)
{
	struct vb_conn *conn = arg;
	struct vb_import *im;

	if (!region || !vb_usable(conn->t))
		return;
	im = region->transport;
	im->n_users--;
	sign_off(conn, im);
}

int vb_fetch_begin(struct vb_conn *conn, const struct vb_msg_region *ref,
		   struct vb_import **import_p)
{
	uint64_t name = name_of(ref->handle, ref->generation);
	/* load first: vb_on_region() stores it last */
	uint32_t announced = __atomic_load_n(&conn->announced, __ATOMIC_ACQUIRE);
	struct vb_import *im;

	if (ref->generation == 0)
		return -EPROTO;
	im = find_import(conn, name);
	if (!im)
		return ref->generation > announced ? -EAGAIN : -EFAULT;
	/*
	 * Pairs with vb_on_revoke() and sign_off(): either they see `fetching`, or this lane sees
	 * `revoking`. The name is loaded last: if the region was released and `revoking` cleared in
	 * between, the name differs.
	 */
	__atomic_fetch_add(&im->fetching, 1, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&im->revoking, __ATOMIC_SEQ_CST) ||
	    __atomic_load_n(&im->name, __ATOMIC_SEQ_CST) != name) {
		vb_fetch_end(im);
		return -EFAULT;
	}
	if (im->wire.direct || !(im->wire.rights & GANTRY_REMOTE_READ) ||
	    !gantry_range_ok(ref->offset, ref->length, im->wire.length)) {
		vb_fetch_end(im);
		return -EPROTO;
	}
	*import_p = im;
	return 0;
}

void vb_fetch_end(struct vb_import *im)
{
	__atomic_fetch_sub(&im->fetching, 1, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&im->revoking, __ATOMIC_SEQ_CST))
		vb_transport_wake(im->conn->t);
}

/* -- memory of this process, for its remote reads and writes -- */

int vb_register(void *arg, const struct gantry_region *region)
{
	struct vb_conn *conn = arg;
	struct vb_registered *free_one = NULL;
	int rc;

	if (!vb_usable(conn->t))
		return -EPERM;
	if (!region->addr || region->length == 0)
		return -EINVAL;
	for (uint32_t i = conn->registered_used; i > 0; i--) {
		if (conn->registered[i - 1].region == region)
			return -EEXIST;
		if (!conn->registered[i - 1].region)
			free_one = &conn->registered[i - 1];
	}
	if (!free_one && conn->registered_used == VB_REGIONS)
		return -ENOSPC;
	if (!free_one)
		free_one = &conn->registered[conn->registered_used++];
	rc = vb_mr_create(conn->pd, region->addr, region->length, 0, 1, &free_one->mr);
	if (rc) {
		vb_explain_memory(conn->t, "local region", region->length, rc);
		return rc;
	}
	__atomic_store_n(&free_one->region, region, __ATOMIC_RELEASE); /* pairs with vb_local_key */
	return 0;
}

void vb_unregister(void *arg, const struct gantry_region *region)
{
	struct vb_conn *conn = arg;

	if (!vb_usable(conn->t))
		return;
	for (uint32_t i = 0; i < conn->registered_used; i++)
		if (conn->registered[i].region == region) {
			__atomic_store_n(&conn->registered[i].region, NULL, __ATOMIC_RELEASE);
			vb_mr_destroy(&conn->registered[i].mr);
		}
}

int vb_local_key(struct vb_conn *conn, const struct gantry_region *region, const void *addr,
		 uint32_t length, uint32_t *lkey_p)
{
	if (!region)
		return -EINVAL;
	for (int i = 0; i < VB_REGIONS; i++) {
		const struct vb_registered *r = &conn->registered[i];
		uint64_t offset = (uintptr_t)addr - (uintptr_t)region->addr;

		if (__atomic_load_n(&r->region, __ATOMIC_ACQUIRE) != region)
			continue;
		if (!gantry_range_ok(offset, length, region->length))
			return -EINVAL;
		*lkey_p = r->mr->lkey;
		return 0;
	}
	return -EINVAL;
}

void vb_imports_free(struct vb_conn *conn)
{
	for (uint32_t i = 0; i < conn->registered_used; i++)
		vb_mr_destroy(&conn->registered[i].mr);
	while (conn->peers) {
		struct vb_import_peer *peer = conn->peers;

		conn->peers = peer->next;
		free(peer);
	}
}
