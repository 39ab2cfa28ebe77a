/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * clock.h - time in nanoseconds since some moment before the process started.
 *
 * There is one time in a process, for deadlines of the control loop and of the lanes alike: a value
 * of one may be compared with a value of the other, however long the process runs. It is the
 * counter of the processor, scaled to CLOCK_MONOTONIC at the start; from then on it may run up to
 * some 50 ppm faster or slower, so it is not to be compared with what clock_gettime says.
 */
#ifndef GN_BASE_CLOCK_H
#define GN_BASE_CLOCK_H

#include <stdint.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#include <gantry/branch.h>

#define GN_NS_PER_US 1000ull
#define GN_NS_PER_MS 1000000ull
#define GN_NS_PER_S 1000000000ull

/* Filled by gn_clock_init. mult 0: there is no usable counter, or a test holds the clock. */
struct gn_clock {
	uint64_t mult; /* nanoseconds per tick, times 2^32 */
	uint64_t base_ticks;
	uint64_t base_ns;
};
extern struct gn_clock gn_clock;

/* The time. Any thread. */
uint64_t gn_now_ns(void);

/* What stands in for the counter: CLOCK_MONOTONIC, or the clock of a test. Any thread. */
uint64_t gn_clock_read(void);

/*
 * Measures the processor's counter against CLOCK_MONOTONIC: spins for about 5 ms. Without this
 * call, on processors without an invariant counter, and where the kernel does not trust it, the
 * time is CLOCK_MONOTONIC. Call once, before there are threads.
 */
void gn_clock_init(void);

/*
 * For tests: from now on `now` is the time of this process; NULL gives the real one back. While
 * there is one thread.
 */
void gn_clock_set_fake(uint64_t (*now)(void));

static inline uint64_t gn_clock_ticks(void)
{
#if defined(__x86_64__)
	return __rdtsc();
#elif defined(__aarch64__)
	uint64_t ticks;

	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
	return ticks;
#else
	return 0;
#endif
}

/* gn_now_ns without the call, for the data path. Any thread; no system call after gn_clock_init. */
static inline uint64_t gn_fast_ns(void)
{
	uint64_t ticks;

	if (gantry_unlikely(!gn_clock.mult))
		return gn_clock_read();
	ticks = gn_clock_ticks() - gn_clock.base_ticks;
	return gn_clock.base_ns + (uint64_t)(((unsigned __int128)ticks * gn_clock.mult) >> 32);
}

#endif
