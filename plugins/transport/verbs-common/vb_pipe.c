/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * vb_pipe.c - a queue pair with its completion queue, its message slots, and the credit for their
 * use.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <gantry/shm.h>

#include "verbs.h"

/* bytes of the block for the credit of one direction: a cache line of its own */
#define CREDIT_BYTES 64u
#define EXTRA_REQUESTS 16u /* requests in addition to those of messages: credit, a probe, a fetch */
#define PAGE 4096u
/* limit, in messages, of the difference between the sent credit and the credit written by RDMA */
#define OLD_WORD (1u << 30)

static uint32_t slots_of(const struct vb_conf *conf, enum vb_kind kind)
{
	return kind == VB_CONTROL    ? VB_CTRL_SLOTS
	       : kind == VB_MESSAGES ? (uint32_t)conf->max_depth
				     : 0;
}

static uint32_t slot_bytes_of(const struct vb_conf *conf, enum vb_kind kind)
{
	uint32_t data = conf->inline_bytes > sizeof(struct vb_msg_region)
				? (uint32_t)conf->inline_bytes
				: (uint32_t)sizeof(struct vb_msg_region);

	if (kind == VB_MESSAGES)
		return (uint32_t)sizeof(struct vb_msg) + ((data + 7) & ~7u);
	return kind == VB_CONTROL ? VB_CTRL_SLOT : 0;
}

uint64_t vb_pipe_bytes(const struct vb_conf *conf, enum vb_kind kind)
{
	uint64_t bytes = 2 * CREDIT_BYTES +
			 2 * (uint64_t)slots_of(conf, kind) * slot_bytes_of(conf, kind);

	return slots_of(conf, kind) ? (bytes + PAGE - 1) & ~(uint64_t)(PAGE - 1) : 0;
}

int vb_pipe_new(struct vb_conn *conn, enum vb_kind kind, enum vb_end end, struct vb_pipe **pipe_p)
{
	struct vb_pipe *pipe = calloc(1, sizeof(*pipe));

	if (!pipe)
		return -ENOMEM;
	pipe->tag = (struct vb_id){.what = VB_ID_PIPE, .object = pipe};
	pipe->conn = conn;
	pipe->kind = kind;
	pipe->end = end;
	pipe->slots = pipe->window = slots_of(conn->t->conf, kind);
	pipe->slot_bytes = slot_bytes_of(conn->t->conf, kind);
	pipe->all = conn->pipes;
	conn->pipes = pipe;
	*pipe_p = pipe;
	return 0;
}

static int make_block(struct vb_pipe *pipe)
{
	void *block;
	int rc;

	pipe->block_bytes = (size_t)vb_pipe_bytes(pipe->conn->t->conf, pipe->kind);
	block = mmap(NULL, pipe->block_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		     -1, 0);
	if (block == MAP_FAILED)
		return -errno;
	pipe->block = block;
	madvise(block, pipe->block_bytes, MADV_DONTFORK);
	pipe->region_mask = tc_power_of_two(pipe->slots) - 1;
	pipe->region_sends = calloc(pipe->region_mask + 1, sizeof(*pipe->region_sends));
	if (!pipe->region_sends)
		return -ENOMEM;
	rc = vb_mr_create(pipe->conn->pd, pipe->block + CREDIT_BYTES,
			  pipe->block_bytes - CREDIT_BYTES, 0, 1, &pipe->mr);
	if (rc)
		return rc;
	rc = vb_mr_create(pipe->conn->pd, block, sizeof(struct vb_credit), GANTRY_REMOTE_WRITE, 0,
			  &pipe->credit_mr);
	if (rc)
		return rc;
	pipe->credit = block;
	pipe->credit_out = (void *)(pipe->block + CREDIT_BYTES);
	pipe->send_slots = pipe->block + 2 * CREDIT_BYTES;
	pipe->recv_slots = pipe->send_slots + (size_t)pipe->slots * pipe->slot_bytes;
	return 0;
}

/*
 * Returns the limit of outstanding send requests. The passive end of a data or direct pipe posts
 * none, but a queue pair needs at least 1.
 */
static uint32_t requests(const struct vb_pipe *pipe)
{
	const struct vb_conf *conf = pipe->conn->t->conf;
	uint32_t data = (uint32_t)conf->max_depth;

	if (pipe->kind == VB_CONTROL)
		return VB_CTRL_SLOTS + EXTRA_REQUESTS;
	if (pipe->kind == VB_MESSAGES)
		return pipe->slots + EXTRA_REQUESTS + (conf->data_qp == VB_SHARED ? data : 0);
	return pipe->lane ? data : 1;
}

uint32_t vb_depth_limit(const struct vb_conf *conf, const struct vb_limits *limits)
{
	const uint32_t more = EXTRA_REQUESTS + 1; /* 1: the request of vb_qp_wake() */
	/*
	 * number of send requests for each message in the queue; each message also needs a receive
	 */
	uint32_t sends = conf->data_qp == VB_SHARED ? 2 : 1;
	uint32_t by_queue = limits->max_qp_wr > more ? (limits->max_qp_wr - more) / sends : 0;
	uint32_t by_completions = limits->max_cqe > more ? (limits->max_cqe - more) / (sends + 1)
							 : 0;

	return by_queue < by_completions ? by_queue : by_completions;
}

static int post_all(struct vb_pipe *pipe)
{
	uint32_t slots[VB_POLL];
	int rc = 0;

	for (uint32_t at = 0; at < pipe->slots && !rc;) {
		uint32_t n = 0;

		while (n < VB_POLL && at < pipe->slots)
			slots[n++] = at++;
		rc = vb_qp_recv(&pipe->qp, pipe->recv_slots, pipe->slot_bytes, pipe->mr->lkey,
				slots, n);
	}
	return rc;
}

int vb_pipe_equip(struct vb_pipe *pipe, struct ibv_comp_channel *channel)
{
	const struct vb_limits *limits = &pipe->conn->t->device.limits;
	struct vb_qp_attr attr = {
		.sends = requests(pipe),
		.recvs = pipe->slots,
		.wakes = pipe->lane != NULL,
		.inline_bytes = pipe->slots ? (uint32_t)sizeof(struct vb_msg) +
						      (uint32_t)pipe->conn->t->conf->inline_bytes
					    : 0,
		.async = &pipe->async,
	};
	int rc = pipe->slots ? make_block(pipe) : 0;

	if (rc)
		return rc;
	rc = vb_cq_create(pipe->id->verbs, limits, attr.sends + attr.recvs + attr.wakes, channel,
			  &pipe->cq);
	if (rc)
		return rc;
	attr.cq = pipe->cq.cq;
	rc = vb_qp_create(pipe->id, pipe->conn->pd, limits, &attr, &pipe->qp);
	if (rc)
		return rc;
	pipe->qp.doorbells = pipe->lane ? pipe->lane->doorbells : pipe->conn->t->doorbells;
	rc = post_all(pipe);
	return rc || !channel ? rc : vb_cq_arm(&pipe->cq);
}

void vb_pipe_fail(struct vb_pipe *pipe)
{
	if (pipe->quiet)
		return;
	__atomic_store_n(&pipe->up, 0, __ATOMIC_RELAXED);
	if (pipe->qp.qp)
		vb_qp_fail(&pipe->qp);
	/*
	 * pairs with poll_pipe(): no further completions follow those that it polls after this
	 * store
	 */
	__atomic_store_n(&pipe->quiet, 1, __ATOMIC_RELEASE);
	if (pipe->qp.qp && pipe->lane)
		/*
		 * Wake a lane that sleeps. The result is ignored: a queue pair that rejects the
		 * request has itself reported an error.
		 */
		vb_qp_wake(&pipe->qp);
}

void vb_pipe_free(struct vb_pipe *pipe)
{
	struct vb_pipe **at = &pipe->conn->pipes;

	while (*at != pipe)
		at = &(*at)->all;
	*at = pipe->all;
	if (pipe->qp.qp)
		vb_qp_destroy(pipe->id, &pipe->qp);
	vb_id_destroy(&pipe->id);
	vb_cq_destroy(&pipe->cq);
	vb_mr_destroy(&pipe->credit_mr);
	vb_mr_destroy(&pipe->mr);
	if (pipe->block)
		munmap(pipe->block, pipe->block_bytes);
	free(pipe->region_sends);
	free(pipe);
}

void vb_pipe_hello(const struct vb_pipe *pipe, struct vb_hello *hello)
{
	*hello = (struct vb_hello){
		.magic = VB_MAGIC,
		.version = vb_version(pipe->conn->t),
		.kind = (uint8_t)pipe->kind,
		.end = (uint8_t)pipe->end,
		.session = pipe->conn->session,
		.connects_lane = pipe->connects_lane,
		.listens_lane = pipe->listens_lane,
		.slots = pipe->slots,
		.slot_bytes = pipe->slot_bytes,
	};
	/* a third party must not get the secret that opens queues of this connection */
	if (pipe->kind != VB_DIRECT)
		hello->secret = pipe->conn->secret;
	if (pipe->peer) {
		hello->session = pipe->peer->session;
		hello->secret = pipe->peer->secret;
	}
	if (pipe->credit) {
		hello->credit_addr = (uintptr_t)pipe->credit;
		hello->credit_key = pipe->credit_mr->rkey;
	}
}

int vb_pipe_take_hello(struct vb_pipe *pipe, const struct vb_hello *hello)
{
	if (hello->magic != VB_MAGIC || hello->version != vb_version(pipe->conn->t) ||
	    hello->kind != pipe->kind || hello->end == pipe->end ||
	    hello->slot_bytes != pipe->slot_bytes || (pipe->slots != 0) != (hello->slots != 0))
		return -EPROTO;
	pipe->window = pipe->slots < hello->slots ? pipe->slots : hello->slots;
	/*
	 * A control pipe needs no consumer: both ends have posted all receives, so all are credit.
	 */
	if (pipe->kind == VB_CONTROL)
		pipe->allowed = pipe->credit_sent = pipe->window;
	pipe->peer_credit_addr = hello->credit_addr;
	pipe->peer_credit_key = hello->credit_key;
	return 0;
}

void vb_pipe_take_credit(struct vb_pipe *pipe, uint32_t allowed, uint32_t mask)
{
	int32_t more = (int32_t)((allowed - pipe->allowed) & mask);

	if (mask == 0xffff)
		more = (int16_t)more;
	if (more <= 0)
		return;
	/*
	 * Reject credit for more than `window` messages in flight. With more credit, this side
	 * would overwrite a send slot that its device has not finished reading.
	 */
	if (pipe->allowed + (uint32_t)more - pipe->sent > pipe->window)
		vb_conn_broken(pipe->conn, "grants credit for more messages than it has slots");
	else
		pipe->allowed += (uint32_t)more;
}

uint32_t vb_pipe_credit(struct vb_pipe *pipe)
{
	/*
	 * The peer writes the word by RDMA. The acquire orders this load before the next store to a
	 * send slot.
	 */
	if (pipe->allowed == pipe->sent)
		vb_pipe_take_credit(pipe, gantry_shm_ld32_acquire(&pipe->credit->allowed),
				    UINT32_MAX);
	return pipe->allowed - pipe->sent;
}

char *vb_pipe_slot(struct vb_pipe *pipe, const struct vb_send *send, struct ibv_send_wr **wr_p)
{
	char *slot;

	if (vb_pipe_credit(pipe) == 0)
		return NULL;
	*wr_p = vb_qp_build(&pipe->qp, send);
	if (!*wr_p)
		return NULL;
	/*
	 * A slot is reused after `slots` messages. The peer grants credit for the last of them only
	 * after it has received the first, so no device reads the slot any more.
	 */
	slot = pipe->send_slots + (size_t)pipe->send_at * pipe->slot_bytes;
	(*wr_p)->opcode = IBV_WR_SEND;
	(*wr_p)->sg_list->addr = (uintptr_t)slot;
	(*wr_p)->sg_list->lkey = pipe->mr->lkey;
	return slot;
}

static void set_length(const struct vb_pipe *pipe, struct ibv_send_wr *wr, uint32_t bytes)
{
	wr->sg_list->length = bytes;
	wr->send_flags = bytes <= pipe->qp.max_inline ? IBV_SEND_INLINE : 0;
}

static struct ibv_send_wr *last_built(const struct vb_pipe *pipe)
{
	return &pipe->qp.wrs[(pipe->qp.built - 1) & pipe->qp.mask];
}

/* Returns the offset in the slot at which the next message of a request would begin. */
static uint32_t next_offset(const struct ibv_send_wr *wr)
{
	return (wr->sg_list->length + (uint32_t)sizeof(struct vb_msg) - 1) &
	       ~((uint32_t)sizeof(struct vb_msg) - 1);
}

bool vb_pipe_can_coalesce(const struct vb_pipe *pipe)
{
	return pipe->bare == pipe->qp.built && pipe->qp.built != pipe->qp.posted &&
	       next_offset(last_built(pipe)) + sizeof(struct vb_msg) <= pipe->slot_bytes;
}

struct vb_msg *vb_pipe_coalesce(struct vb_pipe *pipe, uint8_t kind, uint32_t bytes)
{
	struct ibv_send_wr *wr = last_built(pipe);
	struct vb_msg *before;
	uint32_t at;

	if (!vb_pipe_can_coalesce(pipe) || vb_pipe_credit(pipe) == 0)
		return NULL;
	at = next_offset(wr);
	before = (struct vb_msg *)(uintptr_t)(wr->sg_list->addr + at) - 1;
	if (before->kind != kind)
		return NULL;
	memset(before->imm + before->imm_len, 0, sizeof(before->imm) - before->imm_len);
	set_length(pipe, wr, at + bytes);
	pipe->sent++;
	return before + 1;
}

void vb_pipe_push(struct vb_pipe *pipe, struct ibv_send_wr *wr, uint32_t bytes)
{
	set_length(pipe, wr, bytes);
	pipe->sent++;
	pipe->send_at = pipe->send_at + 1 < pipe->slots ? pipe->send_at + 1 : 0;
}

uint32_t vb_pipe_convert_note(struct vb_pipe *pipe, uint32_t slot, uint32_t note)
{
	struct vb_msg *msg = (void *)(pipe->recv_slots + (size_t)slot * pipe->slot_bytes);
	const struct vb_consumer *c = __atomic_load_n(&pipe->lane->consumer, __ATOMIC_ACQUIRE);

	msg->kind = (uint8_t)(VB_MSG_PLAIN | (c ? c->id & 0xf : 0) << 4);
	msg->imm_len = sizeof(note);
	msg->allowed = (uint16_t)pipe->allowed; /* grants no new credit */
	msg->zero = msg->length = 0;
	memcpy(msg->imm, &note, sizeof(note));
	return (uint32_t)(offsetof(struct vb_msg, imm) + sizeof(note));
}

void vb_pipe_post(struct vb_pipe *pipe)
{
	int rc = vb_qp_post(&pipe->qp);

	if (rc)
		vb_conn_fail(pipe->conn, rc);
}

static uint32_t allowed_now(const struct vb_pipe *pipe, uint32_t free_recvs)
{
	uint32_t room = pipe->window - pipe->waiting;
	uint32_t allowed = pipe->received + (free_recvs < room ? free_recvs : room);

	return (int32_t)(allowed - pipe->credit_sent) > 0 ? allowed : pipe->credit_sent;
}

uint32_t vb_pipe_allow(struct vb_pipe *pipe, uint32_t free_recvs)
{
	pipe->credit_sent = allowed_now(pipe, free_recvs);
	return pipe->credit_sent;
}

/*
 * Write both counts to the peer. A device that reads the counts after this call can send newer
 * values, which are also valid.
 */
static void write_credit(struct vb_pipe *pipe)
{
	static const struct vb_send send = {.kind = VB_R_CREDIT};
	struct ibv_send_wr *wr = vb_qp_build(&pipe->qp, &send);

	pipe->written = pipe->credit_sent;
	pipe->taken_sent = pipe->taken;
	__atomic_store_n(&pipe->credit_out->allowed, pipe->credit_sent, __ATOMIC_RELAXED);
	__atomic_store_n(&pipe->credit_out->taken, pipe->taken, __ATOMIC_RELAXED);
	wr->opcode = IBV_WR_RDMA_WRITE;
	wr->wr.rdma.remote_addr = pipe->peer_credit_addr;
	wr->wr.rdma.rkey = pipe->peer_credit_key;
	wr->sg_list->addr = (uintptr_t)pipe->credit_out;
	wr->sg_list->length = sizeof(*pipe->credit_out);
	wr->sg_list->lkey = pipe->mr->lkey;
	if (sizeof(*pipe->credit_out) <= pipe->qp.max_inline)
		wr->send_flags |= IBV_SEND_INLINE;
	vb_pipe_post(pipe);
}

/*
 * Returns true if this side has sent no message since the last call. A side that sends messages
 * passes the credit with the next one; else the credit must be written.
 */
static bool is_one_way(struct vb_pipe *pipe)
{
	bool same = pipe->sent_then == pipe->sent;

	pipe->sent_then = pipe->sent;
	return same;
}

/* Returns true if credit for `more` messages justifies a write. */
static bool is_worth_it(struct vb_pipe *pipe, uint32_t more, uint32_t depth,
			enum vb_credit_when when)
{
	uint32_t ends = pipe->taken - pipe->taken_sent, most = depth - depth / 4;

	/*
	 * The peer compares the written value with its own modulo 2^32, so the written value must
	 * lag by less than 2^31.
	 */
	if (ends >= most || pipe->credit_sent - pipe->written >= OLD_WORD)
		return true;
	if (when == VB_CREDIT_BUSY)
		return more >= most && is_one_way(pipe);
	return ends || more >= most ||
	       (more && (when == VB_CREDIT_LAST || pipe->credit_sent == pipe->received));
}

int vb_pipe_send_credit(struct vb_pipe *pipe, uint32_t free_recvs, uint32_t depth,
			enum vb_credit_when when)
{
	uint32_t more = allowed_now(pipe, free_recvs) - pipe->credit_sent;

	if (!__atomic_load_n(&pipe->up, __ATOMIC_ACQUIRE) || !is_worth_it(pipe, more, depth, when))
		return 0;
	if (vb_qp_room(&pipe->qp) == 0)
		return 1;
	pipe->credit_sent += more;
	write_credit(pipe);
	return 0;
}

void vb_pipe_repost(struct vb_pipe *pipe, const uint32_t *slots, uint32_t n, uint32_t messages)
{
	int rc = vb_qp_recv(&pipe->qp, pipe->recv_slots, pipe->slot_bytes, pipe->mr->lkey, slots,
			    n);

	pipe->waiting -= messages;
	if (rc)
		vb_conn_fail(pipe->conn, rc);
}

int vb_pipe_probe(struct vb_pipe *pipe)
{
	static const struct vb_send send = {.kind = VB_R_PROBE, .wanted = 1};
	struct ibv_send_wr *wr = vb_qp_build(&pipe->qp, &send);

	if (!wr)
		return -EAGAIN;
	wr->opcode = IBV_WR_RDMA_WRITE;
	wr->wr.rdma.remote_addr = pipe->peer_credit_addr;
	wr->wr.rdma.rkey = pipe->peer_credit_key;
	wr->num_sge = 0;
	pipe->probing = 1;
	vb_pipe_post(pipe);
	return 0;
}
