/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pattern.c - a backend whose volume needs no memory: each 64-bit word, little-endian, is its own
 * offset in bytes plus `seed`
 *
 * A program that reads the volume, of any size, can check each word by itself. The volume is
 * read-only.
 *
 *     cc -O2 -fPIC -shared -Wl,-z,defs $(pkg-config --cflags gantry-plugin) -o pattern.so pattern.c
 *     gantry run pattern.conf --plugin-dir . \
 *         --plugin-dir $(pkg-config --variable=plugindir gantry-plugin)
 */
#define GANTRY_API_VERSION 1

#include <gantry/backend.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK 4096
#define MAX_IO (1u << 20)

struct pattern_conf {
	uint64_t size;
	int64_t seed;
};

static const struct gantry_option options[] = {
	{"size", GANTRY_OPT_SIZE, offsetof(struct pattern_conf, size), "1GiB", BLOCK, 1ll << 60,
	 NULL, NULL, "Size of the volume, a multiple of 4 KiB."},
	{"seed", GANTRY_OPT_INT, offsetof(struct pattern_conf, seed), "0", 0, INT64_MAX, NULL, NULL,
	 "Number that is added to each word."},
	GANTRY_OPTION_END,
};

struct pattern {
	const struct gantry_host *host;
	const struct pattern_conf *conf;
};

/* State of one lane. Only the thread of the lane uses it, so it needs no lock. */
struct pattern_lane {
	uint64_t seed;
	uint64_t *n_words;
};

static int pattern_open(const struct gantry_host *host, const void *conf, void **backend_p)
{
	struct pattern *pattern = malloc(sizeof(*pattern));

	if (!pattern)
		return -ENOMEM;
	pattern->host = host;
	pattern->conf = conf;
	*backend_p = pattern;
	return 0;
}

/*
 * Describe the volume that follows from the options.
 *
 * uuid and verifier let a client resume its session after a restart of the target. Equal options
 * make equal volumes, so the UUID consists of the options. No write can be lost, so the verifier
 * never changes.
 */
static void describe(const struct pattern_conf *conf, struct gantry_volume_info *volume)
{
	volume->size = conf->size;
	volume->block_size = BLOCK;
	volume->ops = 1u << GANTRY_OP_READ | 1u << GANTRY_OP_FLUSH;
	volume->flags = GANTRY_VOLUME_READ_ONLY;
	volume->max_io = MAX_IO;
	memcpy(volume->uuid, &conf->size, sizeof(conf->size));
	memcpy(volume->uuid + 8, &conf->seed, sizeof(conf->seed));
	volume->verifier = 1;
}

static void pattern_volume(void *backend, struct gantry_volume_info *volume)
{
	const struct pattern *pattern = backend;

	describe(pattern->conf, volume);
}

/*
 * Report what the table of options cannot check; the host adds file, line and key. The host needs
 * the volume before it opens the backend, and `gantry check` never opens it.
 */
static void pattern_check(const void *arg, struct gantry_check *check)
{
	const struct pattern_conf *conf = arg;

	if (conf->size % BLOCK)
		gantry_option_fault(check, "size", "is not a multiple of %d bytes", BLOCK);
	describe(conf, &check->volume);
}

static int pattern_start(void *backend, struct gantry_lane *lane, uint32_t depth, void **self_p)
{
	const struct pattern *pattern = backend;
	struct pattern_lane *self = gantry_zalloc_lines(sizeof(*self));

	(void)lane;
	(void)depth;
	if (!self)
		return -ENOMEM;
	self->seed = (uint64_t)pattern->conf->seed;
	self->n_words = pattern->host->counter(pattern->host, "read_words");
	if (!self->n_words) {
		free(self);
		return -ENOMEM;
	}
	*self_p = self;
	return 0;
}

/*
 * The host has checked operation, offset and length against pattern_volume(), and io->data has room
 * for the whole IO. The memory belongs to the initiator, so the backend writes it and does not read
 * it back.
 */
static int pattern_submit(void *arg, struct gantry_io *io)
{
	const struct pattern_lane *self = arg;
	char *to = io->data;

	if (io->opcode == GANTRY_OP_READ) {
		for (uint64_t at = 0; at < io->length; at += sizeof(at)) {
			uint64_t word = io->offset + at + self->seed;

			memcpy(to + at, &word, sizeof(word));
		}
		gantry_count(self->n_words, io->length / sizeof(uint64_t));
	}
	io->status = GANTRY_S_OK;
	gantry_complete(io);
	return 0;
}

static const struct gantry_backend_ops ops = {
	.open = pattern_open,
	.volume = pattern_volume,
	.start = pattern_start,
	.submit = pattern_submit,
	.stop = free,
	.close = free,
};

GANTRY_PLUGIN(pattern) = {
	GANTRY_PLUGIN_HEAD,
	.kind = GANTRY_KIND_BACKEND,
	.name = "pattern",
	.version = "1",
	.summary = "a read-only volume whose words are their own offsets",
	.options = options,
	.conf_size = sizeof(struct pattern_conf),
	.ops_size = sizeof(ops),
	.ops = &ops,
	.check = pattern_check,
};
