/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stage.h - a stage: one place in a pipeline that sees every descriptor on its way down and on its
 * way back.
 *
 * Life of a stage
 *   open      once for its place in a role's pipeline      control thread
 *   start     once for each lane of the role               control thread, before the lane runs
 *   submit, complete, poll, drain                          lane's thread
 *   stop      once for each started lane control thread, after the lane has stopped
 *   close     once; also legal when a start failed         control thread
 *
 * Every slot may be left out; a stage without any is a do-nothing stage (see plugins/stage/noop).
 */
#ifndef GANTRY_STAGE_H
#define GANTRY_STAGE_H

#include <gantry/plugin.h>

#ifdef __cplusplus
extern "C" {
#endif

struct gantry_stage_ops {
	/*
	 * Make the stage from its options. `conf` lives as long as the stage. Returns 0 or -errno
	 * (having logged why).
	 */
	int (*open)(const struct gantry_host *host, const void *conf, void **stage_p);
	/*
	 * Make the state of one lane and store it in *self_p. Returns 0; -errno, which the host
	 * logs.
	 *
	 * NULL: `self` is the stage itself. The host then rejects a stage with `open` in a role
	 * with several lanes.
	 * A start() may store the stage itself in *self_p. The lanes then call submit, complete,
	 * poll and drain from several threads at once, so these must write their data with atomics.
	 */
	int (*start)(void *stage, struct gantry_lane *lane, void **self_p);
	/*
	 * A descriptor on its way down. Pass it on with gantry_submit() and return what that
	 * returns; or keep it, return 0, and pass it on later; or complete it with
	 * gantry_complete() and return 0. After gantry_submit() has returned 0 the descriptor is
	 * gone. Never submit and keep. One that was kept and is then refused with anything but
	 * -EAGAIN is completed with what that says: gantry_status_of_errno(); its initiator may be
	 * waiting to send it again.
	 */
	int (*submit)(void *self, struct gantry_io *io);
	/*
	 * The same descriptor on its way back, status set: pass it on with gantry_complete(), now
	 * or later.
	 */
	void (*complete)(void *self, struct gantry_io *io);
	/* Called at every turn of the lane's loop; returns how many descriptors moved. */
	int (*poll)(void *self);
	/* Absolute time (gantry_lane.now_ns clock) at which poll has work again; 0: none. */
	uint64_t (*wake_ns)(void *self);
	/*
	 * A session is lost, or the role is asked to stop (owner NULL): complete at once every
	 * descriptor that is held and whose io->owner is this owner (any, with NULL), with
	 * GANTRY_S_CANCELED. After the role has finished, the host calls it once more with NULL,
	 * before the final report. A stage with buffered output writes it then, so that the report
	 * counts it.
	 */
	void (*drain)(void *self, const void *owner);
	void (*stop)(void *self);
	/* Values for the report; the lanes may be running. */
	void (*report)(void *stage, struct gantry_writer *w);
	void (*close)(void *stage);
	/* How many words of gantry_io.frame it needs: 0 or 1. */
	uint32_t n_ctx_words;
};

#ifdef __cplusplus
}
#endif

#endif
