/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * part.h - a part: one protocol of gantry at the component level, whose threads run the product's
 * objects
 *
 * For each schedule of a part, component.c calls begin() in the environment and open() in the first
 * thread of a simulated process, runs the threads until all have returned, and calls check() in the
 * environment.
 */
#ifndef SIM_PART_H
#define SIM_PART_H

#include "sim.h"

#define PART_THREADS 4u

struct part {
	const char *name;
	uint64_t steps; /* limit of points: a schedule that needs more counts as endless */
	void (*tune)(struct sim_rates *rates); /* changes the drawn rates; NULL: no change */
	/* draws the variant of the protocol for this schedule, and initialises the part's memory */
	void (*begin)(void);
	void (*open)(void); /* opens descriptors, in the first thread; NULL: none */
	void *(*threads[PART_THREADS])(void *arg); /* ends with NULL */
	const char *(*check)(void);                /* returns NULL, or the error: a constant text */
};

extern const struct part part_loop, part_ring, part_bell, part_credit, part_region, part_withdraw,
	part_resume;

/* Record an error that a thread found, and end the schedule. */
_Noreturn void part_fail(const char *what);
/* Call part_fail() unless the condition holds. */
#define PART_CHECK(holds, what) \
	do { \
		if (!(holds)) \
			part_fail(what); \
	} while (0)

/* Wait for another thread without a system call: the stores of this thread stay in its buffer. */
static inline void part_spin(void)
{
	sim_pass();
}

/* Allocate memory of the host for all schedules, and map it at n addresses, stored in `views`. */
void part_shared_memory(size_t bytes, uint8_t **views, size_t n);

/* Set a flag; another thread waits for it in part_wait(), as in a system call. */
void part_set(bool *flag);
void part_wait(bool *flag);

#endif
