/* SPDX-License-Identifier: BSD-3-Clause */
/* rdma_flow.c - sends and receives of messages, and the order of tasks; engine thread only */
#include <errno.h>
#include <poll.h>
#include <string.h>

#include "buf/buf.h"
#include "common/gd_log.h"
#include "device/service_thread.h"
#include "rdma/rdma.h"

#define PARTS_PER_TURN 256 /* maximum parts of incoming messages in one poll */

static uint32_t depth(const struct doca_rdma *rdma)
{
	return rdma->limits.max_depth < GD_RDMA_DEPTH ? rdma->limits.max_depth : GD_RDMA_DEPTH;
}

/* -- receives -- */

/*
 * Post as many gantry receives as there are receive tasks. With several connections, more messages
 * than tasks can arrive; they wait in the queues. While a message is incomplete, receives for its
 * parts are always posted.
 */
static void post_receives(struct doca_rdma_connection *conn)
{
	const struct gd_rdma_link *link = conn->link;
	const uint32_t most = depth(conn->rdma);
	uint32_t wanted = conn->left || conn->rdma->n_receives > most ? most
								      : conn->rdma->n_receives;
	struct gantry_recv recvs[GD_RDMA_DEPTH];
	uint32_t n = 0;

	for (; conn->posted + n < wanted; n++) {
		const uint32_t at = (uint32_t)__builtin_ctzll(conn->free_bounces);

		conn->free_bounces &= ~(1ull << at);
		recvs[n] =
			(struct gantry_recv){.buf = link->bounce + (size_t)at * link->bounce_bytes,
					     .length = link->bounce_bytes,
					     .cookie = at};
	}
	if (n == 0)
		return;
	conn->posted += n;
	conn->rdma->ops->data->post_recv(link->consumer, recvs, n);
}

void gd_rdma_submit_receive(struct doca_rdma *rdma, struct gd_rdma_task *task)
{
	STAILQ_INSERT_TAIL(&rdma->receives, task, link);
	rdma->n_receives++;
	for (struct doca_rdma_connection *conn = rdma->live; conn; conn = conn->next_live)
		post_receives(conn);
}

static void protocol_error(struct doca_rdma_connection *conn)
{
	gd_log(DOCA_LOG_LEVEL_ERROR,
	       "RDMA connection closed: protocol error: invalid message of the peer");
	gd_rdma_conn_over(conn, DOCA_ERROR_CONNECTION_RESET, true);
}

/* Remove the oldest receive task from its list. Returns NULL if there is none. */
static struct gd_rdma_task *take_receive(struct doca_rdma *rdma)
{
	struct gd_rdma_task *task = STAILQ_FIRST(&rdma->receives);

	if (!task)
		return NULL;
	STAILQ_REMOVE_HEAD(&rdma->receives, link);
	rdma->n_receives--;
	return task;
}

/* Handle the first part of a message: assign a receive task. */
static void begin(struct doca_rdma_connection *conn, const struct gd_rdma_head *head)
{
	struct gd_rdma_task *task = take_receive(conn->rdma);

	conn->receiving = task;
	conn->left = head->kind == DOCA_RDMA_OPCODE_RECV_WRITE_WITH_IMM ? 0 : head->length;
	task->conn = conn;
	task->opcode = head->kind;
	task->imm = head->imm;
	task->result_len = head->length;
	if (conn->left > (task->dst ? gd_buf_room(task->dst) : 0)) {
		gd_log(DOCA_LOG_LEVEL_ERROR,
		       "RDMA receive task: the message exceeds the buffer (bytes=%u): use larger buffers",
		       head->length);
		task->error = DOCA_ERROR_IO_FAILED;
	}
}

static void append(struct gd_rdma_task *task, const void *data, uint32_t length)
{
	if (task && length && task->error == DOCA_SUCCESS)
		task->error = gd_buf_append(task->dst, data, length);
}

/*
 * Handle one part of a message. Returns 1 if a task has completed, 0 if not, -1 if the peer
 * violates the protocol.
 */
static int take(struct doca_rdma_connection *conn, const struct gantry_msg *msg)
{
	const uint32_t part = msg->imm_len - (uint32_t)sizeof(struct gd_rdma_head),
		       bytes = part + msg->length;
	struct gd_rdma_task *task;
	struct gd_rdma_head head;

	if (msg->imm_len < sizeof(head) || msg->status != 0)
		return -1;
	memcpy(&head, msg->imm, sizeof(head));
	if (head.kind > DOCA_RDMA_OPCODE_RECV_WRITE_WITH_IMM || head.length > GD_RDMA_MAX_MESSAGE ||
	    (head.first != 0) != (conn->left == 0) || (!head.first && bytes == 0))
		return -1;
	if (head.first)
		begin(conn, &head);
	if (bytes > conn->left)
		return -1;
	task = conn->receiving;
	append(task, msg->imm + sizeof(head), part);
	append(task, conn->link->bounce + msg->cookie * conn->link->bounce_bytes, msg->length);
	conn->left -= bytes;
	if (conn->left || !task)
		return 0;
	conn->receiving = NULL;
	gd_task_done_or_fail(&task->task, task->error);
	return 1;
}

static int receive(struct doca_rdma_connection *conn)
{
	struct gantry_msg msg;
	int ended = 0;

	for (int i = 0; i < PARTS_PER_TURN && !ended; i++) {
		if (!conn->left && !conn->rdma->n_receives)
			return 0;
		if (conn->rdma->ops->poll_recv(conn->link->consumer, &msg, 1) <= 0)
			return 0;
		conn->posted--;
		conn->free_bounces |= 1ull << msg.cookie;
		ended = take(conn, &msg);
		if (ended < 0) {
			protocol_error(conn);
			return 1;
		}
		post_receives(conn);
	}
	return ended;
}

void gd_rdma_flush_receives(struct doca_rdma *rdma, doca_error_t status)
{
	struct gd_rdma_task *task;

	while ((task = take_receive(rdma)))
		gd_task_done(&task->task, status);
}

/* -- sends -- */

/* Returns n contiguous bytes of data; NULL: the buffer is invalid. */
static const char *part_of(const struct doca_rdma *rdma, const struct doca_buf *src, size_t offset,
			   size_t n)
{
	if (!src->next)
		return gd_buf_host(src, (const char *)src->data + offset, n);
	return gd_buf_read(src, offset, rdma->scratch, n) == DOCA_SUCCESS ? rdma->scratch : NULL;
}

static int send_part(struct doca_rdma_connection *conn, const struct gd_rdma_head *head,
		     const char *data, size_t n)
{
	const size_t part = n < GD_RDMA_PART ? n : GD_RDMA_PART;
	struct gantry_send send = {.imm_len = (uint32_t)(sizeof(*head) + part)};
	uint8_t imm[GANTRY_IMM_MAX];

	memcpy(imm, head, sizeof(*head));
	if (part)
		memcpy(imm + sizeof(*head), data, part);
	send.imm = imm;
	if (n > part) {
		send.data = data + part;
		send.length = (uint32_t)(n - part);
	}
	return conn->rdma->ops->data->send(conn->link->producer, &send, 0);
}

static enum gd_rdma_step fail(struct gd_rdma_task *task, doca_error_t why)
{
	task->error = why;
	return GD_RDMA_DONE;
}

/*
 * Send as much of a message as the queue accepts. `carries`: the message contains the data of the
 * source.
 */
static enum gd_rdma_step send_message(struct doca_rdma_connection *conn, struct gd_rdma_task *task,
				      enum doca_rdma_opcode opcode, bool carries)
{
	struct gd_rdma_head head = {
		.kind = opcode, .imm = task->imm, .length = (uint32_t)task->length};
	const size_t most = GD_RDMA_PART + conn->link->max_inline;
	const size_t end = carries ? task->length : task->done;

	do {
		const size_t n = end - task->done < most ? end - task->done : most;
		const char *data = n ? part_of(conn->rdma, task->src, task->done, n) : NULL;
		int rc;

		if (n && !data)
			return fail(task, DOCA_ERROR_INVALID_VALUE);
		head.first = !carries || task->done == 0;
		rc = send_part(conn, &head, data, n);
		/* after -ENOTCONN, the end of the connection completes its tasks */
		if (rc == -EAGAIN || rc == -ENOTCONN)
			return GD_RDMA_WAIT;
		if (rc)
			return fail(task, DOCA_ERROR_IO_FAILED);
		task->done += n;
	} while (task->done < end);
	return GD_RDMA_DONE;
}

static enum gd_rdma_step run_send(struct doca_rdma_connection *conn, struct gd_rdma_task *task)
{
	/* earlier writes must be complete when the message arrives */
	if (conn->n_writes && !(conn->rdma->limits.caps & GANTRY_CAP_ORDERED))
		return GD_RDMA_WAIT;
	if (task->done == 0)
		task->length = task->src ? gd_buf_data_bytes(task->src) : 0;
	if (task->length > GD_RDMA_MAX_MESSAGE)
		return fail(task, DOCA_ERROR_INVALID_VALUE);
	return send_message(conn, task,
			    task->kind == GD_RDMA_SEND ? DOCA_RDMA_OPCODE_RECV_SEND
						       : DOCA_RDMA_OPCODE_RECV_SEND_WITH_IMM,
			    true);
}

static enum gd_rdma_step run_write_imm(struct doca_rdma_connection *conn, struct gd_rdma_task *task)
{
	if (!task->accessed) {
		const enum gd_rdma_step step = gd_rdma_access(conn, task);

		if (step == GD_RDMA_OUT || (step == GD_RDMA_DONE && task->pieces))
			return GD_RDMA_WAIT;
		if (step == GD_RDMA_WAIT || task->error != DOCA_SUCCESS)
			return step;
		task->accessed = true;
	}
	if (conn->n_writes && !(conn->rdma->limits.caps & GANTRY_CAP_ORDERED))
		return GD_RDMA_WAIT;
	return send_message(conn, task, DOCA_RDMA_OPCODE_RECV_WRITE_WITH_IMM, false);
}

static enum gd_rdma_step run(struct doca_rdma_connection *conn, struct gd_rdma_task *task)
{
	if (!gd_rdma_is_on_device(&task->task))
		return fail(task, DOCA_ERROR_INVALID_VALUE);
	switch (task->kind) {
	case GD_RDMA_SEND:
	case GD_RDMA_SEND_IMM:
		return run_send(conn, task);
	case GD_RDMA_WRITE_IMM:
		return run_write_imm(conn, task);
	default:
		return gd_rdma_access(conn, task);
	}
}

static bool is_write(const struct gd_rdma_task *task)
{
	return task->kind == GD_RDMA_WRITE || task->kind == GD_RDMA_EVENT_SET;
}

/*
 * Add a task to conn->flying: it waits for the device, or for earlier tasks in conn->flying,
 * because tasks of a connection complete in order.
 */
static void fly(struct doca_rdma_connection *conn, struct gd_rdma_task *task)
{
	STAILQ_INSERT_TAIL(&conn->flying, task, link);
	task->is_flying = true;
	conn->n_writes += is_write(task);
}

/* Run the tasks of a connection in order until one must wait. Returns 1 if a task completed. */
static int push(struct doca_rdma_connection *conn)
{
	struct gd_rdma_task *task;
	bool is_out = false;
	int ended = 0;

	while ((task = STAILQ_FIRST(&conn->sends))) {
		const enum gd_rdma_step step = run(conn, task);

		if (step == GD_RDMA_WAIT)
			break;
		STAILQ_REMOVE_HEAD(&conn->sends, link);
		is_out |= step == GD_RDMA_OUT;
		if (step == GD_RDMA_OUT || !STAILQ_EMPTY(&conn->flying)) {
			fly(conn, task);
			continue;
		}
		gd_task_done_or_fail(&task->task, task->error);
		ended = 1;
	}
	if (is_out || (task && task->pieces))
		conn->rdma->ops->rma_flush(conn->link->rma);
	return ended;
}

/* Complete tasks of the device. Returns 1 if a task has completed. */
static int collect(struct doca_rdma_connection *conn)
{
	struct gd_rdma_task *task;
	int ended = 0;

	while (gd_rdma_device_poll(conn))
		;
	while ((task = STAILQ_FIRST(&conn->flying)) && task->pieces == 0) {
		STAILQ_REMOVE_HEAD(&conn->flying, link);
		conn->n_writes -= is_write(task);
		gd_task_done_or_fail(&task->task, task->error);
		ended = 1;
	}
	return ended;
}

void gd_rdma_submit(struct doca_rdma_connection *conn, struct gd_rdma_task *task)
{
	const bool is_first = STAILQ_EMPTY(&conn->sends);

	STAILQ_INSERT_TAIL(&conn->sends, task, link);
	if (is_first && conn->state == GD_RDMA_UP)
		push(conn);
}

static void end(struct gd_rdma_task *task, doca_error_t status, bool fails)
{
	if (fails)
		gd_task_done_or_fail(&task->task, status);
	else
		gd_task_done(&task->task, status);
}

void gd_rdma_flush(struct doca_rdma_connection *conn, doca_error_t status, bool fails)
{
	struct gd_rdma_tasks *const lists[] = {&conn->flying, &conn->sends};
	struct gd_rdma_task *task;

	for (int i = 0; i < 2; i++)
		while ((task = STAILQ_FIRST(lists[i]))) {
			STAILQ_REMOVE_HEAD(lists[i], link);
			end(task, status, fails);
		}
	if (conn->receiving)
		end(conn->receiving, status, fails);
	conn->receiving = NULL;
	conn->left = 0;
	conn->n_writes = 0;
}

/* -- polling -- */

void gd_rdma_flow_up(struct doca_rdma_connection *conn)
{
	struct doca_rdma *rdma = conn->rdma;
	const uint32_t n = depth(rdma);

	conn->free_bounces = n == 64 ? ~0ull : (1ull << n) - 1;
	conn->next_live = rdma->live;
	rdma->live = conn;
	post_receives(conn);
	push(conn);
}

void gd_rdma_flow_down(struct doca_rdma_connection *conn)
{
	struct doca_rdma_connection **at = &conn->rdma->live;

	gd_rdma_unarm(conn);
	while (*at && *at != conn)
		at = &(*at)->next_live;
	if (*at)
		*at = conn->next_live;
}

/* Move a connection to the end of the list, so that the next poll begins with another one. */
static void rotate(struct doca_rdma *rdma, struct doca_rdma_connection *conn)
{
	struct doca_rdma_connection **at = &rdma->live;

	if (!conn->next_live)
		return;
	while (*at && *at != conn)
		at = &(*at)->next_live;
	if (!*at) /* the connection was removed */
		return;
	*at = conn->next_live;
	while (*at)
		at = &(*at)->next_live;
	*at = conn;
	conn->next_live = NULL;
}

static int turn(struct doca_rdma_connection *conn)
{
	int ended = 0;

	if (conn->armed)
		gd_rdma_unarm(conn);
	if (conn->rdma->by_device)
		ended |= collect(conn);
	if (!STAILQ_EMPTY(&conn->sends))
		ended |= push(conn);
	if (conn->left || conn->rdma->n_receives)
		ended |= receive(conn);
	/* all earlier messages are read */
	if (!ended && conn->lost && conn->state == GD_RDMA_UP)
		gd_rdma_conn_over(conn, DOCA_ERROR_CONNECTION_RESET, true);
	return ended;
}

int gd_rdma_poll(struct doca_ctx *ctx)
{
	struct doca_rdma *rdma = gd_rdma_of(ctx);
	struct doca_rdma_connection *next;

	for (struct doca_rdma_connection *conn = rdma->live; conn; conn = next) {
		next = conn->next_live;
		if (turn(conn)) {
			rotate(rdma, conn);
			return 1;
		}
	}
	return 0;
}

/* -- sleep -- */

/* Service thread. The consumer has signalled its fd: post the event `bell`. */
static void on_consumer_fd(void *arg)
{
	struct doca_rdma_connection *conn = arg;

	gd_service_remove_fd(conn->rdma->ops->consumer_fd(conn->link->consumer));
	gd_pe_post(conn->rdma->ctx.pe, &conn->bell);
}

void gd_rdma_unarm(struct doca_rdma_connection *conn)
{
	if (!conn->armed)
		return;
	conn->armed = false;
	gd_service_remove_fd(conn->rdma->ops->consumer_fd(conn->link->consumer));
	gd_pe_withdraw(conn->rdma->ctx.pe, &conn->bell);
	conn->rdma->ops->consumer_disarm(conn->link->consumer);
}

static int arm(struct doca_rdma_connection *conn)
{
	const struct gantry_transport_ops *ops = conn->rdma->ops;

	if (!STAILQ_EMPTY(&conn->sends) || !STAILQ_EMPTY(&conn->flying) || conn->lost)
		return 1;
	if (conn->armed)
		return 0;
	if (ops->consumer_arm(conn->link->consumer)) {
		ops->consumer_disarm(conn->link->consumer);
		return 1;
	}
	conn->armed = true;
	return gd_service_add_fd(ops->consumer_fd(conn->link->consumer), on_consumer_fd, conn) !=
	       DOCA_SUCCESS;
}

int gd_rdma_arm(struct doca_ctx *ctx)
{
	int busy = 0;

	for (struct doca_rdma_connection *conn = gd_rdma_of(ctx)->live; conn;
	     conn = conn->next_live)
		busy |= arm(conn);
	return busy;
}

int gd_rdma_sleep_until_event(struct doca_ctx *ctx, struct pollfd *fds, int max)
{
	const struct gantry_transport_ops *ops = gd_rdma_of(ctx)->ops;
	int n = 0;

	for (struct doca_rdma_connection *conn = gd_rdma_of(ctx)->live; conn;
	     conn = conn->next_live) {
		void *consumer = conn->link->consumer;

		if (n == max || !STAILQ_EMPTY(&conn->sends) || !STAILQ_EMPTY(&conn->flying) ||
		    conn->lost || conn->armed || ops->consumer_arm(consumer))
			return -1;
		fds[n++] = (struct pollfd){.fd = ops->consumer_fd(consumer), .events = POLLIN};
	}
	return n;
}

void gd_rdma_rouse(struct doca_ctx *ctx)
{
	for (struct doca_rdma_connection *conn = gd_rdma_of(ctx)->live; conn;
	     conn = conn->next_live)
		if (!conn->armed)
			conn->rdma->ops->consumer_disarm(conn->link->consumer);
}
