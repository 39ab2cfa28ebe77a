/* SPDX-License-Identifier: BSD-3-Clause */
/* rig.h - two ends of a connection, built from the objects of vb_rdma.h, over the fake */
#ifndef UNIT_VERBS_RIG_H
#define UNIT_VERBS_RIG_H

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include <gantry/transport.h>

#include "fake/verbs/verbs.h"
#include "../common/address.h"
#include "vb_rdma.h"
#include "unity.h"

#define RIG_BYTES 4096
#define RIG_MS 1000 /* time limit of a connecting step; never reached: the fake has no clock */

struct rig_end {
	struct rdma_event_channel *events;
	struct rdma_cm_id *id;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct vb_cq cq;
	struct vb_qp qp;
	struct vb_async_event async;
	struct ibv_mr *mr;
	struct vb_limits limits;
	struct vb_event event; /* the last event */
	char buf[RIG_BYTES] __attribute__((aligned(64)));
};

static struct rig {
	struct rig_end a, b; /* a connects; b listens */
	struct rdma_cm_id *listener;
	/* tests can change these before rig_up() */
	struct vb_patience patience;
	struct vb_qp_attr attr; /* rig_equip() sets cq and async */
	uint32_t rights;
	int local;
} rig;

static const char hello[] = "hello", answer[] = "answer";

static inline void rig_init(void)
{
	fake_verbs_reset();
	memset(&rig, 0, sizeof(rig));
	rig.patience =
		(struct vb_patience){.retry_count = 6, .rnr_retry_count = 5, .ack_timeout = 14};
	rig.attr = (struct vb_qp_attr){.sends = 8, .recvs = 8, .inline_bytes = 64};
	rig.rights = GANTRY_REMOTE_READ | GANTRY_REMOTE_WRITE;
	rig.local = 1;
}

/* Parse an address. */
static inline struct sockaddr *rig_address(const char *text)
{
	static struct sockaddr_storage addr;

	TEST_ASSERT_EQUAL_INT_MESSAGE(0, tc_address_parse(text, &addr), text);
	return (struct sockaddr *)&addr;
}

/*
 * Take the next event. Returns 0 if it has this type; -EBADMSG if there is none or it has another
 * type; or the error of vb_events_next().
 */
static inline int rig_expect(struct rig_end *end, enum rdma_cm_event_type type)
{
	int rc = vb_events_next(end->events, &end->event);

	return rc < 0 ? rc : rc == 1 && end->event.type == type ? 0 : -EBADMSG;
}

/* Create all objects of an id that has a device; query the limits unless they are set. */
static inline int rig_equip(struct rig_end *end)
{
	struct vb_qp_attr attr = rig.attr;
	int rc = end->limits.max_qp_wr ? 0 : vb_device_limits(end->id->verbs, &end->limits);

	if (!rc)
		rc = vb_pd_create(end->id->verbs, &end->pd);
	if (!rc)
		rc = vb_mr_create(end->pd, end->buf, sizeof(end->buf), rig.rights, rig.local,
				  &end->mr);
	if (!rc)
		rc = vb_channel_create(end->id->verbs, &end->channel);
	if (!rc)
		rc = vb_cq_create(end->id->verbs, &end->limits, attr.sends + attr.recvs,
				  end->channel, &end->cq);
	if (!rc)
		rc = vb_cq_arm(&end->cq);
	attr.cq = end->cq.cq;
	attr.async = &end->async;
	return rc ? rc : vb_qp_create(end->id, end->pd, &end->limits, &attr, &end->qp);
}

/* Create a listener, and an id that can connect to it. */
static inline int rig_listen(void)
{
	struct sockaddr_in to;
	int rc = vb_events_open(&rig.a.events);

	if (!rc)
		rc = vb_events_open(&rig.b.events);
	if (!rc)
		rc = vb_id_create(rig.b.events, &rig, &rig.listener);
	if (!rc)
		rc = vb_id_listen(rig.listener, rig_address("127.0.0.2:0"), 4);
	if (!rc)
		rc = vb_id_create(rig.a.events, &rig.a, &rig.a.id);
	if (rc)
		return rc;
	memcpy(&to, rig_address("127.0.0.2:0"), sizeof(to));
	to.sin_port = rdma_get_src_port(rig.listener);
	rc = vb_id_resolve_addr(rig.a.id, rig_address("127.0.0.1:0"), (struct sockaddr *)&to,
				RIG_MS);
	if (!rc)
		rc = rig_expect(&rig.a, RDMA_CM_EVENT_ADDR_RESOLVED);
	if (!rc)
		rc = vb_id_set_patience(rig.a.id, &rig.patience);
	if (!rc)
		rc = vb_id_resolve_route(rig.a.id, RIG_MS);
	return rc ? rc : rig_expect(&rig.a, RDMA_CM_EVENT_ROUTE_RESOLVED);
}

/* Connect up to the event of the request, with its new id, at the listener. */
static inline int rig_request(void)
{
	int rc = rig_listen();

	if (!rc)
		rc = rig_equip(&rig.a);
	if (!rc)
		rc = vb_id_connect(rig.a.id, &rig.a.limits, &rig.patience, hello, sizeof(hello));
	if (!rc)
		rc = rig_expect(&rig.b, RDMA_CM_EVENT_CONNECT_REQUEST);
	if (!rc)
		rig.b.id = rig.b.event.id;
	return rc;
}

static inline int rig_accept(void)
{
	int rc = vb_id_set_patience(rig.b.id, &rig.patience);

	return rc ? rc
		  : vb_id_accept(rig.b.id, &rig.b.limits, &rig.patience, &rig.b.event, answer,
				 sizeof(answer));
}

static inline int rig_up(void)
{
	int rc = rig_request();

	if (!rc)
		rc = rig_equip(&rig.b);
	if (!rc)
		rc = rig_accept();
	if (!rc)
		rc = rig_expect(&rig.a, RDMA_CM_EVENT_ESTABLISHED);
	return rc ? rc : rig_expect(&rig.b, RDMA_CM_EVENT_ESTABLISHED);
}

static inline void rig_unequip(struct rig_end *end)
{
	if (end->qp.qp)
		vb_qp_destroy(end->id, &end->qp);
	vb_id_destroy(&end->id);
	vb_cq_destroy(&end->cq);
	vb_channel_destroy(&end->channel);
	TEST_ASSERT_EQUAL_INT(0, vb_mr_destroy(&end->mr));
	vb_pd_destroy(&end->pd);
}

/* Destroy all objects, in any state. */
static inline void rig_down(void)
{
	rig_unequip(&rig.a);
	rig_unequip(&rig.b);
	vb_id_destroy(&rig.listener);
	vb_events_close(&rig.a.events);
	vb_events_close(&rig.b.events);
}

static inline void rig_clean(void)
{
	TEST_ASSERT_EQUAL_STRING("", fake_verbs_check_clean());
}

static inline struct fake_counters rig_counters(void)
{
	struct fake_counters c;

	fake_verbs_counters(&c);
	return c;
}

static inline struct ibv_qp_attr rig_attr(const struct rig_end *end)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	TEST_ASSERT_EQUAL_INT(0, ibv_query_qp(end->qp.qp, &attr, 0, &init));
	return attr;
}

static inline void rig_ended(void *arg, const struct vb_send *send, int status)
{
	(void)arg, (void)send, (void)status;
}

/*
 * Post a signalled request of a, with the start of its buffer. remote: offset in the buffer of b.
 * Returns the status of the completion.
 */
static inline enum ibv_wc_status rig_do(enum ibv_wr_opcode opcode, int64_t remote, uint32_t length)
{
	static const struct vb_send send = {.wanted = 1};
	struct ibv_send_wr *wr = vb_qp_build(&rig.a.qp, &send);
	struct ibv_wc wc;

	TEST_ASSERT_NOT_NULL(wr);
	wr->opcode = opcode;
	*wr->sg_list = (struct ibv_sge){
		.addr = (uintptr_t)rig.a.buf, .length = length, .lkey = rig.a.mr->lkey};
	wr->wr.rdma.remote_addr = (uintptr_t)rig.b.buf + (uint64_t)remote;
	wr->wr.rdma.rkey = rig.b.mr->rkey;
	TEST_ASSERT_EQUAL_INT(0, vb_qp_post(&rig.a.qp));
	TEST_ASSERT_EQUAL_INT(1, vb_cq_poll(&rig.a.cq, &wc, 1));
	TEST_ASSERT_EQUAL_UINT64(rig.a.qp.built - 1, wc.wr_id);
	vb_qp_done(&rig.a.qp, wc.wr_id, 0, rig_ended, NULL);
	return wc.status;
}

static inline int rig_ready(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, 0);
}

/* Check that a descriptor is nonblocking and close-on-exec. */
static inline void rig_check_fd(int fd)
{
	TEST_ASSERT_TRUE(fcntl(fd, F_GETFL) & O_NONBLOCK);
	TEST_ASSERT_TRUE(fcntl(fd, F_GETFD) & FD_CLOEXEC);
}

#endif
