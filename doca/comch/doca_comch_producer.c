/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * doca_comch_producer.c - producers: send queues of a connection
 *
 * A producer has a target for each consumer that it sends to: a queue of the transport, created by
 * the first task for that consumer. Data of up to max_inline bytes is copied into the queue, and
 * its task completes immediately. The peer reads longer data from the exported map, and the task
 * completes when the peer has read it. Tasks of a target complete in order.
 *
 * A producer counts no credits. It reads the posted lengths of the consumer
 * (comch_buffer_lengths.c) at each submit with data, and returns AGAIN if no receive is posted.
 */
#include <doca_comch_producer.h>

#include <stdlib.h>
#include <string.h>

#include <gantry/shm.h>

#include "base/container_of.h"
#include "base/pause.h"
#include "buf/buf.h"
#include "comch/comch_fast.h"

#define PAUSES 4 /* calls of gn_pause(): about 100 ns */
/* bytes; longer inline data would fill the queue before all posted receives are used */
#define INLINE_MAX 512u

/* -- targets -- */

static void complete_first(struct doca_comch_producer *p, struct gd_target *target,
			   doca_error_t result)
{
	struct doca_task *task = target->first;

	target->first = task->next;
	if (!target->first)
		target->last = &target->first;
	if (gd_send_of(task)->hold) {
		gd_send_of(task)->hold->n_inflight--;
		p->n_inflight--;
	}
	gd_task_done(task, result);
}

/*
 * Lock held. Destroy a target, then fail its tasks in flight with `why`. After the queue is
 * destroyed the peer delivers no data that it has not yet read, so the program can change the data.
 */
static void drop_target(struct doca_comch_producer *p, struct gd_target **link, doca_error_t why)
{
	struct gd_target *target = *link;

	*link = target->next;
	p->ops->producer_destroy(target->queue);
	while (target->first)
		complete_first(p, target, why);
	gd_remote_put(target->remote);
	free(target);
}

/* Lock held. Destroy idle targets whose consumer has ended. */
static void drop_gone(struct doca_comch_producer *p)
{
	struct gd_target **link = &p->target;

	while (*link) {
		if (!(*link)->first && __atomic_load_n(&(*link)->remote->gone, __ATOMIC_ACQUIRE))
			drop_target(p, link, DOCA_ERROR_NOT_CONNECTED); /* no task is in flight */
		else
			link = &(*link)->next;
	}
}

static doca_error_t open_target(struct doca_comch_producer *p, uint32_t id,
				struct gd_remote *remote)
{
	struct gantry_queue_attr attr = {
		.depth = gd_fast_depth(p->conn->transport, p->sends.n),
		.max_data = GD_COMCH_BUF_SIZE,
		.lane = p->conn->next_lane,
	};
	struct gd_target *target = calloc(1, sizeof(*target));
	int rc;

	if (!target)
		return DOCA_ERROR_NO_MEMORY;
	*target = (struct gd_target){
		.next = p->target, .remote = remote, .id = id, .imm_max = remote->imm_len};
	target->last = &target->first;
	target->credits = gd_recv_credit_of_peer(p->conn, remote->row);
	rc = p->ops->producer_create(p->conn->link, remote->queue, &attr, &target->queue);
	if (rc) {
		free(target);
		return gd_comch_error(rc);
	}
	p->conn->next_lane++;
	p->target = target;
	return DOCA_SUCCESS;
}

static doca_error_t make_target(struct doca_comch_producer *p, uint32_t id)
{
	doca_error_t result = DOCA_ERROR_NOT_CONNECTED;
	struct gd_remote *remote;

	gd_conn_lock(p->conn);
	drop_gone(p);
	if (p->conn->state == GD_CONN_OPEN) {
		remote = gd_remote_find(p->conn, id);
		result = remote ? open_target(p, id, remote) : DOCA_ERROR_NOT_FOUND;
		if (remote && result != DOCA_SUCCESS)
			gd_remote_put(remote);
	}
	gd_conn_unlock(p->conn);
	return result;
}

/* Find or create the target of a consumer, and move it to the front of the list. */
static __attribute__((noinline)) doca_error_t find_target(struct doca_comch_producer *p,
							  uint32_t id)
{
	struct gd_target **link = &p->target, *target;

	while (*link && (*link)->id != id)
		link = &(*link)->next;
	target = *link;
	if (!target)
		return make_target(p, id);
	*link = target->next;
	target->next = p->target;
	p->target = target;
	return DOCA_SUCCESS;
}

/* -- the data path -- */

/* Find the data of a buffer; false: the buffer cannot be sent. */
static inline bool find_data(const struct doca_buf *buf, const struct doca_dev *dev,
			     const void **data_p, uint32_t *length_p)
{
	*data_p = NULL;
	*length_p = 0;
	if (!buf)
		return true;
	if (buf->next || !buf->mmap->started || buf->data_len > GD_COMCH_BUF_SIZE ||
	    !gd_mmap_has_dev(buf->mmap, dev))
		return false;
	*length_p = (uint32_t)buf->data_len;
	if (buf->data_len == 0)
		return true;
	*data_p = gd_buf_host(buf, buf->data, buf->data_len);
	return *data_p != NULL;
}

static doca_error_t check_send(const struct doca_task *task)
{
	const struct doca_comch_producer_task_send *t = gd_send_of(task);
	const void *data;
	uint32_t length;

	return t->imm_len <= GD_COMCH_IMM && find_data(t->buf, task->ctx->dev, &data, &length)
		       ? DOCA_SUCCESS
		       : DOCA_ERROR_INVALID_VALUE;
}

/*
 * Call if the ring does not have the word of post n + 1. If it still has the word of the previous
 * lap, no receive is posted: returns -EAGAIN, or -ENOTCONN after the end of the consumer. Otherwise
 * other producers send to the consumer, too, and the ring has the word of a later post: returns 0.
 */
static __attribute__((noinline)) int check_missing_credit(const struct doca_comch_producer *p,
							  const struct gd_target *target,
							  uint32_t found)
{
	const uint32_t before = target->n_sent < GD_FAST_POSTS
					? 0
					: (uint32_t)target->n_sent + 1 - GD_FAST_POSTS;

	if (found != before)
		return 0;
	return gd_fast_is_lost(p->conn) || __atomic_load_n(&target->remote->gone, __ATOMIC_ACQUIRE)
		       ? -ENOTCONN
		       : -EAGAIN;
}

/*
 * Check the length of the receive that the message will use. -EAGAIN: no receive is posted;
 * -EMSGSIZE: the buffer is too short. After n messages, the ring has the word of post n + 1, or
 * that of the previous lap if it is not yet posted. If other producers send to the consumer, the
 * ring can have the word of a later post.
 */
static int check_credit(const struct doca_comch_producer *p, const struct gd_target *target,
			uint32_t length)
{
	uint64_t word;

	if (!target->credits)
		return 0;
	word = gantry_shm_ld64(&target->credits[target->n_sent % GD_FAST_POSTS]);
	if (doca_unlikely((uint32_t)(word >> 32) != (uint32_t)target->n_sent + 1))
		return check_missing_credit(p, target, (uint32_t)(word >> 32));
	return length > (uint32_t)word ? -EMSGSIZE : 0;
}

/* Accept the task and complete it with an error. */
static doca_error_t fail_task(struct doca_task *task, doca_error_t why)
{
	gd_task_done(task, why);
	return DOCA_SUCCESS;
}

/* Add a task in flight. h: NULL if the task waits only for earlier tasks. */
static void append(struct gd_target *target, struct doca_comch_producer_task_send *t,
		   struct gd_hold *h)
{
	t->hold = h;
	t->task.next = NULL;
	*target->last = &t->task;
	target->last = &t->task.next;
}

/*
 * Send data that the peer reads from the exported map. NOT_SUPPORTED: the map cannot be exported,
 * but the data fits into the queue.
 */
static __attribute__((noinline)) doca_error_t send_shared(struct doca_comch_producer *p,
							  struct doca_comch_producer_task_send *t)
{
	struct gantry_send send = p->send;
	struct gd_target *target = p->target;
	struct gd_hold *h;
	doca_error_t result = gd_hold_map(p, t->buf->mmap, &h);
	int rc;

	if (result == DOCA_ERROR_AGAIN || result == DOCA_ERROR_NOT_CONNECTED)
		return result;
	if (result != DOCA_SUCCESS)
		return send.length <= p->max_copied ? DOCA_ERROR_NOT_SUPPORTED
						    : fail_task(&t->task, result);
	send.region = &h->shared->region;
	send.region_offset = (uint64_t)((const char *)send.data - (const char *)send.region->addr);
	send.data = NULL;
	send.cookie = (uintptr_t)t;
	rc = p->ops->data->send(target->queue, &send, 0);
	if (rc == -EMSGSIZE || rc == -EINVAL)
		return fail_task(&t->task, DOCA_ERROR_INVALID_VALUE);
	if (rc)
		return gd_comch_error(rc);
	target->n_sent++;
	append(target, t, h);
	h->n_inflight++;
	p->n_inflight++;
	return DOCA_SUCCESS;
}

/*
 * Pause before AGAIN is returned, because the program submits again immediately. Each read of the
 * posted lengths takes the cache line from the peer. The pause gives the peer time for several
 * posts.
 */
static void pause_for_peer(void)
{
	for (int i = 0; i < PAUSES; i++)
		gn_pause();
}

static __attribute__((noinline)) doca_error_t not_sent(struct doca_task *task, int rc)
{
	if (rc == -EAGAIN)
		pause_for_peer();
	return rc == -EMSGSIZE ? fail_task(task, DOCA_ERROR_INVALID_VALUE) : gd_comch_error(rc);
}

/*
 * If this message answers a received one, record the producer at that consumer, which then
 * prefetches for the next answer.
 */
static inline void note_answer(struct doca_comch_producer *p)
{
	struct doca_ctx *receiver = p->ctx.pe->last_receiver;

	if (!receiver)
		return;
	gd_consumer_of(receiver)->answers = p;
	p->ctx.pe->last_receiver = NULL;
}

static doca_error_t submit_send(struct doca_task *task)
{
	struct doca_comch_producer_task_send *t = gd_send_of(task);
	struct doca_comch_producer *p = gd_producer_of(task->ctx);
	const uint32_t at = gd_fast_tail(t->imm_len);
	struct gantry_send *send = &p->send;
	struct gd_target *target = p->target;
	doca_error_t result;
	uint32_t length, tail = 0;
	const void *data;
	int rc;

	if (doca_unlikely(!target || target->id != t->consumer)) {
		result = find_target(p, t->consumer);
		if (result != DOCA_SUCCESS)
			return result == DOCA_ERROR_NOT_FOUND ? fail_task(task, result) : result;
		target = p->target;
	}
	if (doca_unlikely(!find_data(t->buf, task->ctx->dev, &data, &length) ||
			  t->imm_len > target->imm_max))
		return fail_task(task, DOCA_ERROR_INVALID_VALUE);
	rc = length ? check_credit(p, target, length) : 0;
	if (doca_unlikely(rc != 0))
		return not_sent(task, rc);
	if (t->imm_len)
		gantry_copy_fresh(p->imm.bytes, t->imm, t->imm_len);
	if (length <= GD_FAST_BYTES - at) { /* all data fits behind the immediate data */
		tail = length;
		gd_fast_copy(p->imm.bytes + at, data, tail);
		send->imm_len = sizeof(p->imm);
	} else {
		send->imm_len = (uint32_t)sizeof(p->imm.head) + at;
		send->data = data;
	}
	send->length = length - tail;
	p->imm.head = gd_fast_head(p->id, t->imm_len, tail);
	if (doca_unlikely(send->length > p->max_inline)) {
		result = send_shared(p, t);
		if (result != DOCA_ERROR_NOT_SUPPORTED)
			return result;
	}
	rc = p->ops->data->send(target->queue, send, 0);
	if (doca_unlikely(rc != 0))
		return not_sent(task, rc);
	note_answer(p);
	target->n_sent++;
	if (doca_unlikely(target->first != NULL))
		append(target, t, NULL);
	else
		gd_task_done_own(task, DOCA_SUCCESS);
	return DOCA_SUCCESS;
}

static const struct gd_task_ops send_ops = {.check = check_send, .submit = submit_send};

/*
 * The peer has read the data of this task: complete the tasks up to this one, and the following
 * tasks that waited only for earlier tasks.
 */
static void complete_through(struct doca_comch_producer *p, struct gd_target *target,
			     const struct doca_comch_producer_task_send *t)
{
	bool is_through = false;

	while (target->first && (!is_through || !gd_send_of(target->first)->hold)) {
		is_through = is_through || gd_send_of(target->first) == t;
		complete_first(p, target, DOCA_SUCCESS);
	}
}

/*
 * Complete the tasks whose data has been read. If the consumer has ended, fail the other tasks,
 * because the consumer reads no more data. Returns the number of tasks.
 */
static uint32_t reap(struct doca_comch_producer *p, struct gd_target *target)
{
	const bool is_gone = __atomic_load_n(&target->remote->gone, __ATOMIC_ACQUIRE);
	uint64_t cookies[GD_FAST_BATCH];
	uint32_t all = 0;
	int n;

	do {
		n = p->ops->data->poll_send(target->queue, cookies, GD_FAST_BATCH);
		for (int i = 0; i < n; i++, all++)
			complete_through(p, target, (void *)(uintptr_t)cookies[i]);
	} while (n == GD_FAST_BATCH);
	for (; is_gone && !gd_fast_is_lost(p->conn) && target->first; all++)
		complete_first(p, target, DOCA_ERROR_NOT_CONNECTED);
	return all;
}

/*
 * The connection has ended. The peer can still run and read data, so destroy the queues before the
 * tasks fail. Returns whether tasks were in flight.
 */
static __attribute__((noinline)) bool end_lost(struct doca_comch_producer *p)
{
	struct gd_target **link = &p->target;

	if (p->n_inflight == 0)
		return false;
	gd_conn_lock(p->conn);
	while (*link)
		if ((*link)->first)
			drop_target(p, link, DOCA_ERROR_CONNECTION_RESET);
		else
			link = &(*link)->next;
	gd_conn_unlock(p->conn);
	return true;
}

static int poll_producer(struct doca_ctx *ctx)
{
	struct doca_comch_producer *p = gd_producer_of(ctx);
	bool is_lost;
	uint32_t n = 0;

	if (p->n_held == 0) /* no hold, so no task is in flight */
		return 0;
	if (doca_unlikely(__atomic_load_n(&p->conn->crowded, __ATOMIC_RELAXED)))
		gd_hold_free_slots(p);
	if (p->n_inflight == 0)
		return 0;
	/* read before the polls: sends whose data was read before the end complete normally */
	is_lost = gd_fast_is_lost(p->conn);
	for (struct gd_target *target = p->target; target; target = target->next)
		if (target->first)
			n += reap(p, target);
	if (doca_unlikely(is_lost))
		n += end_lost(p);
	return n > 0;
}

/* No event reports that the peer has read data, so the engine must keep polling. */
static int sleep_until_event(struct doca_ctx *ctx, struct pollfd *fds, int max)
{
	(void)fds;
	(void)max;
	return gd_producer_of(ctx)->n_inflight ? -1 : 0;
}

/* -- states -- */

static doca_error_t start_producer(struct doca_ctx *ctx)
{
	struct doca_comch_producer *p = gd_producer_of(ctx);
	struct gantry_device_info info;
	doca_error_t result;

	if (!p->sends.is_set) {
		gd_log(DOCA_LOG_LEVEL_ERROR,
		       "Comch producer cannot start: no send tasks: call doca_comch_producer_task_send_set_conf() before start");
		return DOCA_ERROR_INVALID_VALUE;
	}
	gd_transport_info(p->conn->transport, &info);
	p->max_copied = info.max_inline;
	p->max_inline = info.max_inline < INLINE_MAX ? info.max_inline : INLINE_MAX;
	gd_conn_lock(p->conn);
	result = gd_active_check(p->conn, "producer");
	if (result == DOCA_SUCCESS)
		gd_active_add(p->conn, &p->active, ctx);
	gd_conn_unlock(p->conn);
	return result;
}

static doca_error_t stop_producer(struct doca_ctx *ctx)
{
	struct doca_comch_producer *p = gd_producer_of(ctx);

	gd_consumers_forget(p);
	for (struct gd_target *target = p->target; target; target = target->next)
		reap(p, target);
	gd_conn_lock(p->conn);
	while (p->target)
		drop_target(p, &p->target, DOCA_ERROR_SHUTDOWN);
	gd_hold_release_idle(p); /* releases all holds: no task is in flight */
	gd_active_remove(p->conn, &p->active);
	gd_conn_unlock(p->conn);
	return DOCA_SUCCESS;
}

static void idle(struct doca_ctx *ctx)
{
	gd_active_idle(gd_producer_of(ctx)->conn);
}

static const struct gd_ctx_ops producer_ops = {
	.name = "Comch producer",
	.start = start_producer,
	.stop = stop_producer,
	.idle = idle,
	.poll = poll_producer,
	.sleep_until_event = sleep_until_event,
	.is_silent = true,
};

/* -- public -- */

doca_error_t doca_comch_producer_create(struct doca_comch_connection *comch_connection,
					struct doca_comch_producer **producer)
{
	struct doca_comch_producer *p;
	doca_error_t result;

	if (!comch_connection || !producer)
		return DOCA_ERROR_INVALID_VALUE;
	p = calloc(1, sizeof(*p));
	if (!p)
		return DOCA_ERROR_NO_MEMORY;
	result = gd_conn_hold(comch_connection);
	if (result != DOCA_SUCCESS) {
		free(p);
		return result;
	}
	gd_ctx_init(&p->ctx, &producer_ops, comch_connection->end->ctx.dev);
	gd_pool_init(&p->sends, &p->ctx, &send_ops, sizeof(struct doca_comch_producer_task_send));
	p->conn = comch_connection;
	p->send.imm = &p->imm;
	p->ops = gd_conn_lock(p->conn);
	p->id = p->conn->next_producer++;
	if (p->conn->next_producer > UINT16_MAX) /* the head of a message has 16 bits for the id */
		p->conn->next_producer = 1;
	gd_conn_unlock(p->conn);
	*producer = p;
	return DOCA_SUCCESS;
}

doca_error_t doca_comch_producer_destroy(struct doca_comch_producer *producer)
{
	doca_error_t result;

	if (!producer)
		return DOCA_ERROR_INVALID_VALUE;
	result = gd_ctx_fini(&producer->ctx, DOCA_ERROR_IN_USE);
	if (result != DOCA_SUCCESS)
		return result;
	if (producer->msgq)
		gd_msgq_release_producer(producer);
	else
		gd_conn_release(producer->conn);
	free(producer);
	return DOCA_SUCCESS;
}

struct doca_ctx *doca_comch_producer_as_ctx(struct doca_comch_producer *producer)
{
	return producer ? &producer->ctx : NULL;
}

doca_error_t doca_comch_producer_get_id(const struct doca_comch_producer *producer, uint32_t *id)
{
	if (!producer || !id)
		return DOCA_ERROR_INVALID_VALUE;
	*id = producer->id;
	return DOCA_SUCCESS;
}

doca_error_t doca_comch_producer_task_send_set_conf(
	struct doca_comch_producer *producer,
	doca_comch_producer_task_send_completion_cb_t task_completion_cb,
	doca_comch_producer_task_send_completion_cb_t task_error_cb, uint32_t num_send_tasks)
{
	/* a producer on a DPA has no tasks */
	if (!producer || producer->ctx.ops->on_dpa || num_send_tasks > GD_FAST_TASKS)
		return DOCA_ERROR_INVALID_VALUE;
	return gd_pool_conf(&producer->sends, task_completion_cb, task_error_cb, num_send_tasks,
			    DOCA_ERROR_BAD_STATE);
}

/*
 * Store the immediate data. Data above the limit is truncated here, and the task fails when it is
 * submitted.
 */
static void set_imm(struct doca_comch_producer_task_send *t, const uint8_t *imm_data,
		    uint32_t imm_data_len)
{
	uint32_t n = imm_data_len < GD_COMCH_IMM ? imm_data_len : GD_COMCH_IMM;

	t->imm_len = imm_data_len;
	if (n && imm_data)
		memcpy(t->imm, imm_data, n);
}

doca_error_t doca_comch_producer_task_send_alloc_init(struct doca_comch_producer *producer,
						      const struct doca_buf *buf, uint8_t *imm_data,
						      uint32_t imm_data_len, uint32_t consumer_id,
						      struct doca_comch_producer_task_send **task)
{
	struct doca_comch_producer_task_send *t;
	struct doca_task *taken;

	if (!producer || !task || (imm_data_len && !imm_data) || imm_data_len > GD_COMCH_IMM)
		return DOCA_ERROR_INVALID_VALUE;
	taken = gd_task_take(&producer->sends, (union doca_data){.u64 = 0});
	if (!taken)
		return DOCA_ERROR_NO_MEMORY;
	t = gd_send_of(taken);
	t->buf = buf;
	t->consumer = consumer_id;
	set_imm(t, imm_data, imm_data_len);
	*task = t;
	return DOCA_SUCCESS;
}

const struct doca_buf *doca_comch_producer_task_send_get_buf(
	const struct doca_comch_producer_task_send *task)
{
	return task ? task->buf : NULL;
}

void doca_comch_producer_task_send_set_buf(struct doca_comch_producer_task_send *task,
					   const struct doca_buf *buf)
{
	if (task)
		task->buf = buf;
}

uint32_t doca_comch_producer_task_send_get_consumer_id(
	const struct doca_comch_producer_task_send *task)
{
	return task ? task->consumer : 0;
}

void doca_comch_producer_task_send_set_consumer_id(struct doca_comch_producer_task_send *task,
						   const uint32_t consumer_id)
{
	if (task)
		task->consumer = consumer_id;
}

uint8_t *doca_comch_producer_task_send_get_imm_data(
	const struct doca_comch_producer_task_send *task)
{
	return task && task->imm_len ? (uint8_t *)(uintptr_t)task->imm : NULL;
}

uint32_t doca_comch_producer_task_send_get_imm_data_len(
	const struct doca_comch_producer_task_send *task)
{
	return task ? task->imm_len : 0;
}

void doca_comch_producer_task_send_set_imm_data(struct doca_comch_producer_task_send *task,
						uint8_t *imm_data, uint32_t imm_data_len)
{
	if (task)
		set_imm(task, imm_data, imm_data ? imm_data_len : 0);
}

struct doca_task *doca_comch_producer_task_send_as_task(struct doca_comch_producer_task_send *task)
{
	return task ? &task->task : NULL;
}
