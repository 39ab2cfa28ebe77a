/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * split.c - divides large IOs. IOs wait in a FIFO. The parts of an IO are descriptors of a separate
 * pool; each has the chain
 *
 *      [guard] [owner: part_done] [terminal]
 *
 * An IO that is not longer than a piece is submitted to the terminal itself.
 */
#include "pipeline/split.h"

#include "base/clock.h"
#include "io/pool.h"
#include "io/status.h"
#include "pipeline/join.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#define MAX_PARTS 32u /* limit of parts in flight: enough to keep a disk busy */
/* bytes; pieces of FUA writes are longer, because each piece needs its own sync */
#define STABLE_PIECE (4u << 20)

/*
 * Size and cost of a piece, by operation. The backend writes zeroes and discards faster than it
 * copies data. So a piece of a write of zeroes or of a discard is 16 times as long as a piece of
 * data with the same cost.
 */
static const struct {
	uint32_t piece; /* bytes; 0: the operation is not divided */
	uint32_t shift; /* the cost of a piece, or of an undivided IO, is its bytes >> shift */
} operations[GANTRY_OP_COUNT] = {
	[GANTRY_OP_READ] = {GN_SPLIT_PIECE, 0},
	[GANTRY_OP_WRITE] = {GN_SPLIT_PIECE, 0},
	[GANTRY_OP_WRITE_ZEROES] = {GN_SPLIT_PIECE << 4, 4},
	[GANTRY_OP_DISCARD] = {GN_SPLIT_PIECE << 4, 4},
	[GANTRY_OP_EXTENTS] = {0, 12},
};

/* An IO in the splitter. */
struct parent {
	struct gantry_io *io;
	struct gn_join parts;
	uint32_t started;  /* bytes for which parts were started */
	uint64_t begun_ns; /* start of the first part */
	int timed;         /* the backend writes GANTRY_HOP_BACKEND of the parts */
};

struct gn_split {
	struct gn_split_attr attr;
	struct parent *parents;   /* indexed by the slot of the IO */
	struct gantry_io **queue; /* ring of attr.depth: IOs with bytes to start */
	uint32_t first, n_queued;
	struct gantry_io *parts, **free;
	uint32_t n_free;
	int64_t credit; /* bytes that the splitter can start in this turn */
	/*
	 * run() is active. Prevents recursion: the terminal can complete an IO inside its submit,
	 * and the peer can then submit another IO
	 */
	bool running;
	struct gantry_hop hops[3];
};

static uint32_t piece_bytes(const struct gantry_io *io)
{
	uint32_t piece = io->opcode < GANTRY_OP_COUNT ? operations[io->opcode].piece : 0;

	if (piece == 0)
		return io->length;
	return (io->flags & GANTRY_IO_FUA) && piece < STABLE_PIECE ? STABLE_PIECE : piece;
}

int64_t gn_split_cost(const struct gantry_io *io, uint32_t bytes)
{
	return gantry_op_has_range(io->opcode) ? bytes >> operations[io->opcode].shift : 1;
}

static void drop_first(struct gn_split *split)
{
	split->first = (split->first + 1) % split->attr.depth;
	split->n_queued--;
}

static void put_first(struct gn_split *split, struct gantry_io *io)
{
	split->first = (split->first + split->attr.depth - 1) % split->attr.depth;
	split->queue[split->first] = io;
	split->n_queued++;
}

static void complete_parent(struct parent *parent)
{
	struct gantry_io *io = parent->io;

	if (parent->timed)
		io->hop_ns[GANTRY_HOP_BACKEND] = (uint32_t)(gn_fast_ns() - parent->begun_ns);
	io->status = gn_join_status(&parent->parts);
	gantry_complete(io);
}

static void part_done(void *self, struct gantry_io *part)
{
	struct gn_split *split = self;
	struct parent *parent = part->owner;

	if (gantry_io_end(part) != 0)
		return;
	parent->timed |= part->hop_ns[GANTRY_HOP_BACKEND] != 0;
	split->free[split->n_free++] = part;
	if (gn_join_add(&parent->parts, part->status) == 0)
		complete_parent(parent);
}

static struct gantry_io *make_part(struct gn_split *split, struct parent *parent, uint32_t bytes)
{
	struct gantry_io *part = split->free[--split->n_free];
	const struct gantry_io *io = parent->io;

	gantry_io_begin(part, io->start_ns);
	part->hop = &split->hops[1];
	part->owner = parent;
	part->opcode = io->opcode;
	part->flags = io->flags;
	part->crc32c = 0;
	part->offset = io->offset + parent->started;
	part->length = bytes;
	part->region = io->region;
	part->region_offset = io->region_offset + parent->started;
	part->deadline_us = io->deadline_us;
	part->data = io->data ? (char *)io->data + parent->started : NULL;
	return part;
}

/* Start the next part of the first IO of the queue. Returns 0 or -EAGAIN. */
static int start_part(struct gn_split *split, struct parent *parent, uint32_t bytes)
{
	struct gantry_io *io = parent->io, *part;
	bool last = parent->started + bytes == io->length;
	int64_t cost = gn_split_cost(io, bytes);
	int rc;

	if (split->n_free == 0)
		return -EAGAIN;
	if (parent->started == 0)
		parent->begun_ns = gn_fast_ns();
	part = make_part(split, parent, bytes);
	if (last) /* before the submit, because the IO can complete inside it */
		drop_first(split);
	else
		parent->parts.n_left++;
	parent->started += bytes;
	rc = gantry_submit(part);
	if (rc == -EAGAIN) {
		gantry_io_end(part);
		split->free[split->n_free++] = part;
		parent->started -= bytes;
		if (last)
			put_first(split, io);
		else
			parent->parts.n_left--;
		return rc;
	}
	split->credit -= cost;
	if (rc != 0) {
		part->status = (uint16_t)gantry_status_of_errno(rc);
		part_done(split, part);
	}
	return 0;
}

/* Submit the first IO of the queue undivided. Returns 0 or -EAGAIN. */
static int start_whole(struct gn_split *split, struct gantry_io *io)
{
	int64_t cost = gn_split_cost(io, io->length);
	int rc;

	drop_first(split);
	rc = split->attr.terminal.submit(split->attr.terminal.self, io);
	if (rc == -EAGAIN) {
		put_first(split, io);
		return rc;
	}
	split->credit -= cost;
	if (rc != 0)
		gantry_fail(io, gantry_status_of_errno(rc));
	return 0;
}

/*
 * Start no more parts of the first IO of the queue. It completes when its started parts have
 * completed.
 */
static void cut_short(struct gn_split *split, struct parent *parent, enum gantry_status status)
{
	drop_first(split);
	/* subtract the part that n_left reserves for the remaining bytes */
	if (gn_join_add(&parent->parts, (uint16_t)status) == 0)
		complete_parent(parent);
}

static int has_expired(const struct gn_split *split, const struct gantry_io *io)
{
	return io->deadline_us != 0 &&
	       split->attr.lane->pub.now_ns >= io->start_ns + io->deadline_us * GN_NS_PER_US;
}

/* Start an IO or part. Returns 0, or -EAGAIN: the terminal accepts no more in this turn. */
static int start_next(struct gn_split *split)
{
	struct gantry_io *io = split->queue[split->first];
	struct parent *parent = &split->parents[io->slot];
	uint32_t left = io->length - parent->started, piece = piece_bytes(io);

	if (has_expired(split, io))
		cut_short(split, parent, GANTRY_S_CANCELED);
	else if (parent->parts.status != GANTRY_S_OK)
		cut_short(split, parent, (enum gantry_status)parent->parts.status);
	else if (parent->started == 0 && left <= piece)
		return start_whole(split, io);
	else
		return start_part(split, parent, left < piece ? left : piece);
	return 0;
}

static int run(struct gn_split *split)
{
	int n = 0;

	if (split->running)
		return 0;
	split->running = true;
	while (split->n_queued != 0 && split->credit > 0 && start_next(split) == 0)
		n++;
	split->running = false;
	return n;
}

void gn_split_submit(struct gn_split *split, struct gantry_io *io)
{
	split->parents[io->slot] = (struct parent){.io = io, .parts = {.n_left = 1}};
	if (io->length > piece_bytes(io))
		/* the checksum of the whole is not valid for a part */
		io->flags &= (uint8_t)~GANTRY_IO_CRC;
	split->queue[(split->first + split->n_queued++) % split->attr.depth] = io;
	run(split);
}

int gn_split_poll(struct gn_split *split)
{
	split->credit = gn_split_grant(split->credit, split->attr.quantum);
	return split->n_queued != 0 ? run(split) : 0;
}

int gn_split_is_ready(const struct gn_split *split)
{
	return split->n_queued != 0 && split->n_free != 0;
}

void gn_split_abandon(struct gn_split *split)
{
	while (split->n_queued != 0)
		cut_short(split, &split->parents[split->queue[split->first]->slot],
			  GANTRY_S_CANCELED);
}

static uint32_t parts_needed(const struct gn_split_attr *attr)
{
	uint64_t all = ((uint64_t)attr->max_io + GN_SPLIT_PIECE - 1) / GN_SPLIT_PIECE * attr->depth;

	return all < MAX_PARTS ? (uint32_t)all : MAX_PARTS;
}

int gn_split_create(const struct gn_split_attr *attr, struct gn_split **split_p)
{
	struct gn_split *split;
	uint32_t n = parts_needed(attr);

	if (attr->depth == 0 || attr->quantum == 0 || n == 0)
		return -EINVAL;
	split = calloc(1, sizeof(*split));
	if (!split)
		return -ENOMEM;
	split->attr = *attr;
	split->credit = attr->quantum;
	split->hops[0] = gn_lane_guard(attr->lane);
	split->hops[1] = (struct gantry_hop){
		.submit = gn_io_no_submit, .complete = part_done, .self = split};
	split->hops[2] = attr->terminal;
	split->parents = calloc(attr->depth, sizeof(*split->parents));
	split->queue = calloc(attr->depth, sizeof(*split->queue));
	split->free = calloc(n, sizeof(*split->free));
	split->parts = gn_io_pool(n, &split->hops[1]);
	*split_p = split;
	if (!split->parents || !split->queue || !split->free || !split->parts) {
		gn_split_destroy(split_p);
		return -ENOMEM;
	}
	while (split->n_free < n) {
		split->free[split->n_free] = &split->parts[split->n_free];
		split->n_free++;
	}
	return 0;
}

void gn_split_destroy(struct gn_split **split_p)
{
	struct gn_split *split = *split_p;

	*split_p = NULL;
	if (!split)
		return;
	free(split->parts);
	free(split->free);
	free(split->queue);
	free(split->parents);
	free(split);
}
