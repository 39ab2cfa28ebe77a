/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * responder.h - the receiving end of one lane of a session: takes descriptors from a transport,
 * checks them, submits them to the stages of the role, and replies.
 *
 * Input from the peer is untrusted. The responder copies each descriptor once to private memory,
 * and checks operation, flags, range, region and rights of the copy. An invalid IO fails with a
 * status. A violation of the protocol ends the session.
 */
#ifndef GN_TRANSPORT_RESPONDER_H
#define GN_TRANSPORT_RESPONDER_H

#include "io/io_check.h"
#include "pipeline/pipeline.h"
#include "transport/io_counts.h"
#include "transport/device.h"

struct gn_responder;

struct gn_responder_attr {
	struct gn_lane *lane;
	const struct gantry_transport_ops *ops;
	/*
	 * The responder copies the rules with the table of regions. It also uses the table of the
	 * caller, for the regions of requests in flight.
	 */
	const struct gn_io_rules *rules;
	struct gantry_hop terminal;
	/* volume of the terminal; the rules have the one that the stages make of it */
	const struct gantry_volume_info *volume;
	const void *session; /* of gantry_hop.session */
	uint32_t depth;      /* IOs that the peer may have in flight */
	/* bytes of data in each turn of the lane, see pipeline/split.h; at least 1 */
	uint32_t quantum;
	void *consumer, *producer;
	void *rma; /* object for remote reads and writes; NULL: all regions are mapped */
	/* memory of the bounce buffers, see bounce.h; not used if `rma` is NULL */
	const struct gantry_region *move_memory;
	int moves_store; /* move_memory is the volume itself */
	/*
	 * 1: the terminal is a requester, which updates the clock for each batch of replies. 0: the
	 * responder reads the clock for each reply. The responder writes the time of the hop
	 * GATEWAY or TARGET accordingly.
	 */
	int relays;
	int takes_lists; /* 1: the terminal and the stages accept descriptors with GANTRY_IO_LIST */
	/*
	 * 1: the device has GANTRY_CAP_ORDERED, so the responder can send the reply of a read
	 * before the move has ended, unless the region is unordered.
	 */
	int ordered;
	int notes; /* 1: a note can answer a read, see io/wire.h */
	/*
	 * The peer broke the protocol, or its queue failed. `reason` is a -errno. Called once, on
	 * the lane's thread.
	 */
	void (*broken)(void *arg, int reason);
	/*
	 * Nothing is in flight any more, after gn_responder_quiesce or gn_responder_abandon. Called
	 * once, on the lane's thread.
	 */
	void (*idle)(void *arg);
	/*
	 * No request in flight uses the region of gn_responder_drain_region. Called once for each
	 * call of that function, on the lane's thread.
	 */
	void (*drained)(void *arg);
	void *arg;
};

/*
 * gn_responder_create - create a responder and let the lane poll it.
 *
 * Returns 0,
 * -ENOMEM  out of memory
 * -errno   of gn_split_create() or gn_worker_add()
 * Control thread.
 */
int gn_responder_create(const struct gn_responder_attr *attr, struct gn_responder **resp_p);
/*
 * gn_responder_add_region - accept requests that name this handle from now on. The caller has
 * stored the region in its own table. Control thread; waits for the lane.
 */
void gn_responder_add_region(struct gn_responder *resp, uint32_t handle);
/*
 * gn_responder_drain_region - reject requests that name this handle from now on, with
 * GANTRY_S_ACCESS. Requests in flight complete; `drained` follows the last one. The region stays in
 * the table of the caller until then. One region at a time. Control thread; waits for the lane.
 */
void gn_responder_drain_region(struct gn_responder *resp, uint32_t handle);
/*
 * gn_responder_size_changed - take the size of the volume from attr.rules for new requests. Returns
 * when the lane has taken it. Control thread.
 */
void gn_responder_size_changed(struct gn_responder *resp);
/*
 * gn_responder_quiesce - take no more requests. `idle` follows when those in flight have completed.
 * Control thread.
 */
void gn_responder_quiesce(struct gn_responder *resp);
/*
 * gn_responder_abandon - quiesce a responder of a lost session.
 *
 * An IO that cannot take its next step immediately is canceled. Stages complete the IOs of this
 * responder that they hold. The responder waits for the IOs in the terminal. From now on it sends
 * no reply for an IO that ends with GANTRY_S_CANCELED: the peer completes that IO when the session
 * ends.
 *
 * May follow gn_responder_quiesce; `idle` is still called once. Control thread.
 */
void gn_responder_abandon(struct gn_responder *resp);
/*
 * gn_responder_count_writes - count the requests in flight that change the volume. Control thread;
 * waits for the lane.
 */
uint32_t gn_responder_count_writes(struct gn_responder *resp);
/*
 * gn_responder_add_counts - add to `sum` what the responder has counted. Control thread, while the
 * lane runs.
 */
void gn_responder_add_counts(const struct gn_responder *resp, struct gn_io_counts *sum);
/*
 * gn_responder_destroy - stop polling and free a responder, after `idle`. When it returns, the
 * queues are no longer used. NULL has no effect. Control thread.
 */
void gn_responder_destroy(struct gn_responder **resp_p);

#endif
