/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rdma_remote_tasks.c - public functions of RDMA tasks: atomic operations, and sync events of the
 * peer
 */
#include "rdma/rdma_tasks.h"

typedef const struct doca_sync_event_remote_net *event_to_read;
typedef struct doca_sync_event_remote_net *event_to_change;

GD_RDMA_TASK(atomic_cmp_swp, GD_RDMA_CMP_SWP)
GD_RDMA_FIELD(atomic_cmp_swp, dst_buf, dst, struct doca_buf *, struct doca_buf *)
GD_RDMA_FIELD(atomic_cmp_swp, result_buf, result, struct doca_buf *, struct doca_buf *)
GD_RDMA_FIELD(atomic_cmp_swp, cmp_data, compare, uint64_t, uint64_t)
GD_RDMA_FIELD(atomic_cmp_swp, swap_data, value, uint64_t, uint64_t)
GD_RDMA_CONNECTION(atomic_cmp_swp)

doca_error_t doca_rdma_task_atomic_cmp_swp_allocate_init(
	struct doca_rdma *rdma, struct doca_rdma_connection *rdma_connection,
	struct doca_buf *dst_buf, struct doca_buf *result_buf, uint64_t cmp_data,
	uint64_t swap_data, union doca_data user_data, struct doca_rdma_task_atomic_cmp_swp **task)
{
	return gd_rdma_task_init(rdma,
				 &(struct gd_rdma_task){.kind = GD_RDMA_CMP_SWP,
							.conn = rdma_connection,
							.dst = dst_buf,
							.result = result_buf,
							.compare = cmp_data,
							.value = swap_data},
				 user_data, task);
}

GD_RDMA_TASK(atomic_fetch_add, GD_RDMA_FETCH_ADD)
GD_RDMA_FIELD(atomic_fetch_add, dst_buf, dst, struct doca_buf *, struct doca_buf *)
GD_RDMA_FIELD(atomic_fetch_add, result_buf, result, struct doca_buf *, struct doca_buf *)
GD_RDMA_FIELD(atomic_fetch_add, add_data, value, uint64_t, uint64_t)
GD_RDMA_CONNECTION(atomic_fetch_add)

doca_error_t doca_rdma_task_atomic_fetch_add_allocate_init(
	struct doca_rdma *rdma, struct doca_rdma_connection *rdma_connection,
	struct doca_buf *dst_buf, struct doca_buf *result_buf, uint64_t add_data,
	union doca_data user_data, struct doca_rdma_task_atomic_fetch_add **task)
{
	return gd_rdma_task_init(rdma,
				 &(struct gd_rdma_task){.kind = GD_RDMA_FETCH_ADD,
							.conn = rdma_connection,
							.dst = dst_buf,
							.result = result_buf,
							.value = add_data},
				 user_data, task);
}

GD_RDMA_TASK(remote_net_sync_event_get, GD_RDMA_EVENT_GET)
GD_RDMA_FIELD(remote_net_sync_event_get, sync_event, event, event_to_read, event_to_read)
GD_RDMA_FIELD(remote_net_sync_event_get, dst_buf, dst, struct doca_buf *, struct doca_buf *)
GD_RDMA_CONNECTION(remote_net_sync_event_get)

doca_error_t doca_rdma_task_remote_net_sync_event_get_allocate_init(
	struct doca_rdma *rdma, struct doca_rdma_connection *rdma_connection,
	const struct doca_sync_event_remote_net *event, struct doca_buf *dst_buf,
	union doca_data user_data, struct doca_rdma_task_remote_net_sync_event_get **task)
{
	return gd_rdma_task_init(rdma,
				 &(struct gd_rdma_task){.kind = GD_RDMA_EVENT_GET,
							.conn = rdma_connection,
							.event = event,
							.dst = dst_buf},
				 user_data, task);
}

uint32_t doca_rdma_task_remote_net_sync_event_get_get_result_len(
	const struct doca_rdma_task_remote_net_sync_event_get *task)
{
	return task ? task->any.result_len : 0;
}

GD_RDMA_TASK(remote_net_sync_event_notify_set, GD_RDMA_EVENT_SET)
GD_RDMA_FIELD(remote_net_sync_event_notify_set, sync_event, event, event_to_change, event_to_change)
GD_RDMA_FIELD(remote_net_sync_event_notify_set, src_buf, src, const struct doca_buf *,
	      const struct doca_buf *)
GD_RDMA_CONNECTION(remote_net_sync_event_notify_set)

doca_error_t doca_rdma_task_remote_net_sync_event_notify_set_allocate_init(
	struct doca_rdma *rdma, struct doca_rdma_connection *rdma_connection,
	struct doca_sync_event_remote_net *event, const struct doca_buf *src_buf,
	union doca_data user_data, struct doca_rdma_task_remote_net_sync_event_notify_set **task)
{
	return gd_rdma_task_init(rdma,
				 &(struct gd_rdma_task){.kind = GD_RDMA_EVENT_SET,
							.conn = rdma_connection,
							.event = event,
							.src = src_buf},
				 user_data, task);
}

GD_RDMA_TASK(remote_net_sync_event_notify_add, GD_RDMA_EVENT_ADD)
GD_RDMA_FIELD(remote_net_sync_event_notify_add, sync_event, event, event_to_change, event_to_change)
GD_RDMA_FIELD(remote_net_sync_event_notify_add, result_buf, result, struct doca_buf *,
	      struct doca_buf *)
GD_RDMA_FIELD(remote_net_sync_event_notify_add, add_data, value, uint64_t, uint64_t)
GD_RDMA_CONNECTION(remote_net_sync_event_notify_add)

doca_error_t doca_rdma_task_remote_net_sync_event_notify_add_allocate_init(
	struct doca_rdma *rdma, struct doca_rdma_connection *rdma_connection,
	struct doca_sync_event_remote_net *event, struct doca_buf *result_buf, uint64_t add_data,
	union doca_data user_data, struct doca_rdma_task_remote_net_sync_event_notify_add **task)
{
	return gd_rdma_task_init(rdma,
				 &(struct gd_rdma_task){.kind = GD_RDMA_EVENT_ADD,
							.conn = rdma_connection,
							.event = event,
							.result = result_buf,
							.value = add_data},
				 user_data, task);
}
