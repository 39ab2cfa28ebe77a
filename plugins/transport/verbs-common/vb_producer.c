/* SPDX-License-Identifier: BSD-3-Clause */
/* vb_producer.c - sends messages to a consumer of the peer. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <gantry/shm.h>

#include "verbs.h"

static int find_remote(const struct vb_conn *conn, uint32_t id)
{
	for (int i = 0; i < VB_CONSUMERS; i++)
		if (conn->remote[i].used && conn->remote[i].id == id)
			return i;
	return -1;
}

int vb_producer_create(void *arg, uint32_t consumer_id, const struct gantry_queue_attr *attr,
		       void **producer_p)
{
	struct vb_conn *conn = arg;
	struct vb_producer *p;
	int at, rc;

	if (!vb_conn_usable(conn))
		return -ENOTCONN;
	if (attr->depth == 0 || attr->depth > conn->t->conf->max_depth)
		return -EINVAL;
	at = find_remote(conn, consumer_id);
	if (at < 0)
		return -ENOENT;
	p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	rc = -ENOMEM;
	p->mask = tc_power_of_two(attr->depth) - 1;
	p->cookies = calloc(p->mask + 1, sizeof(*p->cookies));
	if (!p->cookies)
		goto out_free;
	p->depth = attr->depth;
	p->consumer_id = consumer_id;
	p->peer_lane = conn->remote[at].lane;
	p->max_data = attr->max_data < conn->remote[at].max_data ? attr->max_data
								 : conn->remote[at].max_data;
	rc = vb_lane_get(conn, attr->lane, &p->lane);
	if (rc)
		goto out_free;
	rc = vb_pipe_want(conn, VB_MESSAGES, attr->lane, p->peer_lane);
	if (rc)
		goto out_lane;
	LIST_INSERT_HEAD(&p->lane->producers, p, link);
	*producer_p = p;
	return 0;

out_lane:
	vb_lane_put(p->lane);
out_free:
	free(p->cookies);
	free(p);
	return rc;
}

/*
 * Returns true if the peer can still read data of a send of this producer. The lane can use the
 * pipe for other queues at the same time, so this function changes nothing.
 */
static bool has_unread(const struct vb_producer *p)
{
	const struct vb_pipe *pipe = p->pipe;
	uint32_t n, n_taken;

	if (p->n_regions == 0 || __atomic_load_n(&p->gone, __ATOMIC_RELAXED))
		return false;
	n = pipe->region_head - pipe->region_tail;
	n_taken = gantry_shm_ld32_acquire(&pipe->credit->taken) - pipe->region_tail;
	for (uint32_t i = n_taken > n ? 0 : n_taken; i < n; i++)
		if (pipe->region_sends[(pipe->region_tail + i) & pipe->region_mask].producer == p)
			return true;
	return false;
}

/*
 * Destroy a producer. Afterwards the user is free to change data of its sends. If the peer can
 * still read some of the data, the connection ends, because only a queue pair in the error state
 * keeps the device of the peer from reading it.
 */
void vb_producer_destroy(void *arg)
{
	struct vb_producer *p = arg;

	if (!p)
		return;
	if (has_unread(p)) {
		vb_pipe_fail(p->pipe);
		vb_conn_fail(p->lane->conn, -ENOTCONN);
	}
	LIST_REMOVE(p, link);
	for (uint32_t i = 0; p->pipe && i <= p->pipe->region_mask; i++)
		if (p->pipe->region_sends[i].producer == p)
			p->pipe->region_sends[i].producer = NULL;
	vb_lane_put(p->lane);
	free(p->cookies);
	free(p);
}

/* Returns the pipe of the producer's messages; NULL: the pipe is not up yet. */
static struct vb_pipe *pipe_of(struct vb_producer *p)
{
	if (!p->pipe)
		p->pipe = vb_lane_pipe(p->lane, VB_MESSAGES, p->peer_lane);
	return p->pipe;
}

/* Give each producer the cookies of its sends whose data the peer has fetched. */
static void collect_taken(struct vb_pipe *pipe)
{
	uint32_t taken = gantry_shm_ld32_acquire(&pipe->credit->taken);

	if (taken - pipe->region_tail > pipe->region_head - pipe->region_tail) {
		vb_conn_broken(pipe->conn, "acknowledges data that was not sent");
		return;
	}
	for (; pipe->region_tail != taken; pipe->region_tail++) {
		struct vb_region_send *s =
			&pipe->region_sends[pipe->region_tail & pipe->region_mask];

		if (s->producer)
			s->producer->cookies[s->producer->head++ & s->producer->mask] = s->cookie;
		s->producer = NULL;
	}
}

/* Returns true if the pipe and the producer can take one more REGION message. */
static bool has_room(const struct vb_producer *p, struct vb_pipe *pipe)
{
	if (pipe->region_head - pipe->region_tail == pipe->slots)
		collect_taken(pipe);
	if (p->n_regions < p->depth && pipe->region_head - pipe->region_tail < pipe->slots)
		return true;
	vb_lane_flush(p->lane); /* the peer can fetch only after the messages are sent */
	return false;
}

static int check_data(struct vb_producer *p, const struct gantry_send *s, struct vb_msg_region *ref)
{
	if (s->length > p->max_data)
		return -EMSGSIZE;
	if (s->region)
		return vb_export_ref(p->lane->conn, s->region, s->region_offset, s->length, ref);
	if (!s->data)
		return -EINVAL;
	return s->length > p->lane->conn->t->conf->inline_bytes ? -EMSGSIZE : 0;
}

static uint8_t kind_of(const struct vb_producer *p)
{
	return (uint8_t)(VB_MSG_PLAIN | (p->consumer_id & 0xf) << 4);
}

/*
 * Get a slot for a message. Polling can bring credit, so the function polls and tries again before
 * it returns NULL.
 */
static char *claim(struct vb_producer *p, struct vb_pipe *pipe, struct ibv_send_wr **wr_p)
{
	static const struct vb_send send = {.kind = VB_R_MESSAGE};
	char *slot = vb_pipe_slot(pipe, &send, wr_p);

	if (slot)
		return slot;
	vb_lane_flush(p->lane);
	vb_lane_poll(p->lane);
	return vb_pipe_slot(pipe, &send, wr_p);
}

static void fill(struct vb_producer *p, struct vb_msg *msg, const void *imm, uint32_t imm_len)
{
	struct vb_consumer *c = __atomic_load_n(&p->lane->consumer, __ATOMIC_ACQUIRE);

	msg->kind = kind_of(p);
	msg->imm_len = (uint8_t)imm_len;
	msg->allowed = (uint16_t)(c ? vb_pipe_allow(p->pipe, vb_consumer_free(c))
				    : p->pipe->credit_sent);
	msg->zero = msg->length = 0;
	if (imm_len)
		memcpy(msg->imm, imm, imm_len);
}

/* Store the data. Returns the number of bytes used in the slot. */
static uint32_t fill_data(struct vb_producer *p, struct vb_msg *msg, const struct gantry_send *s,
			  const struct vb_msg_region *ref)
{
	struct vb_pipe *pipe = p->pipe;
	char *behind = (char *)(msg + 1);

	memset(msg->imm + s->imm_len, 0, GANTRY_IMM_MAX - s->imm_len);
	if (!s->region) {
		msg->length = (uint16_t)s->length;
		memcpy(behind, s->data, s->length);
		return (uint32_t)sizeof(*msg) + s->length;
	}
	msg->kind = (uint8_t)((msg->kind & 0xf0) | VB_MSG_REGION);
	memcpy(behind, ref, sizeof(*ref));
	pipe->region_sends[pipe->region_head++ & pipe->region_mask] =
		(struct vb_region_send){.producer = p, .cookie = s->cookie};
	p->n_regions++;
	return (uint32_t)(sizeof(*msg) + sizeof(*ref));
}

/*
 * Add a message without data to the chain. It joins the last request, if the slot of that request
 * has room.
 */
static int put(struct vb_producer *p, const void *imm, uint32_t imm_len)
{
	uint32_t bytes = (uint32_t)offsetof(struct vb_msg, imm) + imm_len;
	struct vb_msg *msg = vb_pipe_coalesce(p->pipe, kind_of(p), bytes);
	struct ibv_send_wr *wr;

	if (msg) {
		fill(p, msg, imm, imm_len);
		return 0;
	}
	msg = (struct vb_msg *)claim(p, p->pipe, &wr);
	if (!msg)
		return -EAGAIN;
	fill(p, msg, imm, imm_len);
	p->pipe->bare = p->pipe->qp.built;
	vb_pipe_push(p->pipe, wr, bytes);
	return 0;
}

static int put_data(struct vb_producer *p, const struct gantry_send *s,
		    const struct vb_msg_region *ref)
{
	struct ibv_send_wr *wr;
	struct vb_msg *msg;

	if (s->region && !has_room(p, p->pipe))
		return -EAGAIN;
	msg = (struct vb_msg *)claim(p, p->pipe, &wr);
	if (!msg)
		return -EAGAIN;
	fill(p, msg, s->imm, s->imm_len);
	vb_pipe_push(p->pipe, wr, fill_data(p, msg, s, ref));
	return 0;
}

/* Returns the error of a send to this producer of imm_len bytes; 0: none. */
static int check_send(const struct vb_producer *p, uint32_t imm_len)
{
	if (__atomic_load_n(&p->lane->conn->lost, __ATOMIC_RELAXED) ||
	    __atomic_load_n(&p->gone, __ATOMIC_RELAXED))
		return -ENOTCONN;
	return imm_len > GANTRY_IMM_MAX ? -EINVAL : 0;
}

int vb_send(void *arg, const void *imm, uint32_t imm_len, uint32_t flags)
{
	struct vb_producer *p = arg;
	struct vb_pipe *pipe = pipe_of(p);
	int rc = check_send(p, imm_len);

	if (rc)
		return rc;
	if (!pipe || put(p, imm, imm_len))
		return -EAGAIN;
	if (!(flags & GANTRY_SEND_MORE))
		vb_pipe_post(pipe);
	return 0;
}

int vb_send_data(void *arg, const struct gantry_send *s, uint32_t flags)
{
	struct vb_producer *p = arg;
	struct vb_pipe *pipe = pipe_of(p);
	struct vb_msg_region ref = {.length = 0};
	int rc = check_send(p, s->imm_len);

	if (!s->length)
		return vb_send(p, s->imm, s->imm_len, flags);
	if (!rc)
		rc = check_data(p, s, &ref);
	if (rc)
		return rc;
	if (!pipe || put_data(p, s, &ref))
		return -EAGAIN;
	if (!(flags & GANTRY_SEND_MORE))
		vb_pipe_post(pipe);
	return 0;
}

void vb_flush(void *arg)
{
	struct vb_producer *p = arg;

	vb_lane_flush(p->lane);
}

int vb_poll_send(void *arg, uint64_t *cookies, uint32_t max)
{
	struct vb_producer *p = arg;
	uint32_t n = 0;

	if (p->n_regions == 0)
		return 0;
	collect_taken(p->pipe);
	for (; n < max && p->tail != p->head; n++)
		cookies[n] = p->cookies[p->tail++ & p->mask];
	p->n_regions -= n;
	return (int)n;
}
