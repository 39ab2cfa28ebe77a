/* SPDX-License-Identifier: BSD-3-Clause */
/* pair.h - two ids that the fake connects, each with a queue pair, for tests of the data path */
#ifndef UNIT_VERBS_PAIR_H
#define UNIT_VERBS_PAIR_H

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "fake/verbs/verbs.h"
#include "unity.h"

#define PAIR_BYTES 4096

struct pair_end {
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	struct ibv_pd *pd;
	struct ibv_comp_channel *comp;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	uint8_t buf[PAIR_BYTES];
};

struct pair {
	struct pair_end a, b; /* a connects; b listens */
	struct rdma_cm_id *listener;
	/* tests can change these before pair_up() */
	struct ibv_qp_cap cap;
	int cqe;
	unsigned access;
	struct rdma_conn_param param;
};

/* Expect that one misuse was recorded, with this text, and clear it. */
static inline void expect_misuse(const char *words)
{
	const char *text = fake_verbs_check_clean();

	TEST_ASSERT_NOT_NULL_MESSAGE(strstr(text, words), text);
	TEST_ASSERT_EQUAL_UINT(1, fake_verbs_forgive());
}

static inline struct sockaddr_in pair_address(const char *text, uint16_t port)
{
	struct sockaddr_in sin = {.sin_family = AF_INET, .sin_port = htons(port)};

	TEST_ASSERT_EQUAL_INT(1, inet_pton(AF_INET, text, &sin.sin_addr));
	return sin;
}

/* Expect an event of this type and status, acknowledge it, and return its id. */
static inline struct rdma_cm_id *pair_expect(struct rdma_event_channel *channel,
					     enum rdma_cm_event_type type, int status)
{
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;

	TEST_ASSERT_EQUAL_INT_MESSAGE(0, rdma_get_cm_event(channel, &event), rdma_event_str(type));
	TEST_ASSERT_EQUAL_STRING(rdma_event_str(type), rdma_event_str(event->event));
	TEST_ASSERT_EQUAL_INT(status, event->status);
	id = event->id;
	TEST_ASSERT_EQUAL_INT(0, rdma_ack_cm_event(event));
	return id;
}

static inline void pair_expect_none(struct rdma_event_channel *channel)
{
	struct rdma_cm_event *event;

	TEST_ASSERT_EQUAL_INT(-1, rdma_get_cm_event(channel, &event));
	TEST_ASSERT_EQUAL_INT(EAGAIN, errno);
}

static inline struct rdma_event_channel *pair_channel(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();

	TEST_ASSERT_NOT_NULL(channel);
	TEST_ASSERT_EQUAL_INT(
		0, fcntl(channel->fd, F_SETFL, fcntl(channel->fd, F_GETFL) | O_NONBLOCK));
	return channel;
}

static inline void pair_make_qp(const struct pair *pair, struct pair_end *end)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC, .cap = pair->cap, .send_cq = end->cq, .recv_cq = end->cq};

	TEST_ASSERT_EQUAL_INT(0, rdma_create_qp(end->id, end->pd, &init));
}

/* Create a protection domain, queues and memory for an id that has a device. */
static inline void pair_furnish(const struct pair *pair, struct pair_end *end)
{
	TEST_ASSERT_NOT_NULL(end->pd = ibv_alloc_pd(end->id->verbs));
	TEST_ASSERT_NOT_NULL(end->comp = ibv_create_comp_channel(end->id->verbs));
	TEST_ASSERT_EQUAL_INT(0, fcntl(end->comp->fd, F_SETFL, O_NONBLOCK));
	TEST_ASSERT_NOT_NULL(end->cq = ibv_create_cq(end->id->verbs, pair->cqe, end, end->comp, 0));
	TEST_ASSERT_NOT_NULL(
		end->mr = ibv_reg_mr(end->pd, end->buf, sizeof(end->buf), pair->access));
	pair_make_qp(pair, end);
}

static inline void pair_unfurnish(struct pair_end *end)
{
	rdma_destroy_qp(end->id);
	TEST_ASSERT_EQUAL_INT(0, rdma_destroy_id(end->id));
	TEST_ASSERT_EQUAL_INT(0, ibv_destroy_cq(end->cq));
	TEST_ASSERT_EQUAL_INT(0, ibv_destroy_comp_channel(end->comp));
	TEST_ASSERT_EQUAL_INT(0, ibv_dereg_mr(end->mr));
	TEST_ASSERT_EQUAL_INT(0, ibv_dealloc_pd(end->pd));
}

static inline void pair_init(struct pair *pair)
{
	memset(pair, 0, sizeof(*pair));
	pair->cap = (struct ibv_qp_cap){.max_send_wr = 8,
					.max_recv_wr = 8,
					.max_send_sge = 2,
					.max_recv_sge = 2,
					.max_inline_data = 64};
	pair->cqe = 32;
	pair->access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
	pair->param = (struct rdma_conn_param){.responder_resources = 4,
					       .initiator_depth = 4,
					       .retry_count = 3,
					       .rnr_retry_count = 2};
}

/* Create channels, a listener on fake1, and an id with a resolved route to it. */
static inline void pair_listen(struct pair *pair)
{
	struct sockaddr_in at = pair_address("127.0.0.2", 0), from = pair_address("127.0.0.1", 0);

	pair->a.channel = pair_channel();
	pair->b.channel = pair_channel();
	TEST_ASSERT_EQUAL_INT(0,
			      rdma_create_id(pair->b.channel, &pair->listener, pair, RDMA_PS_TCP));
	TEST_ASSERT_EQUAL_INT(0, rdma_bind_addr(pair->listener, (struct sockaddr *)&at));
	TEST_ASSERT_EQUAL_INT(0, rdma_listen(pair->listener, 4));
	at.sin_port = rdma_get_src_port(pair->listener);
	TEST_ASSERT_EQUAL_INT(0,
			      rdma_create_id(pair->a.channel, &pair->a.id, &pair->a, RDMA_PS_TCP));
	TEST_ASSERT_EQUAL_INT(0, rdma_resolve_addr(pair->a.id, (struct sockaddr *)&from,
						   (struct sockaddr *)&at, 1000));
	pair_expect(pair->a.channel, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	TEST_ASSERT_EQUAL_INT(0, rdma_resolve_route(pair->a.id, 1000));
	pair_expect(pair->a.channel, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
}

static inline void pair_up(struct pair *pair)
{
	pair_listen(pair);
	pair_furnish(pair, &pair->a);
	TEST_ASSERT_EQUAL_INT(0, rdma_connect(pair->a.id, &pair->param));
	pair->b.id = pair_expect(pair->b.channel, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	pair_furnish(pair, &pair->b);
	TEST_ASSERT_EQUAL_INT(0, rdma_accept(pair->b.id, &pair->param));
	pair_expect(pair->a.channel, RDMA_CM_EVENT_ESTABLISHED, 0);
	pair_expect(pair->b.channel, RDMA_CM_EVENT_ESTABLISHED, 0);
}

/* Destroy all that pair_up() created, in any state. */
static inline void pair_down(struct pair *pair)
{
	pair_unfurnish(&pair->a);
	pair_unfurnish(&pair->b);
	TEST_ASSERT_EQUAL_INT(0, rdma_destroy_id(pair->listener));
	rdma_destroy_event_channel(pair->a.channel);
	rdma_destroy_event_channel(pair->b.channel);
}

/* Returns a scatter/gather entry for a range of the memory of this end. */
static inline struct ibv_sge pair_sge(struct pair_end *end, unsigned offset, unsigned length)
{
	return (struct ibv_sge){
		.addr = (uintptr_t)end->buf + offset, .length = length, .lkey = end->mr->lkey};
}

static inline int pair_recv(struct pair_end *end, uint64_t wr_id, unsigned offset, unsigned length)
{
	struct ibv_sge sge = pair_sge(end, offset, length);
	struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1}, *bad;

	return ibv_post_recv(end->id->qp, &wr, &bad);
}

static inline int pair_send(struct pair_end *end, uint64_t wr_id, unsigned offset, unsigned length,
			    unsigned flags)
{
	struct ibv_sge sge = pair_sge(end, offset, length);
	struct ibv_send_wr wr = {.wr_id = wr_id,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_SEND,
				 .send_flags = flags},
			   *bad;

	return ibv_post_send(end->id->qp, &wr, &bad);
}

/* Post a signalled read or write at an offset in the memory of the other end. */
static inline int pair_rdma(struct pair_end *end, struct pair_end *other, enum ibv_wr_opcode opcode,
			    int64_t offset, unsigned length)
{
	struct ibv_sge sge = pair_sge(end, 0, length);
	struct ibv_send_wr wr = {.wr_id = (uint64_t)offset,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = opcode,
				 .imm_data = htonl(42),
				 .send_flags = IBV_SEND_SIGNALED,
				 .wr.rdma = {.remote_addr = (uintptr_t)other->buf +
							    (uint64_t)offset,
					     .rkey = other->mr->rkey}},
			   *bad;

	return ibv_post_send(end->id->qp, &wr, &bad);
}

/* Poll a completion, expect this id and status, and return it. */
static inline struct ibv_wc pair_done(struct pair_end *end, uint64_t wr_id,
				      enum ibv_wc_status status)
{
	struct ibv_wc wc;

	TEST_ASSERT_EQUAL_INT(1, ibv_poll_cq(end->cq, 1, &wc));
	TEST_ASSERT_EQUAL_STRING(ibv_wc_status_str(status), ibv_wc_status_str(wc.status));
	TEST_ASSERT_EQUAL_UINT64(wr_id, wc.wr_id);
	return wc;
}

static inline void pair_idle(struct pair_end *end)
{
	struct ibv_wc wc;

	TEST_ASSERT_EQUAL_INT(0, ibv_poll_cq(end->cq, 1, &wc));
}

#endif
