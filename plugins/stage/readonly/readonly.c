/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * readonly.c - a stage that makes the volume read-only. The host then rejects the writes of the
 * clients.
 *
 * In a configuration: stages = ( { type = "readonly"; } );
 */
#define GANTRY_API_VERSION 1

#include <gantry/stage.h>

static int readonly_volume(void *stage, struct gantry_volume_info *volume)
{
	(void)stage;
	volume->flags |= GANTRY_VOLUME_READ_ONLY;
	return 0;
}

static const struct gantry_stage_ops ops = {
	.volume = readonly_volume,
};

GANTRY_PLUGIN(readonly) = {
	GANTRY_PLUGIN_HEAD,
	.kind = GANTRY_KIND_STAGE,
	.name = "readonly",
	.version = "1",
	.summary = "makes the volume read-only",
	.ops_size = sizeof ops,
	.ops = &ops,
};
