/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * worker.h - a worker with one lane for tests of the core: its clock is turned by hand, and the
 * test can wait until it has gone round once, so that nothing depends on how fast it is.
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
 * Both clocks of the core stand at 1000 s from now on; before threads start. fake_clock_stop gives
 * the real one back.
 */
void fake_clock_start(void);
void fake_clock_stop(void);
void fake_clock_advance(uint64_t ns);

/* Start a worker that sleeps as soon as it has no work, and a lane on it without stages. */
void fake_worker_start(struct fake_worker *fw);
void fake_worker_stop(struct fake_worker *fw);
/*
 * Every poller has been polled at least once since this was called, with the time of the call or
 * later.
 */
void fake_settle(struct fake_worker *fw);

#endif
