/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * port.h - the receiving end of one lane of a session: takes descriptors off a transport, checks
 * them, sends them down the role's stages, and answers.
 *
 * Nothing that a peer sends is believed: a descriptor is copied once to private memory, and its
 * operation, flags, range, region, rights and tag are checked there. What is wrong with an IO fails
 * that IO; what breaks the protocol ends the session.
 */
#ifndef GN_TRANSPORT_RESPONDER_H
#define GN_TRANSPORT_RESPONDER_H

#include "io/check.h"
#include "pipeline/pipeline.h"
#include "transport/device.h"

struct gn_responder;

struct gn_responder_attr {
	struct gn_lane *lane;
	const struct gantry_transport_ops *ops;
	const struct gn_io_rules *rules;
	struct gantry_hop terminal;
	uint32_t depth;   /* IOs that the peer may have in flight */
	uint32_t quantum; /* bytes of data for each turn of the lane, see pipeline/split.h; 1 .. */
	void *consumer, *producer;
	void *rma; /* to move data of regions that are not mapped; NULL: they are */
	/* with rma: where it is moved through, see bounce.h */
	const struct gantry_region *move_memory;
	int moves_store; /* that is the volume itself */
	/*
	 * the terminal is a link, which knows when an answer came; 0: look at the clock for each
	 * reply
	 */
	int relays;
	/*
	 * GANTRY_CAP_ORDERED: the reply of a read may follow its data before the move has ended,
	 * unless the region is unordered
	 */
	int ordered;
	int notes; /* a read may be answered by a note, see io/wire.h */
	/* The peer broke the protocol, or vanished; once, on the lane's thread. */
	void (*broken)(void *arg, int reason);
	/* After gn_responder_quiesce: nothing is in flight any more; once, on the lane's thread. */
	void (*idle)(void *arg);
	void *arg;
	uint64_t *ops_done, *ops_failed; /* counters */
};

/* Make it and begin to poll. Control thread. */
int gn_responder_create(const struct gn_responder_attr *attr, struct gn_responder **port_p);
/* Take no more descriptors; `idle` follows when those in flight have completed. Control thread. */
void gn_responder_quiesce(struct gn_responder *port);
/*
 * As gn_responder_quiesce, for a session that is lost: what the stages, the bounce buffer or the
 * peer do not take at once is given up, and stages are asked to give back what they hold of it.
 * What is in the terminal is waited for. May follow gn_responder_quiesce; `idle` comes once. From
 * now on the port sends no answer for an IO that ends with GANTRY_S_CANCELED: the peer completes
 * that IO when the session ends. Control thread.
 */
void gn_responder_abandon(struct gn_responder *port);
/* Count the requests in flight that change the volume. Control thread; waits for the lane. */
uint32_t gn_responder_count_writes(struct gn_responder *port);
/* After `idle`. The queues are no longer used. Control thread. */
void gn_responder_destroy(struct gn_responder **port_p);

#endif
