/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * null.c - a backend without storage, to measure the cost of the path to a backend. Writes are
 * dropped; reads leave the memory of the initiator unchanged.
 */
#define GANTRY_API_VERSION 1

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../common/identity.h"
#include "../common/described.h"

struct null_conf {
	const char *uuid;
	uint64_t size;
	uint64_t block;
	uint8_t zero_reads;
};

struct null {
	const struct null_conf *conf;
	uint8_t uuid[16];
};

#define VERIFIER 1 /* constant: the backend keeps no data that could be lost */

static const struct gantry_option options[] = {
	{"size", GANTRY_OPT_SIZE, offsetof(struct null_conf, size), "1GiB", 512, INT64_MAX, NULL,
	 NULL, "Size of the volume; a multiple of the block size."},
	{"block", GANTRY_OPT_SIZE, offsetof(struct null_conf, block), "4KiB", 512, 65536, NULL,
	 NULL, "Block size: a power of two. Offset and length of each IO are multiples of it."},
	{"zero_reads", GANTRY_OPT_BOOL, offsetof(struct null_conf, zero_reads), "false", 0, 0, NULL,
	 NULL, "Fill reads with zeroes, instead of leaving the memory of the reader unchanged."},
	IDENTITY_OPTION(struct null_conf,
			"derived from the machine id, the name of the role and the size."),
	GANTRY_OPTION_END,
};

static void null_check(const void *arg, struct gantry_check *check)
{
	const struct null_conf *conf = arg;

	volume_check(conf->uuid, conf->size, conf->block, check);
	volume_expect(conf->uuid, conf->size, conf->block, &check->volume);
}

static int null_open(const struct gantry_host *host, const void *arg, void **backend_p)
{
	struct null *null = calloc(1, sizeof *null);

	if (!null)
		return -ENOMEM;
	null->conf = arg;
	identity_of_instance(host, null->conf->uuid, null->conf->size, null->uuid);
	*backend_p = null;
	return 0;
}

static void null_volume(void *backend, struct gantry_volume_info *volume)
{
	const struct null *null = backend;

	volume_expect(null->conf->uuid, null->conf->size, null->conf->block, volume);
	memcpy(volume->uuid, null->uuid, sizeof volume->uuid);
	volume->verifier = VERIFIER;
}

/* The lanes have no state of their own: `self` is the configuration, which is constant. */
static int null_start(void *backend, struct gantry_lane *lane, uint32_t depth, void **self_p)
{
	(void)lane;
	(void)depth;
	*self_p = (void *)((struct null *)backend)->conf;
	return 0;
}

/* The volume holds no data. Without zero_reads the content of a read is undefined. */
static void report_extents(const struct null_conf *conf, const struct gantry_io *io)
{
	struct gantry_extents extents = {.count = 0};

	gantry_extents_add(&extents, io->length,
			   GANTRY_EXTENT_HOLE | (conf->zero_reads ? GANTRY_EXTENT_ZERO : 0));
	gantry_extents_finish(io, &extents);
}

/* Out of line, so that the path of other IO saves no registers for it. */
static __attribute__((noinline)) void fill(const struct null_conf *conf, const struct gantry_io *io)
{
	if (io->opcode == GANTRY_OP_READ)
		memset(io->data, 0, io->length);
	else if (io->opcode == GANTRY_OP_EXTENTS)
		report_extents(conf, io);
}

static int null_submit(void *self, struct gantry_io *io)
{
	const struct null_conf *conf = self;

	if (gantry_unlikely(conf->zero_reads || io->opcode == GANTRY_OP_EXTENTS))
		fill(conf, io);
	io->status = GANTRY_S_OK;
	gantry_complete(io);
	return 0;
}

static void null_report(void *backend, struct gantry_writer *w)
{
	identity_report(w, ((struct null *)backend)->uuid, VERIFIER);
}

/* The backend needs no quiesce operation: an IO completes in submit. */
static const struct gantry_backend_ops ops = {
	.open = null_open,
	.volume = null_volume,
	.start = null_start,
	.submit = null_submit,
	.report = null_report,
	.close = free,
};

GANTRY_PLUGIN(null) = {
	GANTRY_PLUGIN_HEAD,
	.kind = GANTRY_KIND_BACKEND,
	.name = "null",
	.version = "1",
	.summary = "stores nothing: drops writes, and leaves the buffers of reads unchanged",
	.options = options,
	.conf_size = sizeof(struct null_conf),
	.ops_size = sizeof ops,
	.ops = &ops,
	.check = null_check,
};
