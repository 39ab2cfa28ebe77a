/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * verbs_raw.h - a peer that speaks RDMA, but is no gantry: it sends what it likes and tries what it
 * may not.
 *
 * Whatever is waited for comes within the patience of the rig; meanwhile turn() is called, if there
 * is one. One that does not come is said and ends the program, but where it says otherwise.
 */
#ifndef CONFORM_VERBS_RAW_H
#define CONFORM_VERBS_RAW_H

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include "wire.h"

#define RAW_SLOTS 64u  /* receives that it has posted, and as many places for what came */
#define RAW_SLOT 4096u /* bytes of each, and of what it sends */

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
	int deaf; /* it reads no events of the connection manager: nothing is answered */
	int step; /* of resolving */
	int up, refused, unanswered, gone;
	struct vb_hello hello; /* what the victim said */
	struct vb_refusal refusal;
	unsigned n_done; /* requests that ended, and how the first bad one did */
	enum ibv_wc_status bad;
	unsigned n_in; /* messages that came, and those of them that were looked at */
	unsigned n_seen;
	struct {
		uint32_t bytes;
		uint8_t data[sizeof(struct vb_ctrl) + sizeof(struct vb_ctrl_region)];
	} in[RAW_SLOTS];
};

/* To be set before the rest is used. at, from: IPv4 addresses, the victim's with the port. */
struct raw_place {
	const char *at, *from;
	uint16_t port;
	void (*turn)(void);
};
extern struct raw_place raw_place;

void raw_open(struct raw *raw); /* as far as it goes without asking anybody to connect */
void raw_close(struct raw *raw);
/*
 * A request that is right, of that kind. of: the connection that it is a further queue pair of, or
 * NULL.
 */
struct vb_hello raw_hello(struct raw *raw, enum vb_kind kind, const struct raw *of);
/* Ask; the answer is in up, refused or unanswered. */
void raw_ask(struct raw *raw, const void *data, size_t len);
void raw_knock(struct raw *raw, const void *data, size_t len); /* only ask */
/* A good control connection. */
void raw_connect(struct raw *raw);
void raw_turn(struct raw *raw);
/* Turns until *what >= n. False: it did not come in time. */
int raw_until(struct raw *raw, const unsigned *what, unsigned n);
int raw_lost(struct raw *raw); /* turns until the victim has ended it */
/* Post, and wait for the end of it: how it ended. What is sent or written is in out. */
enum ibv_wc_status raw_send(struct raw *raw, uint32_t len);
enum ibv_wc_status raw_move(struct raw *raw, enum ibv_wr_opcode opcode, uint64_t addr, uint32_t key,
			    uint32_t len);
/* do not wait */
void raw_post(struct raw *raw, enum ibv_wr_opcode opcode, uint64_t addr, uint32_t key,
	      uint32_t len);
/* A control message, its length as it is. */
enum ibv_wc_status raw_ctrl(struct raw *raw, unsigned kind, const void *body, size_t len);
/* The next control message of that kind that came: its body. NULL: none came in time. */
const void *raw_heard(struct raw *raw, enum vb_ctrl_kind kind);

#endif
