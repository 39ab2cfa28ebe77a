/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rdma_device.c - reads and writes of memory of the peer by the device, if the memory is not mapped
 * here
 *
 * Before the first access to a map of the peer, the engine requests the map by its id:
 *
 *     engine of this side                       service thread of the peer
 *     RESOLVE {id}        ----------------->    finds the map, registers and exports it
 *                         <-----------------    RESOLVED {token}
 *     imports the map and keeps it until the connection ends
 *
 * The engine also registers each local map once. A list of buffers needs one access for each
 * buffer.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "buf/buf.h"
#include "common/gd_log.h"
#include "mmap/mmap_pages.h"
#include "rdma/rdma.h"

#define MAX_PIECE (1u << 30)

static bool same_map(const struct gd_mmap_id *a, const struct gd_mmap_id *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

static struct gd_rdma_local *find_local(struct gd_rdma_local *list, const struct gd_mmap_id *map)
{
	while (list && !same_map(&list->map, map))
		list = list->next;
	return list;
}

static struct gd_rdma_remote *find_remote(const struct gd_rdma_link *link,
					  const struct gd_mmap_id *map)
{
	struct gd_rdma_remote *remote = link->remotes;

	while (remote && !same_map(&remote->map, map))
		remote = remote->next;
	return remote;
}

/* -- memory of the peer -- */

static doca_error_t ask(struct gd_rdma_link *link, const struct gd_mmap_id *map,
			struct gd_rdma_remote **remote_p)
{
	struct gd_rdma_resolve resolve = {.op = GD_RDMA_RESOLVE, .map = *map};
	struct gd_rdma_remote *remote = calloc(1, sizeof(*remote));
	int rc;

	if (!remote)
		return DOCA_ERROR_NO_MEMORY;
	remote->map = *map;
	gd_transport_lock(link->rdma->transport, NULL);
	rc = link->rdma->ops->send_ctrl(link->gantry, &resolve, sizeof(resolve));
	if (!rc) {
		remote->next = link->remotes;
		link->remotes = remote;
	}
	gd_transport_unlock(link->rdma->transport);
	if (!rc) {
		*remote_p = remote;
		return DOCA_SUCCESS;
	}
	free(remote);
	/* the peer does not read now; or the connection has ended, and an event will report it */
	return DOCA_ERROR_AGAIN;
}

/* Find the imported map of the peer, and request it if needed. AGAIN: not imported yet. */
static doca_error_t find_import(struct gd_rdma_link *link, const struct doca_mmap *map,
				struct gd_rdma_remote **remote_p)
{
	struct gd_rdma_remote *remote = find_remote(link, &map->id);
	uint32_t state;

	if (!remote)
		return ask(link, &map->id, &remote) == DOCA_ERROR_NO_MEMORY ? DOCA_ERROR_NO_MEMORY
									    : DOCA_ERROR_AGAIN;
	state = __atomic_load_n(&remote->state, __ATOMIC_ACQUIRE);
	if (state == GD_RDMA_PENDING)
		return DOCA_ERROR_AGAIN;
	if (state != GD_RDMA_IMPORTED)
		return (doca_error_t)(state - GD_RDMA_REJECTED);
	*remote_p = remote;
	return DOCA_SUCCESS;
}

/* Returns the rights that the peers of a context have to a map. */
static uint32_t rights_of(const struct doca_rdma *rdma, const struct doca_mmap *map)
{
	const uint32_t access = gd_mmap_access(map) & rdma->permissions;

	return (access & DOCA_ACCESS_FLAG_RDMA_READ ? GANTRY_REMOTE_READ : 0) |
	       (access & DOCA_ACCESS_FLAG_RDMA_WRITE ? GANTRY_REMOTE_WRITE : 0);
}

/*
 * A transport whose peers map memory needs memory that they can map. For any other, this process
 * or its device executes the accesses of peers, so private memory is sufficient.
 */
static enum gd_sharing sharing_of(const struct gd_rdma_link *link)
{
	return link->rdma->limits.caps & GANTRY_CAP_MAPPED ? GD_REGION_APART : GD_REGION_OWN;
}

static doca_error_t export_map(struct gd_rdma_link *link, const struct gd_mmap_id *id,
			       struct gantry_token *token)
{
	struct gd_rdma_local *local = find_local(link->exports, id);
	struct doca_mmap *map = gd_mmap_find(id);
	uint32_t rights;
	int rc;

	if (!map) /* it is stopped, or the peer has made up its id */
		return DOCA_ERROR_IO_FAILED;
	if (local) {
		*token = local->token;
		return DOCA_SUCCESS;
	}
	rights = rights_of(link->rdma, map);
	if (!rights)
		return DOCA_ERROR_NOT_PERMITTED;
	local = calloc(1, sizeof(*local));
	if (!local)
		return DOCA_ERROR_NO_MEMORY;
	local->map = *id;
	rc = gd_mmap_region(map, sharing_of(link), &local->region) == DOCA_SUCCESS ? 0 : -EFAULT;
	local->region.rights = rights;
	if (!rc)
		rc = link->rdma->ops->export_region(link->gantry, &local->region, rights,
						    ++link->next_handle, token);
	if (rc) {
		gd_log(DOCA_LOG_LEVEL_ERROR,
		       "RDMA: memory map cannot be exported to the peer (bytes=%zu): %s",
		       map->length, strerror(-rc));
		free(local);
		return DOCA_ERROR_DRIVER;
	}
	local->token = *token;
	local->next = link->exports;
	link->exports = local;
	return DOCA_SUCCESS;
}

bool gd_rdma_on_resolve(struct gd_rdma_link *link, const struct gd_rdma_resolve *ask)
{
	struct gd_rdma_resolve answer = {.op = GD_RDMA_RESOLVED, .map = ask->map};

	answer.error = export_map(link, &ask->map, &answer.token);
	return link->rdma->ops->send_ctrl(link->gantry, &answer, sizeof(answer)) == 0;
}

bool gd_rdma_on_resolved(struct gd_rdma_link *link, const struct gd_rdma_resolve *answer)
{
	struct gd_rdma_remote *remote = find_remote(link, &answer->map);
	uint32_t state = GD_RDMA_IMPORTED;
	int rc;

	if (!remote || remote->state != GD_RDMA_PENDING || answer->error > DOCA_ERROR_SKIPPED)
		return false;
	if (answer->error) {
		gd_log(DOCA_LOG_LEVEL_ERROR,
		       "RDMA: memory of the peer cannot be accessed: the peer rejected the request for the map");
		state = GD_RDMA_REJECTED + answer->error;
	} else {
		rc = link->rdma->ops->import_region(link->gantry, &answer->token, 0,
						    &remote->region);
		if (rc) {
			const char *why = link->rdma->ops->import_error(link->gantry);

			gd_log(DOCA_LOG_LEVEL_ERROR,
			       "RDMA: memory of the peer cannot be accessed: %s",
			       *why ? why : strerror(-rc));
			state = GD_RDMA_REJECTED + DOCA_ERROR_DRIVER;
		}
	}
	__atomic_store_n(&remote->state, state, __ATOMIC_RELEASE);
	return true;
}

/* -- memory of this side -- */

void gd_rdma_forget_locals(struct gd_rdma_link *link)
{
	while (link->locals) {
		struct gd_rdma_local *local = link->locals;

		link->locals = local->next;
		link->rdma->ops->unregister_region(link->gantry, &local->region);
		free(local);
	}
}

/*
 * Unregister all local maps if pages of this process were replaced since the registration. AGAIN:
 * accesses are in flight.
 */
static doca_error_t refresh_locals(struct doca_rdma_connection *conn,
				   const struct gd_rdma_task *task)
{
	struct gd_rdma_link *link = conn->link;
	const uint32_t moves = gd_pages_moves();

	if (link->moves == moves)
		return DOCA_SUCCESS;
	if (link->locals && (!STAILQ_EMPTY(&conn->flying) || task->pieces))
		return DOCA_ERROR_AGAIN;
	gd_transport_lock(conn->rdma->transport, NULL);
	gd_rdma_forget_locals(link);
	gd_transport_unlock(conn->rdma->transport);
	link->moves = moves;
	return DOCA_SUCCESS;
}

/* Register a map for the device. AGAIN: try again when the accesses in flight have completed. */
static doca_error_t register_map(struct doca_rdma_connection *conn, struct doca_mmap *map,
				 struct gd_rdma_local **local_p)
{
	struct gd_rdma_link *link = conn->link;
	struct gd_rdma_local *local = calloc(1, sizeof(*local));
	doca_error_t result;
	int rc;

	if (!local)
		return DOCA_ERROR_NO_MEMORY;
	local->map = map->id;
	result = gd_mmap_region(map, GD_REGION_OWN, &local->region);
	if (result != DOCA_SUCCESS) {
		free(local);
		return result;
	}
	gd_transport_lock(conn->rdma->transport, NULL);
	rc = conn->rdma->ops->register_region(link->gantry, &local->region);
	if (rc == -ENOSPC && STAILQ_EMPTY(&conn->flying)) { /* too many maps: unregister all */
		gd_rdma_forget_locals(link);
		rc = conn->rdma->ops->register_region(link->gantry, &local->region);
	}
	if (!rc) {
		local->next = link->locals;
		link->locals = local;
	}
	gd_transport_unlock(conn->rdma->transport);
	if (!rc) {
		*local_p = local;
		return DOCA_SUCCESS;
	}
	free(local);
	return rc == -ENOSPC || rc == -ENOTCONN ? DOCA_ERROR_AGAIN : DOCA_ERROR_DRIVER;
}

/* Fill the local part of an access: the next contiguous piece of the buffers of the task. */
static doca_error_t local_piece(struct doca_rdma_connection *conn, const struct gd_rdma_task *task,
				struct gantry_rma *op)
{
	const bool fills = task->kind == GD_RDMA_READ || task->kind == GD_RDMA_EVENT_GET;
	const struct doca_buf *buf;
	struct gd_rdma_local *local;
	size_t length = task->length - task->done;
	doca_error_t result = gd_buf_piece(fills ? task->dst : task->src, fills, task->done, &buf,
					   &op->local, &length);

	if (result != DOCA_SUCCESS)
		return result;
	op->op = fills ? GANTRY_RMA_READ : GANTRY_RMA_WRITE;
	op->length = length < MAX_PIECE ? (uint32_t)length : MAX_PIECE;
	result = refresh_locals(conn, task);
	if (result != DOCA_SUCCESS)
		return result;
	local = find_local(conn->link->locals, &buf->mmap->id);
	if (!local)
		result = register_map(conn, buf->mmap, &local);
	op->local_region = result == DOCA_SUCCESS ? &local->region : NULL;
	return result;
}

/* -- accesses -- */

static doca_error_t meaning(int rc)
{
	switch (rc) {
	case 0:
		return DOCA_SUCCESS;
	case -EAGAIN:
	case -ENOTCONN: /* the end of the connection completes the pending tasks */
		return DOCA_ERROR_AGAIN;
	case -EACCES:
		return DOCA_ERROR_NOT_PERMITTED;
	case -EINVAL:
	case -ERANGE:
		return DOCA_ERROR_INVALID_VALUE;
	default:
		return DOCA_ERROR_IO_FAILED;
	}
}

static doca_error_t submit_piece(struct doca_rdma_connection *conn, struct gd_rdma_task *task,
				 const struct gd_rdma_target *target)
{
	struct gantry_rma op = {.cookie = (uintptr_t)task};
	doca_error_t result = find_import(conn->link, target->map, &task->remote);

	if (result == DOCA_SUCCESS)
		result = local_piece(conn, task, &op);
	if (result != DOCA_SUCCESS)
		return result;
	op.remote = task->remote->region;
	op.remote_offset = (uint64_t)(target->addr - (char *)target->map->addr) + task->done;
	result = meaning(conn->rdma->ops->rma_submit(conn->link->rma, &op));
	if (result == DOCA_SUCCESS) {
		task->done += op.length;
		task->pieces++;
		task->remote->pieces++;
	}
	return result;
}

static void finish(struct gd_rdma_task *task)
{
	if (task->error != DOCA_SUCCESS)
		return;
	task->result_len = (uint32_t)task->length;
	if (task->kind == GD_RDMA_READ || task->kind == GD_RDMA_EVENT_GET)
		gd_buf_grow(task->dst, task->length);
}

enum gd_rdma_step gd_rdma_device_access(struct doca_rdma_connection *conn,
					struct gd_rdma_task *task,
					const struct gd_rdma_target *target)
{
	while (task->error == DOCA_SUCCESS && task->done < task->length) {
		const doca_error_t result = submit_piece(conn, task, target);

		if (result == DOCA_ERROR_AGAIN)
			return GD_RDMA_WAIT;
		task->error = result;
	}
	if (task->pieces)
		return GD_RDMA_OUT;
	finish(task);
	return GD_RDMA_DONE;
}

bool gd_rdma_device_poll(struct doca_rdma_connection *conn)
{
	struct gantry_rma_done done;
	struct gd_rdma_task *task;

	if (conn->rdma->ops->rma_poll(conn->link->rma, &done, 1) <= 0)
		return false;
	task = (struct gd_rdma_task *)(uintptr_t)done.cookie;
	if (task->error == DOCA_SUCCESS)
		task->error = done.status == -ENOTCONN ? DOCA_ERROR_CONNECTION_RESET
						       : meaning(done.status);
	if (--task->pieces == 0 && task->is_flying)
		finish(task);
	if (--task->remote->pieces == 0 &&
	    __atomic_load_n(&task->remote->state, __ATOMIC_ACQUIRE) >= GD_RDMA_REJECTED)
		gd_rdma_release_revoked(conn);
	return true;
}

/* -- release -- */

void gd_rdma_memory_release(struct gd_rdma_link *link)
{
	gd_rdma_forget_locals(link);
	for (struct gd_rdma_remote *remote = link->remotes; remote; remote = remote->next)
		if (remote->region)
			link->rdma->ops->release_region(link->gantry, remote->region);
}

void gd_rdma_memory_free(struct gd_rdma_link *link)
{
	while (link->remotes) {
		struct gd_rdma_remote *remote = link->remotes;

		link->remotes = remote->next;
		free(remote);
	}
	while (link->exports) {
		struct gd_rdma_local *local = link->exports;

		link->exports = local->next;
		free(local);
	}
}
