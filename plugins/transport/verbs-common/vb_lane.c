/* SPDX-License-Identifier: BSD-3-Clause */
/* vb_lane.c - the pipes of one thread: polls them, and dispatches their completions. */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "verbs.h"

static struct vb_pipe *first_pipe(const struct vb_lane *lane)
{
	return __atomic_load_n(&lane->pipes, __ATOMIC_ACQUIRE);
}

static void free_lane(struct vb_lane *lane)
{
	struct vb_transport *t = lane->conn->t;

	tc_cell_put(&t->lane_doorbells, lane->doorbells);
	tc_cell_put(&t->lane_payload, lane->payload_bytes);
	vb_channel_destroy(&lane->channel);
	free(lane);
}

static int make_lane(struct vb_conn *conn, uint32_t number, struct vb_lane **lane_p)
{
	struct vb_lane *lane = calloc(1, sizeof(*lane));
	struct vb_transport *t = conn->t;
	int rc = -ENOMEM;

	if (!lane)
		return rc;
	lane->conn = conn;
	lane->number = number;
	lane->doorbells = tc_cell_get(&t->lane_doorbells, t->host);
	lane->payload_bytes = tc_cell_get(&t->lane_payload, t->host);
	if (lane->doorbells && lane->payload_bytes)
		rc = vb_channel_create(t->device.context, &lane->channel);
	if (rc) {
		free_lane(lane);
		return rc;
	}
	lane->next = conn->lanes;
	conn->lanes = lane;
	*lane_p = lane;
	return 0;
}

int vb_lane_get(struct vb_conn *conn, uint32_t number, struct vb_lane **lane_p)
{
	struct vb_lane *lane;
	int rc = 0;

	if (number >= VB_MAX_LANES)
		return -EINVAL;
	for (lane = conn->lanes; lane && lane->number != number; lane = lane->next)
		;
	if (!lane)
		rc = make_lane(conn, number, &lane);
	if (rc)
		return rc;
	lane->n_users++;
	*lane_p = lane;
	return 0;
}

void vb_lane_put(struct vb_lane *lane)
{
	if (--lane->n_users == 0 && lane->gone)
		/*
		 * from now on only the control thread polls for the end of fetches of destroyed
		 * consumers
		 */
		vb_transport_wake(lane->conn->t);
}

bool vb_lane_lingers(const struct vb_lane *lane)
{
	if (lane->n_users)
		return false;
	for (const struct vb_consumer *c = lane->gone; c; c = c->next)
		if (c->fetch == VB_F_UNDER_WAY)
			return true;
	return false;
}

void vb_lane_free(struct vb_lane *lane)
{
	struct vb_lane **at = &lane->conn->lanes;

	while (*at != lane)
		at = &(*at)->next;
	*at = lane->next;
	vb_consumers_reap(lane);
	free_lane(lane);
}

void vb_lane_add(struct vb_lane *lane, struct vb_pipe *pipe)
{
	int rc;

	pipe->next = lane->pipes;
	__atomic_store_n(&pipe->up, 1, __ATOMIC_RELAXED);
	/* pairs with first_pipe(), here and in vb_consumer.c */
	__atomic_store_n(&lane->pipes, pipe, __ATOMIC_RELEASE);
	/*
	 * Wake a lane that sleeps: the lane must see the pipe and grant credit. Without credit no
	 * message can arrive that would wake it.
	 */
	rc = vb_qp_wake(&pipe->qp);
	if (rc)
		vb_conn_fail(lane->conn, rc);
}

struct vb_pipe *vb_lane_pipe(struct vb_lane *lane, enum vb_kind kind, uint32_t peer_lane)
{
	for (struct vb_pipe *p = first_pipe(lane); p; p = p->next)
		if (p->kind == kind &&
		    (p->end == VB_CONNECTS ? p->listens_lane : p->connects_lane) == peer_lane)
			return p;
	return NULL;
}

/* -- completions -- */

static void ended(void *arg, const struct vb_send *send, int status)
{
	(void)arg;
	if (send->kind == VB_R_RMA && send->object)
		vb_rma_ended(send->object, send->cookie, status);
	else if (send->kind == VB_R_FETCH && send->object)
		vb_consumer_fetched(send->object, status);
}

/*
 * Drop messages whose consumer has been destroyed. The receive is posted again; data of the
 * sender's region is not fetched.
 */
static void drop(struct vb_pipe *pipe, uint32_t slot, const struct vb_msg *msg, uint32_t n)
{
	if ((msg->kind & 0xf) == VB_MSG_REGION)
		pipe->taken++;
	vb_pipe_repost(pipe, &slot, 1, n);
	vb_pipe_send_credit(pipe, 0, 1, VB_CREDIT_IDLE);
}

/*
 * Returns the number of messages in a slot; 0: invalid. Messages that share a slot must have the
 * same kind and no data.
 */
static uint32_t count_messages(const struct vb_msg *msg, uint32_t bytes)
{
	uint32_t n = (bytes + (uint32_t)sizeof(*msg) - 1) / (uint32_t)sizeof(*msg);

	if (bytes < offsetof(struct vb_msg, imm))
		return 0;
	if ((msg->kind & 0xf) != VB_MSG_PLAIN || msg->length)
		return 1;
	if (bytes - (n - 1) * sizeof(*msg) < offsetof(struct vb_msg, imm))
		return 0;
	for (uint32_t i = 1; i < n; i++)
		if (msg[i].kind != msg->kind || msg[i].length)
			return 0;
	return n;
}

static void deliver(struct vb_consumer *c, struct vb_pipe *pipe, uint32_t slot, uint32_t bytes,
		    uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		const struct vb_arrival arrival = {.pipe = pipe,
						   .slot = slot,
						   .at = (uint16_t)(i * sizeof(struct vb_msg)),
						   .ends = (uint16_t)(i + 1 == n ? n : 0)};

		vb_consumer_arrived(c, &arrival,
				    i + 1 == n ? bytes - arrival.at
					       : (uint32_t)sizeof(struct vb_msg));
	}
}

static void arrived(struct vb_pipe *pipe, uint32_t slot, uint32_t bytes)
{
	struct vb_consumer *c = __atomic_load_n(&pipe->lane->consumer, __ATOMIC_ACQUIRE);
	const struct vb_msg *msg =
		(const void *)(pipe->recv_slots + (size_t)slot * pipe->slot_bytes);
	uint32_t n = slot < pipe->slots ? count_messages(msg, bytes) : 0;

	pipe->received += n;
	pipe->waiting += n;
	if (n == 0 || (int32_t)(pipe->credit_sent - pipe->received) < 0) {
		vb_conn_broken(pipe->conn, "sends an invalid slot or exceeds its credit");
		return;
	}
	vb_pipe_take_credit(pipe, msg[n - 1].allowed, 0xffff);
	if (!c || (c->id & 0xf) != msg->kind >> 4)
		drop(pipe, slot, msg, n);
	else
		deliver(c, pipe, slot, bytes, n);
}

/* Process a receive completion. The data of a note is in the region, so its slot is empty. */
static void received(struct vb_pipe *pipe, const struct ibv_wc *wc)
{
	uint32_t slot = (uint32_t)wc->wr_id;
	uint32_t bytes = wc->byte_len;

	if (wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM)
		bytes = slot < pipe->slots ? vb_pipe_convert_note(pipe, slot, be32toh(wc->imm_data))
					   : 0;
	arrived(pipe, slot, bytes);
}

static int poll_pipe(struct vb_pipe *pipe)
{
	struct ibv_wc wcs[VB_POLL];
	int quiet = __atomic_load_n(&pipe->quiet, __ATOMIC_ACQUIRE);
	int n = vb_cq_poll(&pipe->cq, wcs, VB_POLL);

	for (int i = 0; i < n; i++) {
		const struct ibv_wc *wc = &wcs[i];

		if (wc->status != IBV_WC_SUCCESS)
			vb_pipe_completion_failed(pipe, wc);
		else if (wc->wr_id & VB_RECV)
			received(pipe, wc);
		else if (wc->wr_id != VB_WAKE)
			vb_qp_done(&pipe->qp, wc->wr_id, 0, ended, NULL);
	}
	if (n < 0)
		vb_conn_fail(pipe->conn, -EIO);
	if (n <= 0 && quiet && pipe->qp.done != pipe->qp.built) {
		vb_qp_cancel(&pipe->qp, -ENOTCONN, ended, NULL);
		return 1;
	}
	return n > 0 ? n : 0;
}

int vb_lane_poll(struct vb_lane *lane)
{
	int n = 0;

	for (struct vb_pipe *p = first_pipe(lane); p; p = p->next)
		n += poll_pipe(p);
	return n;
}

void vb_lane_flush(struct vb_lane *lane)
{
	for (struct vb_pipe *p = first_pipe(lane); p; p = p->next)
		if (p->qp.posted != p->qp.built && !__atomic_load_n(&p->quiet, __ATOMIC_ACQUIRE))
			vb_pipe_post(p);
}

void vb_lane_forget(struct vb_lane *lane, const void *object)
{
	for (struct vb_pipe *p = first_pipe(lane); p; p = p->next)
		for (uint32_t i = p->qp.done; i != p->qp.built; i++) {
			struct vb_send *send = &p->qp.sends[i & p->qp.mask];

			if (send->object == object)
				send->object = NULL;
		}
}
