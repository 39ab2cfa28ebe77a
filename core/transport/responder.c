/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * port.c - the life of a port, by the control thread; what it does with descriptors is port_path.c
 */
#include "pipeline/split.h"
#include "transport/bounce.h"
#include "transport/responder_priv.h"

#include <errno.h>
#include <stdlib.h>

static void free_port(struct gn_responder *port)
{
	gn_bounce_destroy(&port->bounce);
	gn_split_destroy(&port->split);
	gn_chain_destroy(port->chain);
	free(port->free);
	free(port->waiting.slots);
	free(port->replies.slots);
	free(port->moves.slots);
	free(port->buffer_waiters.slots);
	free(port);
}

static int make_bounce(struct gn_responder *port)
{
	struct gn_bounce_attr attr = {.ops = port->attr.ops,
				      .rma = port->attr.rma,
				      .ios = port->ios,
				      .n = port->attr.depth,
				      .memory = port->attr.move_memory,
				      .is_store = port->attr.moves_store};

	return gn_bounce_create(&attr, &port->bounce);
}

/*
 * A port whose terminal copies data takes at most a quantum of short IOs in each turn, as the
 * splitter does of large ones.
 */
static uint32_t requests_per_turn(const struct gn_responder_attr *attr)
{
	uint32_t n = attr->quantum / GN_SPLIT_FROM;

	if (attr->relays || n > GN_RESPONDER_BATCH)
		return GN_RESPONDER_BATCH;
	return n != 0 ? n : 1;
}

/* A link relays descriptors of any length at the same cost. */
static int make_split(struct gn_responder *port)
{
	struct gn_split_attr attr = {.lane = port->attr.lane,
				     .terminal = port->attr.terminal,
				     .depth = port->attr.depth,
				     .max_io = port->attr.rules->volume.max_io,
				     .quantum = port->attr.quantum};

	port->max_uncounted = UINT32_MAX;
	if (port->attr.relays)
		return 0;
	port->max_uncounted = GN_SPLIT_FROM;
	port->has_stages = gn_pipeline_length(port->attr.lane->pipeline) != 0;
	return gn_split_create(&attr, &port->split);
}

struct begin {
	struct gn_responder *port;
	int rc;
};

static void begin_on_lane(void *arg)
{
	struct begin *begin = arg;
	struct gn_responder *port = begin->port;
	struct gantry_poller poller = gn_responder_poller;
	struct gantry_inline_handler direct = {
		.thread = port->attr.lane->worker, .take = gn_responder_take_inline, .arg = port};

	poller.self = port;
	begin->rc = gn_worker_add(port->attr.lane->worker, &poller);
	if (begin->rc == 0)
		port->attr.ops->consumer_set_inline_handler(port->attr.consumer, &direct);
}

static void end_on_lane(void *arg)
{
	struct gn_responder *port = arg;

	port->attr.ops->consumer_set_inline_handler(port->attr.consumer, NULL);
	gn_worker_remove(port->attr.lane->worker, port);
}

int gn_responder_create(const struct gn_responder_attr *attr, struct gn_responder **port_p)
{
	struct gn_responder *port = gantry_zalloc_lines(sizeof(*port));
	struct gantry_hop owner, terminal;
	struct begin begin = {.port = port};
	int rc = -ENOMEM;

	if (!port)
		return -ENOMEM;
	port->attr = *attr;
	port->answers = !attr->relays;
	port->batch = requests_per_turn(attr);
	port->hop = attr->rules->hop;
	owner = gn_responder_owner(port);
	port->max_noted = attr->notes ? UINT32_MAX : 0;
	port->free = gantry_zalloc_lines(attr->depth * sizeof(*port->free));
	port->waiting.slots = calloc(attr->depth, sizeof(*port->waiting.slots));
	port->replies.slots = calloc(attr->depth, sizeof(*port->replies.slots));
	port->moves.slots = calloc(attr->depth, sizeof(*port->moves.slots));
	port->buffer_waiters.slots = calloc(attr->depth, sizeof(*port->buffer_waiters.slots));
	gn_sender_init(&port->sender, attr->ops, attr->producer);
	if (!port->free || !port->waiting.slots || !port->replies.slots || !port->moves.slots ||
	    !port->buffer_waiters.slots)
		goto out_free;
	rc = make_split(port);
	if (rc != 0)
		goto out_free;
	terminal = gn_responder_terminal(port); /* depends on has_stages */
	rc = gn_chain_create(attr->lane, &owner, &terminal, attr->depth, &port->chain, &port->ios);
	if (rc != 0)
		goto out_free;
	rc = attr->rma ? make_bounce(port) : 0;
	if (rc != 0)
		goto out_free;
	for (uint32_t i = 0; i < attr->depth; i++) {
		port->ios[i].owner = port;
		port->free[port->n_free++] = &port->ios[i];
	}
	gn_responder_update_fast_path(port);
	gn_worker_call(attr->lane->worker, begin_on_lane, &begin);
	rc = begin.rc;
	if (rc != 0)
		goto out_free;
	*port_p = port;
	return 0;

out_free:
	free_port(port);
	return rc;
}

static void quiesce_on_lane(void *arg)
{
	struct gn_responder *port = arg;

	port->quiescing = 1;
	gn_responder_update_fast_path(port);
	gn_responder_say_idle(port);
}

static void abandon_on_lane(void *arg)
{
	struct gn_responder *port = arg;

	port->abandoned = 1;
	gn_responder_update_fast_path(port);
	gn_responder_retry(port); /* empties all four: what is not taken now ends here */
	if (port->split)
		gn_split_abandon(port->split);
	gn_pipeline_drain(port->attr.lane, port);
	quiesce_on_lane(port);
}

void gn_responder_quiesce(struct gn_responder *port)
{
	gn_worker_call(port->attr.lane->worker, quiesce_on_lane, port);
}

void gn_responder_abandon(struct gn_responder *port)
{
	gn_worker_call(port->attr.lane->worker, abandon_on_lane, port);
}

struct count {
	const struct gn_responder *port;
	uint32_t n;
};

static void count_on_lane(void *arg)
{
	struct count *count = arg;
	const struct gn_responder *port = count->port;

	for (uint32_t i = 0; i < port->attr.depth; i++)
		count->n += port->ios[i].busy && gantry_op_writes(port->ios[i].opcode);
}

uint32_t gn_responder_count_writes(struct gn_responder *port)
{
	struct count count = {.port = port};

	gn_worker_call(port->attr.lane->worker, count_on_lane, &count);
	return count.n;
}

void gn_responder_destroy(struct gn_responder **port_p)
{
	struct gn_responder *port = *port_p;

	*port_p = NULL;
	if (!port)
		return;
	gn_worker_call(port->attr.lane->worker, end_on_lane, port);
	free_port(port);
}
