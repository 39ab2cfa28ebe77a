/* SPDX-License-Identifier: BSD-3-Clause */
#include "conform/verbs_raw.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define RECV (1ull << 63)
#define STEP_MS 2000

struct raw_place raw_place;

static void must(int ok, const char *what)
{
	if (ok)
		return;
	printf("verbs_raw: %s: %s\n", what, strerror(errno));
	exit(1);
}

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

static uint64_t patience_ms(void)
{
	const char *ms = getenv("RIG_PATIENCE_MS");

	return ms ? strtoull(ms, NULL, 10) : 10000;
}

/* -- events -- */

static void answered(struct raw *raw, const struct rdma_cm_event *event)
{
	const struct rdma_conn_param *param = &event->param.conn;
	size_t len = param->private_data ? param->private_data_len : 0;

	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		raw->step++;
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		memcpy(&raw->hello, param->private_data,
		       len < sizeof(raw->hello) ? len : sizeof(raw->hello));
		raw->up = 1;
		break;
	case RDMA_CM_EVENT_REJECTED:
		memcpy(&raw->refusal, param->private_data,
		       len < sizeof(raw->refusal) ? len : sizeof(raw->refusal));
		raw->refused = 1;
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		raw->gone = 1;
		break;
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		break;
	default:
		raw->unanswered = 1;
	}
}

static void post_recv(struct raw *raw, uint64_t slot)
{
	struct ibv_sge sge = {.addr = (uintptr_t)raw->block + (2 + slot) * RAW_SLOT,
			      .length = RAW_SLOT,
			      .lkey = raw->mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = RECV | slot, .sg_list = &sge, .num_sge = 1}, *bad;

	ibv_post_recv(raw->id->qp, &wr, &bad);
}

static void arrived(struct raw *raw, uint64_t slot, uint32_t bytes)
{
	unsigned at = raw->n_in % RAW_SLOTS;

	raw->in[at].bytes = bytes;
	memcpy(raw->in[at].data, raw->block + (2 + slot) * RAW_SLOT, sizeof(raw->in[at].data));
	raw->n_in++;
	post_recv(raw, slot);
}

void raw_turn(struct raw *raw)
{
	struct rdma_cm_event *event;
	struct ibv_wc wc;

	if (raw_place.turn)
		raw_place.turn();
	while (!raw->deaf && rdma_get_cm_event(raw->channel, &event) == 0) {
		answered(raw, event);
		rdma_ack_cm_event(event);
	}
	while (raw->cq && ibv_poll_cq(raw->cq, 1, &wc) > 0) {
		if (!(wc.wr_id & RECV)) {
			raw->n_done++;
			raw->bad = raw->bad ? raw->bad : wc.status;
		} else if (wc.status == IBV_WC_SUCCESS) {
			arrived(raw, wc.wr_id & ~RECV, wc.byte_len);
		}
	}
}

static int in_time(struct raw *raw, uint64_t *end)
{
	struct pollfd fd = {.fd = raw->channel->fd, .events = POLLIN};

	*end = *end ? *end : now_ms() + patience_ms();
	raw_turn(raw);
	poll(&fd, 1, 1);
	return now_ms() < *end;
}

int raw_until(struct raw *raw, const unsigned *what, unsigned n)
{
	uint64_t end = 0;

	while (*what < n)
		if (!in_time(raw, &end))
			return 0;
	return 1;
}

int raw_lost(struct raw *raw)
{
	uint64_t end = 0;

	while (!raw->gone)
		if (!in_time(raw, &end))
			return 0;
	return 1;
}

/* -- connections -- */

static void resolve(struct raw *raw)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(raw_place.port)},
			   from = {.sin_family = AF_INET};
	uint64_t end = 0;

	must(inet_pton(AF_INET, raw_place.at, &to.sin_addr) == 1 &&
		     inet_pton(AF_INET, raw_place.from, &from.sin_addr) == 1,
	     "addresses");
	must(rdma_resolve_addr(raw->id, (struct sockaddr *)&from, (struct sockaddr *)&to,
			       STEP_MS) == 0,
	     "rdma_resolve_addr");
	while (raw->step < 1)
		must(in_time(raw, &end) && !raw->unanswered, "resolving the address");
	must(rdma_resolve_route(raw->id, STEP_MS) == 0, "rdma_resolve_route");
	while (raw->step < 2)
		must(in_time(raw, &end) && !raw->unanswered, "resolving the route");
}

static void equip(struct raw *raw)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 256,
			.max_recv_wr = RAW_SLOTS,
			.max_send_sge = 1,
			.max_recv_sge = 1},
	};
	size_t bytes = (2 + RAW_SLOTS) * RAW_SLOT;

	raw->pd = ibv_alloc_pd(raw->id->verbs);
	must(raw->pd != NULL, "ibv_alloc_pd");
	raw->cq = init.send_cq = init.recv_cq = ibv_create_cq(raw->id->verbs, 256 + RAW_SLOTS, NULL,
							      NULL, 0);
	must(raw->cq != NULL, "ibv_create_cq");
	must(rdma_create_qp(raw->id, raw->pd, &init) == 0, "rdma_create_qp");
	raw->block = aligned_alloc(RAW_SLOT, bytes);
	must(raw->block != NULL, "memory");
	memset(raw->block, 0, bytes);
	raw->out = raw->block;
	raw->credit = raw->block + RAW_SLOT;
	raw->mr = ibv_reg_mr(raw->pd, raw->block, bytes,
			     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	must(raw->mr != NULL, "ibv_reg_mr");
	for (uint64_t slot = 0; slot < RAW_SLOTS; slot++)
		post_recv(raw, slot);
}

void raw_open(struct raw *raw)
{
	memset(raw, 0, sizeof(*raw));
	raw->channel = rdma_create_event_channel();
	must(raw->channel && fcntl(raw->channel->fd, F_SETFL, O_NONBLOCK) == 0,
	     "rdma_create_event_channel");
	must(rdma_create_id(raw->channel, &raw->id, raw, RDMA_PS_TCP) == 0, "rdma_create_id");
	resolve(raw);
	equip(raw);
}

void raw_close(struct raw *raw)
{
	if (!raw->channel)
		return;
	if (raw->up)
		rdma_disconnect(raw->id);
	rdma_destroy_qp(raw->id);
	rdma_destroy_id(raw->id);
	ibv_destroy_cq(raw->cq);
	ibv_dereg_mr(raw->mr);
	ibv_dealloc_pd(raw->pd);
	rdma_destroy_event_channel(raw->channel);
	free(raw->block);
	memset(raw, 0, sizeof(*raw));
}

struct vb_hello raw_hello(struct raw *raw, enum vb_kind kind, const struct raw *of)
{
	static uint64_t session = 0x7261777065657200;
	struct vb_hello hello = {
		.magic = VB_MAGIC,
		.version = VB_VERSION,
		.kind = (uint8_t)kind,
		.end = VB_CONNECTS,
		.credit_addr = (uintptr_t)raw->credit,
		.credit_key = raw->mr->rkey,
	};

	hello.session = of ? of->hello.session : ++session;
	hello.secret = of ? of->hello.secret : 0;
	hello.slots = kind == VB_CONTROL ? VB_CTRL_SLOTS : kind == VB_MESSAGES ? 8 : 0;
	/* 128: the default of the option inline */
	hello.slot_bytes = kind == VB_CONTROL    ? VB_CTRL_SLOT
			   : kind == VB_MESSAGES ? sizeof(struct vb_msg) + 128
						 : 0;
	if (kind == VB_DATA || kind == VB_DIRECT)
		hello.listens_lane = VB_NO_LANE;
	return hello;
}

void raw_knock(struct raw *raw, const void *data, size_t len)
{
	struct rdma_conn_param param = {
		.private_data = data,
		.private_data_len = (uint8_t)len,
		.responder_resources = 1,
		.initiator_depth = 1,
		.retry_count = 6,
		.rnr_retry_count = 2,
	};

	must(rdma_connect(raw->id, &param) == 0, "rdma_connect");
}

void raw_ask(struct raw *raw, const void *data, size_t len)
{
	uint64_t end = 0;

	raw_knock(raw, data, len);
	while (!raw->up && !raw->refused && !raw->unanswered)
		must(in_time(raw, &end), "no answer to a request");
}

void raw_connect(struct raw *raw)
{
	struct vb_hello hello;

	raw_open(raw);
	hello = raw_hello(raw, VB_CONTROL, NULL);
	raw_ask(raw, &hello, sizeof(hello));
	must(raw->up, raw->refused ? raw->refusal.text : "connecting");
}

/* -- requests -- */

void raw_post(struct raw *raw, enum ibv_wr_opcode opcode, uint64_t addr, uint32_t key, uint32_t len)
{
	struct ibv_sge sge = {.addr = (uintptr_t)raw->out, .length = len, .lkey = raw->mr->lkey};
	struct ibv_send_wr wr = {.opcode = opcode,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .send_flags = IBV_SEND_SIGNALED},
			   *bad;

	wr.wr.rdma.remote_addr = addr;
	wr.wr.rdma.rkey = key;
	must(ibv_post_send(raw->id->qp, &wr, &bad) == 0, "ibv_post_send");
}

enum ibv_wc_status raw_move(struct raw *raw, enum ibv_wr_opcode opcode, uint64_t addr, uint32_t key,
			    uint32_t len)
{
	unsigned n = raw->n_done + 1;

	raw_post(raw, opcode, addr, key, len);
	must(raw_until(raw, &raw->n_done, n), "a request that does not end");
	return raw->bad;
}

enum ibv_wc_status raw_send(struct raw *raw, uint32_t len)
{
	return raw_move(raw, IBV_WR_SEND, 0, 0, len);
}

enum ibv_wc_status raw_ctrl(struct raw *raw, unsigned kind, const void *body, size_t len)
{
	struct vb_ctrl head = {.kind = (uint8_t)kind,
			       .length = (uint16_t)len,
			       .allowed = raw->n_in + VB_CTRL_SLOTS};

	memcpy(raw->out, &head, sizeof(head));
	if (len)
		memcpy(raw->out + sizeof(head), body, len);
	return raw_send(raw, (uint32_t)(sizeof(head) + len));
}

const void *raw_heard(struct raw *raw, enum vb_ctrl_kind kind)
{
	while (raw_until(raw, &raw->n_in, raw->n_seen + 1)) {
		const uint8_t *data = raw->in[raw->n_seen++ % RAW_SLOTS].data;

		if (*data == kind)
			return data + sizeof(struct vb_ctrl);
	}
	return NULL;
}
