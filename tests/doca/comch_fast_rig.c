/* SPDX-License-Identifier: BSD-3-Clause */
#include "comch_fast_rig.h"

#include <stdlib.h>
#include <string.h>

static void end_task(struct fast *f, struct doca_task *task, struct doca_buf *buf)
{
	if (buf)
		NEED_OK(doca_buf_dec_refcount(buf, NULL));
	if (f->hold)
		f->kept = task;
	else
		doca_task_free(task);
}

static void on_received(struct doca_comch_consumer_task_post_recv *task, union doca_data task_data,
			union doca_data ctx_data)
{
	struct doca_buf *buf = doca_comch_consumer_task_post_recv_get_buf(task);
	struct fast *f = ctx_data.ptr;
	void *data;

	(void)task_data;
	f->n_received++;
	f->length = 0;
	if (buf) {
		NEED_OK(doca_buf_get_data(buf, &data));
		NEED_OK(doca_buf_get_data_len(buf, &f->length));
		f->data = data;
	}
	f->imm_len = doca_comch_consumer_task_post_recv_get_imm_data_len(task);
	NEED(f->imm_len <= 32 &&
	     !doca_comch_consumer_task_post_recv_get_imm_data(task) == !f->imm_len);
	if (f->imm_len)
		memcpy(f->imm, doca_comch_consumer_task_post_recv_get_imm_data(task), f->imm_len);
	f->from = doca_comch_consumer_task_post_recv_get_producer_id(task);
	if (f->on_received)
		f->on_received(f);
	if (!f->keep) {
		end_task(f, doca_comch_consumer_task_post_recv_as_task(task), buf);
		return;
	}
	if (buf)
		NEED_OK(doca_buf_reset_data_len(buf));
	NEED_OK(doca_task_submit(doca_comch_consumer_task_post_recv_as_task(task)));
}

static void on_flushed(struct doca_comch_consumer_task_post_recv *task, union doca_data task_data,
		       union doca_data ctx_data)
{
	struct doca_buf *buf = doca_comch_consumer_task_post_recv_get_buf(task);
	struct fast *f = ctx_data.ptr;

	(void)task_data;
	f->n_flushed++;
	f->recv_status = doca_task_get_status(doca_comch_consumer_task_post_recv_as_task(task));
	NEED(f->recv_status != DOCA_SUCCESS);
	end_task(f, doca_comch_consumer_task_post_recv_as_task(task), buf);
}

static void on_sent(struct doca_comch_producer_task_send *task, union doca_data task_data,
		    union doca_data ctx_data)
{
	struct fast *f = ctx_data.ptr;

	(void)task_data;
	f->n_sent++;
	end_task(f, doca_comch_producer_task_send_as_task(task),
		 (struct doca_buf *)(uintptr_t)doca_comch_producer_task_send_get_buf(task));
}

static void on_failed(struct doca_comch_producer_task_send *task, union doca_data task_data,
		      union doca_data ctx_data)
{
	struct fast *f = ctx_data.ptr;

	f->send_status = doca_task_get_status(doca_comch_producer_task_send_as_task(task));
	NEED(f->send_status != DOCA_SUCCESS);
	f->n_failed++;
	f->n_sent--;
	on_sent(task, task_data, ctx_data);
}

static void on_state(const union doca_data data, struct doca_ctx *ctx, enum doca_ctx_states prev,
		     enum doca_ctx_states next)
{
	struct fast *f = data.ptr;
	char *journal = ctx == doca_comch_consumer_as_ctx(f->consumer) ? f->consumer_journal
								       : f->producer_journal;
	size_t n = strlen(journal);

	NEED(prev != next);
	if (n + 1 < sizeof(f->consumer_journal))
		journal[n] = (char)('0' + next);
}

void fast_open_at(struct fast *f, struct side *side, void *mem, size_t bytes)
{
	f->side = side;
	f->bytes = bytes;
	f->to = side->consumer;
	f->mem = mem;
	f->not_ours = true;
	NEED(f->mem);
	NEED_OK(doca_mmap_create(&f->mmap));
	NEED_OK(doca_mmap_add_dev(f->mmap, side->dev));
	NEED_OK(doca_mmap_set_permissions(f->mmap, DOCA_ACCESS_FLAG_PCI_READ_WRITE));
	NEED_OK(doca_mmap_set_memrange(f->mmap, f->mem, bytes));
	NEED_OK(doca_mmap_start(f->mmap));
	NEED_OK(doca_buf_inventory_create(1024, &f->inventory));
	NEED_OK(doca_buf_inventory_start(f->inventory));
	NEED_OK(doca_pe_create(&f->pe));
}

void fast_open(struct fast *f, struct side *side, size_t bytes)
{
	fast_open_at(f, side, calloc(1, bytes), bytes);
	f->not_ours = false;
}

void fast_open_server(struct fast *f, struct side *side)
{
	side_server(side, RIG_NAME);
	side_start(side);
	rig_tell(RIG_CLIENT, 'r');
	UNTIL(side, side->n_connected);
	fast_open(f, side, 1 << 20);
}

void fast_open_client(struct fast *f, struct side *side)
{
	rig_hear(RIG_CLIENT, 'r');
	side_client(side, RIG_NAME);
	side_start(side);
	fast_open(f, side, 1 << 20);
}

static void configure(struct fast *f, struct doca_ctx *ctx)
{
	NEED_OK(doca_pe_connect_ctx(f->pe, ctx));
	NEED_OK(doca_ctx_set_user_data(ctx, (union doca_data){.ptr = f}));
	NEED_OK(doca_ctx_set_state_changed_cb(ctx, on_state));
}

void fast_add_consumer(struct fast *f, uint32_t n_tasks)
{
	NEED_OK(doca_comch_consumer_create(f->side->conn, f->mmap, &f->consumer));
	configure(f, doca_comch_consumer_as_ctx(f->consumer));
	NEED_OK(doca_comch_consumer_task_post_recv_set_conf(f->consumer, on_received, on_flushed,
							    n_tasks));
}

void fast_add_producer(struct fast *f, uint32_t n_tasks)
{
	NEED_OK(doca_comch_producer_create(f->side->conn, &f->producer));
	configure(f, doca_comch_producer_as_ctx(f->producer));
	NEED_OK(doca_comch_producer_task_send_set_conf(f->producer, on_sent, on_failed, n_tasks));
}

void fast_start_consumer(struct fast *f)
{
	struct doca_ctx *ctx = doca_comch_consumer_as_ctx(f->consumer);

	NEED_RESULT(DOCA_ERROR_IN_PROGRESS, doca_ctx_start(ctx));
	NEED(state_of(ctx) == DOCA_CTX_STATE_STARTING);
	UNTIL_ALONE(f, state_of(ctx) == DOCA_CTX_STATE_RUNNING);
}

void fast_start(struct fast *f)
{
	if (!f->consumer)
		fast_add_consumer(f, FAST_TASKS);
	if (!f->producer)
		fast_add_producer(f, FAST_TASKS);
	fast_start_consumer(f);
	NEED_OK(doca_ctx_start(doca_comch_producer_as_ctx(f->producer)));
	NEED(state_of(doca_comch_producer_as_ctx(f->producer)) == DOCA_CTX_STATE_RUNNING);
}

struct doca_buf *fast_buf(struct fast *f, size_t offset, size_t length, size_t data_len)
{
	struct doca_buf *buf;

	NEED(offset + length <= f->bytes);
	NEED_OK(doca_buf_inventory_buf_get_by_args(f->inventory, f->mmap, f->mem + offset, length,
						   f->mem + offset, data_len, &buf));
	return buf;
}

void fast_post(struct fast *f, size_t offset, size_t length)
{
	struct doca_buf *buf = length ? fast_buf(f, offset, length, 0) : NULL;
	struct doca_comch_consumer_task_post_recv *task;

	NEED_OK(doca_comch_consumer_task_post_recv_alloc_init(f->consumer, buf, &task));
	NEED_OK(doca_task_submit(doca_comch_consumer_task_post_recv_as_task(task)));
}

doca_error_t fast_try_send(struct fast *f, size_t offset, size_t length, const void *imm,
			   uint32_t imm_len)
{
	struct doca_buf *buf = length ? fast_buf(f, offset, length, length) : NULL;
	struct doca_comch_producer_task_send *task;
	uint8_t copy[64];
	doca_error_t result;

	if (imm_len)
		memcpy(copy, imm, imm_len);
	result = doca_comch_producer_task_send_alloc_init(f->producer, buf, copy, imm_len,
							  f->to ? f->to : f->side->consumer, &task);
	memset(copy, 0xee, sizeof(copy)); /* alloc_init has copied it */
	if (result == DOCA_SUCCESS) {
		result = doca_task_submit(doca_comch_producer_task_send_as_task(task));
		if (result == DOCA_SUCCESS)
			return result;
		doca_task_free(doca_comch_producer_task_send_as_task(task));
	}
	if (buf)
		NEED_OK(doca_buf_dec_refcount(buf, NULL));
	return result;
}

void fast_send(struct fast *f, size_t offset, size_t length, const void *imm, uint32_t imm_len)
{
	const uint64_t until = rig_now() + RIG_DEADLINE_NS;
	doca_error_t result;

	while ((result = fast_try_send(f, offset, length, imm, imm_len)) == DOCA_ERROR_AGAIN)
		NEED(rig_now() < until);
	NEED_OK(result);
}

static void stop(struct fast *f, struct doca_ctx *ctx)
{
	const doca_error_t result = doca_ctx_stop(ctx);

	NEED(result == DOCA_SUCCESS || result == DOCA_ERROR_IN_PROGRESS);
	UNTIL_ALONE(f, state_of(ctx) == DOCA_CTX_STATE_IDLE);
}

void fast_stop(struct fast *f)
{
	if (f->producer) {
		stop(f, doca_comch_producer_as_ctx(f->producer));
		NEED_OK(doca_comch_producer_destroy(f->producer));
	}
	if (f->consumer) {
		stop(f, doca_comch_consumer_as_ctx(f->consumer));
		NEED_OK(doca_comch_consumer_destroy(f->consumer));
	}
	f->producer = NULL;
	f->consumer = NULL;
}

void fast_close(struct fast *f)
{
	fast_stop(f);
	NEED_OK(doca_pe_destroy(f->pe));
	NEED_OK(doca_mmap_destroy(f->mmap));
	NEED_OK(doca_buf_inventory_destroy(f->inventory));
	if (!f->not_ours)
		free(f->mem);
	memset(f, 0, sizeof(*f));
}

void fast_open_both(struct fast *f, struct side *client, struct fast *peer, struct side *server,
		    size_t bytes)
{
	side_join(server, client);
	fast_open(f, client, bytes);
	fast_open(peer, server, bytes);
}

void fast_close_both(struct fast *f, struct fast *peer)
{
	struct side *client = f->side, *server = peer->side;

	fast_close(f);
	fast_close(peer);
	side_stop(client);
	side_stop(server);
}
