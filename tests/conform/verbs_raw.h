/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * verbs_raw.h - a peer that speaks RDMA, but does not follow the protocol of gantry: it sends
 * arbitrary messages and tries accesses that are not allowed.
 *
 * Each expected event must occur within the time limit of the rig. Meanwhile turn() is called, if
 * it is set. If the event does not occur, the program prints it and ends, except where a comment
 * says otherwise.
 */
#ifndef CONFORM_VERBS_RAW_H
#define CONFORM_VERBS_RAW_H

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include "vb_wire.h"

#define RAW_SLOTS 64u  /* receives that it has posted, and slots for the messages received */
#define RAW_SLOT 4096u /* bytes of each, and of a message to send */

struct raw {
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	/*
	 * RAW_SLOT to send from or to read to; RAW_SLOT that the victim may write to; the receives
	 */
	uint8_t *block;
	uint8_t *out, *credit;
	int deaf; /* it does not read, and so does not answer, events of the connection manager */
	int step; /* of resolving */
	int up, refused, unanswered, gone;
	struct vb_hello hello; /* private data of the victim's answer */
	struct vb_refusal refusal;
	unsigned n_done; /* requests that completed, and the status of the first that failed */
	enum ibv_wc_status bad;
	unsigned n_in; /* messages that arrived, and how many of them were read */
	unsigned n_seen;
	struct {
		uint32_t bytes;
		uint8_t data[sizeof(struct vb_ctrl) + sizeof(struct vb_ctrl_region)];
	} in[RAW_SLOTS];
};

/* Call before the rest. at, from: IPv4 addresses, that of the victim with the port. */
struct raw_place {
	const char *at, *from;
	uint16_t port;
	void (*turn)(void);
};
extern struct raw_place raw_place;

void raw_open(struct raw *raw); /* all steps before the connection request */
void raw_close(struct raw *raw);
/* A valid request of that kind. of: the connection to which the new queue pair belongs, or NULL. */
struct vb_hello raw_hello(struct raw *raw, enum vb_kind kind, const struct raw *of);
/* Send the request, and wait for the result: it is in up, refused or unanswered. */
void raw_ask(struct raw *raw, const void *data, size_t len);
void raw_knock(struct raw *raw, const void *data, size_t len); /* does not wait */
/* A valid control connection. */
void raw_connect(struct raw *raw);
void raw_turn(struct raw *raw);
/* Turns until *what >= n. False: not in time. */
int raw_until(struct raw *raw, const unsigned *what, unsigned n);
int raw_lost(struct raw *raw); /* turns until the victim has ended it */
/* Post, and wait for the completion: returns its status. The data to send or write is in out. */
enum ibv_wc_status raw_send(struct raw *raw, uint32_t len);
enum ibv_wc_status raw_move(struct raw *raw, enum ibv_wr_opcode opcode, uint64_t addr, uint32_t key,
			    uint32_t len);
/* Post without waiting for the completion. */
void raw_post(struct raw *raw, enum ibv_wr_opcode opcode, uint64_t addr, uint32_t key,
	      uint32_t len);
/* A control message, with its length unchanged. */
enum ibv_wc_status raw_ctrl(struct raw *raw, unsigned kind, const void *body, size_t len);
/* The body of the next control message of that kind. NULL: none in time. */
const void *raw_heard(struct raw *raw, enum vb_ctrl_kind kind);

#endif
