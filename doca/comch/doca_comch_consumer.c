/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * doca_comch_consumer.c - consumers: receive queues of a connection
 *
 * A consumer has one queue of the transport. Only the thread of its engine uses the queue; the lock
 * is needed only to create and destroy it. The consumer starts by progress of its own engine; the
 * engine of the server or client announces it to the peer.
 * Posted tasks complete in the order of posting and are kept in one list.
 */
#include <doca_comch_consumer.h>

#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include <gantry/shm.h>

#include "base/container_of.h"
#include "buf/buf.h"
#include "comch/comch_fast.h"

/* -- the data path -- */

/* Find the destination of the data of a task. false: the buffer cannot receive data. */
static inline bool find_destination(const struct doca_comch_consumer_task_post_recv *t,
				    struct gantry_recv *recv)
{
	const struct doca_buf *buf = t->buf;
	size_t used, room;
	char *tail;

	recv->buf = NULL;
	recv->length = 0;
	if (!buf)
		return true;
	tail = (char *)buf->data + buf->data_len;
	used = (size_t)(tail - (char *)buf->head);
	if (buf->mmap != gd_consumer_of(t->task.ctx)->mmap || !buf->mmap->started || buf->next ||
	    used > buf->len)
		return false;
	room = buf->len - used;
	recv->length = room > GD_COMCH_BUF_SIZE ? GD_COMCH_BUF_SIZE : (uint32_t)room;
	recv->buf = gd_buf_host(buf, tail, recv->length);
	return recv->buf != NULL;
}

static doca_error_t check_recv(const struct doca_task *task)
{
	const struct doca_comch_consumer_task_post_recv *t = gd_recv_of(task);
	struct gantry_recv recv;

	return find_destination(t, &recv) ? DOCA_SUCCESS : DOCA_ERROR_INVALID_VALUE;
}

/*
 * Store the number and the length of the receive in the credit page, then post the receive. The
 * producer checks the number in the word: until the word of this receive is visible, it does not
 * use the receive. Number and length are in one word, so the store needs no memory order.
 */
static inline int post(struct doca_comch_consumer *c, const struct gantry_recv *recv)
{
	const uint32_t n = c->n_posted;
	int rc;

	if (n - c->n_used >= c->depth)
		return -ENOSPC;
	gantry_shm_st64(&c->credits[n % GD_FAST_POSTS], (uint64_t)(n + 1) << 32 | recv->length);
	rc = c->ops->data->post_recv(c->queue, recv, 1);
	if (rc)
		return rc;
	c->n_posted++;
	return 0;
}

static doca_error_t submit_recv(struct doca_task *task)
{
	struct doca_comch_consumer_task_post_recv *t = gd_recv_of(task);
	struct doca_comch_consumer *c = gd_consumer_of(task->ctx);
	int rc;

	t->producer = 0;
	t->imm_len = 0;
	if (doca_unlikely(!find_destination(t, &t->recv))) {
		gd_task_done(task, DOCA_ERROR_INVALID_VALUE);
		return DOCA_SUCCESS;
	}
	rc = c->beyond ? -ENOSPC : post(c, &t->recv);
	if (doca_unlikely(rc != 0)) {
		if (rc != -ENOSPC)
			return gd_comch_error(rc);
		if (!c->queue) {
			gd_task_done(task, DOCA_ERROR_CONNECTION_RESET);
			return DOCA_SUCCESS;
		}
		if (!c->beyond)
			c->beyond = task;
	}
	task->next = NULL;
	*c->last = task;
	c->last = &task->next;
	return DOCA_SUCCESS;
}

/* Post waiting tasks when the queue of the transport has space. */
static __attribute__((noinline)) void post_beyond(struct doca_comch_consumer *c)
{
	while (c->beyond) {
		struct doca_comch_consumer_task_post_recv *t = gd_recv_of(c->beyond);

		if (post(c, &t->recv))
			return;
		c->beyond = t->task.next;
	}
}

static const struct gd_task_ops recv_ops = {.check = check_recv, .submit = submit_recv};

/* Copy the immediate data, and the end of the data behind it, as described by the head. */
static __attribute__((noinline)) doca_error_t take_behind(
	struct doca_comch_consumer_task_post_recv *t, const struct gantry_msg *msg, uint64_t head,
	uint32_t *length)
{
	const uint32_t imm_len = (uint8_t)(head >> 16), tail_len = (uint8_t)(head >> 24),
		       at = gd_fast_tail(imm_len);

	/* msg->imm_len is at most GANTRY_IMM_MAX */
	if (imm_len > GD_COMCH_IMM || sizeof(head) + at + tail_len > msg->imm_len)
		return DOCA_ERROR_IO_FAILED;
	if (tail_len > t->recv.length - msg->length)
		return DOCA_ERROR_INVALID_VALUE;
	*length = msg->length + tail_len;
	t->producer = (uint16_t)head;
	t->imm_len = imm_len;
	if (imm_len)
		gantry_copy_fresh(t->imm, msg->imm + sizeof(head), GD_COMCH_IMM);
	if (tail_len)
		gd_fast_copy((char *)t->recv.buf + msg->length, msg->imm + sizeof(head) + at,
			     tail_len);
	return DOCA_SUCCESS;
}

static inline doca_error_t take_imm(struct doca_comch_consumer_task_post_recv *t,
				    const struct gantry_msg *msg, uint32_t *length)
{
	uint64_t head;

	if (doca_unlikely(msg->imm_len < sizeof(head)))
		return DOCA_ERROR_IO_FAILED;
	memcpy(&head, msg->imm, sizeof(head));
	if (head >> 16)
		return take_behind(t, msg, head, length);
	*length = msg->length;
	t->producer = (uint32_t)head;
	t->imm_len = 0;
	return DOCA_SUCCESS;
}

static doca_error_t status_of(int32_t status)
{
	return status == 0           ? DOCA_SUCCESS
	       : status == -EMSGSIZE ? DOCA_ERROR_INVALID_VALUE
				     : DOCA_ERROR_IO_FAILED;
}

static inline void complete(struct doca_comch_consumer *c, const struct gantry_msg *msg)
{
	struct doca_comch_consumer_task_post_recv *t = (void *)(uintptr_t)msg->cookie;
	doca_error_t result = status_of(msg->status);
	uint32_t length = 0;

	c->n_used++;
	c->first = t->task.next;
	if (!c->first)
		c->last = &c->first;
	if (result == DOCA_SUCCESS)
		result = take_imm(t, msg, &length);
	if (result == DOCA_SUCCESS && t->buf && !t->task.dropped)
		t->buf->data_len += length;
	gd_task_done_own(&t->task, result);
}

/*
 * Prefetch the queue of the producer that answered the previous message, so that the cache lines
 * arrive while the callback runs. `answers` is valid for one message only: an unneeded prefetch
 * takes cache lines that the peer polls.
 */
static inline void expect_answer(struct doca_comch_consumer *c)
{
	const struct doca_comch_producer *p = c->answers;

	if (p && p->target)
		p->ops->data->send_prefetch(p->target->queue);
	c->answers = NULL;
	c->ctx.pe->last_receiver = &c->ctx;
}

/* Complete tasks for received messages. Returns their number, or -errno. */
static inline __attribute__((always_inline)) int take_messages(struct doca_comch_consumer *c,
							       uint32_t max)
{
	struct gantry_msg msgs[GD_FAST_BATCH];
	int n = c->ops->poll_recv(c->queue, msgs, max);

	if (n > 0)
		expect_answer(c);
	for (int i = 0; i < n; i++)
		complete(c, &msgs[i]);
	return n;
}

static void close_queue(struct doca_comch_consumer *c)
{
	if (c->queue)
		c->ops->consumer_destroy(c->queue);
	c->queue = NULL;
	c->depth = 0;
	gd_conn_discard_consumer(c->conn, c->id);
	gd_recv_credit_close(c->conn, c->row);
}

/* Fail the posted receives, because no further message can arrive. */
static void fail_posted(struct doca_comch_consumer *c, doca_error_t why)
{
	while (c->first) {
		struct doca_task *task = c->first;

		c->first = task->next;
		gd_task_done(task, why);
	}
	c->last = &c->first;
	c->beyond = NULL;
}

/*
 * The peer has ended, and receives are posted: deliver the messages that it had sent, then fail the
 * other receives.
 */
static __attribute__((noinline)) int end_posted(struct doca_comch_consumer *c)
{
	/* messages that the peer sent after the last poll and before its end */
	if (take_messages(c, GD_FAST_BATCH) > 0)
		return 1;
	gd_conn_lock(c->conn);
	close_queue(c);
	gd_conn_unlock(c->conn);
	fail_posted(c, DOCA_ERROR_CONNECTION_RESET);
	return 1;
}

static bool must_end(const struct doca_comch_consumer *c)
{
	return c->first && gd_fast_is_lost(c->conn);
}

static int poll_consumer(struct doca_ctx *ctx)
{
	struct doca_comch_consumer *c = gd_consumer_of(ctx);
	int n = c->queue ? take_messages(c, c->batch) : 0;

	if (doca_unlikely(n < 0)) {
		gd_ctx_fail(ctx);
		return 0;
	}
	if (n == 0 && doca_unlikely(must_end(c)))
		return end_posted(c);
	c->batch = n > 1 || (uint32_t)n == c->batch ? GD_FAST_BATCH : 1;
	if (doca_unlikely(c->beyond != NULL))
		post_beyond(c);
	return n > 0;
}

/* -- sleep -- */

static int sleep_until_event(struct doca_ctx *ctx, struct pollfd *fds, int max)
{
	struct doca_comch_consumer *c = gd_consumer_of(ctx);

	if (!c->queue)
		return 0;
	if (max < 1 || c->beyond || c->ops->consumer_arm(c->queue))
		return -1;
	fds[0] = (struct pollfd){.fd = c->ops->consumer_fd(c->queue), .events = POLLIN};
	return 1;
}

static void rouse(struct doca_ctx *ctx)
{
	struct doca_comch_consumer *c = gd_consumer_of(ctx);

	if (c->queue)
		c->ops->consumer_disarm(c->queue);
}

/* -- states -- */

static void run_started(struct gd_event *event)
{
	gd_ctx_started(&gn_container_of(event, struct doca_comch_consumer, started)->ctx);
}

/* Convert an error of the start. -ENOTCONN: the connection is ending, as if it had ended. */
static doca_error_t start_error(int rc)
{
	return rc == -ENOTCONN ? DOCA_ERROR_BAD_STATE : gd_comch_error(rc);
}

/* Lock held. Create the queue, and let the engine of the server or client announce its id. */
static doca_error_t open_queue(struct doca_comch_consumer *c)
{
	struct doca_comch_connection *conn = c->conn;
	struct gantry_queue_attr attr = {
		.depth = gd_fast_depth(conn->transport, c->posts.n),
		.max_data = GD_COMCH_BUF_SIZE,
		.lane = conn->next_lane,
		.flags = GANTRY_QUEUE_PROMPT,
	};
	doca_error_t result = gd_active_check(conn, "consumer");
	uint32_t number;
	int rc;

	if (result != DOCA_SUCCESS)
		return result;
	rc = gd_recv_credit_open(conn, &c->row);
	if (rc)
		return start_error(rc);
	c->credits = gd_recv_credit_row(conn, c->row);
	c->depth = attr.depth;
	c->n_posted = c->n_used = 0;
	c->batch = 1;
	rc = c->ops->consumer_create(conn->link, &attr, &number, &c->queue);
	if (rc == 0)
		rc = gd_conn_hold_consumer(conn, number, c->id, c->imm_max | c->row << 16);
	if (rc) {
		close_queue(c);
		return start_error(rc);
	}
	conn->next_lane++;
	gd_active_add(conn, &c->active, &c->ctx);
	return DOCA_SUCCESS;
}

static doca_error_t start_consumer(struct doca_ctx *ctx)
{
	struct doca_comch_consumer *c = gd_consumer_of(ctx);
	doca_error_t result;

	if (!c->posts.is_set) {
		gd_log(DOCA_LOG_LEVEL_ERROR,
		       "Comch consumer cannot start: no receive tasks: call doca_comch_consumer_task_post_recv_set_conf() before start");
		return DOCA_ERROR_INVALID_VALUE;
	}
	c->first = c->beyond = NULL;
	c->last = &c->first;
	gd_conn_lock(c->conn);
	result = open_queue(c);
	gd_conn_unlock(c->conn);
	if (result != DOCA_SUCCESS)
		return result;
	c->started = (struct gd_event){.run = run_started, .is_silent = true};
	gd_pe_post(ctx->pe, &c->started);
	return DOCA_ERROR_IN_PROGRESS;
}

/* Deliver the messages that have arrived, then fail the remaining tasks. */
static doca_error_t stop_consumer(struct doca_ctx *ctx)
{
	struct doca_comch_consumer *c = gd_consumer_of(ctx);

	gd_pe_withdraw(ctx->pe, &c->started);
	while (c->queue && take_messages(c, GD_FAST_BATCH) > 0)
		;
	if (ctx->pe->last_receiver == ctx)
		ctx->pe->last_receiver = NULL;
	c->answers = NULL;
	gd_conn_lock(c->conn);
	if (c->queue)
		close_queue(c);
	gd_active_remove(c->conn, &c->active);
	gd_conn_unlock(c->conn);
	fail_posted(c, DOCA_ERROR_SHUTDOWN);
	return DOCA_SUCCESS;
}

static void idle(struct doca_ctx *ctx)
{
	gd_active_idle(gd_consumer_of(ctx)->conn);
}

static const struct gd_ctx_ops consumer_ops = {
	.name = "Comch consumer",
	.start = start_consumer,
	.stop = stop_consumer,
	.idle = idle,
	.poll = poll_consumer,
	.sleep_until_event = sleep_until_event,
	.rouse = rouse,
	.is_silent = true,
};

void gd_consumers_forget(const struct doca_comch_producer *p)
{
	struct doca_ctx *const end = p->ctx.pe->turn, *ctx = end;

	do {
		if (ctx->ops == &consumer_ops && gd_consumer_of(ctx)->answers == p)
			gd_consumer_of(ctx)->answers = NULL;
		ctx = ctx->next;
	} while (ctx != end);
}

/* -- public -- */

static bool has_device(const struct doca_comch_connection *conn, const struct doca_mmap *mmap)
{
	const struct doca_dev *dev = conn->end->ctx.dev;

	if (gd_mmap_has_dev(mmap, dev))
		return true;
	gd_log(DOCA_LOG_LEVEL_ERROR,
	       "Comch consumer: the map is not for the device of the connection (device=%s): call doca_mmap_add_dev() before doca_mmap_start()",
	       dev->info->pci);
	return false;
}

doca_error_t doca_comch_consumer_create(struct doca_comch_connection *comch_connection,
					struct doca_mmap *buf_mmap,
					struct doca_comch_consumer **consumer)
{
	struct doca_comch_consumer *c;
	doca_error_t result;

	if (!comch_connection || !buf_mmap || !consumer || !buf_mmap->started)
		return DOCA_ERROR_INVALID_VALUE;
	if (!(buf_mmap->imported ? gd_mmap_allows(buf_mmap, true)
				 : buf_mmap->access & DOCA_ACCESS_FLAG_PCI_READ_WRITE)) {
		gd_log(DOCA_LOG_LEVEL_ERROR,
		       "Comch consumer: the map does not permit writes by the peer: set PCI_READ_WRITE by doca_mmap_set_permissions()");
		return DOCA_ERROR_NOT_PERMITTED;
	}
	c = calloc(1, sizeof(*c));
	if (!c)
		return DOCA_ERROR_NO_MEMORY;
	result = gd_conn_hold(comch_connection);
	if (result == DOCA_SUCCESS && !has_device(comch_connection, buf_mmap)) {
		gd_conn_release(comch_connection);
		result = DOCA_ERROR_INVALID_VALUE;
	}
	if (result != DOCA_SUCCESS) {
		free(c);
		return result;
	}
	gd_ctx_init(&c->ctx, &consumer_ops, comch_connection->end->ctx.dev);
	gd_pool_init(&c->posts, &c->ctx, &recv_ops,
		     sizeof(struct doca_comch_consumer_task_post_recv));
	c->conn = comch_connection;
	c->mmap = buf_mmap;
	c->imm_max = GD_COMCH_IMM;
	c->ops = gd_conn_lock(c->conn);
	c->id = c->conn->next_id;
	c->conn->next_id += 2;
	if (c->conn->next_id == GD_COMCH_BAD_ID || c->conn->next_id == 0)
		c->conn->next_id += 2;
	gd_conn_unlock(c->conn);
	*consumer = c;
	return DOCA_SUCCESS;
}

doca_error_t doca_comch_consumer_destroy(struct doca_comch_consumer *consumer)
{
	doca_error_t result;

	if (!consumer)
		return DOCA_ERROR_INVALID_VALUE;
	result = gd_ctx_fini(&consumer->ctx, DOCA_ERROR_IN_USE);
	if (result != DOCA_SUCCESS)
		return result;
	if (consumer->msgq)
		gd_msgq_release_consumer(consumer);
	else
		gd_conn_release(consumer->conn);
	free(consumer);
	return DOCA_SUCCESS;
}

struct doca_ctx *doca_comch_consumer_as_ctx(struct doca_comch_consumer *consumer)
{
	return consumer ? &consumer->ctx : NULL;
}

doca_error_t doca_comch_consumer_get_id(const struct doca_comch_consumer *consumer, uint32_t *id)
{
	if (!consumer || !id)
		return DOCA_ERROR_INVALID_VALUE;
	*id = consumer->id;
	return DOCA_SUCCESS;
}

doca_error_t doca_comch_consumer_get_imm_data_len(const struct doca_comch_consumer *consumer,
						  uint32_t *imm_data_len)
{
	if (!consumer || !imm_data_len)
		return DOCA_ERROR_INVALID_VALUE;
	*imm_data_len = consumer->imm_max;
	return DOCA_SUCCESS;
}

doca_error_t doca_comch_consumer_set_imm_data_len(struct doca_comch_consumer *consumer,
						  uint32_t imm_data_len)
{
	doca_error_t result = gd_ctx_configurable(consumer ? &consumer->ctx : NULL,
						  DOCA_ERROR_BAD_STATE);

	if (result == DOCA_SUCCESS && imm_data_len > GD_COMCH_IMM)
		result = DOCA_ERROR_INVALID_VALUE;
	if (result == DOCA_SUCCESS)
		consumer->imm_max = imm_data_len;
	return result;
}

doca_error_t doca_comch_consumer_task_post_recv_set_conf(
	struct doca_comch_consumer *consumer,
	doca_comch_consumer_task_post_recv_completion_cb_t task_completion_cb,
	doca_comch_consumer_task_post_recv_completion_cb_t task_error_cb,
	uint32_t num_post_recv_tasks)
{
	/* a consumer on a DPA has no tasks */
	if (!consumer || consumer->ctx.ops->on_dpa || num_post_recv_tasks > GD_FAST_TASKS)
		return DOCA_ERROR_INVALID_VALUE;
	return gd_pool_conf(&consumer->posts, task_completion_cb, task_error_cb,
			    num_post_recv_tasks, DOCA_ERROR_BAD_STATE);
}

doca_error_t doca_comch_consumer_task_post_recv_alloc_init(
	struct doca_comch_consumer *consumer, struct doca_buf *buf,
	struct doca_comch_consumer_task_post_recv **task)
{
	struct doca_task *t;

	if (!consumer || !task)
		return DOCA_ERROR_INVALID_VALUE;
	t = gd_task_take(&consumer->posts, (union doca_data){.u64 = 0});
	if (!t)
		return DOCA_ERROR_NO_MEMORY;
	*task = gd_recv_of(t);
	(*task)->buf = buf;
	(*task)->producer = (*task)->imm_len = 0;
	(*task)->recv.cookie = (uintptr_t)*task;
	return DOCA_SUCCESS;
}

struct doca_buf *doca_comch_consumer_task_post_recv_get_buf(
	const struct doca_comch_consumer_task_post_recv *task)
{
	return task ? task->buf : NULL;
}

void doca_comch_consumer_task_post_recv_set_buf(struct doca_comch_consumer_task_post_recv *task,
						struct doca_buf *buf)
{
	if (task)
		task->buf = buf;
}

uint32_t doca_comch_consumer_task_post_recv_get_producer_id(
	const struct doca_comch_consumer_task_post_recv *task)
{
	return task ? task->producer : 0;
}

const uint8_t *doca_comch_consumer_task_post_recv_get_imm_data(
	const struct doca_comch_consumer_task_post_recv *task)
{
	return task && task->imm_len ? task->imm : NULL;
}

uint32_t doca_comch_consumer_task_post_recv_get_imm_data_len(
	const struct doca_comch_consumer_task_post_recv *task)
{
	return task ? task->imm_len : 0;
}

struct doca_task *doca_comch_consumer_task_post_recv_as_task(
	struct doca_comch_consumer_task_post_recv *task)
{
	return task ? &task->task : NULL;
}
