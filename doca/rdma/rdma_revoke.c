/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rdma_revoke.c - revocation of memory that a device reads and writes
 *
 * When a program stops a map, the library revokes it from all peers that it was exported to. The
 * peer's engine releases the map as soon as no task is in flight. If the engine does not progress,
 * the transport revokes the map after revoke_timeout. doca_mmap_stop() does not wait that long:
 * after GD_SILENT_NS it replaces the pages, and the device keeps the old ones.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "rdma/rdma.h"

#define LOOK_NS 50000 /* between two checks whether the memory is released */

/* The running contexts. Lock order: before the lock of a transport. */
static pthread_mutex_t contexts_lock = PTHREAD_MUTEX_INITIALIZER;
static struct doca_rdma *contexts;

/* -- the owner -- */

/* In a child of fork(2): the contexts belong to the parent. */
static void forget_all(void)
{
	pthread_mutex_init(&contexts_lock, NULL);
	contexts = NULL;
}

static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, forget_all);
}

void gd_rdma_enlist(struct doca_rdma *rdma)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, watch_forks);
	pthread_mutex_lock(&contexts_lock);
	rdma->next = contexts;
	contexts = rdma;
	pthread_mutex_unlock(&contexts_lock);
}

void gd_rdma_delist(struct doca_rdma *rdma)
{
	struct doca_rdma **at = &contexts;

	pthread_mutex_lock(&contexts_lock);
	while (*at && *at != rdma)
		at = &(*at)->next;
	if (*at)
		*at = rdma->next;
	pthread_mutex_unlock(&contexts_lock);
}

/*
 * Lock of the transport held. Returns whether the peer still has the map. If so, requests its
 * revocation.
 */
static bool revoke_export(struct gd_rdma_link *link, const struct gd_mmap_id *map)
{
	for (struct gd_rdma_local *local = link->exports; local; local = local->next)
		if (memcmp(&local->map, map, sizeof(*map)) == 0) {
			/* a repeated call has no effect */
			link->rdma->ops->revoke_region(link->gantry, local->token.handle);
			return true;
		}
	return false;
}

/* The engine releases its registrations when no task is in flight. */
static void post_release(struct gd_rdma_link *link)
{
	if (!link->release_posted)
		gd_pe_post(link->rdma->ctx.pe, &link->conn->revoked);
	link->release_posted = true;
}

/*
 * Lock of the transport held. Returns whether the device of this side uses the map. If so, posts
 * the event in which the engine releases the map.
 */
static bool revoke_local(struct gd_rdma_link *link, const struct gd_mmap_id *map)
{
	for (const struct gd_rdma_local *local = link->locals; local; local = local->next)
		if (memcmp(&local->map, map, sizeof(*map)) == 0) {
			post_release(link);
			return true;
		}
	return false;
}

bool gd_rdma_is_in_use(const struct gd_mmap_id *map, bool imported)
{
	bool out = false;

	pthread_mutex_lock(&contexts_lock);
	for (struct doca_rdma *rdma = contexts; rdma; rdma = rdma->next) {
		if (!rdma->by_device)
			continue;
		gd_transport_lock(rdma->transport, NULL);
		for (struct doca_rdma_connection *conn = rdma->conns; conn; conn = conn->next)
			if (conn->link && !conn->link->lost) {
				out |= revoke_export(conn->link, map);
				out |= imported && revoke_local(conn->link, map);
			}
		gd_transport_unlock(rdma->transport);
	}
	pthread_mutex_unlock(&contexts_lock);
	return out;
}

bool gd_rdma_revoke_map(const struct gd_mmap_id *map, bool imported, uint64_t end)
{
	const struct timespec look = {.tv_nsec = LOOK_NS};
	bool out;

	while ((out = gd_rdma_is_in_use(map, imported)) && gn_now_ns() < end)
		nanosleep(&look, NULL);
	return out;
}

/* Lock held. The peer can no longer access the memory. */
void gd_rdma_on_revoked(struct gd_rdma_link *link, uint32_t handle)
{
	struct gd_rdma_local **at = &link->exports, *local;

	while (*at && (*at)->token.handle != handle)
		at = &(*at)->next;
	local = *at;
	if (!local)
		return;
	*at = local->next;
	free(local);
}

/* -- the peer -- */

/* Lock held. */
void gd_rdma_on_revoke(struct gd_rdma_link *link, uint32_t handle)
{
	struct gd_rdma_remote *remote = link->remotes;

	while (remote && !(remote->region && remote->region->handle == handle))
		remote = remote->next;
	if (!remote)
		return;
	__atomic_store_n(&remote->state, GD_RDMA_REJECTED + DOCA_ERROR_IO_FAILED, __ATOMIC_RELEASE);
	post_release(link);
}

/* Engine. Release revoked memory that no task uses. */
void gd_rdma_release_revoked(struct doca_rdma_connection *conn)
{
	const struct gd_rdma_task *next = STAILQ_FIRST(&conn->sends);
	struct gd_rdma_link *link = conn->link;

	gd_transport_lock(conn->rdma->transport, NULL);
	link->release_posted = false;
	if (STAILQ_EMPTY(&conn->flying) && !(next && next->pieces))
		/* all, not only the stopped map: later tasks register the others again */
		gd_rdma_forget_locals(link);
	for (struct gd_rdma_remote *remote = link->remotes; remote; remote = remote->next) {
		if (!remote->region || remote->state < GD_RDMA_REJECTED || remote->pieces)
			continue;
		link->rdma->ops->release_region(link->gantry, remote->region);
		remote->region = NULL;
	}
	gd_transport_unlock(conn->rdma->transport);
}
