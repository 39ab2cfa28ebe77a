/* SPDX-License-Identifier: BSD-3-Clause */
#include "draw.h"

#include "sim.h"

uint64_t sim_draw_state;

uint32_t sim_draw(uint32_t n)
{
	return sim_high(sim_draw_word(), n);
}

uint64_t sim_draw64(void)
{
	return (uint64_t)sim_draw(UINT32_MAX) << 32 | sim_draw(UINT32_MAX);
}
