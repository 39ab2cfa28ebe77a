/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fanout.c - completes a parent descriptor when all its children have completed. Lane's thread,
 * except create and destroy.
 *
 * Children come from a separate pool: each slot of a parent has its own. A child passes through a
 * chain without stages. A parent with one piece that covers it has no child: it passes through such
 * a chain itself.
 *
 *      [guard] [owner: child_done] [terminal]
 *      [guard] [owner: whole_done] [terminal]
 *
 * If the terminal returns -EAGAIN, the descriptor waits in a list. Each poll submits it again,
 * until its deadline.
 */
#include "pipeline/fanout.h"

#include "base/clock.h"
#include "io/pool.h"
#include "io/status.h"
#include "pipeline/join.h"

#include <errno.h>
#include <stdlib.h>

struct join {
	struct gantry_io *parent;
	struct gn_join parts;
	/* what submit_whole() has replaced in a parent without children */
	const struct gantry_hop *hop;
	uint64_t offset;
};

/* The chains that end at one terminal. */
struct chains {
	struct gantry_hop child[3], whole[3];
};

struct gantry_fanout {
	struct gn_lane *lane;
	uint32_t n_parents, max_pieces, n_children, n_waiting;
	struct join *joins;         /* indexed by the slot of the parent */
	struct gantry_io *children; /* max_pieces for each slot of a parent */
	struct gantry_io **waiting; /* ring of n_children entries: one for each piece */
	uint32_t first_waiting;
	struct chains *chains; /* indexed by terminal */
};

static void add_times(struct gantry_io *parent, const struct gantry_io *child)
{
	for (int i = 0; i < GANTRY_HOP_COUNT; i++)
		if (child->hop_ns[i] > parent->hop_ns[i])
			parent->hop_ns[i] = child->hop_ns[i];
}

static void child_done(void *self, struct gantry_io *child)
{
	struct join *join = child->owner;
	struct gantry_io *parent = join->parent;

	(void)self;
	if (gantry_io_end(child) != 0)
		return;
	add_times(parent, child);
	if (gn_join_add(&join->parts, child->status) == 0) {
		parent->status = gn_join_status(&join->parts);
		gantry_complete(parent);
	}
}

static void whole_done(void *self, struct gantry_io *io)
{
	const struct gantry_fanout *f = self;
	const struct join *join = &f->joins[io->slot];

	io->hop = join->hop;
	io->offset = join->offset;
	gantry_complete(io);
}

/* Submit a child, or a parent without children. Returns 0 or -EAGAIN. */
static int submit_piece(struct gantry_io *io)
{
	int rc = gantry_submit(io);

	if (gantry_likely(rc == 0) || rc == -EAGAIN)
		return rc;
	io->status = (uint16_t)gantry_status_of_errno(rc);
	/* the hop is the owner again after a failed submit */
	io->hop->complete(io->hop->self, io);
	return 0;
}

static void put_waiting(struct gantry_fanout *f, struct gantry_io *io)
{
	f->waiting[(f->first_waiting + f->n_waiting++) % f->n_children] = io;
}

static int expired(const struct gantry_fanout *f, const struct gantry_io *io)
{
	return io->deadline_us != 0 &&
	       f->lane->pub.now_ns >= io->start_ns + io->deadline_us * GN_NS_PER_US;
}

/*
 * Submit each waiting descriptor once. Each is removed from the list first, because the completion
 * of a parent can submit new descriptors.
 */
static int fanout_poll(void *self)
{
	struct gantry_fanout *f = self;
	int moved = 0;

	for (uint32_t n = f->n_waiting; n > 0; n--) {
		struct gantry_io *io = f->waiting[f->first_waiting];

		f->first_waiting = (f->first_waiting + 1) % f->n_children;
		f->n_waiting--;
		if (expired(f, io)) {
			io->status = GANTRY_S_CANCELED;
			io->hop->complete(io->hop->self, io);
		} else if (submit_piece(io) != 0) {
			put_waiting(f, io);
			continue;
		}
		moved++;
	}
	return moved;
}

static int fanout_arm(void *self)
{
	const struct gantry_fanout *f = self;

	return f->n_waiting != 0;
}

static void make_child(const struct gantry_fanout *f, struct join *join,
		       const struct gantry_piece *piece, struct gantry_io *child)
{
	const struct gantry_io *parent = join->parent;

	gantry_io_begin(child, parent->start_ns);
	child->hop = &f->chains[piece->terminal].child[1];
	child->owner = join;
	child->opcode = parent->opcode;
	child->flags = parent->flags;
	child->crc32c = 0;
	child->offset = piece->offset;
	child->length = piece->length;
	child->region = parent->region;
	child->region_offset = parent->region_offset + piece->skip;
	child->deadline_us = parent->deadline_us;
	child->data = parent->data ? (char *)parent->data + piece->skip : NULL;
}

/* Pass on a parent that one piece covers. */
static void submit_whole(struct gantry_fanout *f, struct gantry_io *io,
			 const struct gantry_piece *piece)
{
	struct join *join = &f->joins[io->slot];

	join->hop = io->hop;
	join->offset = io->offset;
	io->hop = &f->chains[piece->terminal].whole[1];
	io->offset = piece->offset;
	if (submit_piece(io) != 0)
		put_waiting(f, io);
}

/*
 * Not inlined: it pushes callee-saved registers. After a copy of data the store buffer of the
 * processor is full, so that the common path, a parent without children, would wait for these
 * stores.
 */
static __attribute__((noinline)) void submit_children(struct gantry_fanout *f,
						      struct gantry_io *parent,
						      const struct gantry_piece *pieces, uint32_t n)
{
	struct join *join = &f->joins[parent->slot];
	struct gantry_io *children = &f->children[parent->slot * f->max_pieces];

	parent->flags &= (uint8_t)~GANTRY_IO_CRC; /* not valid for a part */
	*join = (struct join){.parent = parent, .parts = {.n_left = n}};
	/* a submit can complete other parents, whose owners can submit again and change `pieces` */
	for (uint32_t i = 0; i < n; i++)
		make_child(f, join, &pieces[i], &children[i]);
	/*
	 * After the submit of the last child the parent can have completed, and a new parent can
	 * use its join and its children.
	 */
	for (uint32_t i = 0; i < n; i++)
		if (submit_piece(&children[i]) != 0)
			put_waiting(f, &children[i]);
}

int gn_fanout_submit(struct gantry_fanout *f, struct gantry_io *parent,
		     const struct gantry_piece *pieces, uint32_t n)
{
	if (n == 0 || n > f->max_pieces || parent->slot >= f->n_parents)
		return -E2BIG;
	if (n == 1 && pieces->length == parent->length)
		submit_whole(f, parent, pieces);
	else
		submit_children(f, parent, pieces, n);
	return 0;
}

static void fill_chain(struct gantry_fanout *f, struct gantry_hop chain[3],
		       void (*done)(void *self, struct gantry_io *io),
		       const struct gantry_hop *terminal)
{
	chain[0] = gn_lane_guard(f->lane);
	chain[1] = (struct gantry_hop){.submit = gn_io_no_submit, .complete = done, .self = f};
	chain[2] = *terminal;
}

static void free_all(struct gantry_fanout *f)
{
	free(f->children);
	free(f->chains);
	free(f->waiting);
	free(f->joins);
	free(f);
}

int gn_fanout_create(struct gn_lane *lane, const struct gantry_hop *terminals, uint32_t n_terminals,
		     uint32_t n_parents, uint32_t max_pieces, struct gantry_fanout **fanout_p)
{
	struct gantry_fanout *f;
	struct gantry_poller poller = {.poll = fanout_poll, .arm = fanout_arm};
	uint64_t n = (uint64_t)n_parents * max_pieces;
	int rc = -ENOMEM;

	if (n_terminals == 0 || n == 0 || n > UINT16_MAX)
		return -EINVAL;
	f = calloc(1, sizeof(*f));
	if (!f)
		return -ENOMEM;
	f->lane = lane;
	f->n_parents = n_parents;
	f->max_pieces = max_pieces;
	f->n_children = (uint32_t)n;
	f->joins = calloc(n_parents, sizeof(*f->joins));
	f->waiting = calloc(n, sizeof(struct gantry_io *));
	f->chains = calloc(n_terminals, sizeof(*f->chains));
	/* make_child() sets the hop, which depends on the terminal */
	f->children = gn_io_pool((uint32_t)n, NULL);
	if (!f->joins || !f->waiting || !f->chains || !f->children)
		goto out_free;
	for (uint32_t i = 0; i < n_terminals; i++) {
		fill_chain(f, f->chains[i].child, child_done, &terminals[i]);
		fill_chain(f, f->chains[i].whole, whole_done, &terminals[i]);
	}
	poller.self = f;
	rc = gn_worker_add(lane->worker, &poller);
	if (rc != 0)
		goto out_free;
	*fanout_p = f;
	return 0;

out_free:
	free_all(f);
	return rc;
}

void gn_fanout_destroy(struct gantry_fanout *f)
{
	if (!f)
		return;
	gn_worker_remove(f->lane->worker, f);
	free_all(f);
}
