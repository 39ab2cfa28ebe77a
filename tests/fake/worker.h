/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * worker.h - a worker with one lane for tests of the core. The test sets its clock, and can wait
 * until the worker has made a turn, so that no test depends on its speed.
 */
#ifndef FAKE_WORKER_H
#define FAKE_WORKER_H

#include "pipeline/pipeline.h"

struct fake_worker {
	struct gn_worker *worker;
	struct gn_host host;
	struct gn_lane lane;
	struct gn_pipeline *pipeline;
};

/*
 * fake_clock_start stops the clock of the core at 1000 s. Call it before threads start.
 * fake_clock_stop restores the real clock.
 */
void fake_clock_start(void);
void fake_clock_stop(void);
void fake_clock_advance(uint64_t ns);

/* Start a worker that sleeps as soon as it has no work, and a lane on it without stages. */
void fake_worker_start(struct fake_worker *fw);
void fake_worker_stop(struct fake_worker *fw);
/*
 * Wait until the worker has polled every poller at least once, with a time that it read after this
 * call.
 */
void fake_settle(struct fake_worker *fw);

#endif
