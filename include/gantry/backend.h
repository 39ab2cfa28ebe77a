/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * backend.h - a backend: where a target keeps the data; the terminal hop of a target's chain.
 *
 * Life and threads are those of a stage (stage.h): open, start for each lane, submit and poll on
 * the lane, stop, close.
 *
 * What the backend may rely on at submit: the opcode is in its `ops` mask; for operations with a
 * range, offset and length lie in the volume, are multiples of the block size, and length is not 0;
 * for read and write io->data points to `length` bytes that stay valid until completion.
 *
 * `volume` and `submit` must be there; the host does what is usual for all others.
 */
#ifndef GANTRY_BACKEND_H
#define GANTRY_BACKEND_H

#include <gantry/plugin.h>
#include <gantry/volume.h>

#ifdef __cplusplus
extern "C" {
#endif

struct gantry_backend_ops {
	/*
	 * Open the store. Must not return 0 when another process serves it. 0; -errno, having
	 * logged why.
	 */
	int (*open)(const struct gantry_host *host, const void *conf, void **backend_p);
	/* Control thread, at each session. Only the verifier may differ between two calls. */
	void (*volume)(void *backend, struct gantry_volume_info *volume);
	/*
	 * Make the state of one lane and store it in *self_p.
	 *
	 * depth    descriptors that can be in flight on this lane at a time
	 * returns  0; -errno, which the host logs
	 *
	 * NULL: `self` is the backend itself. The host then rejects a backend with `open` in a role
	 * with several lanes.
	 * A start() may store the backend itself in *self_p. The lanes then call submit and poll
	 * from several threads at once, so these must write their data with atomics or under locks.
	 */
	int (*start)(void *backend, struct gantry_lane *lane, uint32_t depth, void **self_p);
	/*
	 * Do it: complete it with its status now or from poll. Returns 0, or -EAGAIN when it can
	 * take no more now.
	 */
	int (*submit)(void *self, struct gantry_io *io);
	int (*poll)(void *self); /* see struct gantry_poller */
	int (*arm)(void *self);
	void (*disarm)(void *self);
	int (*fd)(void *self);
	void (*stop)(void *self); /* nothing is in flight any more */
	/* control thread, while lanes run */
	void (*report)(void *backend, struct gantry_writer *w);
	void (*close)(void *backend); /* also when a start failed */
	/*
	 * The volume as memory of this process, byte for byte, that stays where it is until close:
	 * *addr_p, as long as the volume. Its data may then be moved to and from there by a device,
	 * without a copy: io->data of a read or write may be its own place in the volume. -ENOTSUP:
	 * it is not. Control thread. May be NULL.
	 */
	int (*memory)(void *backend, void **addr_p);
	/*
	 * For `gantry check`, which opens no volume: what `volume` will say, as far as the options
	 * tell; what they do not tell stays 0. conf is as for open. No look at the machine. May be
	 * NULL: they tell nothing.
	 */
	void (*expect)(const void *conf, struct gantry_volume_info *volume);
	/*
	 * Report whether the IOs that were submitted before the first call of a round can still
	 * change the store. The status that they completed with does not matter.
	 *
	 * The host calls it before a new session starts, after all IO of ended sessions has
	 * completed. A backend needs it if it completes an IO before the store has finished it, as
	 * a network client does after a timeout. Such a backend must also hold back a write that
	 * overlaps an unfinished one.
	 *
	 * mark     in and out: 0 at the first call of a round; then the value that the backend
	 *          stored there
	 * returns  0: none of them can change the store any more
	 *          -EAGAIN: some still can; the host calls again within 10 ms
	 *          another -errno: unknown; the host rejects the waiting session with it
	 * thread   control thread, while lanes run; must not block
	 * since    1.1. NULL: a completed IO never changes the store later
	 */
	int (*quiesce)(void *backend, uint64_t *mark);
};

#ifdef __cplusplus
}
#endif

#endif
