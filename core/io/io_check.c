/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * io_check.c - checks descriptors of peers. Any thread; no state.
 */
#include "io/io_check.h"

#include "base/clock.h"

void gn_io_rules_ready(struct gn_io_rules *rules)
{
	const struct gantry_volume_info *volume = &rules->volume;
	uint32_t ops = volume->ops;

	if (volume->flags & GANTRY_VOLUME_READ_ONLY)
		ops &= ~GANTRY_OPS_WRITE;
	memset(&rules->plain, 0, sizeof(rules->plain));
	/* a read of the volume writes to the region */
	if (gantry_op_in(GANTRY_OP_READ, ops))
		rules->plain.rights[GANTRY_OP_READ] = GANTRY_REMOTE_WRITE;
	if (gantry_op_in(GANTRY_OP_WRITE, ops))
		rules->plain.rights[GANTRY_OP_WRITE] = GANTRY_REMOTE_READ;
	rules->plain.no_flags = (uint8_t)(~GANTRY_IO_FLAGS | GANTRY_IO_LIST | rules->refused_flags);
	rules->plain.no_bits = volume->block_size - 1;
	rules->plain.max = volume->max_io < volume->size ? volume->max_io : volume->size;
}

static inline enum gantry_status check_range(const struct gantry_volume_info *volume,
					     const struct gantry_io *io)
{
	/* block_size is a power of two */
	if (gantry_unlikely(io->length == 0 ||
			    ((io->offset | io->length) & (volume->block_size - 1)) != 0))
		return GANTRY_S_INVALID;
	return gantry_unlikely(!gantry_range_ok(io->offset, io->length, volume->size))
		       ? GANTRY_S_RANGE
		       : GANTRY_S_OK;
}

/* Check operation and range. op: 1 << io->opcode. */
static inline enum gantry_status check_volume(const struct gantry_volume_info *volume,
					      const struct gantry_io *io, uint32_t op)
{
	if (gantry_unlikely(((volume->ops | 1u << GANTRY_OP_NOP) & op) == 0))
		return GANTRY_S_UNSUPPORTED;
	if (gantry_unlikely((volume->flags & GANTRY_VOLUME_READ_ONLY) != 0 &&
			    (op & GANTRY_OPS_WRITE) != 0))
		return GANTRY_S_READ_ONLY;
	return (op & GANTRY_OPS_RANGE) != 0 ? check_range(volume, io) : GANTRY_S_OK;
}

static inline enum gantry_status check_region(const struct gn_io_rules *rules, struct gantry_io *io)
{
	const struct gantry_region *region = gn_io_region(rules, io->region);
	/* all operations except a write of the volume write to the region */
	uint32_t need = io->opcode == GANTRY_OP_WRITE ? GANTRY_REMOTE_READ : GANTRY_REMOTE_WRITE;

	if (gantry_unlikely(!region || (region->rights & need) == 0))
		return GANTRY_S_ACCESS;
	if (gantry_unlikely(!gantry_range_ok(io->region_offset, gantry_io_buffer_bytes(io),
					     region->length)))
		return GANTRY_S_RANGE;
	if (region->addr)
		io->data = (char *)region->addr + io->region_offset;
	return GANTRY_S_OK;
}

/* Check the place of a list: it has at least one entry. A relay does not read the list. */
static enum gantry_status check_list(const struct gn_io_rules *rules, const struct gantry_io *io)
{
	const struct gantry_region *region = gn_io_region(rules, io->region);

	if (io->length > GANTRY_LIST_BYTES)
		return GANTRY_S_INVALID;
	if (!region || (region->rights & GANTRY_REMOTE_READ) == 0)
		return GANTRY_S_ACCESS;
	if (!gantry_range_ok(io->region_offset, sizeof(struct gantry_list_entry), region->length))
		return GANTRY_S_RANGE;
	return rules->relays ? GANTRY_S_OK : GN_CHECK_LIST;
}

/* Check the flags, after the operation. op: 1 << io->opcode. */
static inline enum gantry_status check_flags(const struct gn_io_rules *rules,
					     const struct gantry_io *io, uint32_t op)
{
	if (gantry_unlikely((io->flags & rules->refused_flags) != 0))
		return GANTRY_S_UNSUPPORTED;
	if (gantry_likely((io->flags & GANTRY_IO_LIST) == 0))
		return GANTRY_S_OK;
	if ((op & GANTRY_OPS_DATA) == 0)
		return GANTRY_S_INVALID;
	return (rules->volume.flags & GANTRY_VOLUME_LISTS) != 0 ? GANTRY_S_OK
								: GANTRY_S_UNSUPPORTED;
}

static __attribute__((noinline)) void set_deadline(const struct gn_io_rules *rules,
						   struct gantry_io *io)
{
	uint64_t us = rules->io_timeout_ns / GN_NS_PER_US;

	io->deadline_us = us > UINT32_MAX ? UINT32_MAX : (uint32_t)us;
}

enum gantry_status gn_check_io_slow(const struct gn_io_rules *rules, struct gantry_io *io)
{
	enum gantry_status status;
	uint32_t op;

	io->data = NULL;
	if (gantry_unlikely(io->deadline_us == 0))
		set_deadline(rules, io);
	if (gantry_unlikely(io->opcode >= GANTRY_OP_COUNT || (io->flags & ~GANTRY_IO_FLAGS) != 0))
		return GANTRY_S_INVALID;
	op = 1u << io->opcode;
	status = check_volume(&rules->volume, io, op);
	if (gantry_unlikely(status != GANTRY_S_OK))
		return status;
	if ((op & GANTRY_OPS_RANGE) == 0)
		io->length = 0; /* it has no meaning, and later hops count it */
	status = check_flags(rules, io, op);
	if (gantry_unlikely(status != GANTRY_S_OK))
		return status;
	if ((op & GANTRY_OPS_BUFFER) == 0)
		return GANTRY_S_OK;
	if (gantry_unlikely((op & GANTRY_OPS_DATA) != 0 && io->length > rules->volume.max_io))
		return GANTRY_S_INVALID;
	if (gantry_unlikely((io->flags & GANTRY_IO_LIST) != 0))
		return check_list(rules, io);
	return check_region(rules, io);
}

const char *gn_volume_fault(const struct gantry_volume_info *v)
{
	if (v->block_size < 512 || v->block_size > 65536 ||
	    (v->block_size & (v->block_size - 1)) != 0)
		return "its block_size is no power of two from 512 to 65536";
	if (v->size == 0 || v->size % v->block_size != 0)
		return "its size is 0, or not a multiple of its block_size";
	if (v->max_io < v->block_size)
		return "its max_io is less than its block_size";
	if ((v->ops & ((1u << GANTRY_OP_COUNT) - 1)) == 0)
		return "its ops name no operation";
	return NULL;
}
