/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * revoke.c - memory that its owner takes back, where the device reads and writes it.
 *
 * When a program stops a map, the library revokes it from all peers that it was exported to. The
 * peer's engine releases the map as soon as no task is in flight. If the engine does not progress,
 * the transport revokes the map after revoke_timeout. doca_mmap_stop does not wait that long: after
 * GD_SILENT_NS it replaces the pages, and the device keeps the old ones.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "rdma/rdma.h"

#define LOOK_NS 50000 /* between two looks whether it is back */

/* Contexts that run. The lock is taken before that of a transport. */
static pthread_mutex_t contexts_lock = PTHREAD_MUTEX_INITIALIZER;
static struct doca_rdma *contexts;

/* -- the owner -- */

/* They are the parent's. */
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

/* Under the transport's lock. Is it still out? Then it has been asked for. */
static bool ask_back(struct gd_rdma_link *link, const struct gd_mmap_id *map)
{
	for (struct gd_rdma_local *local = link->exports; local; local = local->next)
		if (memcmp(&local->map, map, sizeof(*map)) == 0) {
			/* again: nothing happens */
			link->rdma->ops->revoke_region(link->gantry, local->token.handle);
			return true;
		}
	return false;
}

/* The engine releases its registrations when no task is in flight. */
static void ask_engine(struct gd_rdma_link *link)
{
	if (!link->gives_back)
		gd_pe_post(link->rdma->ctx.pe, &link->conn->revoked);
	link->gives_back = true;
}

/*
 * Under the transport's lock. True if the device of this side uses the map; the engine is then
 * asked to release it.
 */
static bool ask_back_local(struct gd_rdma_link *link, const struct gd_mmap_id *map)
{
	for (const struct gd_rdma_local *local = link->locals; local; local = local->next)
		if (memcmp(&local->map, map, sizeof(*map)) == 0) {
			ask_engine(link);
			return true;
		}
	return false;
}

bool gd_rdma_is_out(const struct gd_mmap_id *map, bool imported)
{
	bool out = false;

	pthread_mutex_lock(&contexts_lock);
	for (struct doca_rdma *rdma = contexts; rdma; rdma = rdma->next) {
		if (!rdma->by_device)
			continue;
		gd_transport_lock(rdma->transport, NULL);
		for (struct doca_rdma_connection *conn = rdma->conns; conn; conn = conn->next)
			if (conn->link && !conn->link->lost) {
				out |= ask_back(conn->link, map);
				out |= imported && ask_back_local(conn->link, map);
			}
		gd_transport_unlock(rdma->transport);
	}
	pthread_mutex_unlock(&contexts_lock);
	return out;
}

bool gd_rdma_take_back(const struct gd_mmap_id *map, bool imported, uint64_t end)
{
	const struct timespec look = {.tv_nsec = LOOK_NS};
	bool out;

	while ((out = gd_rdma_is_out(map, imported)) && gn_now_ns() < end)
		nanosleep(&look, NULL);
	return out;
}

/* Under the lock: nobody can touch it any more. */
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

/* Under the lock. */
void gd_rdma_on_revoke(struct gd_rdma_link *link, uint32_t handle)
{
	struct gd_rdma_remote *remote = link->remotes;

	while (remote && !(remote->region && remote->region->handle == handle))
		remote = remote->next;
	if (!remote)
		return;
	__atomic_store_n(&remote->state, GD_RDMA_REFUSED + DOCA_ERROR_IO_FAILED, __ATOMIC_RELEASE);
	ask_engine(link);
}

/* Engine: what is asked back and not used any more. */
void gd_rdma_give_back(struct doca_rdma_connection *conn)
{
	const struct gd_rdma_task *next = gd_rdma_list_first(&conn->sends);
	struct gd_rdma_link *link = conn->link;

	gd_transport_lock(conn->rdma->transport, NULL);
	link->gives_back = false;
	if (!conn->flying.first && !(next && next->pieces))
		/* one map was stopped; later tasks register the others again */
		gd_rdma_forget_locals(link);
	for (struct gd_rdma_remote *remote = link->remotes; remote; remote = remote->next) {
		if (!remote->region || remote->state < GD_RDMA_REFUSED || remote->pieces)
			continue;
		link->rdma->ops->release_region(link->gantry, remote->region);
		remote->region = NULL;
	}
	gd_transport_unlock(conn->rdma->transport);
}
