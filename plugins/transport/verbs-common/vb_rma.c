/* SPDX-License-Identifier: BSD-3-Clause */
/* vb_rma.c - remote reads and writes of imported regions. */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>

#include "verbs.h"

static enum vb_kind kind_of_pipe(const struct vb_conn *conn)
{
	return conn->t->conf->data_qp == VB_SHARED ? VB_MESSAGES : VB_DATA;
}

/*
 * Returns the lane of the peer on the pipe; VB_NO_LANE for a data pipe, on which the peer posts
 * nothing.
 */
static uint32_t peer_lane(const struct vb_lane *lane)
{
	return kind_of_pipe(lane->conn) == VB_DATA ? VB_NO_LANE : lane->number;
}

int vb_rma_create(void *arg, const struct gantry_queue_attr *attr, void **rma_p)
{
	struct vb_conn *conn = arg;
	struct vb_rma *rma;
	int rc;

	if (!vb_conn_usable(conn))
		return -ENOTCONN;
	if (attr->depth == 0 || attr->depth > conn->t->conf->max_depth)
		return -EINVAL;
	rma = calloc(1, sizeof(*rma));
	if (!rma)
		return -ENOMEM;
	rc = tc_done_init(&rma->done, attr->depth);
	if (rc)
		goto out_free;
	rma->depth = attr->depth;
	rc = vb_lane_get(conn, attr->lane, &rma->lane);
	if (rc)
		goto out_free;
	rc = vb_pipe_want(conn, kind_of_pipe(conn), attr->lane, peer_lane(rma->lane));
	for (struct vb_import_peer *peer = conn->peers; peer && !rc; peer = peer->next)
		rc = vb_pipe_want_direct(conn, peer, attr->lane);
	if (rc)
		goto out_lane;
	rma->lane->has_rma++;
	*rma_p = rma;
	return 0;

out_lane:
	vb_lane_put(rma->lane);
out_free:
	tc_done_fini(&rma->done);
	free(rma);
	return rc;
}

void vb_rma_destroy(void *arg)
{
	struct vb_rma *rma = arg;

	if (!rma)
		return;
	vb_lane_forget(rma->lane, rma);
	rma->lane->has_rma--;
	vb_lane_put(rma->lane);
	tc_done_fini(&rma->done);
	free(rma);
}

static struct vb_pipe *pipe_of(struct vb_rma *rma, const struct vb_import *im)
{
	if (im->peer)
		return __atomic_load_n(&im->peer->pipes[rma->lane->number], __ATOMIC_ACQUIRE);
	if (!rma->pipe)
		rma->pipe = vb_lane_pipe(rma->lane, kind_of_pipe(rma->lane->conn),
					 peer_lane(rma->lane));
	return rma->pipe;
}

static int check(struct vb_rma *rma, const struct gantry_rma *op, uint32_t *lkey_p)
{
	const struct vb_import *im = op->remote->transport;
	uint32_t right = op->op == GANTRY_RMA_READ ? GANTRY_REMOTE_READ : GANTRY_REMOTE_WRITE;

	if (__atomic_load_n(&rma->lane->conn->lost, __ATOMIC_RELAXED))
		return -ENOTCONN;
	if (op->remote->domain != VB_DOMAIN || im->conn != rma->lane->conn ||
	    !(im->pub.rights & right))
		return -EACCES;
	if (!gantry_range_ok(op->remote_offset, op->length, im->pub.length))
		return -ERANGE;
	return vb_local_key(rma->lane->conn, op->local_region, op->local, op->length, lkey_p);
}

/*
 * Build the request of an access. A short write goes before the messages at the end of the chain.
 * So a message that follows the write can still join the last request.
 */
static struct ibv_send_wr *build(struct vb_pipe *pipe, const struct gantry_rma *op,
				 const struct vb_send *send)
{
	struct ibv_send_wr *wr;

	if (op->op != GANTRY_RMA_WRITE || op->length > VB_SHORT_BYTES ||
	    !vb_pipe_can_coalesce(pipe))
		return vb_qp_build(&pipe->qp, send);
	wr = vb_qp_build_before(&pipe->qp, send);
	if (wr)
		pipe->bare = pipe->qp.built;
	return wr;
}

/* Fill the request of an access. */
static void fill_in(struct vb_rma *rma, struct vb_pipe *pipe, struct ibv_send_wr *wr,
		    const struct gantry_rma *op, uint32_t lkey)
{
	const struct vb_import *im = op->remote->transport;

	wr->wr.rdma.remote_addr = im->wire.addr + op->remote_offset;
	wr->wr.rdma.rkey = im->wire.key;
	wr->sg_list->addr = (uintptr_t)op->local;
	wr->sg_list->length = op->length;
	wr->sg_list->lkey = lkey;
	wr->num_sge = op->length != 0; /* some devices treat a length of 0 as 2^31 */
	rma->n_out++;
	gantry_count(rma->lane->payload_bytes, op->length);
	pipe->qp.chain_bytes += op->length;
	if (pipe->qp.chain_bytes >= VB_POST_BYTES)
		vb_pipe_post(pipe);
}

int vb_rma_submit(void *arg, const struct gantry_rma *op)
{
	struct vb_rma *rma = arg;
	const struct vb_send send = {
		.kind = VB_R_RMA, .wanted = 1, .object = rma, .cookie = op->cookie};
	struct ibv_send_wr *wr;
	struct vb_pipe *pipe;
	uint32_t lkey;
	int rc = check(rma, op, &lkey);

	if (rc)
		return rc;
	pipe = pipe_of(rma, op->remote->transport);
	wr = pipe && rma->n_out < rma->depth ? build(pipe, op, &send) : NULL;
	if (!wr) {
		/* only posted requests complete, and only a completion frees requests */
		vb_lane_flush(rma->lane);
		return -EAGAIN;
	}
	wr->opcode = op->op == GANTRY_RMA_READ ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE;
	fill_in(rma, pipe, wr, op, lkey);
	return 0;
}

/* -- writes with a note, as immediate data -- */

/*
 * Notes use the pipe of messages. If messages have their own queue pair, they must not wait for a
 * write of more than VB_SHORT_BYTES.
 */
static bool is_too_long(const struct vb_rma *rma, uint32_t length)
{
	return length > VB_SHORT_BYTES && kind_of_pipe(rma->lane->conn) == VB_DATA;
}

static struct vb_pipe *pipe_of_notes(struct vb_rma *rma)
{
	if (!rma->notes)
		rma->notes = vb_lane_pipe(rma->lane, VB_MESSAGES, rma->lane->number);
	return rma->notes;
}

int vb_rma_write_imm(void *arg, const struct gantry_rma *op, uint32_t note)
{
	struct vb_rma *rma = arg;
	const struct vb_import *im = op->remote->transport;
	const struct vb_send send = {
		.kind = VB_R_RMA, .wanted = 1, .object = rma, .cookie = op->cookie};
	struct ibv_send_wr *wr = NULL;
	struct vb_pipe *pipe;
	uint32_t lkey;
	int rc = check(rma, op, &lkey);

	if (rc)
		return rc;
	if (op->op != GANTRY_RMA_WRITE || im->peer)
		return -EINVAL;
	if (is_too_long(rma, op->length))
		return -EMSGSIZE;
	pipe = pipe_of_notes(rma);
	if (pipe && rma->n_out < rma->depth && vb_pipe_credit(pipe))
		wr = vb_qp_build(&pipe->qp, &send);
	if (!wr) {
		vb_lane_flush(rma->lane);
		return -EAGAIN;
	}
	wr->opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
	wr->imm_data = htobe32(note);
	pipe->sent++; /* a note counts as a message, but uses no send slot */
	fill_in(rma, pipe, wr, op, lkey);
	return 0;
}

void vb_rma_flush(void *arg)
{
	struct vb_rma *rma = arg;

	vb_lane_flush(rma->lane);
}

void vb_rma_ended(struct vb_rma *rma, uint64_t cookie, int status)
{
	tc_done_put(&rma->done, cookie, status);
}

int vb_rma_poll(void *arg, struct gantry_rma_done *done, uint32_t max)
{
	struct vb_rma *rma = arg;
	int n;

	if (tc_done_empty(&rma->done))
		vb_lane_poll(rma->lane);
	n = tc_done_take(&rma->done, done, max);
	rma->n_out -= (uint32_t)n;
	return n;
}
