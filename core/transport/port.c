/* SPDX-License-Identifier: BSD-3-Clause */
/* port.c - the life of a port, by the control thread; what it does with descriptors is port_path.c */
#include "pipeline/split.h"
#include "transport/mover.h"
#include "transport/port_priv.h"

#include <errno.h>
#include <stdlib.h>

static void free_port(struct gn_port *port)
{
	gn_mover_destroy(&port->mover);
	gn_split_destroy(&port->split);
	gn_chain_destroy(port->chain);
	free(port->free);
	free(port->waiting.slots);
	free(port->replies.slots);
	free(port->moves.slots);
	free(port->crowd.slots);
	free(port);
}

static int make_mover(struct gn_port *port)
{
	struct gn_mover_attr attr = {
		.ops = port->attr.ops, .rma = port->attr.rma, .ios = port->ios, .n = port->attr.depth,
		.memory = port->attr.move_memory, .is_store = port->attr.moves_store};

	return gn_mover_create(&attr, &port->mover);
}

/* A port whose terminal copies data takes at most a quantum of short IOs in each turn, as the splitter does of large ones. */
static uint32_t requests_per_turn(const struct gn_port_attr *attr)
{
	uint32_t n = attr->quantum / GN_SPLIT_FROM;

	if (attr->relays || n > GN_PORT_BATCH)
		return GN_PORT_BATCH;
	return n != 0 ? n : 1;
}

/* A link relays descriptors of any length at the same cost. */
static int make_split(struct gn_port *port)
{
	struct gn_split_attr attr = {
		.lane = port->attr.lane, .terminal = port->attr.terminal, .depth = port->attr.depth,
		.max_io = port->attr.rules->volume.max_io, .quantum = port->attr.quantum};

	port->max_plain = UINT32_MAX;
	if (port->attr.relays)
		return 0;
	port->max_plain = GN_SPLIT_FROM;
	port->has_stages = gn_pipeline_length(port->attr.lane->pipeline) != 0;
	return gn_split_create(&attr, &port->split);
}

struct begin {
	struct gn_port *port;
	int rc;
};

static void begin_on_lane(void *arg)
{
	struct begin *begin = arg;
	struct gn_port *port = begin->port;
	struct gantry_poller poller = gn_port_poller;
	struct gantry_direct direct = {.thread = port->attr.lane->worker, .take = gn_port_take_direct, .arg = port};

	poller.self = port;
	begin->rc = gn_worker_add(port->attr.lane->worker, &poller);
	if (begin->rc == 0)
		port->attr.ops->consumer_direct(port->attr.consumer, &direct);
}

static void end_on_lane(void *arg)
{
	struct gn_port *port = arg;

	port->attr.ops->consumer_direct(port->attr.consumer, NULL);
	gn_worker_remove(port->attr.lane->worker, port);
}

int gn_port_create(const struct gn_port_attr *attr, struct gn_port **port_p)
{
	struct gn_port *port = gantry_zalloc_lines(sizeof(*port));
	struct gantry_hop owner, terminal;
	struct begin begin = {.port = port};
	int rc = -ENOMEM;

	if (port == NULL)
		return -ENOMEM;
	port->attr = *attr;
	port->answers = !attr->relays;
	port->batch = requests_per_turn(attr);
	port->hop = attr->rules->hop;
	owner = gn_port_owner(port);
	port->max_noted = attr->notes ? UINT32_MAX : 0;
	port->free = gantry_zalloc_lines(attr->depth * sizeof(*port->free));
	port->waiting.slots = calloc(attr->depth, sizeof(*port->waiting.slots));
	port->replies.slots = calloc(attr->depth, sizeof(*port->replies.slots));
	port->moves.slots = calloc(attr->depth, sizeof(*port->moves.slots));
	port->crowd.slots = calloc(attr->depth, sizeof(*port->crowd.slots));
	gn_sender_init(&port->sender, attr->ops, attr->producer);
	if (!port->free || !port->waiting.slots || !port->replies.slots || !port->moves.slots || !port->crowd.slots)
		goto out_free;
	rc = make_split(port);
	if (rc != 0)
		goto out_free;
	terminal = gn_port_terminal(port); /* depends on has_stages */
	rc = gn_chain_create(attr->lane, &owner, &terminal, attr->depth, &port->chain, &port->ios);
	if (rc != 0)
		goto out_free;
	rc = attr->rma != NULL ? make_mover(port) : 0;
	if (rc != 0)
		goto out_free;
	for (uint32_t i = 0; i < attr->depth; i++) {
		port->ios[i].owner = port;
		port->free[port->n_free++] = &port->ios[i];
	}
	gn_port_look(port);
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
	struct gn_port *port = arg;

	port->quiescing = 1;
	gn_port_look(port);
	gn_port_say_idle(port);
}

static void abandon_on_lane(void *arg)
{
	struct gn_port *port = arg;

	port->abandoned = 1;
	gn_port_look(port);
	gn_port_retry(port); /* empties all four: what is not taken now ends here */
	if (port->split != NULL)
		gn_split_abandon(port->split);
	gn_pipeline_drain(port->attr.lane, port);
	quiesce_on_lane(port);
}

void gn_port_quiesce(struct gn_port *port)
{
	gn_worker_call(port->attr.lane->worker, quiesce_on_lane, port);
}

void gn_port_abandon(struct gn_port *port)
{
	gn_worker_call(port->attr.lane->worker, abandon_on_lane, port);
}

struct count {
	const struct gn_port *port;
	uint32_t n;
};

static void count_on_lane(void *arg)
{
	struct count *count = arg;
	const struct gn_port *port = count->port;

	for (uint32_t i = 0; i < port->attr.depth; i++)
		count->n += port->ios[i].busy && gantry_op_writes(port->ios[i].opcode);
}

uint32_t gn_port_count_writes(struct gn_port *port)
{
	struct count count = {.port = port};

	gn_worker_call(port->attr.lane->worker, count_on_lane, &count);
	return count.n;
}

void gn_port_destroy(struct gn_port **port_p)
{
	struct gn_port *port = *port_p;

	*port_p = NULL;
	if (port == NULL)
		return;
	gn_worker_call(port->attr.lane->worker, end_on_lane, port);
	free_port(port);
}
