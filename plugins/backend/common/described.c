/* SPDX-License-Identifier: BSD-3-Clause */
#include "described.h"

#include "identity.h"

#define MAX_IO (64u << 20)

void volume_check(const char *uuid, uint64_t size, uint64_t block, const struct gantry_check *check)
{
	if (block & (block - 1))
		gantry_option_fault(check, "block",
				    "is not a power of two; write such as \"4KiB\"");
	else if (size % block)
		gantry_option_fault(check, "size", "is not a multiple of the block of %llu bytes",
				    (unsigned long long)block);
	identity_check(uuid, check);
}

void volume_expect(const char *uuid, uint64_t size, uint64_t block,
		   struct gantry_volume_info *volume)
{
	*volume = (struct gantry_volume_info){
		.size = size,
		.block_size = (uint32_t)block,
		.ops = 1u << GANTRY_OP_NOP | 1u << GANTRY_OP_READ | 1u << GANTRY_OP_WRITE |
		       1u << GANTRY_OP_FLUSH | 1u << GANTRY_OP_WRITE_ZEROES |
		       1u << GANTRY_OP_DISCARD | 1u << GANTRY_OP_EXTENTS,
		.flags = GANTRY_VOLUME_VOLATILE,
		.max_io = MAX_IO,
	};
	identity_option(uuid, volume->uuid);
}
