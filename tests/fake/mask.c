/* SPDX-License-Identifier: BSD-3-Clause */
/* mask.c - a stage for tests that transforms data: the store has each byte XORed with MASK. */
#define GANTRY_API_VERSION 1

#include <gantry/stage.h>

#define MASK 0x5a

static void mask(uint8_t *to, const uint8_t *from, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		to[i] = from[i] ^ MASK;
}

static int mask_submit(void *self, struct gantry_io *io)
{
	const void *plain;
	int rc;

	(void)self;
	if (!gantry_op_has_data(io->opcode))
		return gantry_submit(io);
	plain = gantry_bounce_begin(io);
	if (io->opcode == GANTRY_OP_WRITE)
		mask(io->data, plain, io->length);
	rc = gantry_submit(io);
	if (rc)
		gantry_bounce_end(io);
	return rc;
}

static void mask_complete(void *self, struct gantry_io *io)
{
	(void)self;
	if (gantry_op_has_data(io->opcode)) {
		const void *masked = gantry_bounce_end(io);

		if (io->opcode == GANTRY_OP_READ && io->status == GANTRY_S_OK)
			mask(io->data, masked, io->length);
	}
	gantry_complete(io);
}

static const struct gantry_stage_ops ops = {
	.submit = mask_submit,
	.complete = mask_complete,
	.needs_bounce = 1,
};

GANTRY_PLUGIN(mask) = {
	GANTRY_PLUGIN_HEAD,
	.kind = GANTRY_KIND_STAGE,
	.name = "mask",
	.version = "1",
	.summary = "XORs the data of a volume, for tests",
	.ops_size = sizeof(ops),
	.ops = &ops,
};
