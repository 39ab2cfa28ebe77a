/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rdma_tasks.c - RDMA tasks: pools, checks, and the public functions for messages, reads and writes
 */
#include "base/container_of.h"
#include "buf/buf.h"
#include "rdma/rdma.h"
#include "rdma/rdma_tasks.h"

/* -- pools -- */

static bool is_chain_too_long(const struct doca_buf *buf, uint32_t most)
{
	uint32_t n = 0;

	for (; buf; buf = buf->next)
		if (++n > most)
			return true;
	return false;
}

bool gd_rdma_is_on_device(const struct doca_task *base)
{
	const struct gd_rdma_task *task = (const struct gd_rdma_task *)base;
	const struct doca_dev *dev = base->ctx->dev;

	return gd_buf_is_on(task->src, dev) && gd_buf_is_on(task->dst, dev) &&
	       gd_buf_is_on(task->result, dev);
}

static doca_error_t check(const struct doca_task *base)
{
	const struct gd_rdma_task *task = (const struct gd_rdma_task *)base;
	const struct doca_rdma *rdma = gd_rdma_of(base->ctx);

	if (!gd_rdma_is_on_device(base))
		return DOCA_ERROR_INVALID_VALUE;
	switch (task->kind) {
	case GD_RDMA_RECEIVE:
		return is_chain_too_long(task->dst, rdma->max_receive_list)
			       ? DOCA_ERROR_INVALID_VALUE
			       : DOCA_SUCCESS;
	case GD_RDMA_SEND:
	case GD_RDMA_SEND_IMM:
		break;
	case GD_RDMA_READ:
		if (!task->src || !task->dst || task->src->next ||
		    gd_buf_room(task->dst) < task->src->data_len)
			return DOCA_ERROR_INVALID_VALUE;
		break;
	case GD_RDMA_WRITE:
	case GD_RDMA_WRITE_IMM:
		if (!task->src || !task->dst || task->dst->next ||
		    gd_buf_room(task->dst) < gd_buf_data_bytes(task->src))
			return DOCA_ERROR_INVALID_VALUE;
		break;
	default:
		break;
	}
	if (!task->conn || is_chain_too_long(task->src, rdma->max_send_list))
		return DOCA_ERROR_INVALID_VALUE;
	return DOCA_SUCCESS;
}

static doca_error_t submit(struct doca_task *base)
{
	struct gd_rdma_task *task = (struct gd_rdma_task *)base;
	struct doca_rdma *rdma = gd_rdma_of(base->ctx);

	task->length = task->done = 0;
	task->pieces = 0;
	task->accessed = task->is_asked = task->is_flying = false;
	task->error = DOCA_SUCCESS;
	task->result_len = 0;
	if (task->kind == GD_RDMA_RECEIVE) {
		task->conn = NULL;
		if (gd_rdma_is_on_device(base))
			gd_rdma_submit_receive(rdma, task);
		else
			gd_task_done_or_fail(base, DOCA_ERROR_INVALID_VALUE);
		return DOCA_SUCCESS;
	}
	if (!task->conn || task->conn->rdma != rdma)
		return DOCA_ERROR_INVALID_VALUE;
	if (task->conn->state == GD_RDMA_FREE || task->conn->state == GD_RDMA_OVER ||
	    task->conn->lost)
		return DOCA_ERROR_NOT_CONNECTED;
	gd_rdma_submit(task->conn, task);
	return DOCA_SUCCESS;
}

/* Cancel a posted receive. */
static void withdraw(struct doca_task *base)
{
	struct gd_rdma_task *task = (struct gd_rdma_task *)base;
	struct doca_rdma *rdma = gd_rdma_of(base->ctx);
	const struct gd_rdma_task *posted;

	STAILQ_FOREACH (posted, &rdma->receives, link)
		if (posted == task) {
			STAILQ_REMOVE(&rdma->receives, task, gd_rdma_task, link);
			rdma->n_receives--;
			return;
		}
	for (struct doca_rdma_connection *conn = rdma->live; conn; conn = conn->next_live)
		if (conn->receiving == task)
			conn->receiving = NULL; /* the rest of that message is discarded */
}

static const struct gd_task_ops receive_ops = {
	.check = check, .submit = submit, .withdraw = withdraw};
static const struct gd_task_ops request_ops = {.check = check, .submit = submit};

void gd_rdma_tasks_init(struct doca_rdma *rdma)
{
	for (int kind = 0; kind < GD_RDMA_KINDS; kind++)
		gd_pool_init(&rdma->pools[kind], &rdma->ctx,
			     kind == GD_RDMA_RECEIVE ? &receive_ops : &request_ops,
			     sizeof(struct gd_rdma_task));
}

doca_error_t gd_rdma_task_conf(struct doca_rdma *rdma, enum gd_rdma_kind kind, void *done_cb,
			       void *error_cb, uint32_t n)
{
	if (!rdma)
		return DOCA_ERROR_INVALID_VALUE;
	return gd_pool_conf(&rdma->pools[kind], done_cb, error_cb, n, DOCA_ERROR_BAD_STATE);
}

doca_error_t gd_rdma_task_init(struct doca_rdma *rdma, const struct gd_rdma_task *with,
			       union doca_data user_data, void *task_p)
{
	struct gd_rdma_task *task;

	if (!rdma || !task_p || (with->kind != GD_RDMA_RECEIVE && !with->conn))
		return DOCA_ERROR_INVALID_VALUE;
	task = (struct gd_rdma_task *)gd_task_take(&rdma->pools[with->kind], user_data);
	if (!task)
		return DOCA_ERROR_NO_MEMORY;
	task->kind = with->kind;
	task->conn = with->conn;
	task->src = with->src;
	task->dst = with->dst;
	task->result = with->result;
	task->event = with->event;
	task->value = with->value;
	task->compare = with->compare;
	task->imm = with->imm;
	task->opcode = DOCA_RDMA_OPCODE_RECV_SEND;
	task->result_len = 0;
	*(struct gd_rdma_task **)task_p = task;
	return DOCA_SUCCESS;
}

/* -- receive -- */

GD_RDMA_TASK(receive, GD_RDMA_RECEIVE)
GD_RDMA_FIELD(receive, dst_buf, dst, struct doca_buf *, struct doca_buf *)

doca_error_t doca_rdma_task_receive_allocate_init(struct doca_rdma *rdma, struct doca_buf *dst_buf,
						  union doca_data user_data,
						  struct doca_rdma_task_receive **task)
{
	return gd_rdma_task_init(rdma,
				 &(struct gd_rdma_task){.kind = GD_RDMA_RECEIVE, .dst = dst_buf},
				 user_data, task);
}

enum doca_rdma_opcode doca_rdma_task_receive_get_result_opcode(
	const struct doca_rdma_task_receive *task)
{
	return task ? task->any.opcode : DOCA_RDMA_OPCODE_RECV_SEND;
}

uint32_t doca_rdma_task_receive_get_result_len(const struct doca_rdma_task_receive *task)
{
	return task ? task->any.result_len : 0;
}

doca_be32_t doca_rdma_task_receive_get_result_immediate_data(
	const struct doca_rdma_task_receive *task)
{
	return task ? task->any.imm : 0;
}

const struct doca_rdma_connection *doca_rdma_task_receive_get_result_rdma_connection(
	const struct doca_rdma_task_receive *task)
{
	return task ? task->any.conn : NULL;
}

/* -- send -- */

GD_RDMA_TASK(send, GD_RDMA_SEND)
GD_RDMA_FIELD(send, src_buf, src, const struct doca_buf *, const struct doca_buf *)
GD_RDMA_CONNECTION(send)

doca_error_t doca_rdma_task_send_allocate_init(struct doca_rdma *rdma,
					       struct doca_rdma_connection *rdma_connection,
					       const struct doca_buf *src_buf,
					       union doca_data user_data,
					       struct doca_rdma_task_send **task)
{
	return gd_rdma_task_init(rdma,
				 &(struct gd_rdma_task){.kind = GD_RDMA_SEND,
							.conn = rdma_connection,
							.src = src_buf},
				 user_data, task);
}

GD_RDMA_TASK(send_imm, GD_RDMA_SEND_IMM)
GD_RDMA_FIELD(send_imm, src_buf, src, const struct doca_buf *, const struct doca_buf *)
GD_RDMA_FIELD(send_imm, immediate_data, imm, doca_be32_t, doca_be32_t)
GD_RDMA_CONNECTION(send_imm)

doca_error_t doca_rdma_task_send_imm_allocate_init(struct doca_rdma *rdma,
						   struct doca_rdma_connection *rdma_connection,
						   const struct doca_buf *src_buf,
						   doca_be32_t immediate_data,
						   union doca_data user_data,
						   struct doca_rdma_task_send_imm **task)
{
	return gd_rdma_task_init(rdma,
				 &(struct gd_rdma_task){.kind = GD_RDMA_SEND_IMM,
							.conn = rdma_connection,
							.src = src_buf,
							.imm = immediate_data},
				 user_data, task);
}

/* -- read -- */

GD_RDMA_TASK(read, GD_RDMA_READ)
GD_RDMA_FIELD(read, src_buf, src, const struct doca_buf *, const struct doca_buf *)
GD_RDMA_FIELD(read, dst_buf, dst, struct doca_buf *, struct doca_buf *)
GD_RDMA_CONNECTION(read)

doca_error_t doca_rdma_task_read_allocate_init(struct doca_rdma *rdma,
					       struct doca_rdma_connection *rdma_connection,
					       const struct doca_buf *src_buf,
					       struct doca_buf *dst_buf, union doca_data user_data,
					       struct doca_rdma_task_read **task)
{
	return gd_rdma_task_init(rdma,
				 &(struct gd_rdma_task){.kind = GD_RDMA_READ,
							.conn = rdma_connection,
							.src = src_buf,
							.dst = dst_buf},
				 user_data, task);
}

uint32_t doca_rdma_task_read_get_result_len(const struct doca_rdma_task_read *task)
{
	return task ? task->any.result_len : 0;
}

/* -- write -- */

GD_RDMA_TASK(write, GD_RDMA_WRITE)
GD_RDMA_FIELD(write, src_buf, src, const struct doca_buf *, const struct doca_buf *)
GD_RDMA_FIELD(write, dst_buf, dst, struct doca_buf *, struct doca_buf *)
GD_RDMA_CONNECTION(write)

doca_error_t doca_rdma_task_write_allocate_init(struct doca_rdma *rdma,
						struct doca_rdma_connection *rdma_connection,
						const struct doca_buf *src_buf,
						struct doca_buf *dst_buf, union doca_data user_data,
						struct doca_rdma_task_write **task)
{
	return gd_rdma_task_init(rdma,
				 &(struct gd_rdma_task){.kind = GD_RDMA_WRITE,
							.conn = rdma_connection,
							.src = src_buf,
							.dst = dst_buf},
				 user_data, task);
}

GD_RDMA_TASK(write_imm, GD_RDMA_WRITE_IMM)
GD_RDMA_FIELD(write_imm, src_buf, src, const struct doca_buf *, const struct doca_buf *)
GD_RDMA_FIELD(write_imm, dst_buf, dst, struct doca_buf *, struct doca_buf *)
GD_RDMA_FIELD(write_imm, immediate_data, imm, doca_be32_t, doca_be32_t)
GD_RDMA_CONNECTION(write_imm)

doca_error_t doca_rdma_task_write_imm_allocate_init(
	struct doca_rdma *rdma, struct doca_rdma_connection *rdma_connection,
	const struct doca_buf *src_buf, struct doca_buf *dst_buf, doca_be32_t immediate_data,
	union doca_data user_data, struct doca_rdma_task_write_imm **task)
{
	return gd_rdma_task_init(rdma,
				 &(struct gd_rdma_task){.kind = GD_RDMA_WRITE_IMM,
							.conn = rdma_connection,
							.src = src_buf,
							.dst = dst_buf,
							.imm = immediate_data},
				 user_data, task);
}
