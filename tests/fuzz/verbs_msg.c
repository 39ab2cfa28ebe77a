/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * verbs_msg.c - the lanes of the transport over RDMA with a peer that writes any bytes into
 * messages and the credit word, any number of times. End a is that peer, with its queue pair. End b
 * must access only its own memory, and report a protocol error.
 */
#include "fuzz/kept_ends.h"
#include "fuzz/require.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define DEPTH 4u
#define BYTES 512u

static const uint8_t *input;
static size_t left;

static uint64_t bytes(unsigned n)
{
	uint64_t v = 0;

	for (; n && left; n--, left--)
		v = v << 8 | *input++;
	return v;
}

/* Mostly a valid message of a correct peer, with some changed fields. */
static uint32_t make_message(char *slot, const struct vb_pipe *from, const struct queue *q,
			     const struct shared *s)
{
	struct vb_msg msg = {.kind = (uint8_t)(VB_MSG_PLAIN | q->id << 4),
			     .imm_len = (uint8_t)(bytes(1) % (GANTRY_IMM_MAX + 2)),
			     .allowed = (uint16_t)(from->credit_sent + bytes(1) % 4)};
	struct vb_msg_region ref = {.handle = s->token.handle,
				    .generation = s->token.generation,
				    .length = (uint32_t)bytes(2) % 600};
	uint32_t length = sizeof(msg);

	switch (bytes(1) % 8) {
	case 0:
		for (uint32_t i = 0; i < from->slot_bytes; i++)
			slot[i] = (char)bytes(1);
		return (uint32_t)bytes(2) % (from->slot_bytes + 1);
	case 1:
		msg.kind = (uint8_t)bytes(1);
		break;
	case 2:
		msg.allowed = (uint16_t)bytes(2);
		break;
	case 3:
		msg.length = (uint16_t)(bytes(2) % 140);
		length += msg.length;
		break;
	case 4:
		msg.length = (uint16_t)bytes(2);
		length = (uint32_t)bytes(2) % (from->slot_bytes + 1);
		break;
	case 5:
		ref.offset = bytes(8);
		ref.generation = (uint32_t)bytes(1) % 4;
		ref.handle += (uint32_t)bytes(1) % 2;
		/* fallthrough */
	default:
		msg.kind = (uint8_t)(VB_MSG_REGION | q->id << 4);
		length += (uint32_t)sizeof(ref);
		break;
	}
	memcpy(slot, &msg, sizeof(msg));
	memcpy(slot + sizeof(msg), &ref, sizeof(ref));
	return length < from->slot_bytes ? length : from->slot_bytes;
}

static void hostile_send(struct vb_pipe *from, const struct queue *q, const struct shared *s)
{
	static const struct vb_send send = {.kind = VB_R_MESSAGE, .wanted = 1};
	struct ibv_send_wr *wr = vb_qp_build(&from->qp, &send);
	char *slot = from->send_slots + (size_t)from->send_at * from->slot_bytes;

	if (!wr)
		return;
	if (left && *input == 0xff) {
		wr->opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
		wr->num_sge = 0;
		wr->imm_data = (uint32_t)bytes(5);
		vb_qp_post(&from->qp);
		return;
	}
	wr->opcode = IBV_WR_SEND;
	*wr->sg_list = (struct ibv_sge){.addr = (uintptr_t)slot,
					.lkey = from->mr->lkey,
					.length = make_message(slot, from, q, s)};
	from->send_at = (from->send_at + 1) % from->slots;
	vb_qp_post(&from->qp);
}

/* Write the credit word as a remote write does. */
static void hostile_credit(struct vb_pipe *to)
{
	uint64_t how = bytes(1);
	uint32_t allowed = how & 1 ? (uint32_t)bytes(4) : to->sent + (uint32_t)bytes(1) % 6;
	uint32_t taken = how & 2 ? (uint32_t)bytes(4) : to->region_tail + (uint32_t)bytes(1) % 3;

	__atomic_store_n(&to->credit->allowed, allowed, __ATOMIC_RELAXED);
	__atomic_store_n(&to->credit->taken, taken, __ATOMIC_RELAXED);
}

/* Buffers have exactly the announced length, so that ASan detects an overflow. */
static void post(struct vb_consumer *rx)
{
	struct gantry_recv recv = {.length = (uint32_t)bytes(2) % 600};
	int rc;

	recv.buf = malloc(recv.length ? recv.length : 1);
	require(recv.buf != NULL);
	recv.cookie = (uintptr_t)recv.buf;
	rc = vb_post_recv_data(rx, &recv, 1);
	require(rc == 0 || rc == -ENOSPC);
	if (rc)
		free(recv.buf);
}

static void take(struct vb_consumer *rx)
{
	uint32_t posted = rx->recv_head - rx->recv_tail;
	struct gantry_msg msgs[3];
	int n = vb_poll_recv(rx, msgs, (uint32_t)bytes(1) % 4);

	require(n >= 0 ? n <= 3 && (uint32_t)n <= posted : n == -EPROTO && b.conn->lost);
	for (int i = 0; i < n; i++) {
		require(msgs[i].imm_len <= GANTRY_IMM_MAX && msgs[i].length <= BYTES);
		require(msgs[i].status == 0 ||
			(msgs[i].length == 0 &&
			 (msgs[i].status == -EMSGSIZE || msgs[i].status == -EFAULT)));
		free((void *)(uintptr_t)msgs[i].cookie);
	}
}

static void send_back(struct queue *back, const struct shared *own)
{
	struct gantry_send s = {.imm = "12345678", .imm_len = 8, .cookie = 7};
	uint64_t cookies[2];
	int rc, n;

	if (bytes(1) % 2) {
		s.length = 1 + (uint32_t)bytes(1);
		s.region = &own->region;
	}
	rc = vb_send_data(back->tx, &s, (uint32_t)bytes(1) % 2);
	require(rc == 0 || rc == -EAGAIN || rc == -EMSGSIZE || rc == -ENOTCONN);
	n = vb_poll_send(back->tx, cookies, 2);
	require(n >= 0 && n <= 2);
	for (int i = 0; i < n; i++)
		require(cookies[i] == 7);
}

static void step(struct queue *there, struct queue *back, const struct shared *far,
		 const struct shared *own)
{
	/* there are at least as many receives as waiting messages */
	require(there->rx->head - there->rx->tail <= there->rx->recv_head - there->rx->recv_tail);
	switch (bytes(1) % 8) {
	case 0 ... 2:
		hostile_send(queue_pipe(there), there, far);
		vb_lane_poll(there->tx->lane);
		break;
	case 3:
		hostile_credit(queue_pipe(back));
		break;
	case 4:
		post(there->rx);
		break;
	case 5:
		take(there->rx);
		break;
	case 6:
		send_back(back, own);
		break;
	default:
		vb_consumer_arm(there->rx);
		vb_consumer_disarm(there->rx);
		if (bytes(1) % 8 == 0)
			ends_turn();
		break;
	}
}

static struct shared far, own;
static struct queue there, back;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fake_counters n;

	if (!kept_ends_begin("max_depth=8")) {
		queue_open(&there, &b, 0, &a, 0, DEPTH, BYTES);
		queue_open(&back, &a, 0, &b, 0, DEPTH, BYTES);
		share_begin(&far, &a, &b, BYTES, GANTRY_REMOTE_READ);
		share_begin(&own, &b, &a, BYTES, GANTRY_REMOTE_READ);
		rewind_mark();
	}
	input = data;
	left = size;
	for (int i = 0; i < 300 && left; i++)
		step(&there, &back, &far, &own);
	for (; there.rx->recv_tail != there.rx->recv_head; there.rx->recv_tail++)
		free((void *)(uintptr_t)there.rx->recvs[there.rx->recv_tail & there.rx->recv_mask]
			     .cookie);
	fake_verbs_counters(&n);
	require(n.overruns == 0);
	queue_close(&there);
	queue_close(&back);
	kept_ends_leave();
	munmap(far.bytes, BYTES);
	munmap(own.bytes, BYTES);
	input = NULL;
	kept_ends_end();
	return 0;
}
