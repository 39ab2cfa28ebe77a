/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * backend.h - the interface of a backend: a plugin that stores the data of a target.
 *
 * A backend is the terminal hop of each chain of its target. Its life cycle and threads are those
 * of a stage (stage.h): open; start, once for each lane; submit and poll on the lane; stop; close.
 *
 * The host checks each descriptor before submit(). So submit() can rely on the following:
 *   - the opcode is in the `ops` mask of the volume;
 *   - if the operation has a range, offset and length are multiples of the block size, the range
 *     lies inside the volume, and length is not 0;
 *   - for read and write, io->data points to `length` bytes that stay valid until the completion;
 *   - with GANTRY_IO_LIST, which only a backend with GANTRY_VOLUME_LISTS gets, io->data points to a
 *     struct gantry_pieces instead, which stays unchanged; the lengths of its pieces add up to
 *     `length`. A piece has any length and alignment;
 *   - for extents, io->data points to GANTRY_EXTENTS_BYTES bytes. The peer can change them at any
 *     time: build the result in private memory, and copy it by gantry_extents_finish(). The range
 *     can be longer than max_io.
 *
 * `volume` and `submit` are mandatory. For every other slot that is NULL, the host substitutes a
 * default.
 *
 * gantry-plugin(7) has a complete backend. gantry-host(3) describes what every plugin uses: the
 * constant that it exports, options, the log, counters and reports. gantry-io(3) describes
 * descriptors and their functions.
 */
#ifndef GANTRY_BACKEND_H
#define GANTRY_BACKEND_H

#include <gantry/plugin.h>
#include <gantry/volume.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * The functions of a backend.
 *
 * host       services of the host; valid until close
 * backend    what open stored in *backend_p
 * backend_p  out: the object of the backend, with which the host calls the other functions
 * volume     out: the properties; all 0 before the call
 * lane       the lane; valid until stop
 * self       what start stored in *self_p for this lane
 * self_p     out: the object of this lane of the backend
 * io         the descriptor
 * w          an object of the report, which is open
 * ownership  arguments are valid during the call, unless stated otherwise
 */
struct gantry_backend_ops {
	/*
	 * Open the store. Must fail if another process serves the same store.
	 *
	 * conf      the options; valid until close
	 * returns   0
	 *           -errno: cannot open; the backend has logged the cause
	 * thread    control thread
	 * ownership  the backend owns *backend_p until close
	 * NULL      the backend has no object: `backend` is NULL
	 */
	int (*open)(const struct gantry_host *host, const void *conf, void **backend_p);
	/*
	 * Describe the volume. The host calls it for each session, and once a second while sessions
	 * run. All properties except the verifier and the size must be the same in every call. If
	 * the size has changed, the host rejects IO beyond the new end with GANTRY_S_RANGE, and
	 * reports the new size to the clients. IO that was submitted before can still be beyond the
	 * end. The size of a volume with `memory` must not change.
	 *
	 * thread    control thread
	 * NULL      not permitted
	 */
	void (*volume)(void *backend, struct gantry_volume_info *volume);
	/*
	 * Create the state of one lane and store it in *self_p.
	 *
	 * depth     number of descriptors that can be in flight on this lane at a time
	 * returns   0
	 *           -errno: failed; the host logs it
	 * thread    control thread, before the lane runs
	 * ownership  the backend owns *self_p until stop
	 * NULL      every lane uses the backend itself as `self`. If the backend has `open`, the
	 *           host then rejects a role that uses it with several lanes
	 *
	 * start() can store the backend itself in *self_p. The lanes then call submit and poll from
	 * several threads at the same time, so submit and poll must access shared data with atomics
	 * or under locks.
	 */
	int (*start)(void *backend, struct gantry_lane *lane, uint32_t depth, void **self_p);
	/*
	 * Execute a descriptor. Complete it exactly once: before the return, or later from poll.
	 *
	 * returns   0: accepted
	 *           -EAGAIN: no resources now; the host submits it again
	 *           another -errno: rejected permanently
	 * thread    lane's thread; must not block
	 * ownership  after 0 the descriptor and its buffer belong to the backend until it completes
	 *           the descriptor
	 * NULL      not permitted
	 */
	int (*submit)(void *self, struct gantry_io *io);
	/*
	 * Complete descriptors whose IO is done. As `poll` of struct gantry_poller.
	 *
	 * returns   the number of events that it handled
	 * thread    lane's thread; must not block
	 * NULL      submit completes every descriptor before it returns
	 */
	int (*poll)(void *self);
	/*
	 * Make the fd readable when work arrives, from now on. As `arm` of struct gantry_poller.
	 *
	 * returns   0
	 *           1: there is work already
	 * thread    lane's thread; must not block
	 * NULL      as if the function returned 0; but a lane never sleeps while the backend has
	 *           `poll` without `arm` and `fd`
	 */
	int (*arm)(void *self);
	/* End `arm`. Lane's thread; must not block. NULL: nothing. */
	void (*disarm)(void *self);
	/*
	 * Get the fd that is readable when there is work for poll.
	 *
	 * returns   the fd; -1: none
	 * thread    lane's thread
	 * NULL      as if the function returned -1
	 */
	int (*fd)(void *self);
	/*
	 * Free the state of one lane. No descriptor is in flight.
	 *
	 * thread    control thread, after the lane has stopped
	 * NULL      nothing
	 */
	void (*stop)(void *self);
	/* Write values to the report. Control thread, while the lanes run. NULL: no values. */
	void (*report)(void *backend, struct gantry_writer *w);
	/* Close the store; also after a start() that failed. Control thread. NULL: nothing. */
	void (*close)(void *backend);
	/*
	 * Map the volume: return the address of its bytes in this process. The mapping must stay at
	 * this address until close. A device can then transfer data directly to and from the
	 * mapping: the io->data of a read or write can point into it. The host does not use the
	 * mapping of a volume that supports GANTRY_OP_EXTENTS.
	 *
	 * addr_p    out: start of the mapping, which is as long as the volume
	 * returns   0
	 *           -ENOTSUP: the volume cannot be mapped
	 * thread    control thread
	 * NULL      the volume cannot be mapped
	 */
	int (*memory)(void *backend, void **addr_p);
	/*
	 * Report whether IOs that have completed, with whatever status, can still change the store.
	 * The host calls it until the result is not -EAGAIN: these calls are one round, which
	 * concerns the IOs that were submitted before its first call.
	 *
	 * A round begins before a new session starts, after all IO of ended sessions has completed.
	 * A backend needs this function if it completes an IO before the store has finished that
	 * IO, as a network client does after a timeout. Such a backend must also delay a write that
	 * overlaps an unfinished write.
	 *
	 * mark      in and out: 0 at the first call of a round; then the value that the backend
	 *           stored in the previous call
	 * returns   0: none of these IOs can change the store any more
	 *           -EAGAIN: some still can; the host calls again within 10 ms
	 *           another -errno: unknown; the host rejects the waiting session with this error
	 * thread    control thread, while lanes run; must not block
	 * NULL      a completed IO never changes the store later
	 */
	int (*quiesce)(void *backend, uint64_t *mark);
};

#ifdef __cplusplus
}
#endif

#endif
