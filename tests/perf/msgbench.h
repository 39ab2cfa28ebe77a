/* SPDX-License-Identifier: BSD-3-Clause */
/* msgbench.h - the measurement, and the functions of msgbench_access.c for remote access */
#ifndef PERF_MSGBENCH_H
#define PERF_MSGBENCH_H

#include "perf/limits/bare.h"
#include "perf/numbered.h"

#define ACCESS_DEPTH 64
#define TAKE 64
#define WARM 50

enum mode { RTT, SINGLE, FLUSHED, INLINE, DATA, SUM, ACCESS, ACCESSES, PONG };

struct bench {
	enum mode mode;
	enum gantry_rma_op op;
	uint64_t length_ns;
	struct peer_attr attr;
	const char *name;
	/* shared memory of both ends for the limits, see bare.h: a cache line, and a ring */
	uint64_t *line;
	struct bare_ring ring;
};

/* One access at a time, or ACCESS_DEPTH of them: measure, check the memory, print. */
void measure_access(const struct bench *b, struct peer *p);
void measure_accesses(const struct bench *b, struct peer *p);

/*
 * throws() sends n remote writes, the first with number seq + 1, and waits for the answer to each.
 * Returns the last number. throw_back() answers the writes of the other end until STOP arrives.
 */
uint64_t throws(const struct bench *b, struct peer *p, uint64_t seq, unsigned n);
void throw_back(const struct bench *b, struct peer *p);
/* Send the write that ends the exchange. */
void throw_last(const struct bench *b, struct peer *p);

#endif
