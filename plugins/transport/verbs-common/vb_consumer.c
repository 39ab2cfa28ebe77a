/* SPDX-License-Identifier: BSD-3-Clause */
/* vb_consumer.c - delivers the messages of the pipes of its lane, in their order of arrival. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "verbs.h"

static struct vb_pipe *first_pipe(const struct vb_consumer *c)
{
	return __atomic_load_n(&c->lane->pipes, __ATOMIC_ACQUIRE);
}

/*
 * Allocate and register the buffer for fetched data. The buffer is pinned, so a consumer whose
 * messages carry no data gets none.
 */
static int make_bounce(struct vb_consumer *c)
{
	struct vb_conn *conn = c->lane->conn;
	void *bounce;
	int rc;

	if (c->max_data == 0)
		return 0;
	bounce = mmap(NULL, c->max_data, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		      0);
	if (bounce == MAP_FAILED)
		return -errno;
	c->bounce = bounce;
	madvise(bounce, c->max_data, MADV_DONTFORK);
	rc = vb_mr_create(conn->pd, bounce, c->max_data, 0, 1, &c->bounce_mr);
	if (rc)
		vb_explain_memory(conn->t, "message's data", c->max_data, rc);
	return rc;
}

static void end_fetch(struct vb_consumer *c)
{
	if (c->fetching)
		vb_fetch_end(c->fetching);
	c->fetching = NULL;
	c->fetch = VB_F_NONE;
}

static void free_consumer(struct vb_consumer *c)
{
	end_fetch(c);
	vb_mr_destroy(&c->bounce_mr);
	if (c->bounce)
		munmap(c->bounce, c->max_data);
	free(c->recvs);
	free(c->arrivals);
	free(c);
}

/*
 * Announce a consumer, or its end, to the peer. If that fails, the connection ends, because the
 * peer would have a wrong list of consumers.
 */
static void announce(struct vb_consumer *c, int up)
{
	struct vb_ctrl_consumer body = {.id = c->id,
					.lane = (uint16_t)c->lane->number,
					.up = (uint16_t)up,
					.max_data = c->max_data};
	int rc = vb_control_send(c->lane->conn, VB_CTRL_CONSUMER, &body, sizeof(body));

	if (rc)
		vb_conn_fail(c->lane->conn, rc);
}

int vb_consumer_create(void *arg, const struct gantry_queue_attr *attr, uint32_t *id_p,
		       void **consumer_p)
{
	struct vb_conn *conn = arg;
	struct vb_consumer *c;
	uint32_t size;
	int rc;

	if (!vb_conn_usable(conn))
		return -ENOTCONN;
	if (attr->depth == 0 || attr->depth > conn->t->conf->max_depth)
		return -EINVAL;
	c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	rc = vb_lane_get(conn, attr->lane, &c->lane);
	if (rc)
		goto out_free;
	rc = -EBUSY;
	if (c->lane->consumer)
		goto out_lane;
	c->depth = attr->depth;
	c->max_data = attr->max_data;
	c->prompt = (attr->flags & GANTRY_QUEUE_PROMPT) != 0;
	size = tc_power_of_two(attr->depth);
	c->recv_mask = size - 1;
	c->recvs = calloc(size, sizeof(*c->recvs));
	/* several lanes of the peer can each have the full depth in flight */
	size = tc_power_of_two((uint32_t)conn->t->conf->max_depth * VB_PIPES_PER_CONSUMER);
	c->mask = size - 1;
	c->arrivals = calloc(size, sizeof(*c->arrivals));
	rc = -ENOMEM;
	if (!c->recvs || !c->arrivals)
		goto out_lane;
	rc = make_bounce(c);
	if (rc)
		goto out_lane;
	c->id = ++conn->next_consumer;
	__atomic_store_n(&c->lane->consumer, c, __ATOMIC_RELEASE);
	announce(c, 1);
	*id_p = c->id;
	*consumer_p = c;
	return 0;

out_lane:
	vb_lane_put(c->lane);
out_free:
	free_consumer(c);
	return rc;
}

static const struct vb_msg *message(const struct vb_arrival *a)
{
	return (const void *)(a->pipe->recv_slots + (size_t)a->slot * a->pipe->slot_bytes + a->at);
}

static int is_region(const struct vb_msg *msg)
{
	return (msg->kind & 0xf) == VB_MSG_REGION;
}

static void post_batch(struct vb_batch *batch)
{
	if (batch->n == 0)
		return;
	if (!__atomic_load_n(&batch->pipe->quiet, __ATOMIC_ACQUIRE))
		vb_pipe_repost(batch->pipe, batch->slots, batch->n, batch->messages);
	batch->n = batch->messages = 0;
}

/* Collect slots to be posted again, in batches of one pipe. */
static void add_to_batch(struct vb_batch *batch, const struct vb_arrival *a)
{
	if (!a->ends)
		return; /* not the last message of its slot */
	if (batch->n == VB_POLL || batch->pipe != a->pipe)
		post_batch(batch);
	batch->pipe = a->pipe;
	batch->slots[batch->n++] = a->slot;
	batch->messages += a->ends;
}

/* Drop the messages that have not been polled: the consumer is being destroyed. */
static void drop_arrivals(struct vb_consumer *c)
{
	for (; c->tail != c->head; c->tail++) {
		const struct vb_arrival *a = &c->arrivals[c->tail & c->mask];

		a->pipe->taken += (uint32_t)is_region(message(a));
		add_to_batch(&c->taken, a);
	}
	post_batch(&c->taken);
	for (struct vb_pipe *p = first_pipe(c); p; p = p->next)
		if (p->kind == VB_MESSAGES)
			vb_pipe_send_credit(p, 0, c->depth, VB_CREDIT_IDLE);
}

void vb_consumer_destroy(void *arg)
{
	struct vb_consumer *c = arg;
	struct vb_lane *lane;

	if (!c)
		return;
	lane = c->lane;
	__atomic_store_n(&lane->consumer, NULL, __ATOMIC_RELEASE);
	drop_arrivals(c);
	announce(c, 0);
	/* during a fetch the device writes to the bounce buffer, so the buffer must stay */
	if (c->fetch == VB_F_UNDER_WAY) {
		c->gone = 1;
		c->next = lane->gone;
		lane->gone = c;
	} else {
		free_consumer(c);
	}
	vb_lane_put(lane);
}

void vb_consumers_reap(struct vb_lane *lane)
{
	while (lane->gone) {
		struct vb_consumer *c = lane->gone;

		lane->gone = c->next;
		free_consumer(c);
	}
}

uint32_t vb_consumer_free(const struct vb_consumer *c)
{
	uint32_t posted, waiting;

	if (!c)
		return 0;
	posted = c->recv_head - c->recv_tail;
	waiting = c->head - c->tail;
	return posted > waiting ? posted - waiting : 0;
}

/* Send credit on each message pipe, if `when` justifies it. */
static void send_credit(struct vb_consumer *c, enum vb_credit_when when)
{
	uint32_t n = vb_consumer_free(c);

	c->dirty = 0;
	c->newest = first_pipe(c);
	for (struct vb_pipe *p = first_pipe(c); p; p = p->next)
		if (p->kind == VB_MESSAGES)
			c->dirty |= vb_pipe_send_credit(p, n, c->depth, when);
}

static bool has_unsent_credit(const struct vb_consumer *c)
{
	return c->dirty || c->newest != first_pipe(c);
}

int vb_post_recv(void *arg, uint32_t n)
{
	struct vb_consumer *c = arg;

	if (n > c->depth - (c->recv_head - c->recv_tail))
		return -ENOSPC;
	c->recv_head += n;
	/* the next reply carries the credit; without a reply, the next poll sends it */
	c->dirty = 1;
	if (c->prompt) {
		post_batch(&c->taken);
		/* vb_pipe_send_credit() needs a free request: process completions first */
		vb_lane_poll(c->lane);
		send_credit(c, VB_CREDIT_LAST);
	}
	return 0;
}

int vb_post_recv_data(void *arg, const struct gantry_recv *recvs, uint32_t n)
{
	struct vb_consumer *c = arg;

	if (n > c->depth - (c->recv_head - c->recv_tail))
		return -ENOSPC;
	for (uint32_t i = 0; i < n; i++)
		c->recvs[(c->recv_head + i) & c->recv_mask] = recvs[i];
	return vb_post_recv(c, n);
}

static bool well_formed(const struct vb_consumer *c, const struct vb_pipe *pipe,
			const struct vb_msg *msg, uint32_t bytes)
{
	if (msg->imm_len > GANTRY_IMM_MAX || bytes < offsetof(struct vb_msg, imm) + msg->imm_len ||
	    bytes > pipe->slot_bytes)
		return false;
	if (is_region(msg))
		return bytes == sizeof(*msg) + sizeof(struct vb_msg_region);
	return (msg->kind & 0xf) == VB_MSG_PLAIN && msg->length <= c->max_data &&
	       (msg->length == 0 || bytes == sizeof(*msg) + msg->length);
}

void vb_consumer_arrived(struct vb_consumer *c, const struct vb_arrival *arrival, uint32_t bytes)
{
	c->arrivals[c->head & c->mask] = *arrival;
	c->dirty = 1;
	if (c->head - c->tail > c->mask ||
	    !well_formed(c, arrival->pipe, message(arrival), bytes)) {
		c->broken = 1;
		vb_conn_broken(arrival->pipe->conn, "sends an invalid message");
	} else {
		c->head++;
	}
}

/* -- fetching data of regions -- */

static void fetch(struct vb_consumer *c, struct vb_pipe *pipe, const struct vb_import *im,
		  const struct vb_msg_region *ref)
{
	const struct vb_send send = {.kind = VB_R_FETCH, .wanted = 1, .object = c};
	struct ibv_send_wr *wr = vb_qp_build(&pipe->qp, &send);

	if (!wr)
		return; /* the next poll tries again */
	wr->opcode = IBV_WR_RDMA_READ;
	wr->wr.rdma.remote_addr = im->wire.addr + ref->offset;
	wr->wr.rdma.rkey = im->wire.key;
	wr->sg_list->addr = (uintptr_t)c->bounce;
	wr->sg_list->length = ref->length;
	wr->sg_list->lkey = c->bounce_mr->lkey;
	c->fetch = VB_F_UNDER_WAY;
	vb_pipe_post(pipe);
}

void vb_consumer_fetched(struct vb_consumer *c, int status)
{
	c->fetch = VB_F_THERE;
	c->fetch_status = status;
	if (c->gone)
		end_fetch(c);
}

/*
 * Check whether the data of the first arrival has been fetched; else start to fetch it. Returns 1:
 * the fetch has ended with c->fetch_status; 0: not yet; -EPROTO: the reference is invalid.
 */
static int fetched(struct vb_consumer *c, struct vb_pipe *pipe, const struct vb_msg_region *ref,
		   const struct gantry_recv *recv)
{
	int rc;

	if (c->fetch == VB_F_UNDER_WAY)
		return 0;
	if (c->fetch == VB_F_THERE)
		return 1;
	if (ref->length == 0 || ref->length > c->max_data)
		return -EPROTO;
	if (!recv->buf || ref->length > recv->length) {
		vb_consumer_fetched(c, -EMSGSIZE);
		return 1;
	}
	if (__atomic_load_n(&pipe->quiet, __ATOMIC_ACQUIRE)) {
		vb_consumer_fetched(c, -EFAULT);
		return 1;
	}
	if (!c->fetching) {
		rc = vb_fetch_begin(pipe->conn, ref, &c->fetching);
		if (rc == -EFAULT)
			vb_consumer_fetched(c, -EFAULT);
		if (rc)
			return rc == -EFAULT ? 1 : rc == -EAGAIN ? 0 : -EPROTO;
	}
	fetch(c, pipe, c->fetching, ref);
	return 0;
}

/*
 * Take the first arrival, if its fetch has ended. Returns 1: the message is in *msg; 0 and -EPROTO:
 * as fetched().
 */
static int take_region(struct vb_consumer *c, const struct vb_arrival *a,
		       const struct gantry_recv *recv, struct gantry_msg *msg)
{
	struct vb_msg_region ref;
	int rc;

	memcpy(&ref, message(a) + 1, sizeof(ref));
	rc = fetched(c, a->pipe, &ref, recv);
	if (rc <= 0)
		return rc;
	msg->status = c->fetch_status;
	if (msg->status != 0 && msg->status != -EMSGSIZE)
		msg->status = -EFAULT;
	if (msg->status == 0) {
		memcpy(recv->buf, c->bounce, ref.length);
		msg->length = ref.length;
		gantry_count(c->lane->payload_bytes, ref.length);
	}
	end_fetch(c);
	a->pipe->taken++;
	return 1;
}

static void take_inline(struct vb_consumer *c, const struct vb_msg *from,
			const struct gantry_recv *recv, struct gantry_msg *msg)
{
	if (!recv->buf || from->length > recv->length) {
		msg->status = -EMSGSIZE;
		return;
	}
	memcpy(recv->buf, from + 1, from->length);
	msg->length = from->length;
	gantry_count(c->lane->payload_bytes, from->length);
}

static int take(struct vb_consumer *c, const struct vb_arrival *a, struct gantry_msg *msg)
{
	const struct gantry_recv *recv = &c->recvs[c->recv_tail & c->recv_mask];
	const struct vb_msg *from = message(a);

	memcpy(msg->imm, from->imm, from->imm_len);
	msg->imm_len = from->imm_len;
	msg->status = 0;
	msg->length = 0;
	msg->cookie = recv->cookie;
	if (is_region(from))
		return take_region(c, a, recv, msg);
	if (from->length)
		take_inline(c, from, recv, msg);
	return 1;
}

/*
 * Post the slots of the last poll again, and send credit. The last poll deferred both, so that the
 * caller could send replies first.
 */
static void finish_last_poll(struct vb_consumer *c)
{
	c->busy = 0;
	post_batch(&c->taken);
	send_credit(c, VB_CREDIT_BUSY);
	c->dirty = 1;
}

int vb_poll_recv(void *arg, struct gantry_msg *msgs, uint32_t max)
{
	struct vb_consumer *c = arg;
	uint32_t n = 0;
	int rc = 1;

	if (c->busy)
		finish_last_poll(c);
	vb_lane_poll(c->lane);
	while (n < max && c->tail != c->head && c->recv_tail != c->recv_head) {
		const struct vb_arrival *a = &c->arrivals[c->tail & c->mask];

		rc = take(c, a, &msgs[n]);
		if (rc <= 0)
			break;
		add_to_batch(&c->taken, a);
		c->tail++;
		c->recv_tail++;
		n++;
	}
	if (rc < 0) {
		c->broken = 1;
		vb_conn_broken(c->lane->conn, "sends data of an invalid region");
	}
	if (n != 0)
		c->busy = c->dirty = 1;
	else if (has_unsent_credit(c))
		send_credit(c, VB_CREDIT_IDLE);
	return n == 0 && c->broken ? -EPROTO : (int)n;
}

/* -- sleeping -- */

int vb_consumer_arm(void *arg)
{
	struct vb_consumer *c = arg;
	struct vb_lane *lane = c->lane;

	c->busy = 0;
	post_batch(&c->taken);
	send_credit(c, VB_CREDIT_LAST);
	vb_lane_flush(lane);
	vb_channel_drain(lane->channel);
	for (struct vb_pipe *p = first_pipe(c); p; p = p->next)
		if (vb_cq_arm(&p->cq) != 0)
			return 1;
	if (vb_lane_poll(lane) > 0)
		return 1;
	return c->broken || (c->tail != c->head && c->recv_tail != c->recv_head);
}

void vb_consumer_disarm(void *arg)
{
	struct vb_consumer *c = arg;

	vb_channel_drain(c->lane->channel);
}

int vb_consumer_fd(void *arg)
{
	return ((struct vb_consumer *)arg)->lane->channel->fd;
}
