/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/pool.h"

#include <errno.h>
#include <stdlib.h>

struct gantry_io *gn_io_pool(uint32_t n, const struct gantry_hop *owner)
{
	struct gantry_io *ios = gantry_zalloc_lines(n * sizeof(*ios));

	if (!ios)
		return NULL;
	for (uint32_t i = 0; i < n; i++) {
		ios[i].hop = owner;
		ios[i].slot = (uint16_t)i;
	}
	return ios;
}

int gn_io_no_submit(void *self, struct gantry_io *io)
{
	(void)self;
	(void)io;
	return -EINVAL;
}
