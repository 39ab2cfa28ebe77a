/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stage.h - the interface of a stage: a plugin that sees every descriptor of a role, on the way
 * down and on the way back.
 *
 * Life cycle of a stage
 *   open              once for each entry of `stages` of a role   control thread
 *   volume            for each session, and after each change     any thread
 *   start             once for each lane of the role              control thread
 *   submit, complete, poll, wake_ns, drain: while the lane runs   lane's thread
 *   stop              once for each started lane                  control thread
 *   close             once; also after a start that failed        control thread
 *
 * start runs before the lane runs, stop after the lane has stopped.
 *
 * Every slot may be NULL. A stage without any slot passes all descriptors on.
 *
 * gantry-plugin(7) has complete stages. gantry-host(3) describes what plugins use: the constant
 * that it exports, options, the log, counters and reports. gantry-io(3) describes descriptors and
 * their functions, such as gantry_submit().
 */
#ifndef GANTRY_STAGE_H
#define GANTRY_STAGE_H

#include <gantry/plugin.h>
#include <gantry/volume.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The functions of a stage.
 *
 * host     services of the host; valid until close
 * stage    what open stored in *stage_p
 * stage_p  out: the object of the stage, with which the host calls the other functions
 * lane     the lane; valid until stop
 * self     what start stored in *self_p for this lane
 * self_p   out: the object of this lane of the stage
 * io       the descriptor
 * w        an object of the report, which is open
 * ownership  arguments are valid during the call, unless stated otherwise
 */
struct gantry_stage_ops {
	/*
	 * Create the stage from its options.
	 *
	 * conf      the options; valid until close
	 * returns   0
	 *           -errno: failed; the stage has logged the cause
	 * thread    control thread
	 * ownership  the stage owns *stage_p until close
	 * NULL      the stage has no object: `stage` is NULL
	 */
	int (*open)(const struct gantry_host *host, const void *conf, void **stage_p);
	/*
	 * Create the state of one lane and store it in *self_p.
	 *
	 * returns   0
	 *           -errno: failed; the host logs it
	 * thread    control thread, before the lane runs
	 * ownership  the stage owns *self_p until stop
	 * NULL      every lane uses the stage itself as `self`. If the stage has `open`, the host
	 *           then rejects a role that uses it with several lanes
	 *
	 * start() can store the stage itself in *self_p. The lanes then call submit, complete, poll
	 * and drain from several threads at the same time, so these functions must access shared
	 * data with atomics.
	 */
	int (*start)(void *stage, struct gantry_lane *lane, void **self_p);
	/*
	 * Handle a descriptor on its way down. The stage does one of the following:
	 *   - call gantry_submit() and return its result. After 0 the stage must not use the
	 *     descriptor any more;
	 *   - keep the descriptor, return 0, and call gantry_submit() later from poll. If that
	 *     fails with -EAGAIN, keep the descriptor and try again. If it fails with another
	 *     error, complete the descriptor with gantry_status_of_errno() of that error;
	 *   - complete the descriptor with gantry_complete() and return 0.
	 *
	 * returns   0: accepted
	 *           -EAGAIN: rejected for now
	 *           another -errno: rejected permanently
	 * thread    lane's thread; must not block
	 * ownership  after 0 the descriptor belongs to the stage, until it submits or completes the
	 *           descriptor; after an error it still belongs to the caller
	 * NULL      the host passes the descriptor to the next hop
	 */
	int (*submit)(void *self, struct gantry_io *io);
	/*
	 * Handle a descriptor on its way back; its status is set. Pass it on with
	 * gantry_complete(), now or later.
	 *
	 * thread    lane's thread; must not block
	 * ownership  the descriptor belongs to the stage until it calls gantry_complete()
	 * NULL      the host passes the descriptor to the previous hop
	 */
	void (*complete)(void *self, struct gantry_io *io);
	/*
	 * Pass on held descriptors that are due. The host calls it in every turn of the lane.
	 *
	 * returns   how many descriptors it passed on
	 * thread    lane's thread; must not block
	 * NULL      the stage never holds a descriptor
	 */
	int (*poll)(void *self);
	/*
	 * Get the time at which `poll` next has work. A lane without work sleeps until then.
	 *
	 * returns   an absolute time in nanoseconds, by the clock of gantry_lane.now_ns
	 *           0: none
	 * thread    lane's thread; must not block
	 * NULL      as if the function returned 0
	 */
	uint64_t (*wake_ns)(void *self);
	/*
	 * Immediately complete, with GANTRY_S_CANCELED, every held descriptor whose io->owner is
	 * `owner`, or every held descriptor if owner is NULL.
	 *
	 * The host calls it with an owner when a session is lost, and with NULL when the role is
	 * asked to stop. After the role has finished, the host calls it once more with NULL, before
	 * the final report. A stage with buffered output writes that output in this last call, so
	 * that the report counts it.
	 *
	 * owner     compared with io->owner; NULL: all descriptors
	 * thread    lane's thread; must not block
	 * NULL      the stage never holds a descriptor
	 */
	void (*drain)(void *self, const void *owner);
	/* Free the state of one lane. Control thread, after the lane has stopped. NULL: nothing. */
	void (*stop)(void *self);
	/* Write values to the report. Control thread, while the lanes run. NULL: no values. */
	void (*report)(void *stage, struct gantry_writer *w);
	/* Free the stage; also after a start that failed. Control thread. NULL: nothing. */
	void (*close)(void *stage);
	/* number of words of gantry_io.frame that the stage needs: 0 or 1 */
	uint32_t n_ctx_words;
	/*
	 * 1: the stage transforms data, and needs bounce buffers: see gantry_bounce_begin(). It
	 * gets no descriptor with GANTRY_IO_LIST. The host allows it only in a role that stores:
	 * a gateway has no data, and the peer of an initiator accesses only exported memory. 0:
	 * none
	 */
	uint32_t needs_bounce;
	/*
	 * Change the properties of the volume that the descriptors of this stage address, before
	 * the client learns them. The last stage gets the properties of the backend's or target's
	 * volume, the stage before it gets the result, and so on. The host checks each descriptor
	 * against the properties that the client knows. The host rejects a stage with this function
	 * in a role that does not listen.
	 *
	 * The result must depend only on the options and on `volume`. max_io must not grow. After a
	 * change of the size the host uses only the size of the result.
	 *
	 * volume   in and out
	 * returns  0
	 *          -errno: the stage cannot be used with this volume, and has logged the cause; the
	 *          host rejects the session, or keeps the size that the client knows
	 * thread   any; must not block
	 * NULL     the properties stay as they are
	 */
	int (*volume)(void *stage, struct gantry_volume_info *volume);
};

#ifdef __cplusplus
}
#endif

#endif
