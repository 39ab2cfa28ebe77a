/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * responder.c - create, end and free a responder, on the control thread. Its data path is in
 * responder_path.c.
 */
#include "pipeline/split.h"
#include "transport/bounce.h"
#include "transport/responder_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void free_responder(struct gn_responder *resp)
{
	gn_bounce_destroy(&resp->bounce);
	gn_responder_lists_destroy(resp);
	gn_split_destroy(&resp->split);
	gn_chain_destroy(resp->chain);
	free(resp->free);
	free(resp->waiting.slots);
	free(resp->rules.regions);
	free(resp);
}

/* Copy the rules with their table of regions. Returns 0 or -ENOMEM. */
static int copy_rules(struct gn_responder *resp)
{
	const struct gn_io_rules *rules = resp->attr.rules;

	resp->rules = *rules;
	resp->rules.regions = calloc(rules->n_regions, sizeof(*rules->regions));
	if (!resp->rules.regions)
		return -ENOMEM;
	memcpy(resp->rules.regions, rules->regions, rules->n_regions * sizeof(*rules->regions));
	return 0;
}

static int make_bounce(struct gn_responder *resp)
{
	struct gn_bounce_attr attr = {.ops = resp->attr.ops,
				      .rma = resp->attr.rma,
				      .ios = resp->ios,
				      .n = resp->attr.depth,
				      .memory = resp->attr.move_memory,
				      .is_store = resp->attr.moves_store};

	return gn_bounce_create(&attr, &resp->bounce);
}

/*
 * A responder whose terminal copies data takes at most one quantum of short IOs in each turn. The
 * splitter limits large IOs.
 */
static uint32_t requests_per_turn(const struct gn_responder_attr *attr)
{
	uint32_t n = attr->quantum / GN_SPLIT_FROM;

	if (attr->relays || n > GN_RESPONDER_BATCH)
		return GN_RESPONDER_BATCH;
	return n != 0 ? n : 1;
}

/*
 * Create the splitter, except if the terminal is a requester, which forwards an IO of any length at
 * the same cost.
 */
static int make_split(struct gn_responder *resp)
{
	struct gn_split_attr attr = {.lane = resp->attr.lane,
				     .terminal = resp->attr.terminal,
				     .depth = resp->attr.depth,
				     .max_io = resp->attr.rules->volume.max_io,
				     .quantum = resp->attr.quantum};

	attr.terminal.session = resp->attr.session;
	resp->max_uncounted = UINT32_MAX;
	if (resp->attr.relays)
		return 0;
	resp->max_uncounted = GN_SPLIT_FROM;
	resp->has_stages = gn_pipeline_length(resp->attr.lane->pipeline) != 0;
	return gn_split_create(&attr, &resp->split);
}

struct begin {
	struct gn_responder *resp;
	int rc;
};

static void begin_on_lane(void *arg)
{
	struct begin *begin = arg;
	struct gn_responder *resp = begin->resp;
	struct gantry_poller poller = gn_responder_poller;

	poller.self = resp;
	begin->rc = gn_worker_add(resp->attr.lane->worker, &poller);
	if (begin->rc == 0)
		resp->attr.ops->consumer_set_local_peer(resp->attr.consumer, &resp->as_peer);
}

static void end_on_lane(void *arg)
{
	struct gn_responder *resp = arg;

	resp->attr.ops->consumer_set_local_peer(resp->attr.consumer, NULL);
	gn_worker_remove(resp->attr.lane->worker, resp);
}

int gn_responder_create(const struct gn_responder_attr *attr, struct gn_responder **resp_p)
{
	struct gn_responder *resp = gantry_zalloc_lines(sizeof(*resp));
	struct gantry_hop owner, terminal;
	struct begin begin = {.resp = resp};
	int rc = -ENOMEM;

	if (!resp)
		return -ENOMEM;
	resp->as_peer.take_request = gn_responder_take;
	resp->attr = *attr;
	resp->probed = (struct gn_usdt_lane){attr->lane->name, attr->lane->pub.index};
	resp->batch = requests_per_turn(attr);
	owner = gn_responder_owner(resp);
	resp->max_noted = attr->notes ? UINT32_MAX : 0;
	resp->free = gantry_zalloc_lines(attr->depth * sizeof(*resp->free));
	resp->waiting.slots = calloc(4 * (size_t)attr->depth, sizeof(*resp->waiting.slots));
	if (!resp->free || !resp->waiting.slots || copy_rules(resp) != 0)
		goto out_free;
	resp->replies.slots = resp->waiting.slots + attr->depth;
	resp->moves.slots = resp->replies.slots + attr->depth;
	resp->buffer_waiters.slots = resp->moves.slots + attr->depth;
	gn_sender_init(&resp->sender, attr->ops, attr->producer);
	rc = make_split(resp);
	if (rc != 0)
		goto out_free;
	terminal = gn_responder_terminal(resp); /* after make_split(), which sets has_stages */
	rc = gn_chain_create(attr->lane, &owner, &terminal, attr->volume, attr->depth, &resp->chain,
			     &resp->ios);
	if (rc != 0)
		goto out_free;
	rc = attr->rma ? make_bounce(resp) : 0;
	if (rc == 0)
		rc = gn_responder_lists_create(resp);
	if (rc != 0)
		goto out_free;
	for (uint32_t i = 0; i < attr->depth; i++) {
		resp->ios[i].owner = resp;
		resp->free[resp->n_free++] = &resp->ios[i];
	}
	gn_responder_update_fast_path(resp);
	gn_worker_call(attr->lane->worker, begin_on_lane, &begin);
	rc = begin.rc;
	if (rc != 0)
		goto out_free;
	*resp_p = resp;
	return 0;

out_free:
	free_responder(resp);
	return rc;
}

struct region_change {
	struct gn_responder *resp;
	uint32_t handle;
};

static void add_region_on_lane(void *arg)
{
	const struct region_change *change = arg;
	const struct gn_responder *resp = change->resp;

	resp->rules.regions[change->handle] = resp->attr.rules->regions[change->handle];
}

void gn_responder_add_region(struct gn_responder *resp, uint32_t handle)
{
	struct region_change change = {resp, handle};

	gn_worker_call(resp->attr.lane->worker, add_region_on_lane, &change);
}

static bool uses_region(const struct gn_responder *resp, const struct gantry_io *io,
			uint32_t handle)
{
	bool has_list = (io->flags & GANTRY_IO_LIST) != 0 || (io->owner_flags & OWNER_LIST) != 0;

	if (!gantry_op_has_buffer(io->opcode))
		return false;
	return io->region == handle ||
	       (has_list && resp->lists && gn_list_uses(&resp->lists[io->slot], handle));
}

/*
 * Mark each request in flight that uses the region. A free slot can still have the flags of its
 * last request.
 */
static void mark_users(struct gn_responder *resp, uint32_t handle)
{
	for (uint32_t i = 0; i < resp->n_free; i++)
		resp->free[i]->owner_flags = 0;
	for (uint32_t i = 0; i < resp->attr.depth; i++) {
		struct gantry_io *io = &resp->ios[i];

		if (io->owner_flags == 0 || !uses_region(resp, io, handle))
			continue;
		io->owner_flags |= OWNER_DRAINS;
		resp->n_draining++;
	}
}

static void drain_region_on_lane(void *arg)
{
	const struct region_change *change = arg;
	struct gn_responder *resp = change->resp;

	resp->rules.regions[change->handle] = NULL;
	mark_users(resp, change->handle);
	gn_responder_update_fast_path(resp);
	if (resp->n_draining == 0)
		resp->attr.drained(resp->attr.arg);
}

void gn_responder_drain_region(struct gn_responder *resp, uint32_t handle)
{
	struct region_change change = {resp, handle};

	gn_worker_call(resp->attr.lane->worker, drain_region_on_lane, &change);
}

static void set_size_on_lane(void *arg)
{
	struct gn_responder *resp = arg;

	resp->rules.volume.size = resp->attr.rules->volume.size;
	gn_io_rules_ready(&resp->rules);
	gn_chain_set_size(resp->chain, resp->attr.volume->size);
}

void gn_responder_size_changed(struct gn_responder *resp)
{
	gn_worker_call(resp->attr.lane->worker, set_size_on_lane, resp);
}

static void quiesce_on_lane(void *arg)
{
	struct gn_responder *resp = arg;

	resp->quiescing = 1;
	gn_responder_update_fast_path(resp);
	gn_responder_notify_idle(resp);
}

static void abandon_on_lane(void *arg)
{
	struct gn_responder *resp = arg;

	resp->abandoned = 1;
	gn_responder_update_fast_path(resp);
	/* this empties all four queues: an IO that cannot take its next step now is canceled */
	gn_responder_retry(resp);
	if (resp->split)
		gn_split_abandon(resp->split);
	gn_pipeline_drain(resp->attr.lane, resp);
	quiesce_on_lane(resp);
}

void gn_responder_quiesce(struct gn_responder *resp)
{
	gn_worker_call(resp->attr.lane->worker, quiesce_on_lane, resp);
}

void gn_responder_abandon(struct gn_responder *resp)
{
	gn_worker_call(resp->attr.lane->worker, abandon_on_lane, resp);
}

struct count {
	const struct gn_responder *resp;
	uint32_t n;
};

static void count_on_lane(void *arg)
{
	struct count *count = arg;
	const struct gn_responder *resp = count->resp;

	for (uint32_t i = 0; i < resp->attr.depth; i++)
		count->n += resp->ios[i].busy && gantry_op_writes(resp->ios[i].opcode);
}

uint32_t gn_responder_count_writes(struct gn_responder *resp)
{
	struct count count = {.resp = resp};

	gn_worker_call(resp->attr.lane->worker, count_on_lane, &count);
	return count.n;
}

void gn_responder_add_counts(const struct gn_responder *resp, struct gn_io_counts *sum)
{
	gn_io_counts_add(sum, &resp->counts);
}

void gn_responder_destroy(struct gn_responder **resp_p)
{
	struct gn_responder *resp = *resp_p;

	*resp_p = NULL;
	if (!resp)
		return;
	gn_worker_call(resp->attr.lane->worker, end_on_lane, resp);
	free_responder(resp);
}
