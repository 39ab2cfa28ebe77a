/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gated - a memory backend that completes chosen writes late and out of order, as backend.h allows.
 * Only tests load it.
 *
 * While the file `gate` exists, the backend holds writes whose data begins with "HOLD", and reads
 * of the last block. It completes all other IO in submit. It creates the file GATE.reached when it
 * holds the first IO.
 */
#define GANTRY_API_VERSION 1

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <gantry/backend.h>

#define BLOCK 4096u
#define HELD_MOST 256

struct gated_conf {
	const char *gate;
	uint64_t size;
};

struct gated {
	const struct gated_conf *conf;
	uint8_t *store;
};

struct gated_lane {
	struct gated *gated;
	struct gantry_io *held[HELD_MOST];
	unsigned n_held;
};

static const struct gantry_option options[] = {
	{"gate", GANTRY_OPT_STRING, offsetof(struct gated_conf, gate), NULL, 0, 0, NULL, NULL,
	 "Path of the gate."},
	{"size", GANTRY_OPT_SIZE, offsetof(struct gated_conf, size), "16MiB", BLOCK, INT64_MAX,
	 NULL, NULL, "Of the volume."},
	GANTRY_OPTION_END,
};

static int gated_open(const struct gantry_host *host, const void *conf, void **backend_p)
{
	struct gated *gated = calloc(1, sizeof(*gated));

	(void)host;
	if (!gated)
		return -ENOMEM;
	gated->conf = conf;
	gated->store = calloc(1, gated->conf->size);
	if (!gated->store) {
		free(gated);
		return -ENOMEM;
	}
	*backend_p = gated;
	return 0;
}

static void gated_volume(void *backend, struct gantry_volume_info *volume)
{
	const struct gated *gated = backend;

	*volume = (struct gantry_volume_info){
		.size = gated->conf->size,
		.block_size = BLOCK,
		.ops = 1u << GANTRY_OP_NOP | 1u << GANTRY_OP_FLUSH | GANTRY_OPS_RANGE,
		.flags = GANTRY_VOLUME_VOLATILE,
		.max_io = 1u << 20,
	};
}

static int gated_start(void *backend, struct gantry_lane *lane, uint32_t depth, void **self_p)
{
	struct gated_lane *self = calloc(1, sizeof(*self));

	(void)lane;
	(void)depth;
	if (!self)
		return -ENOMEM;
	self->gated = backend;
	*self_p = self;
	return 0;
}

static int is_closed(const struct gated *gated)
{
	return access(gated->conf->gate, F_OK) == 0;
}

static void say_reached(const struct gated *gated)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s.reached", gated->conf->gate);
	fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	if (fd >= 0)
		close(fd);
}

static void execute(const struct gated *gated, struct gantry_io *io)
{
	uint8_t *place = gated->store + io->offset;

	if (io->opcode == GANTRY_OP_READ)
		memcpy(io->data, place, io->length);
	else if (io->opcode == GANTRY_OP_WRITE)
		memcpy(place, io->data, io->length);
	else if (gantry_op_writes(io->opcode))
		memset(place, 0, io->length);
	io->status = GANTRY_S_OK;
	gantry_complete(io);
}

static int is_chosen(const struct gated *gated, const struct gantry_io *io)
{
	return (io->opcode == GANTRY_OP_WRITE && memcmp(io->data, "HOLD", 4) == 0) ||
	       (io->opcode == GANTRY_OP_READ && io->offset + io->length == gated->conf->size);
}

static int gated_submit(void *self, struct gantry_io *io)
{
	struct gated_lane *lane = self;

	if (!is_chosen(lane->gated, io) || !is_closed(lane->gated)) {
		execute(lane->gated, io);
		return 0;
	}
	if (lane->n_held == HELD_MOST)
		return -EAGAIN;
	lane->held[lane->n_held++] = io;
	say_reached(lane->gated);
	return 0;
}

/* Complete the held IOs, the last one first. */
static int gated_poll(void *self)
{
	struct gated_lane *lane = self;
	int n = 0;

	if (lane->n_held == 0 || is_closed(lane->gated))
		return 0;
	for (; lane->n_held != 0; n++)
		execute(lane->gated, lane->held[--lane->n_held]);
	return n;
}

static int gated_arm(void *self)
{
	return ((struct gated_lane *)self)->n_held != 0;
}

static void gated_stop(void *self)
{
	free(self);
}

static void gated_close(void *backend)
{
	struct gated *gated = backend;

	free(gated->store);
	free(gated);
}

static const struct gantry_backend_ops ops = {
	.open = gated_open,
	.volume = gated_volume,
	.start = gated_start,
	.submit = gated_submit,
	.poll = gated_poll,
	.arm = gated_arm,
	.stop = gated_stop,
	.close = gated_close,
};

GANTRY_PLUGIN(gated) = {
	GANTRY_PLUGIN_HEAD,
	.kind = GANTRY_KIND_BACKEND,
	.name = "gated",
	.version = "1",
	.summary = "a memory backend that completes chosen writes late",
	.options = options,
	.conf_size = sizeof(struct gated_conf),
	.ops_size = sizeof(ops),
	.ops = &ops,
};
