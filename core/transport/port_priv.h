/* SPDX-License-Identifier: BSD-3-Clause */
/* port_priv.h - shared by port.c (life) and port_path.c (the way of a descriptor through it, and polling) */
#ifndef GN_TRANSPORT_PORT_PRIV_H
#define GN_TRANSPORT_PORT_PRIV_H

#include "transport/port.h"
#include "transport/sender.h"

/* A queue of descriptors that wait; as large as the pool, so it cannot overflow. */
struct gn_port_fifo {
	struct gantry_io **slots;
	uint32_t head, n;
};

#define GN_PORT_BATCH 32u /* requests */

struct gn_port {
	struct gn_port_attr attr;
	struct gantry_chain *chain;
	struct gantry_io *ios;
	struct gantry_io **free;
	uint32_t n_free;
	struct gn_port_fifo waiting; /* for the stages to take them */
	struct gn_port_fifo replies; /* for the transport to take them */
	struct gn_port_fifo moves;   /* for the transport to move their data */
	struct gn_port_fifo crowd;   /* for a buffer; apart from `moves`, where those stand who have one and will give it back */
	uint32_t n_moving; /* moves whose end was not polled */
	uint32_t n_behind; /* slots whose reply has gone, and which wait for the end of their move */
	struct gn_mover *mover;  /* of data in regions that are not mapped; NULL: all are */
	struct gn_split *split;  /* of large IOs; NULL: the terminal is a link */
	struct gn_sender sender;
	int unmoved;             /* moves without a doorbell */
	uint32_t max_noted;      /* bytes of a read that may be answered by a note */
	unsigned n_notes;        /* answers that were, or could have been, notes */
	int broken, quiescing, abandoned, said_idle;
	int plain;   /* see gn_port_look() */
	enum gantry_hop_time hop; /* as in the rules */
	uint32_t max_plain; /* bytes; a longer IO is counted against the turn, see push_large() */
	bool has_stages;
	int64_t credit; /* with stages: bytes of large IOs that they may get in this turn */
	uint32_t batch; /* requests for each turn: short IOs carry no more than the quantum; 1 .. GN_PORT_BATCH */
	int answers; /* it does not only relay: how long it takes is its own time */
};

/*
 * While a port has no mover, nothing waits in it and it does not end, a request goes straight down and its answer straight out,
 * without a look at each of these. To be called whenever one of them changes.
 */
static inline void gn_port_look(struct gn_port *port)
{
	port->plain = port->mover == NULL && port->waiting.n == 0 && port->replies.n == 0 && !port->broken && !port->quiescing &&
		      !port->abandoned;
}

/* What follows: on the lane's thread. */

/* The terminal of its chain: attr.terminal, or where there are stages a hop that checks the deadline and the length first. */
struct gantry_hop gn_port_terminal(struct gn_port *port);
/* The owner of its descriptors. */
struct gantry_hop gn_port_owner(struct gn_port *port);
/* What a worker polls, without `self`. */
extern const struct gantry_poller gn_port_poller;

/* As struct gantry_direct; arg: the port. */
int gn_port_take_direct(void *port, const void *imm, uint32_t imm_len);

/* It takes the next request, whatever that is: gn_port_take() may be called. */
static inline bool gn_port_is_ready(const struct gn_port *port)
{
	return port->plain && port->n_free != 0;
}

/* gn_port_take_direct, for a link: of a port that is ready. 0 always. */
int gn_port_take(struct gn_port *port, const struct gantry_io *from);

/* Offer again what waits. Where the port is abandoned this empties all its queues: what is not taken ends. */
int gn_port_retry(struct gn_port *port);
/* Tell, once, when nothing is in flight any more. */
void gn_port_say_idle(struct gn_port *port);

#endif
