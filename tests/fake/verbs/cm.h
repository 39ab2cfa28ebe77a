/* SPDX-License-Identifier: BSD-3-Clause */
/* cm.h - internal to the fake: ids, channels and messages of the connection manager */
#ifndef FAKE_VERBS_CM_H
#define FAKE_VERBS_CM_H

#include "priv.h"

#define FV_REQ_DATA 56
#define FV_REP_DATA 196
#define FV_REJ_DATA 148
#define FV_REJ_TIMEOUT 4
#define FV_REJ_NO_SERVICE 8
#define FV_REJ_CONSUMER 28

enum fv_state {
	FV_IDLE,
	FV_BOUND,
	FV_ADDR,  /* address resolved */
	FV_ROUTE, /* route resolved */
	FV_LISTENS,
	FV_CONNECTS,  /* request sent */
	FV_REQUESTED, /* the id got a request */
	FV_ACCEPTED,  /* has accepted the request */
	FV_ANSWERED,  /* the reply arrived; its event is not delivered yet */
	FV_ESTABLISHED,
	FV_CLOSES, /* sent the request to disconnect */
	FV_LEFT,   /* received the request to disconnect */
	FV_OVER
};

enum fv_msg { FV_NOTHING, FV_REQ, FV_REP, FV_RTU, FV_REJ, FV_DREQ, FV_DREP };

struct fv_id {
	struct rdma_cm_id id;
	struct fv_obj obj;
	enum fv_state state;
	unsigned device, remote_device;
	int any; /* bound to any address */
	int reuse;
	int passive;                  /* created by a connection request */
	unsigned backlog, n_requests; /* listener: requests whose event is pending */
	struct fv_id *peer;
	/* parameters of the connection */
	uint8_t ack_timeout, retry, rnr_retry, init_depth, resp_res;
	uint32_t qp_num, remote_qpn;
	/* last message with private data or parameters */
	struct rdma_conn_param param;
	uint8_t data[256];
	int reason;
	enum fv_msg lost; /* the message that the cut wire has dropped */
};

struct fv_event {
	struct rdma_cm_event event;
	struct fv_obj obj;
	struct fv_event *next;
	struct fv_id *owner; /* whose destruction waits for the acknowledgement */
	uint8_t data[256];
};

struct fv_channel {
	struct rdma_event_channel channel;
	struct fv_obj obj;
	struct fv_bell bell;
	struct fv_event *first, **last;
};

/* -- cm_event.c -- */
/* Queue an event for an id. data: private data of the message, `len` bytes, or NULL. */
struct fv_event *fv_cm_event(struct fv_id *id, enum rdma_cm_event_type type, int status,
			     const void *data, unsigned len);
void fv_cm_forget_events(struct fv_id *id);
void fv_cm_move_events(struct fv_id *id, struct fv_channel *to);
void fv_cm_send(struct fv_id *from, enum fv_msg msg);
struct fv_id *fv_cm_child(struct fv_id *listener);

/* -- cm.c -- */
struct fv_id *fv_id_make(struct fv_channel *channel, void *context, enum rdma_port_space ps);
void fv_id_free(struct fv_id *id);
struct ibv_context *fv_cm_context(unsigned device);
struct fv_id *fv_cm_listener(const struct sockaddr_in *addr);
void fv_addresses_reset(void);

/* -- cm_conn.c -- */
struct fv_qp *fv_cm_qp(const struct fv_id *id); /* NULL: no queue pair, or destroyed */
int fv_cm_connect_qp(struct fv_id *id);
void fv_cm_qp_error(struct fv_id *id);

#endif
