/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/device.h"

#include "base/clock.h"
#include "base/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MIN_DEPTH 64u

static void progress(void *arg)
{
	struct gn_device *device = arg;

	device->ops->progress(device->dev);
	gn_loop_set_timer(device->loop, &device->timer, device->ops->wake_ns(device->dev));
}

int gn_device_open(struct gn_loop *loop, const char *name, const char *plugin_name,
		   const struct gantry_transport_ops *ops, const void *conf,
		   const struct gn_auth_conf *auth, struct gn_device **device_p)
{
	struct gn_device *device = calloc(1, sizeof(*device));
	int rc, fd;

	if (!device)
		return -ENOMEM;
	*device = (struct gn_device){
		.ops = ops,
		.name = name,
		.plugin_name = plugin_name,
		.loop = loop,
		.timer = {.fn = progress, .arg = device},
	};
	gn_host_init(&device->host, "devices.%s", name);
	rc = gn_auth_use(&device->host, auth);
	if (rc != 0)
		goto out_free;
	rc = gn_host_returned(&device->host, plugin_name, "open",
			      ops->open(&device->host.pub, conf, &device->dev));
	if (rc != 0) {
		if (rc != -EAGAIN)
			gn_log(GN_LOG_ERROR, device->host.name, "%s: cannot be opened: %s",
			       plugin_name, strerror(-rc));
		goto out_free;
	}
	fd = ops->fd(device->dev);
	if (fd >= 0) {
		rc = gn_loop_add_fd(loop, fd, progress, device);
		if (rc != 0)
			goto out_close;
	}
	gn_device_kick(device);
	*device_p = device;
	return 0;

out_close:
	ops->close(device->dev);
out_free:
	gn_auth_close(&device->host.auth);
	gn_host_fini(&device->host);
	free(device);
	return rc;
}

void gn_device_kick(struct gn_device *device)
{
	gn_loop_set_timer(device->loop, &device->timer, gn_now_ns());
}

void gn_device_close(struct gn_device **device_p)
{
	struct gn_device *device = *device_p;
	int fd;

	*device_p = NULL;
	if (!device)
		return;
	fd = device->ops->fd(device->dev);
	if (fd >= 0)
		gn_loop_remove_fd(device->loop, fd);
	gn_loop_clear_timer(device->loop, &device->timer);
	device->ops->close(device->dev);
	gn_auth_close(&device->host.auth);
	gn_host_fini(&device->host);
	free(device);
}

static void describe_caps(uint32_t caps, struct gantry_writer *w)
{
	static const struct {
		uint32_t cap;
		const char *word;
	} rows[] = {
		{GANTRY_CAP_MAPPED, "map"},
		{GANTRY_CAP_RMA, "rma"},
		{GANTRY_CAP_ORDERED, "ordered"},
		{GANTRY_CAP_PINS, "locks memory"},
	};

	w->array(w, "can");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if ((caps & rows[i].cap) != 0)
			w->string(w, NULL, rows[i].word);
	w->end(w);
}

/* Omit 0 and values from INT64_MAX on: both mean "no limit". */
static void describe_limit(const char *key, uint64_t limit, struct gantry_writer *w)
{
	if (limit != 0 && limit < INT64_MAX)
		w->u64(w, key, limit);
}

uint32_t gn_device_queue_depth(const struct gn_device *device, uint32_t depth)
{
	struct gantry_device_info info = {.caps = 0};
	uint32_t min = MIN_DEPTH;

	device->ops->info(device->dev, &info);
	if (info.max_depth != 0 && info.max_depth < min)
		min = info.max_depth;
	return 2 * depth < min ? min : 2 * depth;
}

void gn_device_describe(const struct gn_device *device, struct gantry_writer *w)
{
	struct gantry_device_info info = {.caps = 0};

	device->ops->info(device->dev, &info);
	w->string(w, "detail", info.detail);
	describe_caps(info.caps, w);
	describe_limit("max_queue_depth", info.max_depth, w);
	describe_limit("max_queue_pairs", info.max_queues, w);
	describe_limit("max_regions", info.max_regions, w);
	describe_limit("max_region_bytes", info.max_region_bytes, w);
	describe_limit("max_inline_bytes", info.max_inline, w);
	describe_limit("connection_queue_pairs", info.conn_queues, w);
	describe_limit("connection_memory_bytes", info.conn_bytes, w);
	describe_limit("lane_queue_pairs", info.lane_queues, w);
	describe_limit("lane_memory_bytes", info.lane_bytes, w);
}

void gn_device_report(const struct gn_device *device, struct gantry_writer *w)
{
	struct gantry_device_info info = {.caps = 0};

	device->ops->info(device->dev, &info);
	w->object(w, device->name);
	w->string(w, "transport", device->plugin_name);
	w->string(w, "detail", info.detail);
	gn_host_report(&device->host, w);
	w->end(w);
}
