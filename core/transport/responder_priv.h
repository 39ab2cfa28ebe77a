/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * responder_priv.h - shared by port.c (life) and port_path.c (the way of a descriptor through it,
 * and polling)
 */
#ifndef GN_TRANSPORT_RESPONDER_PRIV_H
#define GN_TRANSPORT_RESPONDER_PRIV_H

#include "transport/responder.h"
#include "transport/sender.h"

/* A queue of descriptors that wait; as large as the pool, so it cannot overflow. */
struct gn_responder_fifo {
	struct gantry_io **slots;
	uint32_t head, n;
};

#define GN_RESPONDER_BATCH 32u /* requests */

struct gn_responder {
	struct gn_responder_attr attr;
	struct gantry_chain *chain;
	struct gantry_io *ios;
	struct gantry_io **free;
	uint32_t n_free;
	struct gn_responder_fifo waiting; /* for the stages to take them */
	struct gn_responder_fifo replies; /* for the transport to take them */
	struct gn_responder_fifo moves;   /* for the transport to move their data */
	/* IOs without a bounce buffer; those in `moves` have one and will release it */
	struct gn_responder_fifo buffer_waiters;
	uint32_t n_moving; /* moves whose end was not polled */
	/* slots whose reply has gone, and which wait for the end of their move */
	uint32_t n_replies_before_move;
	struct gn_bounce *bounce; /* of data in regions that are not mapped; NULL: all are */
	struct gn_split *split;   /* of large IOs; NULL: the terminal is a link */
	struct gn_sender sender;
	int unmoved;        /* moves without a doorbell */
	uint32_t max_noted; /* bytes of a read that may be answered by a note */
	unsigned n_notes;   /* answers that were, or could have been, notes */
	int broken, quiescing, abandoned, said_idle;
	int fast_path;            /* see gn_responder_update_fast_path() */
	enum gantry_hop_time hop; /* as in the rules */
	/* bytes; a longer IO is counted against the turn, see push_large() */
	uint32_t max_uncounted;
	bool has_stages;
	int64_t credit; /* with stages: bytes of large IOs that they may get in this turn */
	/*
	 * requests for each turn: short IOs carry no more than the quantum; 1 .. GN_RESPONDER_BATCH
	 */
	uint32_t batch;
	int answers; /* it does not only relay: how long it takes is its own time */
};

/*
 * The fast path hands a request to the terminal and its reply to the transport without further
 * checks. A responder uses it while it has no bounce buffers, nothing waits in it and it does not
 * end. To be called whenever one of these changes.
 */
static inline void gn_responder_update_fast_path(struct gn_responder *port)
{
	port->fast_path = !port->bounce && port->waiting.n == 0 && port->replies.n == 0 &&
			  !port->broken && !port->quiescing && !port->abandoned;
}

/* What follows: on the lane's thread. */

/*
 * The terminal of its chain: attr.terminal, or where there are stages a hop that checks the
 * deadline and the length first.
 */
struct gantry_hop gn_responder_terminal(struct gn_responder *port);
/* The owner of its descriptors. */
struct gantry_hop gn_responder_owner(struct gn_responder *port);
/* What a worker polls, without `self`. */
extern const struct gantry_poller gn_responder_poller;

/* As struct gantry_inline_handler; arg: the port. */
int gn_responder_take_inline(void *port, const void *imm, uint32_t imm_len);

/* It takes the next request, whatever that is: gn_responder_take() may be called. */
static inline bool gn_responder_is_ready(const struct gn_responder *port)
{
	return port->fast_path && port->n_free != 0;
}

/* gn_responder_take_inline, for a link: of a port that is ready. 0 always. */
int gn_responder_take(struct gn_responder *port, const struct gantry_io *from);

/*
 * Offer again what waits. Where the port is abandoned this empties all its queues: what is not
 * taken ends.
 */
int gn_responder_retry(struct gn_responder *port);
/* Tell, once, when nothing is in flight any more. */
void gn_responder_say_idle(struct gn_responder *port);

#endif
