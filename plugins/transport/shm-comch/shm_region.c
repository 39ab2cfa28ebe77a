/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shm_region.c - export, import, release and revocation of regions.
 *
 *   exporter                                importer
 *   export_region     --- REGION (fd) --->  checks the memory, and maps it if a queue or the user
 *                                           accesses its data
 *   sends can use it  <-- REGION_OK ------
 *                                           import_region, release_region: any number of times;
 *                                           before the first access the owner gets a report;
 *                                           meanwhile the pages are checked on request
 *                                           (shm_pages.c)
 *   revoke_region     --- REVOKE -------->  event `revoke` if the user holds the region; unmaps it
 *                                           after the last release and the last copy of a lane
 *   event `revoked`   <-- RELEASED -------
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <gantry/memfd.h>

#include "../common/mapping.h"
#include "shm_comch.h"

#define REGION_DOMAIN 0x636d6368u
#define RIGHTS (GANTRY_REMOTE_READ | GANTRY_REMOTE_WRITE)

static struct comch_export *find_export(struct comch_conn *conn, uint32_t handle)
{
	for (unsigned int i = 0; i < COMCH_REGIONS; i++)
		if (conn->exported[i].state != COMCH_E_FREE && conn->exported[i].handle == handle)
			return &conn->exported[i];
	return NULL;
}

/*
 * Publish a change of an export. The caller has stored the other fields. Pairs with find_region()
 * and send_region() of producers.
 */
static void export_changed(struct comch_conn *conn, struct comch_export *e, uint32_t state)
{
	__atomic_store_n(&e->state, state, __ATOMIC_RELEASE);
	__atomic_store_n(&conn->export_epoch, conn->export_epoch + 1, __ATOMIC_RELEASE);
}

/*
 * Returns a descriptor for the peer, or -1 with errno. Without the write right, the descriptor
 * cannot be mapped for writing.
 */
static int peer_fd(const struct gantry_region *region, uint32_t rights)
{
	int flags = fcntl(region->fd, F_GETFL);
	char path[40];

	if (rights & GANTRY_REMOTE_WRITE)
		return fcntl(region->fd, F_DUPFD_CLOEXEC, 0);
	if (flags >= 0 && (flags & O_ACCMODE) == O_RDONLY)
		return fcntl(region->fd, F_DUPFD_CLOEXEC, 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", region->fd);
	return open(path, O_RDONLY | O_CLOEXEC);
}

/* Send the region with its hold_socket, or else with that of the connection. */
static int send_region(struct comch_conn *conn, const struct gantry_region *region,
		       const struct comch_export *e)
{
	const int socket = region->hold_socket ? region->hold_socket : conn->hold_socket;
	int fds[] = {peer_fd(region, e->rights), socket}, rc;
	struct comch_frame frame;

	if (fds[0] < 0)
		return -errno;
	comch_frame_init(&frame, COMCH_REGION, sizeof(frame.region));
	frame.region = (struct comch_region_up){
		.ref = e->ref,
		.handle = e->handle,
		.length = e->length,
		.fd_offset = region->fd_offset,
		.rights = e->rights,
	};
	rc = comch_out_send(conn, &frame, fds, socket ? 2 : 1);
	close(fds[0]);
	return rc;
}

int comch_hold_exports(void *arg, int socket)
{
	struct comch_conn *conn = arg;
	int fd;

	if (conn->hold_socket)
		return -EALREADY;
	fd = fcntl(socket, F_DUPFD_CLOEXEC, 3);
	if (fd < 0)
		return -errno;
	conn->hold_socket = fd;
	return 0;
}

uint64_t comch_export_limit(void *arg)
{
	const struct comch_conn *conn = arg;

	return conn->exported_bytes < conn->peer_room ? conn->peer_room - conn->exported_bytes : 0;
}

int comch_export(void *arg, const struct gantry_region *region, uint32_t rights, uint32_t handle,
		 struct gantry_token *token_p)
{
	struct comch_conn *conn = arg;
	struct comch_export *e = NULL;
	struct comch_memory memory;
	char why[COMCH_WHY];
	int rc = comch_conn_usable(conn);

	if (rc)
		return rc;
	if (region->length == 0 || !rights || (rights & ~RIGHTS))
		return -EINVAL;
	if (rights & ~region->rights)
		return -EACCES;
	if (region->fd < 0)
		return -EXDEV;
	if (find_export(conn, handle))
		return -EEXIST;
	memory = (struct comch_memory){"region",          handle,         region->fd,
				       region->fd_offset, region->length, UINT64_MAX};
	rc = comch_memory_check(conn, &memory, why);
	if (rc) {
		gantry_log_error(conn->dev->host, "a region cannot be exported to %s: %s",
				 conn->peer.address, why);
		return rc;
	}
	if (region->length > comch_export_limit(conn)) {
		gantry_log_error(
			conn->dev->host,
			"region %u of %llu bytes cannot be exported to %s: the quota of that peer is exceeded "
			"(exported=%llu, max_bytes=%llu): raise max_bytes of its device",
			handle, (unsigned long long)region->length, conn->peer.address,
			(unsigned long long)conn->exported_bytes,
			(unsigned long long)conn->peer_room);
		return -E2BIG;
	}
	for (unsigned int i = 0; i < COMCH_REGIONS && !e; i++)
		if (conn->exported[i].state == COMCH_E_FREE)
			e = &conn->exported[i];
	if (!e)
		return -ENOSPC;
	e->ref = COMCH_REF((uint32_t)(e - conn->exported), COMCH_REF_GENERATION(e->ref) + 1);
	e->handle = handle;
	e->rights = rights;
	e->length = region->length;
	__atomic_store_n(&e->region, region, __ATOMIC_RELAXED);
	rc = send_region(conn, region, e);
	if (rc)
		return rc;
	conn->exported_bytes += e->length;
	export_changed(conn, e, COMCH_E_SENT);
	*token_p = (struct gantry_token){.handle = handle, .generation = e->ref};
	return 0;
}

const char *comch_on_region_ok(struct comch_conn *conn, uint32_t ref)
{
	struct comch_export *e = &conn->exported[COMCH_REF_SLOT(ref)];

	if (e->state == COMCH_E_FREE || e->ref != ref)
		return "confirms a region that was not exported to it";
	if (e->state == COMCH_E_SENT)
		export_changed(conn, e, COMCH_E_LIVE);
	return NULL;
}

int comch_revoke(void *arg, uint32_t handle)
{
	struct comch_conn *conn = arg;
	struct comch_export *e = find_export(conn, handle);

	if (conn->dev->pid != getpid())
		return -EPERM;
	if (!e)
		return -ENOENT;
	if (e->state == COMCH_E_REVOKING)
		return -EALREADY;
	export_changed(conn, e, COMCH_E_REVOKING);
	comch_out_id(conn, COMCH_REVOKE, e->ref);
	return 0;
}

static void deliver_revoked(struct comch_conn *conn, struct comch_export *e, int rc)
{
	/* atomic, because a lane might be searching the table */
	__atomic_store_n(&e->region, NULL, __ATOMIC_RELAXED);
	conn->exported_bytes -= e->length;
	export_changed(conn, e, COMCH_E_FREE);
	conn->dev->events++;
	conn->events->revoked(conn->arg, conn, e->handle, rc);
}

const char *comch_on_released(struct comch_conn *conn, uint32_t ref)
{
	struct comch_export *e = &conn->exported[COMCH_REF_SLOT(ref)];

	if (e->state != COMCH_E_REVOKING || e->ref != ref)
		return "releases a region that was not revoked";
	deliver_revoked(conn, e, 0);
	return NULL;
}

void comch_regions_closed(struct comch_conn *conn, int rc)
{
	for (unsigned int i = 0; i < COMCH_REGIONS && conn->state != COMCH_S_DEAD; i++)
		if (conn->exported[i].state != COMCH_E_FREE)
			deliver_revoked(conn, &conn->exported[i], rc);
}

static int map_import(struct comch_import *r)
{
	int prot = PROT_READ | (r->rights & GANTRY_REMOTE_WRITE ? PROT_WRITE : 0);
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), down = r->fd_offset & (page - 1);
	void *base = mmap(NULL, (size_t)(r->length + down), prot, MAP_SHARED, r->fd,
			  (off_t)(r->fd_offset - down));

	if (base == MAP_FAILED)
		return -errno;
	madvise(base, (size_t)(r->length + down), MADV_DONTFORK);
	r->base = base;
	r->base_bytes = (size_t)(r->length + down);
	r->addr = (char *)base + down;
	return 0;
}

static void unmap_import(struct comch_import *r)
{
	if (r->base)
		munmap(r->base, r->base_bytes);
	r->base = r->addr = NULL;
	if (r->hold >= 0)
		comch_fds_sub(r->conn->user, 1);
	gantry_hold_end(&r->hold);
}

/* Report to the owner of a region that this process maps it. Returns 0 or -errno. */
static int report(struct comch_import *r)
{
	int rc;

	if (!r->hold_socket || r->hold >= 0)
		return 0;
	if (!comch_conn_take_fds(r->conn, 1))
		return -EMFILE;
	rc = tc_hold(r->conn->dev->host, r->hold_socket, &r->hold);
	if (r->hold < 0)
		comch_fds_sub(r->conn->user, 1);
	if (rc)
		snprintf(r->conn->import_error, sizeof(r->conn->import_error),
			 "report to the owner of the memory failed: %s", strerror(-rc));
	return rc;
}

/* Let the user access a region. Returns 0 or -errno. */
static int open_access(struct comch_import *r)
{
	int rc = report(r);

	return rc || r->base ? rc : map_import(r);
}

/*
 * Replace the mapping by private pages at the same address, because a lane might be copying. If
 * mmap(2) fails, the mapping stays.
 */
static void cut_off(struct comch_import *r)
{
	int prot = PROT_READ | (r->rights & GANTRY_REMOTE_WRITE ? PROT_WRITE : 0);

	if (!r->base ||
	    mmap(r->base, r->base_bytes, prot,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0) == MAP_FAILED)
		return;
	madvise(r->base, r->base_bytes, MADV_DONTFORK);
}

void comch_regions_cut_off(struct comch_conn *conn)
{
	for (unsigned int i = 0; i < COMCH_REGIONS; i++)
		if (conn->imported[i].state != COMCH_I_FREE)
			cut_off(&conn->imported[i]);
}

static void drop_import(struct comch_conn *conn, struct comch_import *r)
{
	comch_pages_end(conn, r);
	unmap_import(r);
	if (r->fd >= 0) {
		close(r->fd);
		comch_fds_sub(conn->user, 1);
	}
	r->fd = -1;
	if (r->hold_socket) /* the peer can have put descriptors into the socket */
		comch_conn_close_fds(conn, &r->hold_socket, 1);
	r->hold_socket = 0;
	conn->imported_bytes -= r->length;
	__atomic_store_n(&r->state, COMCH_I_FREE, __ATOMIC_RELEASE);
}

/* sendmsg(2) with MSG_DONTWAIT never blocks on such a socket. */
static bool is_unix_socket(int fd)
{
	int domain = 0, type = 0;
	socklen_t n = sizeof(int);

	return !getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &n) && domain == AF_UNIX &&
	       !getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &n) && type == SOCK_SEQPACKET;
}

/* Give a descriptor another number than 0, which means none. */
static bool raise_number(int *fd_p)
{
	int fd = fcntl(*fd_p, F_DUPFD_CLOEXEC, 3);

	if (fd < 0)
		return false;
	close(*fd_p);
	*fd_p = fd;
	return true;
}

const char *comch_on_region(struct comch_conn *conn, const struct comch_region_up *up, int *fds)
{
	struct comch_import *r = &conn->imported[COMCH_REF_SLOT(up->ref)];
	const uint64_t max = conn->dev->conf->max_bytes;
	const struct comch_memory memory = {"region",      up->handle, fds[0],
					    up->fd_offset, up->length, INT64_MAX};

	if (r->state != COMCH_I_FREE)
		return "exports a region twice";
	if (COMCH_REF_GENERATION(up->ref) <= COMCH_REF_GENERATION(r->ref))
		return "reuses the reference of an old region";
	if (!up->rights || (up->rights & ~RIGHTS) || up->zero || !up->length)
		return "malformed region";
	if (up->fd_offset > INT64_MAX || up->length > INT64_MAX - up->fd_offset)
		return "the range of a region exceeds any file";
	if (!gantry_range_ok(conn->imported_bytes, up->length, max)) {
		snprintf(
			conn->why, sizeof(conn->why),
			"region %u of %llu bytes exceeds the quota of the peer (exported=%llu, max_bytes "
			"of this device=%llu)",
			up->handle, (unsigned long long)up->length,
			(unsigned long long)conn->imported_bytes, (unsigned long long)max);
		return conn->why;
	}
	if (comch_memory_check(conn, &memory, conn->why))
		return conn->why;
	if (fds[1] >= 0 && !is_unix_socket(fds[1]))
		return "exports a region whose second descriptor is no Unix seqpacket socket";
	if (fds[1] == 0 && !raise_number(&fds[1]))
		return "this process has no free file descriptor";
	/*
	 * One field at a time and atomic: a lane can read the ref of a free slot, to distinguish a
	 * stale ref from an invalid one.
	 */
	__atomic_store_n(&r->ref, up->ref, __ATOMIC_RELAXED);
	r->handle = up->handle;
	r->rights = up->rights;
	r->length = up->length;
	r->base = r->addr = NULL;
	r->base_bytes = 0;
	r->fd = fds[0];
	r->fd_offset = up->fd_offset;
	r->refs = 0;
	r->can_shrink = false;
	r->conn = conn;
	r->hold_socket = fds[1] < 0 ? 0 : fds[1];
	fds[0] = fds[1] = -1;
	conn->imported_bytes += up->length;
	r->error = map_import(r);
	if (r->error == -EPERM || r->error == -EACCES) {
		drop_import(conn, r);
		return "the memory of a region does not allow its rights";
	}
	if (!conn->touches)
		unmap_import(r);
	__atomic_store_n(&r->state, COMCH_I_LIVE, __ATOMIC_RELEASE);
	comch_out_id(conn, COMCH_REGION_OK, up->ref);
	return NULL;
}

/*
 * Map all regions of the peer. An end without queues that access data, such as a gateway, maps no
 * region. From here on this end maps each region.
 */
int comch_regions_map(struct comch_conn *conn)
{
	int rc = 0;

	conn->touches = true;
	for (unsigned int i = 0; i < COMCH_REGIONS && !rc; i++)
		if (conn->imported[i].state == COMCH_I_LIVE)
			rc = open_access(&conn->imported[i]);
	return rc;
}

/*
 * Drop a revoked region after the user has released it and no lane copies from it, and confirm the
 * revocation.
 */
static void sign_off(struct comch_conn *conn, struct comch_import *r)
{
	uint32_t copying = (uint32_t)(r - conn->imported) + 1;
	struct comch_consumer *c;

	if (r->state != COMCH_I_REVOKED || r->refs)
		return;
	LIST_FOREACH (c, &conn->consumers, link) {
		if (__atomic_load_n(&c->copying, __ATOMIC_SEQ_CST) == copying) {
			conn->dev->retry = true;
			comch_device_kick(conn->dev);
			return;
		}
	}
	drop_import(conn, r);
	comch_out_id(conn, COMCH_RELEASED, r->ref);
}

void comch_regions_retry(struct comch_conn *conn)
{
	for (unsigned int i = 0; i < COMCH_REGIONS; i++)
		sign_off(conn, &conn->imported[i]);
}

const char *comch_on_revoke(struct comch_conn *conn, uint32_t ref)
{
	struct comch_import *r = &conn->imported[COMCH_REF_SLOT(ref)];

	if (r->state != COMCH_I_LIVE || r->ref != ref)
		return "revokes a region that it did not export";
	__atomic_store_n(&r->state, COMCH_I_REVOKED, __ATOMIC_SEQ_CST);
	if (r->refs) {
		conn->dev->events++;
		conn->events->revoke(conn->arg, conn, r->handle);
	} else {
		sign_off(conn, r);
	}
	return NULL;
}

int comch_import(void *arg, const struct gantry_token *token, uint32_t flags,
		 struct gantry_region **region_p)
{
	struct comch_conn *conn = arg;
	struct comch_import *r = &conn->imported[COMCH_REF_SLOT(token->generation)];
	struct gantry_region *region;
	int rc = comch_conn_usable(conn);

	conn->import_error[0] = '\0';
	if (rc)
		return rc;
	if (r->state != COMCH_I_LIVE || r->ref != token->generation || r->handle != token->handle)
		return -ENOENT;
	if ((flags & GANTRY_IMPORT_MAP) && !conn->dev->conf->mapped)
		return -EOPNOTSUPP;
	if (r->error)
		return r->error;
	if ((flags & GANTRY_IMPORT_MAP) || conn->touches)
		rc = open_access(r);
	if (rc)
		return rc;
	region = malloc(sizeof(*region));
	if (!region)
		return -ENOMEM;
	if (flags & GANTRY_IMPORT_KEEPS_PAGES)
		rc = comch_pages_begin(conn, r);
	if (rc) {
		free(region);
		return rc;
	}
	*region = (struct gantry_region){
		.addr = flags & GANTRY_IMPORT_MAP ? r->addr : NULL,
		.length = r->length,
		.fd = r->fd,
		.rights = r->rights,
		.fd_offset = r->fd_offset,
		.handle = r->handle,
		.domain = REGION_DOMAIN,
		.transport = r,
		.hold_socket = r->hold_socket,
	};
	r->refs++;
	*region_p = region;
	return 0;
}

const char *comch_import_error(void *arg)
{
	return ((const struct comch_conn *)arg)->import_error;
}

void comch_release(void *arg, struct gantry_region *region)
{
	struct comch_conn *conn = arg;
	struct comch_import *r;

	if (!region)
		return;
	r = region->transport;
	free(region);
	r->refs--;
	if (!r->refs)
		comch_pages_end(conn, r);
	sign_off(conn, r);
}

void comch_regions_free(struct comch_conn *conn)
{
	for (unsigned int i = 0; i < COMCH_REGIONS; i++)
		if (conn->imported[i].state != COMCH_I_FREE)
			drop_import(conn, &conn->imported[i]);
}
