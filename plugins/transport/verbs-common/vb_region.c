/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * vb_region.c - exported memory: memory of this process, or of a third party, that the peer can
 * access.
 *
 *   exporter                                     importer: vb_import.c
 *   export_region   --- REGION ------------->    records it; lanes can fetch data of messages
 *                                                import_region, release_region: any number of times
 *   revoke_region   --- REVOKE ------------->    event `revoke` if the user holds it; waits until
 *                                                no lane fetches from it
 *   deregistered; event `revoked` <-RELEASED-
 *
 * Without a reply within revoke_timeout the exporter deregisters the region too: the device rejects
 * later accesses.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>

#include "verbs.h"

void vb_explain_memory(const struct vb_transport *t, const char *what, uint64_t bytes, int rc)
{
	struct rlimit limit = {.rlim_cur = RLIM_INFINITY};

	getrlimit(RLIMIT_MEMLOCK, &limit);
	if (rc == -ENOMEM && limit.rlim_cur != RLIM_INFINITY)
		gantry_log_error(
			t->host,
			"cannot register %llu bytes for a %s: limit of locked memory reached (limit=%llu bytes): "
			"raise it by %llu KiB: `ulimit -l`, or LimitMEMLOCK= of the service",
			(unsigned long long)bytes, what, (unsigned long long)limit.rlim_cur,
			(unsigned long long)(bytes + 1023) / 1024);
	else
		gantry_log_error(t->host,
				 "cannot register %llu bytes for a %s with RDMA device %s: %s",
				 (unsigned long long)bytes, what, t->device.context->device->name,
				 strerror(-rc));
}

/* -- exports -- */

static struct vb_export *find_export(struct vb_conn *conn, uint32_t handle)
{
	for (uint32_t i = 0; i < conn->exports_used; i++)
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

/* Map a region that has only a file descriptor. */
static int map(struct vb_export *e, const struct gantry_region *region, void **addr_p)
{
	int prot = PROT_READ | (e->wire.rights & GANTRY_REMOTE_WRITE ? PROT_WRITE : 0);
	uint64_t down = region->fd_offset & ((uint64_t)sysconf(_SC_PAGESIZE) - 1);
	void *base;

	e->mapped_bytes = (size_t)(region->length + down);
	base = mmap(NULL, e->mapped_bytes, prot, MAP_SHARED, region->fd,
		    (off_t)(region->fd_offset - down));
	if (base == MAP_FAILED)
		return -errno;
	madvise(base, e->mapped_bytes, MADV_DONTFORK);
	e->mapped = base;
	*addr_p = (char *)base + down;
	return 0;
}

static int register_memory(struct vb_conn *conn, struct vb_export *e,
			   const struct gantry_region *region)
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

/*
 * Add the address and the secret by which a third party can access the region after a re-export.
 * Without a listener for direct pipes the region can still be used, but not re-exported. Returns 0
 * or -ENOMEM.
 */
static int offer_direct(struct vb_conn *conn, struct vb_ctrl_region *wire)
{
	struct sockaddr_storage addr;
	int rc = 0;

	if (!conn->direct_secret &&
	    (getrandom(conn->direct_key, sizeof(conn->direct_key), 0) < 0 ||
	     getrandom(&conn->direct_secret, sizeof(conn->direct_secret), 0) < 0))
		rc = -errno;
	if (!rc)
		rc = vb_listen_direct(conn, &addr);
	if (rc) {
		gantry_log_info(
			conn->t->host,
			"%s cannot re-export regions of this process: this process cannot listen for other servers "
			"that access them: %s",
			conn->peer.address, strerror(-rc));
		return rc == -ENOMEM ? rc : 0; /* other errors are not fatal */
	}
	wire->session = conn->session;
	wire->secret = conn->direct_secret;
	tc_address_put(&addr, &wire->family, &wire->port, wire->address);
	return 0;
}

static int check_export(struct vb_conn *conn, const struct gantry_region *region, uint32_t rights,
			uint32_t handle)
{
	const struct gantry_host *host = conn->t->host;

	if (!vb_usable(conn->t))
		return -EPERM;
	if (!vb_conn_usable(conn))
		return -ENOTCONN;
	if (region->length == 0 || !rights || (rights & ~VB_RIGHTS))
		return -EINVAL;
	if (rights & ~region->rights)
		return -EACCES;
	if (find_export(conn, handle))
		return -EEXIST;
	if (region->length > conn->t->conf->max_region_bytes ||
	    region->length > conn->t->device.limits.max_mr_bytes) {
		gantry_log_error(
			host,
			"a region of %llu bytes exceeds max_region_bytes, or the limit of RDMA device %s",
			(unsigned long long)region->length, conn->t->device.context->device->name);
		return -E2BIG;
	}
	if (region->domain != VB_DOMAIN && !region->addr && region->fd < 0)
		return -EXDEV;
	return 0;
}

/* Export a region that was imported over RDMA: the peer gets the address of its owner. */
static int reexport(struct vb_conn *conn, struct vb_export *e, const struct gantry_region *region)
{
	const struct vb_import *im = region->transport;

	if (im->wire.family == 0) {
		gantry_log_error(
			conn->t->host,
			"a region of %s cannot be re-exported: that peer accepts no direct queue pairs: see the "
			"cause in its log, and gantry-rdma-verbs(7)",
			im->conn->peer.address);
		return -ENOTSUP;
	}
	if (!im->conn->t->host->records != !conn->t->host->records) {
		gantry_log_error(
			conn->t->host,
			"a region of %s cannot be re-exported to %s: only one of them has control messages that are "
			"protected: set auth for both, or for neither",
			im->conn->peer.address, conn->peer.address);
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

/* Afterwards the peer cannot access the memory, unless a third party owns it. */
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

static int announce(struct vb_conn *conn, const struct vb_export *e,
		    const struct gantry_region *region)
{
	struct vb_ctrl_keyed_region body = {.region = e->wire};
	const uint8_t *key = e->wire.direct
				     ? ((const struct vb_import *)region->transport)->direct_key
				     : conn->direct_key;

	if (!conn->t->host->records)
		return vb_control_send(conn, VB_CTRL_REGION, &e->wire, sizeof(e->wire));
	memcpy(body.direct_key, key, sizeof(body.direct_key));
	return vb_control_send(conn, VB_CTRL_REGION, &body, sizeof(body));
}

int vb_export(void *arg, const struct gantry_region *region, uint32_t rights, uint32_t handle,
	      struct gantry_token *token_p)
{
	struct vb_conn *conn = arg;
	struct vb_export *e = NULL;
	int rc = check_export(conn, region, rights, handle);

	if (rc)
		return rc;
	for (uint32_t i = 0; i < conn->exports_used && !e; i++)
		if (!conn->exports[i].region)
			e = &conn->exports[i];
	if (!e && conn->exports_used == VB_REGIONS)
		return -ENOSPC;
	if (!e)
		e = &conn->exports[conn->exports_used++];
	e->wire = (struct vb_ctrl_region){.length = region->length,
					  .rights = rights,
					  .handle = handle,
					  .generation = conn->generation + 1};
	rc = region->domain == VB_DOMAIN ? reexport(conn, e, region)
					 : register_memory(conn, e, region);
	if (rc)
		return rc;
	if (!e->wire.direct)
		rc = offer_direct(conn, &e->wire);
	if (!rc)
		rc = announce(conn, e, region);
	if (rc) {
		deregister(e);
		return rc;
	}
	conn->generation++;
	__atomic_store_n(&e->region, region, __ATOMIC_RELEASE); /* pairs with vb_export_ref() */
	*token_p = (struct gantry_token){.handle = handle, .generation = conn->generation};
	return 0;
}

int vb_export_ref(struct vb_conn *conn, const struct gantry_region *region, uint64_t offset,
		  uint32_t length, struct vb_msg_region *ref)
{
	for (int i = 0; i < VB_REGIONS; i++) {
		const struct vb_export *e = &conn->exports[i];

		if (__atomic_load_n(&e->region, __ATOMIC_ACQUIRE) != region)
			continue;
		if (e->wire.direct || !(e->wire.rights & GANTRY_REMOTE_READ) ||
		    !gantry_range_ok(offset, length, e->wire.length))
			return -EINVAL;
		*ref = (struct vb_msg_region){.offset = offset,
					      .handle = e->wire.handle,
					      .generation = e->wire.generation,
					      .length = length};
		return 0;
	}
	return -EINVAL;
}

/* -- revocation -- */

int vb_revoke(void *arg, uint32_t handle)
{
	struct vb_conn *conn = arg;
	struct vb_export *e = find_export(conn, handle);
	struct vb_ctrl_handle body;
	int rc;

	if (!vb_usable(conn->t))
		return -EPERM;
	if (!e)
		return -ENOENT;
	if (e->revoking)
		return -EALREADY;
	body = (struct vb_ctrl_handle){.handle = handle, .generation = e->wire.generation};
	e->revoking = 1;
	e->deadline_ns = conn->t->host->now_ns(conn->t->host) + conn->t->conf->revoke_timeout_ns;
	rc = vb_control_send(conn, VB_CTRL_REVOKE, &body, sizeof(body));
	/*
	 * End the connection: a peer that misses a REVOKE would treat the next region of that
	 * handle as an error. `closed` follows.
	 */
	if (rc)
		vb_conn_fail(conn, rc);
	return 0;
}

static void deliver_revoked(struct vb_conn *conn, struct vb_export *e, int rc)
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

	/*
	 * After revoke_timeout this side has deregistered the region, so a late RELEASED is not an
	 * error.
	 */
	if (!e || !e->revoking || e->wire.generation != h->generation)
		return h->generation && h->generation <= conn->generation ? 0 : -EPROTO;
	deliver_revoked(conn, e, 0);
	return 0;
}

uint64_t vb_exports_wake_ns(const struct vb_conn *conn)
{
	uint64_t first = 0;

	for (uint32_t i = 0; i < conn->exports_used; i++) {
		uint64_t at = conn->exports[i].deadline_ns;

		if (at && (!first || at < first))
			first = at;
	}
	return first;
}

void vb_exports_progress(struct vb_conn *conn, uint64_t now_ns)
{
	for (uint32_t i = 0; i < conn->exports_used && !conn->freed; i++) {
		struct vb_export *e = &conn->exports[i];

		if (!e->deadline_ns || now_ns < e->deadline_ns)
			continue;
		gantry_log_warn(
			conn->t->host, "%s has not released a region in time (revoke_timeout): %s",
			conn->peer.address,
			e->wire.direct
				? "its key is that of another process, so the peer can still access it"
				: "its key is invalid from now on");
		deliver_revoked(conn, e, e->wire.direct ? -ETIMEDOUT : 0);
	}
}

void vb_exports_lost(struct vb_conn *conn)
{
	for (uint32_t i = 0; i < conn->exports_used; i++)
		deregister(&conn->exports[i]);
	for (uint32_t i = 0; i < conn->exports_used && !conn->freed; i++)
		if (conn->exports[i].region)
			deliver_revoked(conn, &conn->exports[i],
					conn->exports[i].wire.direct ? -ETIMEDOUT : 0);
}

void vb_exports_quiet(struct vb_conn *conn)
{
	for (uint32_t i = 0; i < conn->exports_used; i++)
		drop_export(&conn->exports[i]);
}
