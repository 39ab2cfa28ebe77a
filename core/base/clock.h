/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * clock.h - monotonic time in nanoseconds.
 *
 * A process has one clock, for the deadlines of the control loop and of the lanes. So values of
 * different threads are comparable. The clock is the counter of the processor, scaled to
 * CLOCK_MONOTONIC at the start. Afterwards it can drift from CLOCK_MONOTONIC by some 50 ppm. Do not
 * compare it with results of clock_gettime(2).
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

/* Set by gn_clock_init(). mult 0: there is no usable counter, or a test controls the clock. */
struct gn_clock {
	uint64_t mult; /* nanoseconds per tick, times 2^32 */
	uint64_t base_ticks;
	uint64_t base_ns;
};
extern struct gn_clock gn_clock;

/* Get the current time. Any thread. */
uint64_t gn_now_ns(void);

/* Get the time if the counter is not used: CLOCK_MONOTONIC, or the clock of a test. Any thread. */
uint64_t gn_clock_read(void);

/*
 * Calibrate the counter of the processor against CLOCK_MONOTONIC; sleeps for about 5 ms. The clock
 * stays CLOCK_MONOTONIC in three cases: without this call, if the processor has no invariant
 * counter, or if the kernel does not trust the counter. Call it once, before other threads exist.
 */
void gn_clock_init(void);

/*
 * For tests: replace the clock of this process by `now`; NULL restores it. Call it while there is
 * one thread.
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

/*
 * Inline version of gn_now_ns(), for the data path. Any thread; no system call after
 * gn_clock_init().
 */
static inline uint64_t gn_fast_ns(void)
{
	uint64_t ticks;

	if (gantry_unlikely(!gn_clock.mult))
		return gn_clock_read();
	ticks = gn_clock_ticks() - gn_clock.base_ticks;
	return gn_clock.base_ns + (uint64_t)(((unsigned __int128)ticks * gn_clock.mult) >> 32);
}

#endif
