/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * region.c - memory that the peer may touch, and memory of the peer.
 *
 *   exporter                                     importer
 *   export_region   --- REGION ------------->    noted; a lane may fetch the data of messages from it
 *                                                import_region, release_region: as often as the user likes
 *   revoke_region   --- REVOKE ------------->    event `revoke` if the user holds it; then no lane fetches from it
 *   deregistered; event `revoked` <-RELEASED-
 *
 * With no answer within revoke_timeout the exporter deregisters all the same: the device refuses whatever comes later.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>

#include "verbs.h"

#define RIGHTS (GANTRY_REMOTE_READ | GANTRY_REMOTE_WRITE)

/* A name of an import: cannot be 0, since generations begin at 1. */
static uint64_t name_of(uint32_t handle, uint32_t generation)
{
	return (uint64_t)generation << 32 | handle;
}

void vb_explain_memory(const struct vb_transport *t, const char *what, uint64_t bytes, int rc)
{
	struct rlimit limit = {.rlim_cur = RLIM_INFINITY};

	getrlimit(RLIMIT_MEMLOCK, &limit);
	if (rc == -ENOMEM && limit.rlim_cur != RLIM_INFINITY)
		gantry_log_error(t->host, "cannot register %llu bytes for a %s: this process may lock %llu bytes; allow more, %llu KiB "
			  "and what else it uses: `ulimit -l`, or LimitMEMLOCK= of its service",
			  (unsigned long long)bytes, what, (unsigned long long)limit.rlim_cur,
			  (unsigned long long)(bytes + 1023) / 1024);
	else
		gantry_log_error(t->host, "cannot register %llu bytes for a %s with RDMA device %s: %s", (unsigned long long)bytes,
			  what, t->device.context->device->name, strerror(-rc));
}

/* -- exports -- */

static struct vb_export *find_export(struct vb_conn *conn, uint32_t handle)
{
	for (int i = 0; i < VB_REGIONS; i++)
		if (conn->exports[i].region && conn->exports[i].wire.handle == handle)
			return &conn->exports[i];
	return NULL;
}

static void unmap(struct vb_export *e)
{
	if (e->mapped)
		munmap(e->mapped, e->mapped_bytes);
	e->mapped = NULL;
}

/* Memory that is known by its descriptor only. */
static int map(struct vb_export *e, const struct gantry_region *region, void **addr_p)
{
	int prot = PROT_READ | (e->wire.rights & GANTRY_REMOTE_WRITE ? PROT_WRITE : 0);
	uint64_t down = region->fd_offset & ((uint64_t)sysconf(_SC_PAGESIZE) - 1);
	void *base;

	e->mapped_bytes = (size_t)(region->length + down);
	base = mmap(NULL, e->mapped_bytes, prot, MAP_SHARED, region->fd, (off_t)(region->fd_offset - down));
	if (base == MAP_FAILED)
		return -errno;
	madvise(base, e->mapped_bytes, MADV_DONTFORK);
	e->mapped = base;
	*addr_p = (char *)base + down;
	return 0;
}

static int enroll(struct vb_conn *conn, struct vb_export *e, const struct gantry_region *region)
{
	void *addr = region->addr;
	int rc = addr ? 0 : map(e, region, &addr);

	if (rc)
		return rc;
	rc = vb_mr_create(conn->pd, addr, region->length, e->wire.rights, 0, &e->mr);
	if (rc) {
		vb_explain_memory(conn->t, "region", region->length, rc);
		unmap(e);
		return rc;
	}
	e->wire.addr = (uintptr_t)addr;
	e->wire.key = e->mr->rkey;
	return 0;
}

static void put_address(struct vb_ctrl_region *wire, const struct sockaddr_storage *addr)
{
	const struct sockaddr_in *sin = (const struct sockaddr_in *)addr;
	const struct sockaddr_in6 *sin6 = (const struct sockaddr_in6 *)addr;

	wire->family = addr->ss_family;
	wire->port = ntohs(sin->sin_port); /* where both families have it */
	if (addr->ss_family == AF_INET)
		memcpy(wire->address, &sin->sin_addr, sizeof(sin->sin_addr));
	else
		memcpy(wire->address, &sin6->sin6_addr, sizeof(sin6->sin6_addr));
}

static int get_address(const struct vb_ctrl_region *wire, struct sockaddr_storage *addr)
{
	struct sockaddr_in *sin = (struct sockaddr_in *)addr;
	struct sockaddr_in6 *sin6 = (struct sockaddr_in6 *)addr;

	memset(addr, 0, sizeof(*addr));
	addr->ss_family = wire->family;
	sin->sin_port = htons(wire->port);
	if (wire->port == 0 || wire->session == 0 || wire->secret == 0)
		return -EINVAL;
	if (wire->family == AF_INET)
		memcpy(&sin->sin_addr, wire->address, sizeof(sin->sin_addr));
	else if (wire->family == AF_INET6)
		memcpy(&sin6->sin6_addr, wire->address, sizeof(sin6->sin6_addr));
	else
		return -EINVAL;
	return 0;
}

/* Where somebody to whom the peer passes the region on can reach it. Without that it can only not be passed on. */
static void invite(struct vb_conn *conn, struct vb_ctrl_region *wire)
{
	struct sockaddr_storage addr;
	int rc = 0;

	if (!conn->direct_secret && getrandom(&conn->direct_secret, sizeof(conn->direct_secret), 0) < 0)
		rc = -errno;
	if (!rc)
		rc = vb_listen_direct(conn, &addr);
	if (rc) {
		gantry_log_info(conn->t->host, "regions cannot be passed on by %s: no port for it: %s", conn->peer.address, strerror(-rc));
		return;
	}
	wire->session = conn->session;
	wire->secret = conn->direct_secret;
	put_address(wire, &addr);
}

static int check_export(struct vb_conn *conn, const struct gantry_region *region, uint32_t rights, uint32_t handle)
{
	const struct gantry_host *host = conn->t->host;

	if (!vb_usable(conn->t))
		return -EPERM;
	if (!vb_conn_usable(conn))
		return -ENOTCONN;
	if (region->length == 0 || !rights || (rights & ~RIGHTS))
		return -EINVAL;
	if (rights & ~region->rights)
		return -EACCES;
	if (find_export(conn, handle))
		return -EEXIST;
	if (region->length > conn->t->conf->max_region_bytes || region->length > conn->t->device.limits.max_mr_bytes) {
		gantry_log_error(host, "a region of %llu bytes is more than max_region_bytes, or than RDMA device %s registers",
			  (unsigned long long)region->length, conn->t->device.context->device->name);
		return -E2BIG;
	}
	if (region->domain != VB_TOKEN_KIND && !region->addr && region->fd < 0) {
		gantry_log_error(host, "a region of another transport cannot be passed on over RDMA: it is neither mapped here nor a file");
		return -ENOTSUP;
	}
	return 0;
}

/* What the peer is told of a region that was imported over RDMA: where it really is. */
static int pass_on(struct vb_conn *conn, struct vb_export *e, const struct gantry_region *region)
{
	const struct vb_import *im = region->transport;

	if (im->wire.family == 0) {
		gantry_log_error(conn->t->host, "a region of %s cannot be passed on: its owner takes no direct connections",
			  im->conn->peer.address);
		return -ENOTSUP;
	}
	e->wire.addr = im->wire.addr;
	e->wire.key = im->wire.key;
	e->wire.session = im->wire.session;
	e->wire.secret = im->wire.secret;
	e->wire.family = im->wire.family;
	e->wire.port = im->wire.port;
	memcpy(e->wire.address, im->wire.address, sizeof(e->wire.address));
	e->wire.direct = 1;
	return 0;
}

/* No agent of the peer can touch it after this; except where it lives elsewhere. */
static void deregister(struct vb_export *e)
{
	vb_mr_destroy(&e->mr);
	unmap(e);
}

static void drop_export(struct vb_export *e)
{
	deregister(e);
	__atomic_store_n(&e->region, NULL, __ATOMIC_RELEASE);
	e->revoking = 0;
	e->deadline_ns = 0;
}

int vb_export(void *arg, const struct gantry_region *region, uint32_t rights, uint32_t handle, struct gantry_token *token_p)
{
	struct vb_conn *conn = arg;
	struct vb_export *e = NULL;
	int rc = check_export(conn, region, rights, handle);

	if (rc)
		return rc;
	for (int i = 0; i < VB_REGIONS && !e; i++)
		if (!conn->exports[i].region)
			e = &conn->exports[i];
	if (!e)
		return -ENOSPC;
	e->wire = (struct vb_ctrl_region){
		.length = region->length, .rights = rights, .handle = handle, .generation = conn->generation + 1};
	rc = region->domain == VB_TOKEN_KIND ? pass_on(conn, e, region) : enroll(conn, e, region);
	if (rc)
		return rc;
	if (!e->wire.direct)
		invite(conn, &e->wire);
	rc = vb_control_send(conn, VB_CTRL_REGION, &e->wire, sizeof(e->wire));
	if (rc) {
		deregister(e);
		return rc;
	}
	conn->generation++;
	__atomic_store_n(&e->region, region, __ATOMIC_RELEASE);
	*token_p = (struct gantry_token){
		.kind = VB_TOKEN_KIND, .handle = handle, .length = region->length, .rights = rights, .generation = conn->generation};
	return 0;
}

int vb_export_ref(struct vb_conn *conn, const struct gantry_region *region, uint64_t offset, uint32_t length,
		  struct vb_msg_region *ref)
{
	for (int i = 0; i < VB_REGIONS; i++) {
		const struct vb_export *e = &conn->exports[i];

		if (__atomic_load_n(&e->region, __ATOMIC_ACQUIRE) != region)
			continue;
		if (e->wire.direct || !(e->wire.rights & GANTRY_REMOTE_READ) || !gantry_range_ok(offset, length, e->wire.length))
			return -EINVAL;
		*ref = (struct vb_msg_region){
			.offset = offset, .handle = e->wire.handle, .generation = e->wire.generation, .length = length};
		return 0;
	}
	return -EINVAL;
}

/* -- the exporter takes it back -- */

int vb_revoke(void *arg, uint32_t handle)
{
	struct vb_conn *conn = arg;
	struct vb_export *e = find_export(conn, handle);
	struct vb_ctrl_handle body;

	if (!vb_usable(conn->t))
		return -EPERM;
	if (!e)
		return -ENOENT;
	if (e->revoking)
		return -EALREADY;
	body = (struct vb_ctrl_handle){.handle = handle, .generation = e->wire.generation};
	e->revoking = 1;
	e->deadline_ns = conn->t->host->now_ns(conn->t->host) + conn->t->conf->revoke_timeout_ns;
	vb_control_send(conn, VB_CTRL_REVOKE, &body, sizeof(body)); /* if that fails, the deadline or `closed` does it */
	return 0;
}

static void tell_revoked(struct vb_conn *conn, struct vb_export *e, int rc)
{
	drop_export(e);
	if (conn->freed)
		return;
	conn->t->n_events++;
	conn->events->revoked(conn->arg, conn, e->wire.handle, rc);
}

int vb_on_released(struct vb_conn *conn, const struct vb_ctrl_handle *h)
{
	struct vb_export *e = find_export(conn, h->handle);

	if (!e || !e->revoking || e->wire.generation != h->generation) /* or overdue, and gone by now */
		return h->generation && h->generation <= conn->generation ? 0 : -EPROTO;
	tell_revoked(conn, e, 0);
	return 0;
}

uint64_t vb_regions_wake_ns(const struct vb_conn *conn)
{
	uint64_t first = 0;

	for (int i = 0; i < VB_REGIONS; i++) {
		uint64_t at = conn->exports[i].deadline_ns;

		if (at && (!first || at < first))
			first = at;
	}
	return first;
}

static void sign_off(struct vb_conn *conn, struct vb_import *im);

void vb_regions_progress(struct vb_conn *conn, uint64_t now_ns)
{
	for (int i = 0; i < VB_REGIONS && !conn->freed; i++) {
		struct vb_export *e = &conn->exports[i];

		if (conn->imports[i].revoking)
			sign_off(conn, &conn->imports[i]);
		if (!e->deadline_ns || now_ns < e->deadline_ns)
			continue;
		gantry_log_warn(conn->t->host, "%s has not given a region back in time (revoke_timeout): %s", conn->peer.address,
			 e->wire.direct ? "it lives elsewhere, and may still be in use" : "its key is invalid from now on");
		tell_revoked(conn, e, e->wire.direct ? -ETIMEDOUT : 0);
	}
}

void vb_regions_lost(struct vb_conn *conn)
{
	for (int i = 0; i < VB_REGIONS; i++)
		deregister(&conn->exports[i]);
	for (int i = 0; i < VB_REGIONS && !conn->freed; i++)
		if (conn->exports[i].region)
			tell_revoked(conn, &conn->exports[i], conn->exports[i].wire.direct ? -ETIMEDOUT : 0);
}

void vb_regions_quiet(struct vb_conn *conn)
{
	for (int i = 0; i < VB_REGIONS; i++)
		drop_export(&conn->exports[i]);
}

/* -- imports -- */

static struct vb_import *find_import(struct vb_conn *conn, uint64_t name)
{
	for (int i = 0; i < VB_REGIONS; i++)
		if (__atomic_load_n(&conn->imports[i].name, __ATOMIC_ACQUIRE) == name)
			return &conn->imports[i];
	return NULL;
}

static bool handle_taken(const struct vb_conn *conn, uint32_t handle)
{
	for (int i = 0; i < VB_REGIONS; i++)
		if (conn->imports[i].name && (uint32_t)conn->imports[i].name == handle && !conn->imports[i].revoking)
			return true;
	return false;
}

/* The one whose memory it is, when that is not the peer. */
static int find_peer(struct vb_conn *conn, const struct vb_ctrl_region *r, struct vb_import_peer **peer_p)
{
	struct vb_import_peer *peer;
	struct sockaddr_storage addr;
	int n = 0;

	if (get_address(r, &addr) != 0)
		return -EPROTO;
	for (peer = conn->peers; peer; peer = peer->next, n++)
		if (peer->session == r->session && peer->secret == r->secret)
			break;
	if (!peer) {
		if (n >= VB_PEERS)
			return -EPROTO;
		peer = calloc(1, sizeof(*peer));
		if (!peer)
			return -ENOMEM;
		peer->session = r->session;
		peer->secret = r->secret;
		peer->addr = addr;
		peer->next = conn->peers;
		conn->peers = peer;
	}
	*peer_p = peer;
	return 0;
}

int vb_on_region(struct vb_conn *conn, const struct vb_ctrl_region *r)
{
	struct vb_import_peer *peer = NULL;
	struct vb_import *im = find_import(conn, 0);
	int rc = 0;

	if (!im || r->generation <= conn->announced || r->length == 0 || r->addr > UINT64_MAX - r->length || !r->rights ||
	    (r->rights & ~RIGHTS) || handle_taken(conn, r->handle))
		return -EPROTO;
	if (r->direct)
		rc = find_peer(conn, r, &peer);
	if (rc)
		return rc;
	im->conn = conn;
	im->wire = *r;
	im->peer = peer;
	im->pub = (struct gantry_region){.length = r->length, .fd = -1, .rights = r->rights, .handle = r->handle,
					 .domain = VB_TOKEN_KIND, .transport = im};
	__atomic_store_n(&im->name, name_of(r->handle, r->generation), __ATOMIC_RELEASE);
	__atomic_store_n(&conn->announced, r->generation, __ATOMIC_RELEASE);
	return 0;
}

/* A revoked region goes when the user has released it and no lane fetches from it. */
static void sign_off(struct vb_conn *conn, struct vb_import *im)
{
	struct vb_ctrl_handle body = {.handle = im->wire.handle, .generation = im->wire.generation};
	int rc;

	if (!im->revoking || im->n_users || __atomic_load_n(&im->fetching, __ATOMIC_SEQ_CST))
		return;
	__atomic_store_n(&im->name, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&im->revoking, 0, __ATOMIC_RELAXED);
	rc = vb_control_send(conn, VB_CTRL_RELEASED, &body, sizeof(body));
	if (rc)
		vb_conn_fail(conn, rc);
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

static int reach(struct vb_conn *conn, struct vb_import_peer *peer)
{
	int rc = 0;

	for (struct vb_lane *lane = conn->lanes; lane && !rc; lane = lane->next)
		if (lane->has_rma)
			rc = vb_pipe_want_direct(conn, peer, lane->number);
	return rc;
}

int vb_import_region(void *arg, const struct gantry_token *token, int to_map, struct gantry_region **region_p)
{
	struct vb_conn *conn = arg;
	struct vb_import *im;
	int rc;

	if (!vb_usable(conn->t))
		return -EPERM;
	if (!vb_conn_usable(conn))
		return -ENOTCONN;
	if (token->kind != VB_TOKEN_KIND || token->generation == 0)
		return -ENOENT;
	im = find_import(conn, name_of(token->handle, token->generation));
	if (!im || im->revoking)
		return -ENOENT;
	if (token->length > im->wire.length)
		return -ERANGE;
	if (to_map)
		return -ENOTSUP;
	rc = im->peer ? reach(conn, im->peer) : 0;
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

int vb_fetch_begin(struct vb_conn *conn, const struct vb_msg_region *ref, struct vb_import **import_p)
{
	uint64_t name = name_of(ref->handle, ref->generation);
	uint32_t announced = __atomic_load_n(&conn->announced, __ATOMIC_ACQUIRE);
	struct vb_import *im;

	if (ref->generation == 0)
		return -EPROTO;
	im = find_import(conn, name);
	if (!im)
		return ref->generation > announced ? -EAGAIN : -EFAULT;
	__atomic_fetch_add(&im->fetching, 1, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&im->name, __ATOMIC_SEQ_CST) != name || __atomic_load_n(&im->revoking, __ATOMIC_SEQ_CST)) {
		vb_fetch_end(im);
		return -EFAULT;
	}
	if (im->peer || !(im->wire.rights & GANTRY_REMOTE_READ) || !gantry_range_ok(ref->offset, ref->length, im->wire.length)) {
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

/* -- memory of this process, for remote reads and writes of its own -- */

int vb_register(void *arg, const struct gantry_region *region)
{
	struct vb_conn *conn = arg;
	struct vb_registered *free_one = NULL;
	int rc;

	if (!vb_usable(conn->t))
		return -EPERM;
	if (!region->addr || region->length == 0)
		return -EINVAL;
	for (int i = VB_REGIONS - 1; i >= 0; i--) {
		if (conn->registered[i].region == region)
			return -EEXIST;
		if (!conn->registered[i].region)
			free_one = &conn->registered[i];
	}
	if (!free_one)
		return -ENOSPC;
	rc = vb_mr_create(conn->pd, region->addr, region->length, 0, 1, &free_one->mr);
	if (rc) {
		vb_explain_memory(conn->t, "local region", region->length, rc);
		return rc;
	}
	__atomic_store_n(&free_one->region, region, __ATOMIC_RELEASE);
	return 0;
}

void vb_unregister(void *arg, const struct gantry_region *region)
{
	struct vb_conn *conn = arg;

	if (!vb_usable(conn->t))
		return;
	for (int i = 0; i < VB_REGIONS; i++)
		if (conn->registered[i].region == region) {
			__atomic_store_n(&conn->registered[i].region, NULL, __ATOMIC_RELEASE);
			vb_mr_destroy(&conn->registered[i].mr);
		}
}

int vb_local_key(struct vb_conn *conn, const struct gantry_region *region, const void *addr, uint32_t length, uint32_t *lkey_p)
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

void vb_regions_free(struct vb_conn *conn)
{
	vb_regions_quiet(conn);
	for (int i = 0; i < VB_REGIONS; i++)
		vb_mr_destroy(&conn->registered[i].mr);
	while (conn->peers) {
		struct vb_import_peer *peer = conn->peers;

		conn->peers = peer->next;
		free(peer);
	}
}
