/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/check.h"

#include "base/clock.h"

static enum gantry_status check_volume(const struct gantry_volume_info *volume, const struct gantry_io *io)
{
	if (io->opcode >= GANTRY_OP_COUNT || (io->flags & ~GANTRY_IO_FLAGS) != 0)
		return GANTRY_S_INVALID;
	if (io->opcode != GANTRY_OP_NOP && (volume->ops & (1u << io->opcode)) == 0)
		return GANTRY_S_UNSUPPORTED;
	if (gantry_op_writes(io->opcode) && (volume->flags & GANTRY_VOLUME_READ_ONLY) != 0)
		return GANTRY_S_READ_ONLY;
	if (!gantry_op_has_range(io->opcode))
		return GANTRY_S_OK;
	if (io->length == 0 || ((io->offset | io->length) & (volume->block_size - 1)) != 0) /* a power of two */
		return GANTRY_S_INVALID;
	if (!gantry_range_ok(io->offset, io->length, volume->size))
		return GANTRY_S_RANGE;
	return gantry_op_has_data(io->opcode) && io->length > volume->max_io ? GANTRY_S_INVALID : GANTRY_S_OK;
}

static enum gantry_status check_region(const struct gn_io_rules *rules, struct gantry_io *io)
{
	const struct gantry_region *region = io->region < rules->n_regions ? rules->regions[io->region] : NULL;
	/* a read of the volume writes to the region */
	uint32_t need = io->opcode == GANTRY_OP_READ ? GANTRY_REMOTE_WRITE : GANTRY_REMOTE_READ;

	if (region == NULL || (region->rights & need) == 0)
		return GANTRY_S_ACCESS;
	if (!gantry_range_ok(io->region_offset, io->length, region->length))
		return GANTRY_S_RANGE;
	if (region->addr != NULL)
		io->data = (char *)region->addr + io->region_offset;
	return GANTRY_S_OK;
}

enum gantry_status gn_check_io(const struct gn_io_rules *rules, struct gantry_io *io)
{
	enum gantry_status status = check_volume(&rules->volume, io);

	if (status == GANTRY_S_OK && (io->flags & rules->refused_flags) != 0)
		status = GANTRY_S_UNSUPPORTED;
	io->data = NULL;
	if (io->deadline_us == 0) {
		uint64_t us = rules->io_timeout_ns / GN_NS_PER_US;

		io->deadline_us = us > UINT32_MAX ? UINT32_MAX : (uint32_t)us;
	}
	if (status != GANTRY_S_OK || !gantry_op_has_data(io->opcode))
		return status;
	return check_region(rules, io);
}

int gn_volume_ok(const struct gantry_volume_info *v)
{
	return v->size != 0 && v->block_size >= 512 && v->block_size <= 65536 && (v->block_size & (v->block_size - 1)) == 0 &&
	       v->size % v->block_size == 0 && v->max_io >= v->block_size;
}
