/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trial.c - for `gantry check`: compare devices, stages, backends and observers with this machine,
 * and replace those that must not be opened by stubs. gn_ops_complete() fills the other slots of
 * the stubs. The host does not open observers for `gantry check`, so they need no stub.
 */
#include <stdio.h>
#include <string.h>

#include "topology/topology_priv.h"

/* -- stubs -- */

static void any_volume(void *backend, struct gantry_volume_info *volume)
{
	(void)backend;
	*volume = (struct gantry_volume_info){.size = 1ull << 40,
					      .block_size = 4096,
					      .ops = ~0u >> (32 - GANTRY_OP_COUNT),
					      .max_io = 1u << 20};
}

static int refuse_io(void *self, struct gantry_io *io)
{
	(void)self;
	gantry_fail(io, GANTRY_S_UNSUPPORTED);
	return 0;
}

static struct gantry_backend_ops no_backend = {.volume = any_volume, .submit = refuse_io};
static struct gantry_stage_ops no_stage;

/* The device is the struct of its properties. */
static int no_device_open(const struct gantry_host *host, const void *conf, void **device_p)
{
	(void)host;
	*device_p = (void *)conf;
	return 0;
}

static void no_device_close(void *device)
{
	(void)device;
}

static void no_device_info(void *device, struct gantry_device_info *info)
{
	*info = *(struct gantry_device_info *)device;
	if (!info->max_depth)
		snprintf(info->detail, sizeof(info->detail), "not available here");
}

static int no_device_progress(void *device)
{
	(void)device;
	return 0;
}

/* Roles are not started, so no role listens or connects on this device. */
static struct gantry_transport_ops no_device = {.open = no_device_open,
						.close = no_device_close,
						.info = no_device_info,
						.progress = no_device_progress};

/* -- trial -- */

/* Call the check of an instance for this machine. Returns its status; -EINVAL: it has faults. */
static int check_machine(const struct gn_topo_instance *instance, struct gn_errs *errs,
			 struct gantry_check *check)
{
	size_t before = errs->n;
	struct gn_host host;

	gn_host_init(&host, "%s", gn_conf_path(instance->group));
	check->flags = GANTRY_CHECK_MACHINE;
	check->host = &host.pub;
	gn_plugin_check(instance->plugin, instance->conf, instance->group, errs, check);
	gn_host_fini(&host);
	return errs->n == before ? check->status : -EINVAL;
}

int gn_topo_try_device(struct gn_topo_device *device, struct gn_loop *loop, struct gn_errs *errs)
{
	const struct gn_topo_instance instance = {
		.group = device->node, .plugin = device->plugin, .conf = device->conf};
	struct gantry_check check = {.info = &device->info};
	size_t before = errs->n;
	int rc = check_machine(&instance, errs, &check);

	if (!rc)
		rc = gn_topology_open_device(device, loop);
	if (!rc)
		return 0;
	/* faults are reported already; the properties of a device can be known without it */
	if (errs->n == before && !(rc == -EAGAIN && device->info.max_depth))
		device->absent = rc;
	gn_ops_complete(GANTRY_KIND_TRANSPORT, &no_device);
	return gn_device_open(loop, device->name, device->plugin->desc->name, &no_device,
			      &device->info, NULL, &device->device);
}

void gn_topo_try_part(const struct gn_topo_instance *instance, struct gn_errs *errs)
{
	struct gantry_check check = {.status = 0};
	size_t before = errs->n;
	int rc = check_machine(instance, errs, &check);

	if (rc && rc != -EAGAIN && errs->n == before)
		gn_conf_fault(errs, instance->group, "\"%s\" cannot be opened here: %s",
			      instance->plugin->desc->name, strerror(-rc));
	gn_ops_complete(GANTRY_KIND_BACKEND, &no_backend);
	gn_ops_complete(GANTRY_KIND_STAGE, &no_stage);
	if (instance->kind == GANTRY_KIND_BACKEND) {
		instance->role->volume = check.volume;
		instance->part->ops = &no_backend;
	} else if (rc && instance->kind == GANTRY_KIND_STAGE) {
		instance->part->ops = &no_stage;
	}
}
