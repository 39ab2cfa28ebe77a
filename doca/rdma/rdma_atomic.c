/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rdma_atomic.c - atomic operations on memory of the peer
 *
 * If the memory is mapped here, the engine thread executes the operation. Otherwise the service
 * thread of the peer does: no transport has atomic operations, and operations of a device would not
 * be atomic together with those of a CPU.
 *
 *     engine of this side                       service thread of the peer
 *     ATOMIC {map, offset, operands}  ----->    checks the request, executes it
 *                                     <-----    ATOMIC_DONE {previous value, or an error}
 *
 * A connection has at most one request in flight. It starts when the earlier tasks of the
 * connection have completed, and later tasks wait for its answer.
 */
#include <string.h>

#include "rdma/rdma.h"

/* Phases of gd_rdma_link.atomic_phase. */
enum { IDLE, ASKED, ANSWERED };

uint64_t gd_rdma_change(enum gd_rdma_kind kind, uint64_t *cell, uint64_t compare, uint64_t value)
{
	if (kind != GD_RDMA_CMP_SWP)
		return __atomic_fetch_add(cell, value, __ATOMIC_SEQ_CST);
	__atomic_compare_exchange_n(cell, &compare, value, false, __ATOMIC_SEQ_CST,
				    __ATOMIC_SEQ_CST);
	return compare;
}

/* -- the owner of the memory: service thread, lock held -- */

/* Returns the memory of a request, or NULL. */
static uint64_t *cell_of(const struct doca_mmap *map, uint64_t offset)
{
	if (offset > map->length || map->length - offset < sizeof(uint64_t) ||
	    ((uintptr_t)map->addr + offset) % sizeof(uint64_t))
		return NULL;
	return (uint64_t *)(void *)((char *)map->local + offset);
}

static doca_error_t execute(const struct doca_rdma *rdma, const struct doca_mmap *map,
			    const struct gd_rdma_atomic *request, uint64_t *value)
{
	uint64_t *cell = cell_of(map, request->offset);
	doca_error_t result;

	if (!(gd_mmap_access(map) & rdma->permissions & gd_rdma_right(request->kind)))
		return DOCA_ERROR_NOT_PERMITTED;
	if (!cell)
		return DOCA_ERROR_INVALID_VALUE;
	result = gd_mmap_check(map);
	if (result != DOCA_SUCCESS)
		return result;
	*value = gd_rdma_change(request->kind, cell, request->compare, request->value);
	return gd_mmap_copied(map);
}

bool gd_rdma_on_atomic(struct gd_rdma_link *link, const struct gd_rdma_atomic *request)
{
	/* without the map: this side has stopped it */
	struct gd_rdma_atomic answer = {.op = GD_RDMA_ATOMIC_DONE, .error = DOCA_ERROR_IO_FAILED};
	struct doca_mmap *map;

	if (!gd_rdma_is_atomic(request->kind))
		return false;
	map = gd_mmap_find_use(&request->map);
	if (map) {
		answer.error = execute(link->rdma, map, request, &answer.value);
		gd_mmap_unuse(map);
	}
	return link->rdma->ops->send_ctrl(link->gantry, &answer, sizeof(answer)) == 0;
}

/* -- the other side -- */

/* Service thread, lock held. */
bool gd_rdma_on_atomic_done(struct gd_rdma_link *link, const struct gd_rdma_atomic *answer)
{
	if (__atomic_load_n(&link->atomic_phase, __ATOMIC_ACQUIRE) != ASKED ||
	    answer->error > DOCA_ERROR_SKIPPED)
		return false;
	link->atomic_error = answer->error;
	link->atomic_value = answer->value;
	__atomic_store_n(&link->atomic_phase, ANSWERED, __ATOMIC_RELEASE);
	return true;
}

enum gd_rdma_step gd_rdma_atomic_ask(struct doca_rdma_connection *conn, struct gd_rdma_task *task,
				     const struct gd_rdma_target *target)
{
	struct gd_rdma_link *link = conn->link;
	const struct gd_rdma_atomic request = {
		.op = GD_RDMA_ATOMIC,
		.kind = task->kind,
		.map = target->map->id,
		.offset = (uint64_t)(target->addr - (char *)target->map->addr),
		.compare = task->compare,
		.value = task->value,
	};

	if (!STAILQ_EMPTY(&conn->flying))
		return GD_RDMA_WAIT;
	gd_transport_lock(conn->rdma->transport, NULL);
	/* if it fails, the peer does not read now, or an event will report the end */
	task->is_asked = link->rdma->ops->send_ctrl(link->gantry, &request, sizeof(request)) == 0;
	if (task->is_asked)
		__atomic_store_n(&link->atomic_phase, ASKED, __ATOMIC_RELEASE);
	gd_transport_unlock(conn->rdma->transport);
	return GD_RDMA_WAIT;
}

enum gd_rdma_step gd_rdma_atomic_answer(struct doca_rdma_connection *conn,
					struct gd_rdma_task *task)
{
	struct gd_rdma_link *link = conn->link;

	if (__atomic_load_n(&link->atomic_phase, __ATOMIC_ACQUIRE) != ANSWERED)
		return GD_RDMA_WAIT;
	__atomic_store_n(&link->atomic_phase, IDLE, __ATOMIC_RELAXED);
	task->error = link->atomic_error;
	if (task->error == DOCA_SUCCESS && task->result)
		task->error = gd_buf_append(task->result, &link->atomic_value,
					    sizeof(link->atomic_value));
	if (task->error == DOCA_SUCCESS)
		task->result_len = sizeof(link->atomic_value);
	return GD_RDMA_DONE;
}
