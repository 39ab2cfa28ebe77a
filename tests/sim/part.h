/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * part.h - one protocol of gantry for the component level: its threads run the product's own
 * objects
 *
 * A schedule of a part: begin() in the environment, open() in the first thread of a simulated
 * process, the threads until all have returned, check() in the environment. The driver is
 * component.c.
 */
#ifndef SIM_PART_H
#define SIM_PART_H

#include "sim.h"

#define PART_THREADS 4u

struct part {
	const char *name;
	uint64_t steps; /* limit of points of a schedule: one that needs more does not end */
	void (*tune)(struct sim_rates *rates); /* changes what was drawn; NULL: nothing */
	/* draws the variant and sets all memory of the part to its initial state */
	void (*begin)(void);
	void (*open)(void); /* descriptors; in the first of the threads; NULL: none */
	void *(*threads[PART_THREADS])(void *arg); /* up to a NULL */
	const char *(*check)(void);                /* NULL, or what is wrong; must be a constant */
};

extern const struct part part_loop, part_ring, part_bell, part_credit, part_region, part_withdraw,
	part_resume;

/* A thread found something wrong: record it and end the schedule. */
_Noreturn void part_fail(const char *what);
/* The same for a condition that must hold. */
#define PART_CHECK(holds, what) \
	do { \
		if (!(holds)) \
			part_fail(what); \
	} while (0)

/* A thread of a part waits for another one without a system call: its stores stay in its buffer. */
static inline void part_spin(void)
{
	sim_pass();
}

/* Memory of the host for all schedules, at n places in the address space. */
void part_shared_memory(size_t bytes, uint8_t **views, size_t n);

/* A thread of a part sets a flag for another one, which waits for it as for a system call. */
void part_set(bool *flag);
void part_wait(bool *flag);

#endif
