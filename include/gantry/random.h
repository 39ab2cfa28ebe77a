/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * random.h - fast pseudo-random numbers for workloads and tests, reproducible from a seed. Not for
 * secrets.
 *
 * xoshiro256**, seeded by splitmix64 (Blackman and Vigna). One struct per thread.
 */
#ifndef GANTRY_RANDOM_H
#define GANTRY_RANDOM_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct gantry_random {
	uint64_t s[4];
};

/* Do one step of splitmix64. Callers also use it to derive the seed of each lane from one seed. */
static inline uint64_t gantry_random_split(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

/* Initialise the generator. Any seed is valid, including 0. */
static inline void gantry_random_seed(struct gantry_random *r, uint64_t seed)
{
	for (unsigned int i = 0; i < 4; i++)
		r->s[i] = gantry_random_split(&seed);
}

static inline uint64_t gantry_random_rotate(uint64_t v, unsigned int bits)
{
	return (v << bits) | (v >> (64 - bits));
}

/* Returns 64 random bits. */
static inline uint64_t gantry_random_next(struct gantry_random *r)
{
	uint64_t result = gantry_random_rotate(r->s[1] * 5, 7) * 9, t = r->s[1] << 17;

	r->s[2] ^= r->s[0];
	r->s[3] ^= r->s[1];
	r->s[1] ^= r->s[2];
	r->s[0] ^= r->s[3];
	r->s[2] ^= t;
	r->s[3] = gantry_random_rotate(r->s[3], 45);
	return result;
}

/* Returns a number in 0..n-1; n is at least 1. The bias is below n / 2^64. */
static inline uint64_t gantry_random_below(struct gantry_random *r, uint64_t n)
{
	return (uint64_t)(__extension__((unsigned __int128)gantry_random_next(r) * n) >> 64);
}

#ifdef __cplusplus
}
#endif

#endif
