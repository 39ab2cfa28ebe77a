/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * partition.c - a stage that presents a range of the volume as a volume of its own.
 *
 * In a configuration: stages = ( { type = "partition"; offset = "1GiB"; length = "512MiB"; } );
 *
 * The host checks each descriptor against the size of the partition, so the stage only moves the
 * offset. It moves the offset back before the previous hop sees the descriptor again.
 */
#define GANTRY_API_VERSION 1

#include <gantry/stage.h>
#include <gantry/uuid.h>

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

struct partition_conf {
	uint64_t offset, length; /* bytes; length 0: to the end of the volume */
};

struct partition {
	const struct gantry_host *host;
	const struct partition_conf *conf;
};

static const struct gantry_option options[] = {
	{"offset", GANTRY_OPT_SIZE, offsetof(struct partition_conf, offset), "0", 0, 0, NULL, NULL,
	 "Start of the partition in the volume; a multiple of the block size."},
	{"length", GANTRY_OPT_SIZE, offsetof(struct partition_conf, length), "0", 0, 0, NULL, NULL,
	 "Size of the partition; a multiple of the block size. 0: to the end of the volume."},
	GANTRY_OPTION_END,
};

static int partition_open(const struct gantry_host *host, const void *conf, void **stage_p)
{
	struct partition *partition = malloc(sizeof(*partition));

	if (!partition)
		return -ENOMEM;
	*partition = (struct partition){.host = host, .conf = conf};
	*stage_p = partition;
	return 0;
}

static int partition_start(void *stage, struct gantry_lane *lane, void **self_p)
{
	(void)lane;
	*self_p = stage;
	return 0;
}

static int partition_volume(void *stage, struct gantry_volume_info *volume)
{
	const struct partition *partition = stage;
	const struct partition_conf *conf = partition->conf;
	uint8_t range[GANTRY_UUID_BYTES];
	uint64_t left = volume->size > conf->offset ? volume->size - conf->offset : 0;

	memcpy(range, &conf->offset, sizeof(conf->offset));
	memcpy(range + sizeof(conf->offset), &conf->length, sizeof(conf->length));
	gantry_uuid_derive(volume->uuid, range);
	if (volume->size == 0 || volume->block_size == 0)
		return 0; /* not known yet */
	if ((conf->offset | conf->length) % volume->block_size != 0) {
		gantry_log_error(
			partition->host,
			"offset or length is not a multiple of the block size (offset=%llu, length=%llu, block=%u)",
			(unsigned long long)conf->offset, (unsigned long long)conf->length,
			volume->block_size);
		return -EINVAL;
	}
	if (left == 0 || conf->length > left) {
		gantry_log_error(
			partition->host,
			"the partition is outside the volume (offset=%llu, length=%llu, size=%llu)",
			(unsigned long long)conf->offset, (unsigned long long)conf->length,
			(unsigned long long)volume->size);
		return -ERANGE;
	}
	volume->size = conf->length != 0 ? conf->length : left;
	return 0;
}

static int partition_submit(void *self, struct gantry_io *io)
{
	const struct partition *partition = self;
	int rc;

	if (!gantry_op_has_range(io->opcode))
		return gantry_submit(io);
	io->offset += partition->conf->offset;
	rc = gantry_submit(io);
	if (rc != 0)
		io->offset -= partition->conf->offset;
	return rc;
}

static void partition_complete(void *self, struct gantry_io *io)
{
	const struct partition *partition = self;

	if (gantry_op_has_range(io->opcode))
		io->offset -= partition->conf->offset;
	gantry_complete(io);
}

static void partition_close(void *stage)
{
	free(stage);
}

static const struct gantry_stage_ops ops = {
	.open = partition_open,
	.start = partition_start,
	.submit = partition_submit,
	.complete = partition_complete,
	.close = partition_close,
	.volume = partition_volume,
};

GANTRY_PLUGIN(partition) = {
	GANTRY_PLUGIN_HEAD,
	.kind = GANTRY_KIND_STAGE,
	.name = "partition",
	.version = "1",
	.summary = "presents a range of the volume as a volume",
	.options = options,
	.conf_size = sizeof(struct partition_conf),
	.ops_size = sizeof ops,
	.ops = &ops,
};
