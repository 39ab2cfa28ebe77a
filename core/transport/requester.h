/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * requester.h - the sending end of one lane of a session: the terminal hop that sends descriptors
 * over a transport.
 *
 * The control thread creates and frees a requester. Between gn_requester_start() and
 * gn_requester_stop() its lane uses it. The requester keeps a private table of the IOs in flight.
 * It accepts a reply only if the tag names a slot of the table and has the generation of that slot.
 * Any other reply ends the session.
 */
#ifndef GN_TRANSPORT_REQUESTER_H
#define GN_TRANSPORT_REQUESTER_H

#include "pipeline/pipeline.h"
#include "transport/device.h"
#include "transport/fence.h"

#include <stdbool.h>

struct gn_requester;

struct gn_requester_attr {
	struct gn_lane *lane;
	const struct gantry_transport_ops *ops;
	uint32_t depth;         /* limit of IOs in flight; 1 .. 65535 */
	uint64_t io_timeout_ns; /* deadline of an IO that has none */
	/*
	 * The requester does not time out an IO that has a deadline: the process that set the
	 * deadline does.
	 */
	bool relays;
	struct gn_fence *fence; /* fence of the session, which all its lanes share */
	/*
	 * Longest wait for the reply to an IO that timed out. After that, the requester calls
	 * `broken` with -ETIME.
	 */
	uint64_t late_timeout_ns;
	/* GANTRY_IO_* flags that the peer does not support: cleared before a send */
	uint8_t left_out;
	bool notes; /* the peer can answer a read by a note, see io/wire.h */
	/*
	 * The peer broke the protocol, missed a deadline, or its queue failed. `reason` is a
	 * -errno. Called once, on the lane's thread.
	 */
	void (*broken)(void *arg, int reason);
	void *arg;
	uint64_t *stale; /* counter of late replies */
};

/*
 * gn_requester_create - create a requester that sends nothing yet.
 *
 * Returns 0,
 * -EINVAL  attr->depth is 0 or more than 65535
 * -ENOMEM  out of memory
 * Control thread.
 */
int gn_requester_create(const struct gn_requester_attr *attr, struct gn_requester **req_p);
/* gn_requester_free - free a requester. No chain may use its hop any more. Control thread. */
void gn_requester_free(struct gn_requester **req_p);

/*
 * gn_requester_hop - get the terminal hop for chains. Before gn_requester_start and after
 * gn_requester_stop its submit returns -ENOTCONN.
 */
void gn_requester_hop(struct gn_requester *req, struct gantry_hop *hop);

/* Same contract as client_settled_ns of struct gantry_role_host. Lane's thread. */
uint64_t gn_requester_settled_ns(const struct gn_requester *req);

/*
 * Returns how many writes timed out and have no reply yet. UINT32_MAX: the requester is broken.
 * Lane's thread.
 */
uint32_t gn_requester_late_writes(const struct gn_requester *req);

/* Returns the identity of the lane's thread, for struct gantry_queue_attr. Any thread. */
const void *gn_requester_thread(const struct gn_requester *req);

/* Returns gn_worker_is_edge_triggered() of the lane's worker. Any thread. */
bool gn_requester_is_edge_triggered(const struct gn_requester *req);

/*
 * gn_requester_start - let the lane send and poll.
 *
 * consumer, producer  queues of the transport. All receives of the consumer are posted. The caller
 *                     keeps ownership
 * Returns 0 or a -errno of gn_worker_add(). Control thread.
 */
int gn_requester_start(struct gn_requester *req, void *consumer, void *producer);
/*
 * gn_requester_stop_sending - process the replies that the peer has published, then send no more.
 *
 * Submits after the call return -ENOTCONN. IOs without a reply stay in flight, and their entries
 * stay in the fence, until gn_requester_stop(). When a session ends, the client calls this function
 * for the requesters of all lanes before it calls gn_requester_stop() for any of them. NULL and a
 * second call have no effect. Control thread.
 */
void gn_requester_stop_sending(struct gn_requester *req);
/*
 * gn_requester_stop - stop sending, then complete all IOs in flight with GANTRY_S_SESSION_LOST and
 * remove the entries of the fence. When it returns, the queues are no longer used. NULL and a
 * second call have no effect. Control thread.
 */
void gn_requester_stop(struct gn_requester *req);

#endif
