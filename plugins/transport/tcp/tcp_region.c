/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tcp_region.c - exported memory.
 *
 *   exporter                                     importer: tcp_import.c
 *   export_region   --- REGION ------------->    records it
 *                                                import_region, release_region: any number of times
 *   revoke_region   --- REVOKE ------------->    event `revoke` if the user holds it
 *   event `revoked` <-- RELEASED ------------
 *
 * This process executes the accesses of its peer. So it rejects them from the moment at which the
 * export is dropped: after RELEASED, after revoke_timeout, or at the end of the connection.
 */
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../common/mapping.h"
#include "tcp.h"

static struct tcp_export *find(struct tcp_conn *conn, uint32_t handle)
{
	for (uint32_t i = 0; i < TCP_REGIONS; i++)
		if (conn->exports[i].region && conn->exports[i].name.handle == handle)
			return &conn->exports[i];
	return NULL;
}

/* Map a region that has only a file descriptor. Returns 0 or -errno. */
static int map(struct tcp_export *e, const struct gantry_region *region)
{
	int prot = PROT_READ | (e->rights & GANTRY_REMOTE_WRITE ? PROT_WRITE : 0);
	uint64_t down = region->fd_offset & ((uint64_t)sysconf(_SC_PAGESIZE) - 1);
	void *base;
	int rc;

	if (region->fd < 0)
		return -EXDEV;
	rc = tc_hold(e->conn->dev->host, region->hold_socket, &e->hold);
	if (rc)
		return rc;
	base = mmap(NULL, region->length + down, prot, MAP_SHARED, region->fd,
		    (off_t)(region->fd_offset - down));
	if (base == MAP_FAILED)
		return -errno;
	madvise(base, region->length + down, MADV_DONTFORK);
	e->mapped = base;
	e->mapped_bytes = region->length + down;
	e->at = (uint8_t *)base + down;
	return 0;
}

/* The memory belongs to the peer of another connection: this end relays the accesses. */
static int relay(struct tcp_conn *conn, struct tcp_export *e, const struct gantry_region *region)
{
	e->relay = region->transport;
	return tcp_relay_prepare(conn, e->relay->conn);
}

static int check(struct tcp_conn *conn, const struct gantry_region *region, uint32_t rights,
		 uint32_t handle)
{
	if (!tcp_usable(conn->dev))
		return -EPERM;
	if (!tcp_conn_usable(conn))
		return -ENOTCONN;
	if (!rights || (rights & ~TCP_RIGHTS) || (rights & ~region->rights))
		return -EACCES;
	if (region->length == 0 || region->length > conn->dev->conf->max_region_bytes)
		return -E2BIG;
	return find(conn, handle) ? -EEXIST : 0;
}

static int announce(struct tcp_conn *conn, const struct tcp_export *e)
{
	struct tcp_ctrl_region body = {.name = e->name, .length = e->length, .rights = e->rights};

	if (e->relay)
		tcp_direct_pass(conn, e->relay, &body);
	else
		tcp_direct_offer(conn, &body);
	return tcp_control_put(conn, TCP_CTRL_REGION, &body, sizeof(body));
}

static void unmap(struct tcp_export *e)
{
	if (e->mapped)
		munmap(e->mapped, e->mapped_bytes);
	e->mapped = NULL;
	gantry_hold_end(&e->hold);
}

int tcp_export(void *arg, const struct gantry_region *region, uint32_t rights, uint32_t handle,
	       struct gantry_token *token_p)
{
	struct tcp_conn *conn = arg;
	struct tcp_name name = {.handle = handle, .generation = conn->generation + 1};
	struct tcp_export *e = NULL;
	int rc = check(conn, region, rights, handle);

	for (uint32_t i = 0; i < TCP_REGIONS && !e && !rc; i++)
		if (!conn->exports[i].region)
			e = &conn->exports[i];
	if (!e)
		return rc ? rc : -ENOSPC;
	*e = (struct tcp_export){.conn = conn,
				 .name = name,
				 .at = region->addr,
				 .length = region->length,
				 .rights = rights,
				 .hold = -1};
	if (region->domain == TCP_DOMAIN)
		rc = relay(conn, e, region);
	else if (!e->at)
		rc = map(e, region);
	if (!rc)
		rc = announce(conn, e);
	if (rc) {
		unmap(e);
		return rc;
	}
	conn->generation++;
	e->region = region;
	if (e->relay) {
		conn->n_relays++;
		LIST_INSERT_HEAD(&e->relay->relays, e, relayed);
	}
	/* pairs with tcp_export_find() */
	__atomic_store_n(&e->open, tcp_number(&name), __ATOMIC_RELEASE);
	*token_p = (struct gantry_token){.handle = handle, .generation = conn->generation};
	return 0;
}

const struct tcp_export *tcp_export_find(struct tcp_conn *conn, const struct tcp_access *access,
					 uint32_t length, uint32_t right)
{
	uint64_t name = tcp_number(&access->name);

	for (uint32_t i = 0; i < TCP_REGIONS && access->name.generation; i++) {
		const struct tcp_export *e = &conn->exports[i];

		if (__atomic_load_n(&e->open, __ATOMIC_ACQUIRE) == name)
			return (e->rights & right) &&
					       gantry_range_ok(access->offset, length, e->length)
				       ? e
				       : NULL;
	}
	return NULL;
}

/* -- the end of an export -- */

/*
 * Reject all accesses from now on. After the locks of all lanes were held once, no lane works on an
 * access that it accepted before. An access that is half received or half sent ends its connection.
 */
static void reject(struct tcp_conn *conn, struct tcp_export *e)
{
	struct tcp_lane *lane;
	struct tcp_link *link;

	__atomic_store_n(&e->open, 0, __ATOMIC_RELEASE);
	LIST_FOREACH (lane, &conn->lanes, entry) {
		pthread_mutex_lock(&lane->lock);
		LIST_FOREACH (link, &lane->links, entry) {
			tcp_link_forget_source(link, e);
			if (tcp_link_uses(link, e)) {
				tcp_link_close(link);
				tcp_conn_fail(conn, -ETIMEDOUT);
			}
			if (e->relay && link->relay)
				tcp_relay_forget(link, e->relay);
		}
		pthread_mutex_unlock(&lane->lock);
	}
}

static void drop(struct tcp_conn *conn, struct tcp_export *e)
{
	reject(conn, e);
	unmap(e);
	if (e->relay) {
		conn->n_relays--;
		LIST_REMOVE(e, relayed);
		e->relay = NULL;
	}
	e->region = NULL;
	conn->n_revoking -= e->revoking;
	e->revoking = false;
	e->deadline_ns = 0;
}

static void deliver_revoked(struct tcp_conn *conn, struct tcp_export *e)
{
	uint32_t handle = e->name.handle;
	/* a third party to which the owner was named can still access the memory directly */
	int rc = conn->state == TCP_C_OVER && e->relay && e->relay->wire.family &&
				 conn->dev->conf->direct
			 ? -ETIMEDOUT
			 : 0;

	drop(conn, e);
	if (conn->freed)
		return;
	conn->dev->n_events++;
	conn->events->revoked(conn->arg, conn, handle, rc);
}

int tcp_revoke(void *arg, uint32_t handle)
{
	struct tcp_conn *conn = arg;
	struct tcp_export *e;
	int rc;

	if (!tcp_usable(conn->dev))
		return -EPERM;
	e = find(conn, handle);
	if (!e)
		return -ENOENT;
	if (e->revoking)
		return -EALREADY;
	e->revoking = true;
	conn->n_revoking++;
	e->deadline_ns = tcp_now(conn->dev) + conn->dev->conf->revoke_timeout_ns;
	tcp_wake(conn->dev); /* the host asks for the next timer after a progress */
	rc = tcp_control_put(conn, TCP_CTRL_REVOKE, &e->name, sizeof(e->name));
	if (rc) /* `closed` follows, and `revoked` before it */
		tcp_conn_fail(conn, rc);
	return 0;
}

int tcp_on_released(struct tcp_conn *conn, const struct tcp_name *name)
{
	struct tcp_export *e = find(conn, name->handle);

	/* after revoke_timeout the export is gone, so a late RELEASED is no error */
	if (!e || tcp_number(&e->name) != tcp_number(name))
		return name->generation && name->generation <= conn->generation ? 0 : -EPROTO;
	if (!e->revoking)
		return -EPROTO;
	deliver_revoked(conn, e);
	return 0;
}

void tcp_exports_progress(struct tcp_conn *conn, uint64_t now_ns)
{
	for (uint32_t i = 0; i < TCP_REGIONS && conn->n_revoking && !conn->freed; i++) {
		struct tcp_export *e = &conn->exports[i];

		if (!e->deadline_ns || now_ns < e->deadline_ns)
			continue;
		gantry_log_warn(conn->dev->host,
				"%s has not released a region in time (revoke_timeout): its "
				"accesses are rejected from now on",
				conn->peer.address);
		deliver_revoked(conn, e);
	}
}

uint64_t tcp_exports_wake_ns(const struct tcp_conn *conn)
{
	uint64_t first = 0;

	for (uint32_t i = 0; i < TCP_REGIONS && conn->n_revoking; i++)
		tcp_earlier(&first, conn->exports[i].deadline_ns);
	return first;
}

void tcp_exports_lost(struct tcp_conn *conn, bool without_events)
{
	__atomic_store_n(&conn->over, 1, __ATOMIC_RELEASE);
	for (uint32_t i = 0; i < TCP_REGIONS; i++) {
		struct tcp_export *e = &conn->exports[i];

		if (e->region && without_events)
			drop(conn, e);
		else if (e->region && !conn->freed)
			deliver_revoked(conn, e);
	}
}

void tcp_export_orphan(struct tcp_export *e)
{
	reject(e->conn, e);
	e->conn->n_relays--;
	LIST_REMOVE(e, relayed);
	e->relay = NULL;
}
