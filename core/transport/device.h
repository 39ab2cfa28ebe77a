/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * device.h - one entry of `devices`: an opened transport, driven by the control loop.
 */
#ifndef GN_TRANSPORT_DEVICE_H
#define GN_TRANSPORT_DEVICE_H

#include "base/host.h"
#include "base/loop.h"

#include <gantry/transport.h>

struct gn_device {
	const struct gantry_transport_ops *ops; /* complete: no slot is NULL */
	void *dev;
	const char *name;
	const char *plugin_name;
	struct gn_loop *loop;
	struct gn_timer timer;
	struct gn_host host;
};

/*
 * ops: of the plugin, stubs filled in. conf: the plugin's, filled. Names outlive it. 0 or -errno.
 */
int gn_device_open(struct gn_loop *loop, const char *name, const char *plugin_name,
		   const struct gantry_transport_ops *ops, const void *conf,
		   struct gn_device **device_p);
void gn_device_close(struct gn_device **device_p);
/*
 * Have progress called at the next turn: after connect, which may have failed at once, or a change
 * of its timers.
 */
void gn_device_kick(struct gn_device *device);
/*
 * How deep each queue of a lane with so many IOs in flight is. Two messages for each, so that no
 * answer waits for credit; and for few IOs 64, as far as the device has them: a peer is told of
 * receives by lots, a part of the depth, and one that has used up what it was told of waits for the
 * line in which the next lot stands.
 */
uint32_t gn_device_queue_depth(const struct gn_device *device, uint32_t depth);
/* What it can do and its limits, into the object that is open. */
void gn_device_describe(const struct gn_device *device, struct gantry_writer *w);
void gn_device_report(const struct gn_device *device, struct gantry_writer *w);

#endif
