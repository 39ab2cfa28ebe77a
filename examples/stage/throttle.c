/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * throttle.c - a stage that limits the bytes per second of a role
 *
 * The stage shows what a stage that holds IOs has to do: keep them in order without an allocation
 * for each IO, retry after -EAGAIN, let the lane sleep until the limit permits the next IO, and
 * cancel the held IOs on drain.
 *
 *     cc -O2 -fPIC -shared -Wl,-z,defs $(pkg-config --cflags gantry-plugin) -o throttle.so throttle.c
 *     gantry run throttle.conf --plugin-dir . \
 *         --plugin-dir $(pkg-config --variable=plugindir gantry-plugin)
 */
#define GANTRY_API_VERSION 1

#include <gantry/stage.h>

#include <errno.h>
#include <stdlib.h>

#define SECOND_NS 1000000000u
/* a lane that was idle or woke late passes the bytes of at most this time immediately */
#define BURST_NS 10000000u

struct throttle_conf {
	uint64_t rate;
};

struct throttle {
	const struct gantry_host *host;
	const struct throttle_conf *conf;
};

/* State of one lane. Only the thread of the lane uses it, so it needs no lock. */
struct throttle_lane {
	struct gantry_lane *lane;
	uint64_t rate;                 /* bytes per second of this lane */
	uint64_t next_ns;              /* time from which on the next IO can pass */
	struct gantry_io *head, *tail; /* held IOs; the word of each IO points to the next IO */
	uint64_t *n_delayed;
};

static const struct gantry_option options[] = {
	{"rate", GANTRY_OPT_SIZE, offsetof(struct throttle_conf, rate), "100MiB", 4096, 1ll << 40,
	 NULL, NULL, "Bytes per second, on all lanes together."},
	GANTRY_OPTION_END,
};

static int throttle_open(const struct gantry_host *host, const void *conf, void **stage_p)
{
	struct throttle *throttle = calloc(1, sizeof(*throttle));

	if (!throttle)
		return -ENOMEM;
	throttle->host = host;
	throttle->conf = conf;
	*stage_p = throttle;
	return 0;
}

static int throttle_start(void *stage, struct gantry_lane *lane, void **self_p)
{
	struct throttle *throttle = stage;
	struct throttle_lane *self = gantry_zalloc_lines(sizeof(*self));

	if (!self)
		return -ENOMEM;
	self->lane = lane;
	self->rate = throttle->conf->rate / lane->n_lanes + 1;
	self->n_delayed = throttle->host->counter(throttle->host, "delayed_ops");
	if (!self->n_delayed) {
		free(self);
		return -ENOMEM;
	}
	*self_p = self;
	return 0;
}

/* -- the list of held IOs -- */

static struct gantry_io *next_of(struct gantry_io *io)
{
	return (struct gantry_io *)(uintptr_t)*gantry_stage_ctx(io);
}

static void append(struct throttle_lane *self, struct gantry_io *io)
{
	*gantry_stage_ctx(io) = 0;
	if (self->head)
		*gantry_stage_ctx(self->tail) = (uintptr_t)io;
	else
		self->head = io;
	self->tail = io;
}

static void put_first(struct throttle_lane *self, struct gantry_io *io)
{
	*gantry_stage_ctx(io) = (uintptr_t)self->head;
	if (!self->head)
		self->tail = io;
	self->head = io;
}

/* -- the limit -- */

/* Nanoseconds that the data of an IO takes at the configured rate. */
static uint64_t cost_ns(const struct throttle_lane *self, const struct gantry_io *io)
{
	return gantry_op_has_data(io->opcode) ? (uint64_t)io->length * SECOND_NS / self->rate : 0;
}

static int may_pass(const struct throttle_lane *self)
{
	return self->lane->now_ns >= self->next_ns;
}

/*
 * Pass an IO on, and charge it. The charge comes first: gantry_submit() can complete the IO, and
 * its owner can submit the next one to this stage before gantry_submit() returns.
 */
static int pass(struct throttle_lane *self, struct gantry_io *io)
{
	uint64_t cost = cost_ns(self, io);
	int rc;

	if (self->next_ns + BURST_NS < self->lane->now_ns)
		self->next_ns = self->lane->now_ns - BURST_NS;
	self->next_ns += cost;
	rc = gantry_submit(io);
	if (rc)
		self->next_ns -= cost;
	return rc;
}

static int throttle_submit(void *arg, struct gantry_io *io)
{
	struct throttle_lane *self = arg;

	if (!self->head && may_pass(self))
		return pass(self, io);
	append(self, io);
	gantry_count(self->n_delayed, 1);
	return 0; /* accepted: the stage must complete it, or pass it on later */
}

static int throttle_poll(void *arg)
{
	struct throttle_lane *self = arg;
	int n = 0;

	while (self->head && may_pass(self)) {
		struct gantry_io *io = self->head;
		int rc;

		self->head = next_of(io); /* first: the next hop owns the IO after pass() */
		rc = pass(self, io);
		if (rc == -EAGAIN) {
			put_first(self, io);
			break;
		}
		if (rc)
			gantry_fail(io, gantry_status_of_errno(rc));
		n++;
	}
	return n;
}

static uint64_t throttle_wake_ns(void *arg)
{
	const struct throttle_lane *self = arg;

	return self->head ? self->next_ns : 0;
}

static void throttle_drain(void *arg, const void *owner)
{
	struct throttle_lane *self = arg;
	struct gantry_io *io = self->head, *next;

	self->head = NULL;
	for (; io; io = next) {
		next = next_of(io);
		if (owner && io->owner != owner)
			append(self, io);
		else
			gantry_fail(io, GANTRY_S_CANCELED);
	}
}

/* No `complete`: the host passes completions back, with the status as it is. */
static const struct gantry_stage_ops ops = {
	.open = throttle_open,
	.start = throttle_start,
	.submit = throttle_submit,
	.poll = throttle_poll,
	.wake_ns = throttle_wake_ns,
	.drain = throttle_drain,
	.stop = free,
	.close = free,
	.n_ctx_words = 1,
};

GANTRY_PLUGIN(throttle) = {
	GANTRY_PLUGIN_HEAD,
	.kind = GANTRY_KIND_STAGE,
	.name = "throttle",
	.version = "1",
	.summary = "limits the bytes per second",
	.options = options,
	.conf_size = sizeof(struct throttle_conf),
	.ops_size = sizeof(ops),
	.ops = &ops,
};
