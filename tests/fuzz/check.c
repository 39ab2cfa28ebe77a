/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * check.c - descriptors, regions and volumes from any bytes: the check must have the same result as
 * 128-bit arithmetic.
 */
#include <stdlib.h>
#include <string.h>

#include "io/list.h"
#include "unit/io/reference.h"

/* An accepted list has the length of its descriptor, and its entries are inside their regions. */
static void check_list(const struct gn_io_rules *rules, const struct gantry_io *io,
		       const uint8_t *data, size_t size)
{
	static uint8_t bytes[GANTRY_LIST_MAX * sizeof(struct gantry_list_entry)];
	static struct gn_list list;
	uint64_t sum = 0;

	memset(bytes, 0, sizeof(bytes));
	memcpy(bytes, data, size < sizeof(bytes) ? size : sizeof(bytes));
	if (gn_list_take(rules, io, bytes, gn_list_bytes(rules, io), &list) != GANTRY_S_OK)
		return;
	for (uint32_t i = 0; i < list.count; i++) {
		const struct gantry_list_entry *e = &list.entry[i];

		sum += e->length;
		if (e->region >= rules->n_regions || !rules->regions[e->region] ||
		    e->offset + e->length < e->offset ||
		    e->offset + e->length > rules->regions[e->region]->length)
			abort();
	}
	if (sum != io->length || list.count == 0 || list.count > GANTRY_LIST_MAX)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
	uint8_t opcode, flags, volume_flags, block_shift;
	uint8_t rights, present, mapped, n_regions;
	uint64_t blocks, offset, region_offset, region_length, io_timeout_ns;
	uint32_t length, max_io, ops, region, deadline_us;
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {.opcode = 0};
	struct gantry_region region = {.addr = NULL}, *table[4] = {NULL};
	struct gn_io_rules rules = {.regions = table};
	struct gantry_io io = {.opcode = 0}, copy;
	enum gantry_status status;

	memcpy(&in, data, size < sizeof(in) ? size : sizeof(in));
	rules.volume.block_size = 512u << (in.block_shift % 8);
	if (__builtin_mul_overflow(in.blocks, (uint64_t)rules.volume.block_size,
				   &rules.volume.size))
		rules.volume.size = 0 - (uint64_t)rules.volume.block_size;
	rules.volume.flags = in.volume_flags;
	rules.volume.ops = in.ops;
	rules.volume.max_io = in.max_io;
	rules.refused_flags = in.volume_flags & GANTRY_IO_CRC;
	rules.n_regions = in.n_regions % 5;
	rules.io_timeout_ns = in.io_timeout_ns;
	region.length = in.region_length;
	region.rights = in.rights;
	if (in.mapped && region.length < 1ull << 46)
		region.addr = (void *)(uintptr_t)4096; /* never dereferenced */
	for (int i = 0; i < 4; i++)
		if (in.present >> i & 1)
			table[i] = &region;
	io.opcode = in.opcode;
	io.flags = in.flags;
	io.offset = in.offset;
	io.length = in.length;
	io.region = in.region;
	io.region_offset = in.region_offset;
	io.deadline_us = in.deadline_us;
	copy = io;
	gn_io_rules_ready(&rules);
	status = gn_check_io(&rules, &io);
	if (status != reference_check(&rules, &copy) || io.data != copy.data ||
	    io.deadline_us != copy.deadline_us)
		abort();
	if (status == GANTRY_S_OK && gantry_op_has_buffer(io.opcode) &&
	    !(io.flags & GANTRY_IO_LIST) &&
	    io.region_offset + gantry_io_buffer_bytes(&io) > region.length)
		abort();
	if (status == GN_CHECK_LIST && size > sizeof(in))
		check_list(&rules, &io, data + sizeof(in), size - sizeof(in));
	return 0;
}
