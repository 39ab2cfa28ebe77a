/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * verbs_raw.h - a peer that speaks RDMA, but does not follow the protocol of gantry: it sends
 * arbitrary messages and tries accesses that are not allowed.
 *
 * Each expected event must occur within the time limit of the rig. Functions that wait call turn()
 * if it is not NULL. If the event does not occur, they print it and end the program, except where a
 * comment says otherwise.
 */
#ifndef CONFORM_VERBS_RAW_H
#define CONFORM_VERBS_RAW_H

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include "vb_wire.h"

#define RAW_SLOTS 64u  /* posted receives, and buffers for received messages */
#define RAW_SLOT 4096u /* bytes of each buffer, and maximum of a message to send */

struct raw {
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	/*
	 * memory: RAW_SLOT bytes to send from and to read into (out), RAW_SLOT bytes that the
	 * victim can write (credit), and the receives
	 */
	uint8_t *block;
	uint8_t *out, *credit;
	int deaf; /* reads no events of the connection manager, and so answers none */
	int step; /* number of address resolution steps done */
	int up, refused, unanswered, gone;
	struct vb_hello hello; /* what the victim sent */
	struct vb_refusal refusal;
	unsigned n_done; /* completed requests; bad: status of the first failed one */
	enum ibv_wc_status bad;
	unsigned n_in; /* messages that arrived; n_seen: those that the test read */
	unsigned n_seen;
	struct {
		uint32_t bytes;
		uint8_t data[sizeof(struct vb_ctrl) + sizeof(struct vb_ctrl_region)];
	} in[RAW_SLOTS];
};

/* Set before the first call. at, from: IPv4 addresses of the victim and of this peer. */
struct raw_place {
	const char *at, *from;
	uint16_t port;
	void (*turn)(void);
};
extern struct raw_place raw_place;

void raw_open(struct raw *raw); /* do all steps before the connection request */
void raw_close(struct raw *raw);
/* Make a valid request. of: the connection to which the new queue pair belongs, or NULL. */
struct vb_hello raw_hello(struct raw *raw, enum vb_kind kind, const struct raw *of);
/* Send the request and wait for the result: sets up, refused or unanswered. */
void raw_ask(struct raw *raw, const void *data, size_t len);
void raw_knock(struct raw *raw, const void *data, size_t len); /* send only */
/* Establish a valid control connection. */
void raw_connect(struct raw *raw);
void raw_turn(struct raw *raw);
/* Make turns until *what >= n. Returns false if the time limit passes before. */
int raw_until(struct raw *raw, const unsigned *what, unsigned n);
/* Make turns until the victim disconnects. Returns false if the time limit passes before. */
int raw_lost(struct raw *raw);
/* Post a request and return the status of its completion. `out` has the data to send or write. */
enum ibv_wc_status raw_send(struct raw *raw, uint32_t len);
enum ibv_wc_status raw_move(struct raw *raw, enum ibv_wr_opcode opcode, uint64_t addr, uint32_t key,
			    uint32_t len);
/* Post a request without waiting. */
void raw_post(struct raw *raw, enum ibv_wr_opcode opcode, uint64_t addr, uint32_t key,
	      uint32_t len);
/* Send a control message with a valid header and this body. */
enum ibv_wc_status raw_ctrl(struct raw *raw, unsigned kind, const void *body, size_t len);
/* Returns the body of the next control message of that kind, or NULL: none arrived in time. */
const void *raw_heard(struct raw *raw, enum vb_ctrl_kind kind);

#endif
