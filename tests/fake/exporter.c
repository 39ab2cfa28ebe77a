/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * exporter - a role that exports and unexports a region while its session runs. Only tests load it.
 *
 * The lane writes and reads through the fixed region 1 all the time. Meanwhile, in each round:
 *
 *      probe    reads that name region 2, which is not exported, fail with ACCESS, and the memory
 *               of the last round does not change
 *      use      the role exports a new region as region 2; writes and reads through it succeed
 *      leave    the role unexports region 2 while its IO is in flight; each IO completes with OK or
 *               ACCESS
 *
 * With `lists`, every other IO of region 2 has a list: its data is the first part of a buffer in
 * region 2 and the second part of one in region 1. The list is in region 1, too.
 *
 * The role finishes with status 1 after any other result. Where IO and sessions can fail, `strict`
 * is false: then only IO that names no region must fail, and only memory must not change.
 */
#define GANTRY_API_VERSION 1

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <gantry/role.h>

#define IO_BYTES 4096u
#define SLOTS 8u       /* the first half uses region 1, the second half region 2 */
#define LIST_BYTES 64u /* bytes for the list of a slot */
#define LISTS_AT ((uint64_t)SLOTS * 2 * IO_BYTES)
#define REGION_BYTES (LISTS_AT + SLOTS * LIST_BYTES)
#define FIRST_PIECE 1000u /* bytes of an IO with a list that are in region 2 */
#define FIXED 1u
#define CHANGED 2u
#define USES 64u        /* IOs of a round before region 2 is unexported */
#define MOST_IOS 512u   /* limit of IOs of a phase for each region: the peer can be slow */
#define PROBES 32u      /* IOs of a round that name region 2 while it is not exported */
#define UNTOUCHED 0xeeu /* content of a region whose export has ended */

enum phase { PROBE, USE, LEAVE, REST };

struct exporter_conf {
	int64_t rounds;
	uint8_t strict, writes, lists;
};

struct slot {
	enum phase phase; /* when the IO was submitted */
	bool reads;       /* the IO reads what the last one has written */
	uint8_t mark;     /* first byte of the data that was written last; 0: none */
	struct gantry_pieces pieces;
};

struct exporter {
	const struct gantry_role_host *rh;
	const struct exporter_conf *conf;
	struct gantry_client *client;
	struct gantry_chain *chain;
	struct gantry_io *ios;
	struct gantry_region *fixed, *changed;

	/* control thread */
	int64_t round;
	bool polled, lane_stopped, closed, failed, finished;

	/* lane's thread */
	struct gantry_lane *lane;
	enum phase phase;
	uint32_t n_done, n_fixed; /* IOs of the second half, of the first half in this phase */
	uint32_t n_busy, busy;    /* n_busy: IOs in flight; busy: a bit for each of them */
	bool phase_over;          /* the end of the phase is posted */
	bool stopping, lane_over; /* lane_over: the end of the lane is posted */
	bool lane_failed;
	bool lists; /* the volume supports lists, and the option is set */
	uint8_t next_mark;
	struct slot slots[SLOTS];
};

static const struct gantry_option options[] = {
	{"rounds", GANTRY_OPT_INT, offsetof(struct exporter_conf, rounds), "20", 1, 1000000, NULL,
	 NULL, "Number of exports of region 2."},
	{"strict", GANTRY_OPT_BOOL, offsetof(struct exporter_conf, strict), "true", 0, 0, NULL,
	 NULL, "IO and session must not fail."},
	{"writes", GANTRY_OPT_BOOL, offsetof(struct exporter_conf, writes), "true", 0, 0, NULL,
	 NULL, "Write to the volume; false: only read."},
	{"lists", GANTRY_OPT_BOOL, offsetof(struct exporter_conf, lists), "true", 0, 0, NULL, NULL,
	 "Submit IO with lists, if the volume supports it."},
	GANTRY_OPTION_END,
};

static void fail(struct exporter *x, const char *what, int rc)
{
	gantry_log_error(x->rh->host, "exporter: round %lld: %s: %s", (long long)x->round, what,
			 strerror(-rc));
	x->failed = true;
	x->rh->client_close(x->client);
}

/* -- the end -- */

static void finish(struct exporter *x)
{
	const struct gantry_role_host *rh = x->rh;

	if (!x->closed || !x->lane_stopped || x->finished)
		return;
	x->finished = true;
	if (x->polled)
		rh->poller_remove(x->lane, x);
	if (x->chain)
		rh->chain_destroy(x->chain);
	if (x->fixed)
		rh->region_destroy(rh, x->fixed, rh->client_regions_released(x->client));
	if (x->changed)
		rh->region_destroy(rh, x->changed, rh->client_regions_released(x->client));
	rh->client_free(x->client);
	rh->finished(rh, x->failed || x->lane_failed);
}

static void lane_ended(void *arg)
{
	struct exporter *x = arg;

	x->lane_stopped = true;
	x->rh->client_close(x->client);
	finish(x);
}

/* -- lane's thread -- */

static void phase_ended(void *arg);

static bool in_second_half(const struct gantry_io *io)
{
	return io->slot >= SLOTS / 2;
}

static uint32_t handle_of(const struct gantry_io *io)
{
	return in_second_half(io) ? CHANGED : FIXED;
}

static bool has_list(const struct exporter *x, const struct gantry_io *io)
{
	return x->lists && in_second_half(io) && io->slot % 2 != 0;
}

/* The slot writes from the first of its two buffers, and reads to the second one. */
static uint64_t buffer_at(const struct gantry_io *io, bool reads)
{
	return (io->slot * 2ull + reads) * IO_BYTES;
}

/*
 * Locate the data of an IO. Returns the number of pieces: 2 with a list, else 1. region 2 has no
 * address while it is not exported.
 */
static uint32_t pieces_of(const struct exporter *x, const struct gantry_io *io, bool reads,
			  struct iovec piece[2])
{
	const struct gantry_region *region = in_second_half(io) ? x->changed : x->fixed;
	uint8_t *base = region ? region->addr : NULL;

	piece[0] = (struct iovec){base ? base + buffer_at(io, reads) : NULL, IO_BYTES};
	if (!has_list(x, io))
		return 1;
	piece[0].iov_len = FIRST_PIECE;
	piece[1].iov_base = (uint8_t *)x->fixed->addr + buffer_at(io, reads) + FIRST_PIECE;
	piece[1].iov_len = IO_BYTES - FIRST_PIECE;
	return 2;
}

/* Byte i of the data of an IO is mark + i. */
static void write_mark(const struct exporter *x, const struct gantry_io *io, uint8_t mark)
{
	struct iovec piece[2];
	const uint32_t n = pieces_of(x, io, false, piece);

	for (uint32_t i = 0; i < n; i++)
		for (size_t k = 0; k < piece[i].iov_len; k++)
			((uint8_t *)piece[i].iov_base)[k] = mark++;
}

static bool has_mark(const struct exporter *x, const struct gantry_io *io, uint8_t mark)
{
	struct iovec piece[2];
	const uint32_t n = pieces_of(x, io, true, piece);
	bool same = true;

	for (uint32_t i = 0; i < n; i++)
		for (size_t k = 0; k < piece[i].iov_len; k++)
			same &= ((const uint8_t *)piece[i].iov_base)[k] == mark++;
	return same;
}

/* Let a descriptor name the data of the IO. */
static void name_data(struct exporter *x, struct gantry_io *io, bool reads)
{
	struct gantry_pieces *pieces = &x->slots[io->slot].pieces;
	const uint64_t list_at = LISTS_AT + (uint64_t)io->slot * LIST_BYTES;
	struct gantry_list_entry *list;

	pieces->count = pieces_of(x, io, reads, pieces->piece);
	io->flags = 0;
	io->region = handle_of(io);
	io->region_offset = buffer_at(io, reads);
	io->data = pieces->piece[0].iov_base;
	if (pieces->count == 1)
		return;
	list = (struct gantry_list_entry *)((uint8_t *)x->fixed->addr + list_at);
	for (uint32_t i = 0; i < 2; i++)
		list[i] = (struct gantry_list_entry){.region = i == 0 ? CHANGED : FIXED,
						     .length = (uint32_t)pieces->piece[i].iov_len,
						     .offset = buffer_at(io, reads) +
							       (i == 0 ? 0 : FIRST_PIECE)};
	io->flags = GANTRY_IO_LIST;
	io->region = FIXED;
	io->region_offset = list_at;
	io->data = pieces;
}

static void lane_fail(struct exporter *x, const struct gantry_io *io, const char *what)
{
	gantry_log_error(x->rh->host, "exporter: %s region=%u phase=%d status=%u", what,
			 handle_of(io), (int)x->slots[io->slot].phase, io->status);
	x->lane_failed = true;
	x->stopping = true;
}

static void check(struct exporter *x, const struct gantry_io *io)
{
	const struct slot *slot = &x->slots[io->slot];
	const bool may_end = slot->phase == LEAVE || x->phase != USE;

	if (in_second_half(io) && slot->phase == PROBE &&
	    (io->status == GANTRY_S_OK || (x->conf->strict && io->status != GANTRY_S_ACCESS)))
		lane_fail(x, io, "an IO that names no region did not fail");
	if (!x->conf->strict || (in_second_half(io) && slot->phase == PROBE))
		return;
	if (in_second_half(io) && may_end) {
		if (io->status != GANTRY_S_OK && io->status != GANTRY_S_ACCESS)
			lane_fail(x, io, "an IO in flight failed");
		return;
	}
	if (io->status != GANTRY_S_OK) {
		lane_fail(x, io, "an IO failed");
		return;
	}
	if (slot->reads && x->conf->writes && !has_mark(x, io, slot->mark))
		lane_fail(x, io, "a read has other data than the write before it");
}

/* Post the end of a phase once: enough IO of the second half has completed. */
static void end_phase(struct exporter *x)
{
	const uint32_t second = x->busy >> SLOTS / 2;
	const bool ends = (x->phase == PROBE && x->n_done >= PROBES && second == 0) ||
			  (x->phase == USE && x->n_done >= USES);

	if (!ends || x->phase_over)
		return;
	x->phase_over = true;
	x->rh->post(x->rh, phase_ended, x);
}

static void end_lane(struct exporter *x)
{
	if (!x->stopping || x->n_busy != 0 || x->lane_over)
		return;
	x->lane_over = true;
	x->rh->post(x->rh, lane_ended, x);
}

static void io_done(void *self, struct gantry_io *io)
{
	struct exporter *x = self;

	if (gantry_io_end(io) != 0)
		return;
	x->n_busy--;
	x->busy &= ~(1u << io->slot);
	if (!x->stopping || io->status != GANTRY_S_SESSION_LOST)
		check(x, io);
	x->n_done += in_second_half(io) && x->slots[io->slot].phase == x->phase;
	end_phase(x);
	end_lane(x);
}

static bool may_submit(const struct exporter *x, const struct gantry_io *io)
{
	if (x->stopping || (x->busy & 1u << io->slot) != 0)
		return false;
	if (!in_second_half(io))
		return x->n_fixed < MOST_IOS;
	return x->phase == USE || (x->phase == LEAVE && x->n_done < MOST_IOS) ||
	       (x->phase == PROBE && x->n_done < PROBES);
}

static int submit(struct exporter *x, struct gantry_io *io)
{
	struct slot *slot = &x->slots[io->slot];
	const bool probes = in_second_half(io) && x->phase == PROBE;
	const bool reads = probes || !x->conf->writes ||
			   (slot->phase == x->phase && !slot->reads && slot->mark != 0);
	int rc;

	gantry_io_begin(io, x->lane->now_ns);
	if (!reads) {
		slot->mark = ++x->next_mark != 0 ? x->next_mark : ++x->next_mark;
		write_mark(x, io, slot->mark);
	}
	slot->phase = x->phase;
	slot->reads = reads;
	io->opcode = reads ? GANTRY_OP_READ : GANTRY_OP_WRITE;
	io->offset = (uint64_t)io->slot * IO_BYTES;
	io->length = IO_BYTES;
	name_data(x, io, reads);
	io->deadline_us = 30000000;
	io->owner = x;
	x->n_busy++;
	x->busy |= 1u << io->slot;
	rc = gantry_submit(io);
	if (rc == 0) {
		x->n_fixed += !in_second_half(io);
		return 1;
	}
	x->n_busy--;
	x->busy &= ~(1u << io->slot);
	gantry_io_end(io);
	slot->mark = 0; /* the next IO writes */
	if (rc != -EAGAIN && rc != -ENOTCONN)
		lane_fail(x, io, "an IO was not accepted");
	x->stopping |= rc == -ENOTCONN;
	return 0;
}

static int poll(void *self)
{
	struct exporter *x = self;
	int n = 0;

	for (uint32_t i = 0; i < SLOTS; i++)
		if (may_submit(x, &x->ios[i]))
			n += submit(x, &x->ios[i]);
	end_lane(x);
	return n;
}

/* The lane must not sleep while there is IO to submit. */
static int arm(void *self)
{
	const struct exporter *x = self;
	int ready = 0;

	for (uint32_t i = 0; i < SLOTS; i++)
		ready |= may_submit(x, &x->ios[i]);
	return ready;
}

/* -- control thread -- */

struct change {
	struct exporter *x;
	enum phase phase;
};

static void change_on_lane(void *arg)
{
	const struct change *change = arg;

	change->x->phase = change->phase;
	change->x->n_done = change->x->n_fixed = 0;
	change->x->phase_over = false;
	if (change->phase == USE)
		for (uint32_t i = SLOTS / 2; i < SLOTS; i++)
			change->x->slots[i].mark = 0; /* begin with a write */
}

static void set_phase(struct exporter *x, enum phase phase)
{
	struct change change = {x, phase};

	x->rh->lane_call(x->lane, change_on_lane, &change);
}

static void stop_on_lane(void *arg)
{
	struct exporter *x = arg;

	x->stopping = true;
	end_lane(x);
}

static void stop_lane(struct exporter *x)
{
	if (x->polled && !x->lane_stopped)
		x->rh->lane_call(x->lane, stop_on_lane, x);
}

/* The memory is not exported any more, and reads that named its handle have failed. */
static void check_untouched(struct exporter *x)
{
	const uint8_t *data = x->changed->addr;

	if (data[0] != UNTOUCHED || memcmp(data, data + 1, REGION_BYTES - 1) != 0)
		fail(x, "memory has changed after its export ended", -EIO);
	x->rh->region_destroy(x->rh, x->changed, 1);
	x->changed = NULL;
}

static void probed(struct exporter *x)
{
	int rc;

	if (x->changed)
		check_untouched(x);
	if (x->failed || x->round == x->conf->rounds) {
		stop_lane(x);
		return;
	}
	x->round++;
	rc = x->rh->region_create(x->rh, REGION_BYTES, 0, &x->changed);
	if (rc == 0)
		rc = x->rh->client_export(x->client, x->changed,
					  GANTRY_REMOTE_READ | GANTRY_REMOTE_WRITE, CHANGED);
	if (rc != 0)
		fail(x, "cannot export", rc);
}

static void used(struct exporter *x)
{
	int rc;

	set_phase(x, LEAVE);
	rc = x->rh->client_unexport(x->client, CHANGED);
	if (rc != 0)
		fail(x, "cannot unexport", rc);
}

static void phase_ended(void *arg)
{
	struct exporter *x = arg;

	if (x->closed || x->failed || x->lane_failed)
		return;
	if (x->phase == PROBE)
		probed(x);
	else
		used(x);
}

static void on_unexported(void *arg, struct gantry_client *client, uint32_t handle)
{
	struct exporter *x = arg;

	(void)client;
	if (handle != CHANGED)
		fail(x, "another region was unexported", -EPROTO);
	set_phase(x, REST); /* the lane does not write to the buffers any more */
	memset(x->changed->addr, UNTOUCHED, REGION_BYTES);
	set_phase(x, PROBE);
}

static void on_ready(void *arg, struct gantry_client *client,
		     const struct gantry_volume_info *volume)
{
	struct exporter *x = arg;
	int rc = x->rh->region_create(x->rh, REGION_BYTES, 0, &x->fixed);

	x->lists = x->conf->lists && (volume->flags & GANTRY_VOLUME_LISTS) != 0;
	if (rc == 0)
		rc = x->rh->client_export(client, x->fixed,
					  GANTRY_REMOTE_READ | GANTRY_REMOTE_WRITE, FIXED);
	if (rc != 0)
		fail(x, "cannot export the fixed region", rc);
}

static void on_exported(void *arg, struct gantry_client *client, const struct gantry_region *region)
{
	struct exporter *x = arg;
	const struct gantry_hop owner = {.complete = io_done, .self = x};
	struct gantry_hop terminal;
	int rc;

	if (region != x->fixed) {
		set_phase(x, USE);
		return;
	}
	rc = x->rh->client_hop(client, 0, x->lane, &terminal);
	if (rc == 0)
		rc = x->rh->chain_create(x->lane, &owner, &terminal, NULL, SLOTS, &x->chain,
					 &x->ios);
	if (rc == 0)
		rc = x->rh->client_start(client);
	if (rc != 0)
		fail(x, "cannot start", rc);
}

static void on_started(void *arg, struct gantry_client *client)
{
	struct exporter *x = arg;
	const struct gantry_poller poller = {.poll = poll, .arm = arm, .self = x};

	(void)client;
	x->lane_stopped = false;
	x->polled = true;
	if (x->rh->poller_add(x->lane, &poller) != 0) {
		x->polled = false;
		x->lane_stopped = true;
		fail(x, "cannot poll", -ENOMEM);
	}
}

static void on_closed(void *arg, struct gantry_client *client, int reason, const char *text)
{
	struct exporter *x = arg;

	(void)client;
	if (reason != 0)
		gantry_log_error(x->rh->host, "exporter: the session ended: %s", text);
	x->failed |= reason != 0;
	x->closed = true;
	stop_lane(x);
	finish(x);
}

static const struct gantry_client_events events = {
	.ready = on_ready,
	.exported = on_exported,
	.started = on_started,
	.closed = on_closed,
	.unexported = on_unexported,
};

/* -- the plugin -- */

static int exporter_open(const struct gantry_role_host *rh, const void *conf, void **role_p)
{
	struct exporter *x = calloc(1, sizeof(*x));

	if (!x)
		return -ENOMEM;
	x->rh = rh;
	x->conf = conf;
	x->lane = rh->lane(rh, 0);
	x->lane_stopped = true;
	*role_p = x;
	return 0;
}

static int exporter_start(void *role)
{
	const struct gantry_session_attr attr = {
		.epoch = 1, .lanes = 1, .depth = SLOTS, .regions = 2};
	struct exporter *x = role;

	return x->rh->client_open(x->rh, 0, &attr, &events, x, &x->client);
}

static void exporter_stop(void *role)
{
	struct exporter *x = role;

	x->failed = true;
	if (x->client && !x->closed)
		x->rh->client_close(x->client);
}

static void exporter_close(void *role)
{
	free(role);
}

static void exporter_report(void *role, struct gantry_writer *w)
{
	const struct exporter *x = role;

	w->u64(w, "rounds", (uint64_t)x->round);
}

static const struct gantry_role_ops ops = {
	.open = exporter_open,
	.start = exporter_start,
	.stop = exporter_stop,
	.close = exporter_close,
	.report = exporter_report,
	.flags = GANTRY_ROLE_CONNECTS | GANTRY_ROLE_WORKS,
};

GANTRY_PLUGIN(exporter) = {
	GANTRY_PLUGIN_HEAD,
	.kind = GANTRY_KIND_ROLE,
	.name = "exporter",
	.version = "1",
	.summary = "exports and unexports a region while its session runs",
	.options = options,
	.conf_size = sizeof(struct exporter_conf),
	.ops_size = sizeof(ops),
	.ops = &ops,
};
