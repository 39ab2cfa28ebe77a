/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * backend.h - a backend: where a target keeps the data; the terminal hop of a target's chain.
 *
 * Life and threads are those of a stage (stage.h): open, start for each lane, submit and poll on the lane, stop, close.
 *
 * What the backend may rely on at submit: the opcode is in its `ops` mask; for operations with a range, offset and
 * length lie in the volume, are multiples of the block size, and length is not 0; for read and write io->data points
 * to `length` bytes that stay valid until completion.
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
	/* Open the store. Must not return 0 when another process serves it. 0; -errno, having logged why. */
	int (*open)(const struct gantry_host *host, const void *conf, void **backend_p);
	/* Control thread, at each session: always the same, but for the verifier. */
	void (*volume)(void *backend, struct gantry_volume_info *volume);
	/*
	 * Make its part for one lane. `depth`: descriptors that can be in flight on this lane at a time. 0; -errno, which the
	 * host logs. Left out: `self` is the backend itself, and a backend with `open` then serves roles with one lane only;
	 * the host refuses others. One whose lanes share `self` has a start() that returns the backend, and guards with atomics
	 * or locks what submit and poll write: the lanes call them from several threads at once.
	 */
	int (*start)(void *backend, struct gantry_lane *lane, uint32_t depth, void **self_p);
	/* Do it: complete it with its status now or from poll. Returns 0, or -EAGAIN when it can take no more now. */
	int (*submit)(void *self, struct gantry_io *io);
	int (*poll)(void *self);    /* see struct gantry_poller */
	int (*arm)(void *self);
	void (*disarm)(void *self);
	int (*fd)(void *self);
	void (*stop)(void *self); /* nothing is in flight any more */
	void (*report)(void *backend, struct gantry_writer *w); /* control thread, while lanes run */
	void (*close)(void *backend); /* also when a start failed */
	/*
	 * The volume as memory of this process, byte for byte, that stays where it is until close: *addr_p, as long as the
	 * volume. Its data may then be moved to and from there by a device, without a copy: io->data of a read or write
	 * may be its own place in the volume. -ENOTSUP: it is not. Control thread. May be NULL.
	 */
	int (*memory)(void *backend, void **addr_p);
	/*
	 * For `gantry check`, which opens no volume: what `volume` will say, as far as the options tell; what they do not tell
	 * stays 0. conf is as for open. No look at the machine. May be NULL: they tell nothing.
	 */
	void (*expect)(const void *conf, struct gantry_volume_info *volume);
	/*
	 * Report whether everything that was submitted before the first call of a round has come to rest: after 0 none of it
	 * can change the store any more, whatever status it completed with.
	 *
	 * The host calls it before a new session starts, when all IO of ended sessions has completed. A backend that completes
	 * an IO only when the store is done with it does not need it. One that gives IO up earlier does: a network client
	 * whose request timed out, say. Such a backend also holds back a write that overlaps one it has given up.
	 *
	 * mark     in and out: 0 at the first call of a round; the host hands back what the backend stores there
	 * returns  0: at rest. -EAGAIN: not yet, the host calls again within 10 ms. Another -errno: cannot be determined; the
	 *          session that waits is refused with it
	 * thread   control thread, while lanes run; must not block
	 * since    1.1. NULL: every completed IO is at rest
	 */
	int (*quiesce)(void *backend, uint64_t *mark);
};

#ifdef __cplusplus
}
#endif

#endif
