/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * draw.h - the numbers that a run draws from its seed, inline for sched.c; other files use
 * sim_draw()
 */
#ifndef SIM_DRAW_H
#define SIM_DRAW_H

#include <stdint.h>

extern uint64_t sim_draw_state;

/* Returns 64 random bits. */
static inline uint64_t sim_draw_word(void)
{
	sim_draw_state ^= sim_draw_state << 13;
	sim_draw_state ^= sim_draw_state >> 7;
	sim_draw_state ^= sim_draw_state << 17;
	return sim_draw_state;
}

/* The two halves of a word are two numbers. Each returns a number from 0 to n-1. */
static inline uint32_t sim_high(uint64_t word, uint32_t n)
{
	return (uint32_t)((word >> 32) * n >> 32);
}

static inline uint32_t sim_low(uint64_t word, uint32_t n)
{
	return (uint32_t)((word & UINT32_MAX) * n >> 32);
}

/* Begin the numbers of a seed. */
static inline void sim_draw_begin(uint64_t seed)
{
	sim_draw_state = seed * 0x9e3779b97f4a7c15u | 1;
	for (int i = 0; i < 8; i++)
		sim_draw_word();
}

#endif
