/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * loop_region.c - export, import, remote read and remote write of the loop transport. Remote
 * accesses are copies by the calling lane.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../common/mapping.h"
#include "loop.h"

#define REGION_DOMAIN 0x6c6f6f70u
#define RIGHTS (GANTRY_REMOTE_READ | GANTRY_REMOTE_WRITE)

struct loop_import {
	struct gantry_region region;
	struct loop_conn *conn;
	uint32_t generation;
	uint8_t *addr;                /* set even if the importer did not request a mapping */
	struct loop_mapping *mapping; /* mapping of the export; NULL: the region has no file */
};

/* A NULL mapping is ignored. */
static void mapping_put(struct loop_mapping *mapping)
{
	if (!mapping || --mapping->refs)
		return;
	munmap(mapping->at, mapping->bytes);
	gantry_hold_end(&mapping->hold);
	free(mapping);
}

/*
 * Map the file of a region for its importers. They do not use the exporter's mapping: an exporter
 * that has lost its connection can replace that mapping while an IO of the importer is in flight. A
 * region that the exporter has imported from another transport need not be mapped at all.
 */
static int mapping_create(const struct gantry_host *host, const struct gantry_region *region,
			  uint32_t rights, struct loop_export *e)
{
	int prot = PROT_READ | (rights & GANTRY_REMOTE_WRITE ? PROT_WRITE : 0);
	uint64_t down = region->fd_offset & ((uint64_t)sysconf(_SC_PAGESIZE) - 1);
	struct loop_mapping *mapping = calloc(1, sizeof(*mapping));
	int rc;

	if (!mapping)
		return -ENOMEM;
	rc = tc_hold(host, e->hold_socket, &mapping->hold);
	if (rc) {
		free(mapping);
		return rc;
	}
	mapping->bytes = (size_t)(region->length + down);
	mapping->at = mmap(NULL, mapping->bytes, prot, MAP_SHARED, region->fd,
			   (off_t)(region->fd_offset - down));
	if (mapping->at == MAP_FAILED) {
		rc = -errno;
		gantry_hold_end(&mapping->hold);
		free(mapping);
		return rc;
	}
	madvise(mapping->at, mapping->bytes, MADV_DONTFORK);
	mapping->refs = 1;
	e->mapping = mapping;
	e->addr = (uint8_t *)mapping->at + down;
	return 0;
}

static struct loop_export *find_export(struct loop_conn *conn, uint32_t handle)
{
	for (unsigned int i = 0; i < LOOP_REGIONS; i++)
		if (conn->exports[i].region && conn->exports[i].handle == handle)
			return &conn->exports[i];
	return NULL;
}

static void drop_export(struct loop_export *e)
{
	__atomic_store_n(&e->region, NULL, __ATOMIC_RELEASE);
	/*
	 * the mapping stays until the last import is released, because a lane of the importer might
	 * still access the memory
	 */
	mapping_put(e->mapping);
	e->mapping = NULL;
}

int loop_export(void *arg, const struct gantry_region *region, uint32_t rights, uint32_t handle,
		struct gantry_token *token_p)
{
	struct loop_conn *conn = arg;
	struct loop_export *e = conn->exports;
	int rc = loop_usable(conn);

	if (rc)
		return rc;
	if (region->length == 0 || !rights || (rights & ~RIGHTS))
		return -EINVAL;
	if (rights & ~region->rights)
		return -EACCES;
	if (!region->addr && region->fd < 0)
		return -EXDEV;
	if (find_export(conn, handle))
		return -EEXIST;
	while (e < conn->exports + LOOP_REGIONS && e->region)
		e++;
	if (e == conn->exports + LOOP_REGIONS)
		return -ENOSPC;
	e->addr = region->addr;
	e->hold_socket = region->hold_socket ? region->hold_socket : conn->hold_socket;
	if (region->fd >= 0)
		rc = mapping_create(conn->dev->host, region, rights, e); /* sets e->addr */
	if (rc)
		return rc;
	e->handle = handle;
	e->generation = ++conn->generation;
	e->rights = rights;
	e->refs = 0;
	e->revoking = false;
	e->length = region->length;
	e->fd = region->fd;
	e->fd_offset = region->fd_offset;
	__atomic_store_n(&e->region, region, __ATOMIC_RELEASE);
	*token_p = (struct gantry_token){.handle = handle, .generation = e->generation};
	return 0;
}

/* fd: 0: there is none to copy */
static int copy_socket(int fd, int *copy_p)
{
	int copy = fd ? fcntl(fd, F_DUPFD_CLOEXEC, 3) : 0;

	if (copy < 0)
		return -errno;
	*copy_p = copy;
	return 0;
}

void loop_close_socket(int *fd_p)
{
	if (*fd_p)
		close(*fd_p);
	*fd_p = 0;
}

int loop_import(void *arg, const struct gantry_token *token, uint32_t flags,
		struct gantry_region **region_p)
{
	struct loop_conn *conn = arg;
	struct loop_import *im;
	struct loop_export *e;
	int rc = loop_usable(conn);

	if (rc)
		return rc;
	e = find_export(conn->peer, token->handle);
	if (!e || e->revoking || e->generation != token->generation)
		return -ENOENT;
	if ((flags & GANTRY_IMPORT_MAP) && !conn->dev->conf->mapped)
		return -EOPNOTSUPP;
	im = calloc(1, sizeof(*im));
	if (!im)
		return -ENOMEM;
	rc = copy_socket(e->hold_socket, &im->region.hold_socket);
	if (rc) {
		free(im);
		return rc;
	}
	im->conn = conn;
	im->generation = e->generation;
	im->addr = e->addr;
	im->region = (struct gantry_region){
		.addr = flags & GANTRY_IMPORT_MAP ? e->addr : NULL,
		.length = e->length,
		.fd = e->fd,
		.rights = e->rights,
		.fd_offset = e->fd_offset,
		.handle = e->handle,
		.domain = REGION_DOMAIN,
		.transport = im,
		.hold_socket = im->region.hold_socket,
	};
	im->mapping = e->mapping;
	if (im->mapping)
		im->mapping->refs++;
	e->refs++;
	*region_p = &im->region;
	return 0;
}

int loop_hold_exports(void *arg, int socket)
{
	struct loop_conn *conn = arg;

	return conn->hold_socket ? -EALREADY : copy_socket(socket, &conn->hold_socket);
}

void loop_release(void *arg, struct gantry_region *region)
{
	struct loop_conn *conn = arg;
	struct loop_import *im;
	struct loop_export *e;

	if (!region)
		return;
	im = region->transport;
	if (conn->peer) {
		e = find_export(conn->peer, region->handle);
		if (e && e->generation == im->generation && --e->refs == 0 && e->revoking)
			loop_event(conn->peer, LOOP_REVOKED, e->handle, 0, NULL, 0);
	}
	mapping_put(im->mapping);
	loop_close_socket(&im->region.hold_socket);
	free(im);
}

int loop_revoke(void *arg, uint32_t handle)
{
	struct loop_conn *conn = arg;
	struct loop_export *e = find_export(conn, handle);

	if (!e)
		return -ENOENT;
	if (e->revoking)
		return -EALREADY;
	e->revoking = true;
	if (conn->peer && e->refs)
		return loop_event(conn->peer, LOOP_REVOKE, handle, 0, NULL, 0);
	return loop_event(conn, LOOP_REVOKED, handle, 0, NULL, 0);
}

bool loop_revoked(struct loop_conn *conn, uint32_t handle)
{
	struct loop_export *e = find_export(conn, handle);

	if (e)
		drop_export(e);
	return e != NULL;
}

void loop_regions_free(struct loop_conn *conn)
{
	for (unsigned int i = 0; i < LOOP_REGIONS; i++)
		if (conn->exports[i].region)
			drop_export(&conn->exports[i]);
}

int loop_rma_create(void *arg, const struct gantry_queue_attr *attr, void **rma_p)
{
	struct loop_conn *conn = arg;
	struct loop_rma *rma;
	int rc = loop_usable(conn);

	if (rc)
		return rc;
	if (attr->depth == 0 || attr->depth > conn->dev->conf->max_depth)
		return -EINVAL;
	rma = calloc(1, sizeof(*rma));
	if (!rma)
		return -ENOMEM;
	rma->payload = tc_cell_get(&conn->dev->payload, conn->dev->host);
	if (!rma->payload || tc_done_init(&rma->done, attr->depth)) {
		tc_cell_put(&conn->dev->payload, rma->payload);
		free(rma);
		return -ENOMEM;
	}
	rma->conn = conn;
	LIST_INSERT_HEAD(&conn->rmas, rma, link);
	*rma_p = rma;
	return 0;
}

void loop_rma_destroy(void *arg)
{
	struct loop_rma *rma = arg;

	if (!rma)
		return;
	LIST_REMOVE(rma, link);
	tc_cell_put(&rma->conn->dev->payload, rma->payload);
	tc_done_fini(&rma->done);
	free(rma);
}

/*
 * Copy, unless the connection is lost. Returns 0, or -ENOTCONN: the exporter has disconnected, so
 * its memory might be unmapped. Pairs with cut_off() in loop_device.c: each side stores its own
 * word and then loads the word of the other side, with seq_cst.
 */
static int copy(struct loop_rma *rma, void *to, const void *from, uint32_t length,
		const struct gantry_region *from_region)
{
	__atomic_store_n(&rma->copying, 1, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&rma->conn->lost, __ATOMIC_SEQ_CST)) {
		__atomic_store_n(&rma->copying, 0, __ATOMIC_RELEASE);
		return -ENOTCONN;
	}
	gantry_copy_out(to, from, length, from_region ? from_region->length : 0);
	__atomic_store_n(&rma->copying, 0, __ATOMIC_RELEASE);
	gantry_count(rma->payload, length);
	return 0;
}

void loop_rma_flush(void *arg)
{
	struct loop_rma *rma = arg;
	const uint8_t *from = rma->held.from;
	int rc;

	if (!from)
		return;
	rma->held.from = NULL;
	rc = copy(rma, rma->held.to, from, rma->held.length, NULL);
	if (rc)
		tc_done_set_last(&rma->done, rc);
}

/*
 * A read is held back until the next access, whose first lines are prefetched before the held read
 * is copied. A write is not held back, because the caller might next send a message that announces
 * its data.
 */
int loop_rma_submit(void *arg, const struct gantry_rma *op)
{
	struct loop_rma *rma = arg;
	const struct loop_import *im = op->remote->transport;
	uint32_t right = op->op == GANTRY_RMA_READ ? GANTRY_REMOTE_READ : GANTRY_REMOTE_WRITE;
	uint8_t *remote;

	if (!im || im->conn != rma->conn || !(op->remote->rights & right))
		return -EACCES;
	if (!gantry_range_ok(op->remote_offset, op->length, op->remote->length))
		return -ERANGE;
	if (tc_done_full(&rma->done))
		return -EAGAIN;
	if (__atomic_load_n(&rma->conn->lost, __ATOMIC_RELAXED))
		return -ENOTCONN;
	remote = im->addr + op->remote_offset;
	if (op->op == GANTRY_RMA_READ || rma->held.from) {
		gantry_copy_soon(op->local, remote);
		loop_rma_flush(rma);
	}
	if (op->op == GANTRY_RMA_READ) {
		rma->held.from = remote;
		rma->held.to = op->local;
		rma->held.length = op->length;
	} else if (copy(rma, remote, op->local, op->length, op->local_region)) {
		return -ENOTCONN;
	}
	tc_done_put(&rma->done, op->cookie, 0);
	return 0;
}

int loop_rma_poll(void *arg, struct gantry_rma_done *done, uint32_t max)
{
	struct loop_rma *rma = arg;

	loop_rma_flush(rma);
	return tc_done_take(&rma->done, done, max);
}
