/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * scan.c - a role that reads a volume once and counts the blocks that hold data
 *
 *     control thread   client_open -> ready: export a region -> exported: create the chain
 *                      -> started: add a poller
 *     lane's thread    the poller submits reads; scan_complete() receives them
 *     control thread   client_close -> closed: release all -> finished
 *
 *     cc -O2 -fPIC -shared -Wl,-z,defs $(pkg-config --cflags gantry-plugin) -o scan.so scan.c
 *     gantry run scan.conf --plugin-dir . \
 *         --plugin-dir $(pkg-config --variable=plugindir gantry-plugin)
 */
#define GANTRY_API_VERSION 1

#include <gantry/role.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH 16
#define MAX_BLOCK (1 << 20)
#define REGION 1 /* handle of the only region of the session */
#define DEADLINE_US 10000000u

struct scan_conf {
	uint64_t block;
};

static const struct gantry_option options[] = {
	{"block", GANTRY_OPT_SIZE, offsetof(struct scan_conf, block), "64KiB", 4096, MAX_BLOCK,
	 NULL, NULL, "Bytes of a block, which one read reads."},
	GANTRY_OPTION_END,
};

struct scan {
	const struct gantry_role_host *rh;
	const struct scan_conf *conf;
	struct gantry_client *client;
	struct gantry_region *region; /* DEPTH buffers, one for each descriptor */
	struct gantry_chain *chain;
	struct gantry_io *ios;
	struct gantry_volume_info volume;
	uint32_t block; /* bytes of one read */

	/* control thread */
	int polled;   /* the poller is added */
	int stopped;  /* the lane has ended, or has not started */
	int complete; /* all reads have succeeded */
	int closing;  /* the role has asked for the end of the session */
	int closed;   /* the session has ended */
	int lost;     /* the session has ended with an error */
	int finished;

	/* lane's thread, from `started` until the lane has ended */
	struct gantry_lane *lane;
	uint64_t at; /* bytes of the volume that reads were submitted for */
	uint16_t free[DEPTH];
	uint32_t n_free;
	int failed;   /* a read, or a step before `started`, has failed */
	int stopping; /* the lane submits no more reads */
	int ended;    /* the lane has posted its end */
	uint64_t *data_blocks, *zero_blocks;
};

/* -- the end: the role finishes when both the session and the lane have ended -- */

static void close_session(struct scan *scan)
{
	scan->closing = 1;
	scan->rh->client_close(scan->client);
}

static void finish(struct scan *scan)
{
	const struct gantry_role_host *rh = scan->rh;

	if (!scan->closed || !scan->stopped)
		return;
	scan->finished = 1;
	if (scan->polled)
		rh->poller_remove(scan->lane, scan);
	if (scan->chain)
		rh->chain_destroy(scan->chain);
	/*
	 * Call client_regions_released() before client_free(). It returns 0 if the target can still
	 * write to the region; the host then does not reuse the region.
	 */
	if (scan->region)
		rh->region_destroy(rh, scan->region, rh->client_regions_released(scan->client));
	rh->client_free(scan->client);
	rh->finished(rh, scan->failed || (scan->lost && !scan->complete));
}

/* Control thread: the lane submits nothing more, and all its reads have completed. */
static void lane_ended(void *arg)
{
	struct scan *scan = arg;

	scan->stopped = 1;
	scan->complete = !scan->failed && scan->at == scan->volume.size;
	close_session(scan);
	finish(scan);
}

/* -- lane's thread -- */

static int has_work(const struct scan *scan)
{
	return !scan->failed && !scan->stopping && scan->at < scan->volume.size;
}

static void lane_end(struct scan *scan)
{
	if (scan->ended || has_work(scan) || scan->n_free < DEPTH)
		return;
	scan->ended = 1;
	scan->rh->post(scan->rh, lane_ended, scan);
}

static void lane_stop(void *arg)
{
	struct scan *scan = arg;

	scan->stopping = 1;
	lane_end(scan);
}

static int is_zero(const uint8_t *data, uint32_t length)
{
	return !data[0] && !memcmp(data, data + 1, length - 1);
}

static void scan_complete(void *self, struct gantry_io *io)
{
	struct scan *scan = self;

	if (gantry_io_end(io)) /* not 0: the IO was completed before */
		return;
	/* The lane submits no read after a failure, so it reuses no buffer that is not released. */
	if (io->status != GANTRY_S_OK)
		scan->failed |= !scan->stopping || io->status != GANTRY_S_CANCELED;
	else if (is_zero(io->data, io->length))
		gantry_count(scan->zero_blocks, 1);
	else
		gantry_count(scan->data_blocks, 1);
	scan->free[scan->n_free++] = io->slot;
	lane_end(scan);
}

static void fill(struct scan *scan, struct gantry_io *io)
{
	uint64_t left = scan->volume.size - scan->at;

	gantry_io_begin(io, scan->lane->now_ns);
	io->opcode = GANTRY_OP_READ;
	io->flags = 0;
	io->offset = scan->at;
	io->length = left < scan->block ? (uint32_t)left : scan->block;
	io->region = REGION;
	io->region_offset = (uint64_t)io->slot * scan->block;
	io->data = (uint8_t *)scan->region->addr + io->region_offset;
	io->deadline_us = DEADLINE_US;
	io->owner = scan;
}

static int scan_poll(void *self)
{
	struct scan *scan = self;
	int n = 0;

	while (has_work(scan) && scan->n_free) {
		struct gantry_io *io = &scan->ios[scan->free[--scan->n_free]];
		uint32_t length;
		int rc;

		fill(scan, io);
		length = io->length;
		scan->at += length; /* first: the read can complete inside gantry_submit() */
		rc = gantry_submit(io);
		if (rc) {
			gantry_io_end(io);
			scan->free[scan->n_free++] = io->slot;
			scan->at -= length;
			if (rc == -EAGAIN)
				break; /* submit it again in the next turn */
			scan->failed = 1;
		}
		n++;
	}
	lane_end(scan);
	return n;
}

/* The lane must not sleep while there is a read to submit. */
static int scan_arm(void *self)
{
	struct scan *scan = self;

	return has_work(scan) && scan->n_free;
}

/* -- control thread: events of the session -- */

/* End a session whose lane does not run. `closed` follows. */
static void fail(struct scan *scan, const char *what, int rc)
{
	gantry_log_error(scan->rh->host, "cannot %s: %s", what, strerror(-rc));
	scan->failed = 1;
	close_session(scan);
}

static void ready(void *arg, struct gantry_client *client, const struct gantry_volume_info *volume)
{
	struct scan *scan = arg;
	const struct gantry_role_host *rh = scan->rh;
	int rc;

	if (scan->closing)
		return;
	scan->volume = *volume;
	scan->block = (uint32_t)scan->conf->block;
	if (scan->block > volume->max_io)
		scan->block = volume->max_io;
	scan->block -= scan->block % volume->block_size;
	if (!scan->block || !gantry_op_in(GANTRY_OP_READ, volume->ops)) {
		fail(scan, "read the volume in such blocks", -EOPNOTSUPP);
		return;
	}
	rc = rh->region_create(rh, (uint64_t)DEPTH * scan->block, 0, &scan->region);
	if (!rc)
		rc = rh->client_export(client, scan->region, GANTRY_REMOTE_WRITE, REGION);
	if (rc)
		fail(scan, "export the buffers", rc);
}

static void exported(void *arg, struct gantry_client *client, const struct gantry_region *region)
{
	struct scan *scan = arg;
	const struct gantry_role_host *rh = scan->rh;
	const struct gantry_hop owner = {.complete = scan_complete, .self = scan};
	struct gantry_hop terminal;
	int rc;

	(void)region;
	if (scan->closing)
		return;
	rc = rh->client_hop(client, 0, scan->lane, &terminal);
	if (!rc)
		rc = rh->chain_create(scan->lane, &owner, &terminal, &scan->volume, DEPTH,
				      &scan->chain, &scan->ios);
	if (!rc)
		rc = rh->client_start(client);
	if (rc)
		fail(scan, "set up the lane", rc);
}

static void started(void *arg, struct gantry_client *client)
{
	struct scan *scan = arg;
	const struct gantry_poller poller = {.poll = scan_poll, .arm = scan_arm, .self = scan};
	int rc;

	(void)client;
	if (scan->closing)
		return;
	scan->stopped = 0; /* first: the lane can end before poller_add() returns */
	rc = scan->rh->poller_add(scan->lane, &poller);
	scan->polled = !rc;
	if (rc) {
		scan->stopped = 1;
		fail(scan, "poll the lane", rc);
	}
}

/* The host has logged the reason. Reads that a stage still holds complete later. */
static void closed(void *arg, struct gantry_client *client, int reason, const char *text)
{
	struct scan *scan = arg;

	(void)client;
	(void)text;
	scan->closed = 1;
	scan->lost = reason != 0;
	if (!scan->stopped)
		scan->rh->lane_call(scan->lane, lane_stop, scan);
	finish(scan);
}

static const struct gantry_client_events events = {
	.ready = ready,
	.exported = exported,
	.started = started,
	.closed = closed,
};

/* -- the plugin -- */

static int scan_open(const struct gantry_role_host *rh, const void *conf, void **role_p)
{
	struct scan *scan = calloc(1, sizeof(*scan));

	if (!scan)
		return -ENOMEM;
	scan->rh = rh;
	scan->conf = conf;
	scan->lane = rh->lane(rh, 0);
	scan->stopped = 1;
	for (; scan->n_free < DEPTH; scan->n_free++)
		scan->free[scan->n_free] = (uint16_t)scan->n_free;
	scan->data_blocks = rh->host->counter(rh->host, "data_blocks");
	scan->zero_blocks = rh->host->counter(rh->host, "zero_blocks");
	if (!scan->data_blocks || !scan->zero_blocks) {
		free(scan);
		return -ENOMEM;
	}
	*role_p = scan;
	return 0;
}

static int scan_start(void *role)
{
	const struct gantry_session_attr attr = {
		.epoch = 1, .lanes = 1, .depth = DEPTH, .regions = 1};
	struct scan *scan = role;

	return scan->rh->client_open(scan->rh, 0, &attr, &events, scan, &scan->client);
}

/* A role that a signal stops has not failed: gantry reports the interruption. */
static void scan_stop(void *role)
{
	struct scan *scan = role;

	if (scan->finished)
		return;
	if (!scan->client) {
		scan->finished = 1;
		scan->rh->finished(scan->rh, 0);
	} else if (scan->stopped) {
		close_session(scan);
	} else {
		scan->rh->lane_call(scan->lane, lane_stop, scan);
	}
}

static void scan_report(void *role, struct gantry_writer *w)
{
	const struct scan *scan = role;

	w->u64(w, "block_bytes", scan->block);
}

/* `gantry check` compares the plan with the limits of the listener. */
static void scan_check(const void *arg, struct gantry_check *check)
{
	const struct scan_conf *conf = arg;

	if (!check->role)
		return;
	check->plans[0].lanes = 1;
	check->plans[0].depth = DEPTH;
	check->plans[0].regions = 1;
	check->plans[0].region_bytes = DEPTH * conf->block;
}

static const struct gantry_role_ops ops = {
	.open = scan_open,
	.start = scan_start,
	.stop = scan_stop,
	.close = free,
	.report = scan_report,
	.flags = GANTRY_ROLE_CONNECTS | GANTRY_ROLE_ONE_VOLUME | GANTRY_ROLE_WORKS,
};

GANTRY_PLUGIN(scan) = {
	GANTRY_PLUGIN_HEAD,
	.kind = GANTRY_KIND_ROLE,
	.name = "scan",
	.version = "1",
	.summary = "counts the blocks of a volume that hold data",
	.options = options,
	.conf_size = sizeof(struct scan_conf),
	.ops_size = sizeof(ops),
	.ops = &ops,
	.check = scan_check,
};
