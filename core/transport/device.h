/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * device.h - one entry of `devices` of the configuration: an opened transport, whose events the
 * control loop handles. Control thread.
 */
#ifndef GN_TRANSPORT_DEVICE_H
#define GN_TRANSPORT_DEVICE_H

#include "base/host.h"
#include "base/event_loop.h"
#include "secure/auth.h"

#include <gantry/transport.h>

struct gn_device {
	const struct gantry_transport_ops *ops; /* complete: no function is NULL */
	void *dev;
	const char *name;
	const char *plugin_name;
	struct gn_loop *loop;
	struct gn_timer timer;
	struct gn_host host;
};

/*
 * gn_device_open - open a transport and attach it to the loop.
 *
 * name         name of the entry of `devices`. It, plugin_name, ops and conf must outlive the
 *              device
 * ops          table of the plugin, without NULL slots
 * conf         filled conf struct of the plugin
 * auth         how peers are authenticated; NULL: they are not
 * Returns 0, or a -errno of the plugin, of gn_auth_open() or of the loop. Logs a failure, except
 * -EAGAIN of the plugin.
 */
int gn_device_open(struct gn_loop *loop, const char *name, const char *plugin_name,
		   const struct gantry_transport_ops *ops, const void *conf,
		   const struct gn_auth_conf *auth, struct gn_device **device_p);
/* gn_device_close - close a device, after all its connections and listeners. NULL has no effect. */
void gn_device_close(struct gn_device **device_p);
/*
 * gn_device_kick - call `progress` of the transport in the next turn of the loop. Use it after
 * connect, which can fail immediately, or after a change that moves timers of the transport.
 */
void gn_device_kick(struct gn_device *device);
/*
 * gn_device_queue_depth - returns the depth of each queue of a lane with `depth` IOs in flight
 *
 * Two messages for each IO, so that no reply waits for credit, and at least 64 messages if the
 * device supports that. A consumer announces receives in batches of a part of the depth. With a
 * shallow queue a producer would often run out of credit and wait for the cache line that announces
 * the next batch.
 */
uint32_t gn_device_queue_depth(const struct gn_device *device, uint32_t depth);
/* gn_device_describe - write capabilities and limits of the device into the open object. */
void gn_device_describe(const struct gn_device *device, struct gantry_writer *w);
/* gn_device_report - write an object with the name of the device: transport, details, counters. */
void gn_device_report(const struct gn_device *device, struct gantry_writer *w);

#endif
