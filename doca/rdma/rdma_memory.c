/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rdma_memory.c - accesses to memory of the peer: their targets and rights, and the copies if the
 * memory is mapped here
 *
 * A write stores its bytes behind the data part of the destination buffer. It does not extend that
 * data part, because the buffer describes memory of the peer.
 */
#include <string.h>

#include "buf/buf.h"
#include "common/gd_log.h"
#include "rdma/rdma.h"
#include "sync_event/sync_event.h"

#define CELL sizeof(uint64_t)

uint32_t gd_rdma_right(enum gd_rdma_kind kind)
{
	switch (kind) {
	case GD_RDMA_READ:
	case GD_RDMA_EVENT_GET:
		return DOCA_ACCESS_FLAG_RDMA_READ;
	case GD_RDMA_CMP_SWP:
	case GD_RDMA_FETCH_ADD:
		return DOCA_ACCESS_FLAG_RDMA_ATOMIC;
	default:
		return DOCA_ACCESS_FLAG_RDMA_WRITE;
	}
}

static doca_error_t target_of_buf(const struct doca_buf *buf, char *addr, size_t length,
				  struct gd_rdma_target *target)
{
	const size_t offset = (size_t)(addr - (char *)buf->head);

	if (offset > buf->len || length > buf->len - offset)
		return DOCA_ERROR_INVALID_VALUE;
	*target = (struct gd_rdma_target){.map = buf->mmap, .addr = addr, .length = length};
	return DOCA_SUCCESS;
}

static doca_error_t target_of_event(const struct gd_rdma_task *task, struct gd_rdma_target *target)
{
	uint64_t addr;
	doca_error_t result = gd_sync_event_remote_mmap(
		(struct doca_sync_event_remote_net *)task->event, &target->map, &addr);

	target->addr = (char *)(uintptr_t)addr;
	target->length = CELL;
	return result;
}

/* Find the memory of the peer that a task accesses. INVALID_VALUE: its buffers do not match. */
static doca_error_t find(const struct gd_rdma_task *task, struct gd_rdma_target *target)
{
	const struct doca_buf *src = task->src;
	struct doca_buf *dst = task->dst;

	switch (task->kind) {
	case GD_RDMA_READ:
		if (!src || !dst || src->next || gd_buf_room(dst) < src->data_len)
			return DOCA_ERROR_INVALID_VALUE;
		return target_of_buf(src, src->data, src->data_len, target);
	case GD_RDMA_WRITE:
	case GD_RDMA_WRITE_IMM:
		if (!src || !dst || dst->next)
			return DOCA_ERROR_INVALID_VALUE;
		return target_of_buf(dst, (char *)dst->data + dst->data_len, gd_buf_data_bytes(src),
				     target);
	case GD_RDMA_CMP_SWP:
	case GD_RDMA_FETCH_ADD:
		if (!dst || dst->next || (uintptr_t)dst->data % CELL ||
		    (task->result && gd_buf_room(task->result) < CELL))
			return DOCA_ERROR_INVALID_VALUE;
		return target_of_buf(dst, dst->data, CELL, target);
	case GD_RDMA_EVENT_GET:
		if (!dst || gd_buf_room(dst) < CELL)
			return DOCA_ERROR_INVALID_VALUE;
		return target_of_event(task, target);
	case GD_RDMA_EVENT_SET:
		if (!src || gd_buf_data_bytes(src) != CELL)
			return DOCA_ERROR_INVALID_VALUE;
		return target_of_event(task, target);
	default:
		if (task->result && gd_buf_room(task->result) < CELL)
			return DOCA_ERROR_INVALID_VALUE;
		return target_of_event(task, target);
	}
}

/* Check the rights: both the map and the context of the peer must grant them. */
static doca_error_t permit(const struct gd_rdma_task *task, const struct gd_rdma_target *target)
{
	const struct doca_mmap *map = target->map;
	uint32_t wanted = gd_rdma_right(task->kind), access;

	if (map && map->imported && gd_mmap_check(map) == DOCA_ERROR_IO_FAILED)
		return DOCA_ERROR_IO_FAILED; /* the owner has revoked the map or ended */
	if (!map || !map->started || !map->imported) {
		gd_log(DOCA_LOG_LEVEL_ERROR,
		       "RDMA task: the remote buffer does not belong to an imported map: use doca_mmap_create_from_export()");
		return DOCA_ERROR_INVALID_VALUE;
	}
	access = gd_mmap_access(map);
	if (access & task->conn->link->permissions & wanted)
		return DOCA_SUCCESS;
	gd_log(DOCA_LOG_LEVEL_ERROR,
	       "RDMA task: the peer does not permit %s of its memory: see its doca_%s_set_permissions()",
	       wanted == DOCA_ACCESS_FLAG_RDMA_READ    ? "reads"
	       : wanted == DOCA_ACCESS_FLAG_RDMA_WRITE ? "writes"
						       : "atomics",
	       access & wanted ? "rdma" : "mmap");
	return DOCA_ERROR_NOT_PERMITTED;
}

/* Returns the address in this process; NULL: not mapped. */
static void *mapped(const struct gd_rdma_target *target)
{
	const struct doca_mmap *map = target->map;
	const size_t offset = (size_t)(target->addr - (char *)map->addr);

	if (!map->local || offset > map->length || target->length > map->length - offset)
		return NULL;
	return (char *)map->local + offset;
}

static doca_error_t give_value(struct doca_buf *result, uint64_t value)
{
	return result ? gd_buf_append(result, &value, sizeof(value)) : DOCA_SUCCESS;
}

/*
 * Access the cell of a sync event or of an atomic operation. Several threads and processes can
 * change it, so all accesses are atomic.
 */
static doca_error_t change_cell(struct gd_rdma_task *task, uint64_t *cell)
{
	uint64_t value;

	switch (task->kind) {
	case GD_RDMA_EVENT_GET:
		return give_value(task->dst, __atomic_load_n(cell, __ATOMIC_ACQUIRE));
	case GD_RDMA_EVENT_SET:
		if (gd_buf_read(task->src, 0, &value, sizeof(value)) != DOCA_SUCCESS)
			return DOCA_ERROR_INVALID_VALUE;
		__atomic_store_n(cell, value, __ATOMIC_RELEASE);
		return DOCA_SUCCESS;
	default:
		return give_value(task->result,
				  gd_rdma_change(task->kind, cell, task->compare, task->value));
	}
}

static doca_error_t copy(struct gd_rdma_task *task, void *memory, size_t length)
{
	switch (task->kind) {
	case GD_RDMA_READ:
		return length ? gd_buf_append(task->dst, memory, length) : DOCA_SUCCESS;
	case GD_RDMA_WRITE:
	case GD_RDMA_WRITE_IMM:
		return length ? gd_buf_read(task->src, 0, memory, length) : DOCA_SUCCESS;
	default:
		return change_cell(task, memory);
	}
}

enum gd_rdma_step gd_rdma_access(struct doca_rdma_connection *conn, struct gd_rdma_task *task)
{
	struct gd_rdma_target target;
	void *memory;
	doca_error_t result;

	if (task->is_asked)
		return gd_rdma_atomic_answer(conn, task);
	result = find(task, &target);
	if (result == DOCA_SUCCESS)
		result = permit(task, &target);
	if (result != DOCA_SUCCESS) {
		task->error = result;
		return task->pieces ? GD_RDMA_OUT : GD_RDMA_DONE;
	}
	task->length = target.length;
	if (conn->rdma->by_device)
		return gd_rdma_is_atomic(task->kind) ? gd_rdma_atomic_ask(conn, task, &target)
						     : gd_rdma_device_access(conn, task, &target);
	memory = mapped(&target);
	task->error = memory ? copy(task, memory, target.length) : DOCA_ERROR_INVALID_VALUE;
	if (task->error == DOCA_SUCCESS)
		task->error = gd_mmap_copied(target.map);
	if (task->error == DOCA_SUCCESS)
		task->result_len = (uint32_t)target.length;
	return GD_RDMA_DONE;
}
