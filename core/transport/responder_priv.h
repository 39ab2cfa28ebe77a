/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * responder_priv.h - shared by responder.c (create, end, free) and responder_path.c (data path)
 */
#ifndef GN_TRANSPORT_RESPONDER_PRIV_H
#define GN_TRANSPORT_RESPONDER_PRIV_H

#include "base/usdt.h"
#include "io/list.h"
#include "transport/responder.h"
#include "transport/sender.h"

/*
 * A FIFO of waiting descriptors. It has as many slots as the pool, so it cannot overflow. The slots
 * of all FIFOs are one allocation, which begins with those of `waiting`.
 */
struct gn_responder_fifo {
	struct gantry_io **slots;
	uint32_t head, n;
};

#define GN_RESPONDER_BATCH 32u /* limit of requests taken in one poll */

struct gn_responder {
	/* as_peer.is_ready: use the fast path, see gn_responder_update_fast_path() */
	struct gantry_local_peer as_peer;
	struct gn_responder_attr attr;
	struct gantry_chain *chain;
	struct gantry_io *ios;
	struct gantry_io **free;
	uint32_t n_free;
	struct gn_responder_fifo waiting; /* IOs to be submitted */
	struct gn_responder_fifo replies; /* completed IOs whose reply is to be sent */
	struct gn_responder_fifo moves;   /* IOs whose data is to be moved */
	/* IOs that wait for a bounce buffer. IOs in `moves` have their buffer. */
	struct gn_responder_fifo buffer_waiters;
	uint32_t n_moving; /* moves in flight */
	/* slots whose reply was sent, and whose move is in flight */
	uint32_t n_replies_before_move;
	struct gn_bounce *bounce; /* bounce buffers; NULL: all regions are mapped */
	struct gn_list *lists;    /* indexed by slot; NULL: the session has no lists */
	/*
	 * buffers of IOs with lists, if all regions are mapped and the backend does not accept
	 * lists; else NULL. `list_memory` is private memory
	 */
	struct gn_bounce *list_bounce;
	struct gantry_region list_memory;
	uint32_t n_bounced;     /* IOs that use list_bounce, or wait for it */
	struct gn_split *split; /* splitter of large IOs; NULL: the terminal is a requester */
	struct gn_sender sender;
	int unmoved;        /* moves were submitted and not flushed */
	uint32_t max_noted; /* longest read that a note can answer, in bytes */
	unsigned n_notes;   /* replies that were notes or could have been notes */
	int broken, quiescing, abandoned, idle_notified;
	/* bytes; a longer IO counts against the quantum, see push_large() */
	uint32_t max_uncounted;
	bool has_stages;
	/* with stages: bytes of large IOs that the stages can still receive in this turn */
	int64_t credit;
	/*
	 * Requests in each turn, so that short IOs do not exceed the quantum; 1 ..
	 * GN_RESPONDER_BATCH.
	 */
	uint32_t batch;
	/* requests in flight whose region gn_responder_drain_region() waits for */
	uint32_t n_draining;
	struct gn_io_rules rules; /* copy of attr.rules; `regions` are those of new requests */
	struct gn_io_counts counts;
	struct gn_usdt_lane probed;
};

/* gantry_io.owner_flags: the steps that are missing before the slot is free. */
#define OWNER_REPLY_PENDING 1u
#define OWNER_MOVE_PENDING 2u /* the reply was sent before the end of the move */
#define OWNER_DRAINS 4u       /* no step: the request counts in n_draining */
#define OWNER_LIST 8u         /* no step: a buffer holds the data of the list of the request */

/*
 * The fast path passes a request to the terminal, and its reply to the transport, without further
 * checks. A responder uses it while it has no bounce buffers, none of its IOs uses list_bounce, no
 * IO waits in a queue, no region is being drained, and it is not ending. Call this function
 * whenever one of these conditions changes.
 */
static inline void gn_responder_update_fast_path(struct gn_responder *resp)
{
	resp->as_peer.is_ready = !resp->bounce && resp->n_bounced == 0 && resp->waiting.n == 0 &&
				 resp->replies.n == 0 && resp->n_draining == 0 && !resp->broken &&
				 !resp->quiescing && !resp->abandoned;
}

/* The functions below run on the lane's thread. */

/*
 * Returns the terminal for the chain: attr.terminal or, with stages, a hop that first checks
 * deadline and length.
 */
struct gantry_hop gn_responder_terminal(struct gn_responder *resp);
/* Returns the hop that owns the descriptors. */
struct gantry_hop gn_responder_owner(struct gn_responder *resp);
/* The poller of a responder, without `self`. */
extern const struct gantry_poller gn_responder_poller;

/* Submit a request to the chain, or let it wait. */
void gn_responder_submit(struct gn_responder *resp, struct gantry_io *io);
/* Start or continue the moves of a request that has its buffer, or let it wait. */
void gn_responder_move(struct gn_responder *resp, struct gantry_io *io);
/* The last move of a request ended with `status`. */
void gn_responder_move_ended(struct gn_responder *resp, struct gantry_io *io, int status);
/* Start a request that passed the check. */
void gn_responder_admit(struct gn_responder *resp, struct gantry_io *io);
void gn_responder_reject(struct gn_responder *resp, struct gantry_io *io,
			 enum gantry_status status);

/* -- responder_list.c: requests with GANTRY_IO_LIST -- */

/* Allocate what lists need. Returns 0 or -ENOMEM. Control thread. */
int gn_responder_lists_create(struct gn_responder *resp);
void gn_responder_lists_destroy(struct gn_responder *resp);
/* Start a request whose check returned GN_CHECK_LIST. */
void gn_responder_take_list(struct gn_responder *resp, struct gantry_io *io);
/* A request with OWNER_LIST has its buffer: start the next step. */
void gn_responder_list_attached(struct gn_responder *resp, struct gantry_io *io);
/* Start the next move of a request with OWNER_LIST. Returns 0, or a -errno of rma_submit. */
int gn_responder_list_move(struct gn_responder *resp, struct gantry_io *io);
/* A move of a request with OWNER_LIST ended. */
void gn_responder_list_moved(struct gn_responder *resp, struct gantry_io *io, int status);
/* A request with OWNER_LIST does not need its buffer any more. */
void gn_responder_list_detach(struct gn_responder *resp, struct gantry_io *io);

/* `take_request` of struct gantry_local_peer. */
int gn_responder_take(struct gantry_local_peer *resp, const struct gantry_io *io);

/*
 * Retry the waiting descriptors of all queues. If the responder is abandoned, this empties the
 * queues: an IO that must wait again is canceled. Returns how many descriptors left a queue.
 */
int gn_responder_retry(struct gn_responder *resp);
/* Call `idle`, once, if nothing is in flight. */
void gn_responder_notify_idle(struct gn_responder *resp);

#endif
