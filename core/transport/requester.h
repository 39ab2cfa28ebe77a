/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * link.h - the sending end of one lane of a session: the terminal hop that puts descriptors on a
 * transport.
 *
 * Made and freed by the control thread, used by its lane in between. It keeps a private table of
 * what is in flight: a reply is believed only when its tag names a slot in flight, with the right
 * generation; anything else ends the session.
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
	uint32_t depth;         /* IOs in flight */
	uint64_t io_timeout_ns; /* for an IO without a deadline of its own */
	/* this link does not time out an IO with a deadline: the process that set it does */
	bool relays;
	struct gn_fence *fence; /* of the session */
	/* longest wait for the answer to an IO that timed out; then the link is broken: -ETIME */
	uint64_t late_timeout_ns;
	uint8_t left_out; /* GANTRY_IO_* that the peer would not understand: not sent */
	bool notes;       /* a read may be answered by a note, see io/wire.h */
	/* Something is wrong with the peer; called once, on the lane's thread. */
	void (*broken)(void *arg, int reason);
	void *arg;
	uint64_t *stale; /* counter: late answers to IO that had timed out */
};

int gn_requester_create(const struct gn_requester_attr *attr, struct gn_requester **link_p);
/* No chain may end in it any more. */
void gn_requester_free(struct gn_requester **link_p);

/*
 * The hop for chains. Until gn_requester_start, and after gn_requester_stop, submits are refused
 * with -ENOTCONN.
 */
void gn_requester_hop(struct gn_requester *link, struct gantry_hop *hop);

/* As client_settled_ns of struct gantry_role_host. Lane's thread. */
uint64_t gn_requester_settled_ns(const struct gn_requester *link);

/*
 * Count the writes that timed out and are not answered yet; UINT32_MAX: the link is broken. Lane's
 * thread.
 */
uint32_t gn_requester_late_writes(const struct gn_requester *link);

/* What names the thread of its lane, for struct gantry_queue_attr. */
const void *gn_requester_thread(const struct gn_requester *link);

/* As gn_worker_hears_edges, of that thread. Any thread. */
bool gn_requester_hears_edges(const struct gn_requester *link);

/* Begin, with queues all of whose receives are posted. Control thread. 0 or -errno. */
int gn_requester_start(struct gn_requester *link, void *consumer, void *producer);
/*
 * Take what the peer had published, then complete the rest with GANTRY_S_SESSION_LOST, and refuse
 * what comes. The queues are no longer used when it returns. Control thread; idempotent; NULL is
 * legal.
 */
void gn_requester_stop(struct gn_requester *link);

/*
 * As struct gantry_inline_handler, of its consumer; arg: the link. It refuses nothing. Lane's
 * thread.
 */
int gn_requester_take_inline(void *link, const void *imm, uint32_t imm_len);
/* The same, for a port: of its descriptor, which is read before anybody else is called. */
void gn_requester_take_answer(struct gn_requester *link, const struct gantry_io *from);

#endif
