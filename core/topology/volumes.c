/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * volumes.c - for `gantry check`: call the check of each role, with the volumes that it connects to
 * as far as they follow from the configuration.
 */
#include <errno.h>

#include <gantry/uuid.h>

#include "topology/topology_priv.h"
#include "transport/bounce.h"

static bool has_bouncing_stage(const struct gn_topo_role *role)
{
	for (uint32_t i = 0; i < role->spec.n_stages; i++)
		if (((const struct gantry_stage_ops *)role->stages[i].ops)->needs_bounce)
			return true;
	return false;
}

/*
 * Limit max_io to the size of the bounce buffers, if the device cannot map regions or a stage has
 * such buffers. If the device does not exist here, max_io is unknown.
 */
static void limit_bounced_io(struct gn_topo_role *role)
{
	const struct gn_topo_device *device = role->listen_device;
	struct gantry_device_info info = {.caps = 0};
	uint64_t move_memory;

	device->device->ops->info(device->device->dev, &info);
	move_memory = (info.caps & GANTRY_CAP_MAPPED) != 0 ? 0 : role->listen->move_memory;
	role->volume.max_io = device->absent ? 0
					     : gn_bounce_limit(role->volume.max_io, move_memory,
							       has_bouncing_stage(role));
}

/*
 * The entries of `connect` are paths to one volume: report those that lead to another one, as far
 * as the UUIDs are known, and plan the same for each path.
 */
static void check_paths(const struct gn_topo_role *role, const struct gantry_volume_info *volumes,
			struct gn_errs *errs)
{
	struct gn_conf_node *node = gn_conf_child(role->node, "connect");

	for (uint32_t i = 1; i < role->spec.n_connects; i++) {
		role->plans[i] = role->plans[0];
		if (gantry_uuid_is_other(volumes[0].uuid, volumes[i].uuid))
			gn_conf_fault(
				errs, gn_conf_index(node, i),
				"leads to another volume than connect[0]: the role \"%s\" uses all entries as paths to one volume",
				role->plugin->desc->name);
	}
}

static int expect(struct gn_topology *t, struct gn_topo_role *role, struct gn_errs *errs)
{
	struct gantry_check check = {.flags = GANTRY_CHECK_MACHINE, .volume = role->volume};
	struct gantry_volume_info *volumes;

	if (role->expected || !role->role)
		return 0;
	role->expected = true;
	volumes = gn_arena_alloc(&t->arena, (role->spec.n_connects + 1) * sizeof(*volumes));
	role->plans = gn_arena_alloc(&t->arena, (role->spec.n_connects + 1) * sizeof(*role->plans));
	if (!volumes || !role->plans)
		return -ENOMEM;
	for (uint32_t i = 0; i < role->spec.n_connects; i++) {
		struct gn_topo_role *next = gn_topo_next_role(t, role, i);

		if (next && expect(t, next, errs)) /* gn_topo_graph() has rejected loops */
			return -ENOMEM;
		if (next)
			volumes[i] = next->volume;
	}
	check.volumes = volumes;
	check.plans = role->plans;
	gn_role_fill_check(role->role, &check);
	gn_plugin_check(role->plugin, role->spec.part.conf, role->node, errs, &check);
	role->volume = check.volume;
	if ((role->flags & GANTRY_ROLE_ONE_VOLUME) && role->plugin)
		check_paths(role, volumes, errs);
	if (gn_role_stage_volume(role->role, &role->volume) != 0)
		gn_conf_fault(errs, gn_conf_child(role->node, "stages"),
			      "a stage rejects the volume; see the message before");
	if (role->flags & GANTRY_ROLE_STORES && role->listen)
		limit_bounced_io(role);
	return 0;
}

int gn_topology_expect(struct gn_topology *topology, struct gn_errs *errs)
{
	for (uint32_t i = 0; i < topology->n_roles; i++)
		if (expect(topology, &topology->roles[i], errs))
			return -ENOMEM;
	return 0;
}
