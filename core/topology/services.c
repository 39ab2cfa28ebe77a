/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * services.c - options of devices that belong to the core: those of secure/auth_options.c, and
 * `services`. A role names a service, and `services` of a device maps names to the texts of its
 * transport, such as addresses.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "topology/topology_priv.h"

void gn_topo_device_options(struct gn_topo_parse *p, struct gn_topo_device *device)
{
	unsigned n = gn_conf_length(device->node);
	/* the plugin has reported unknown options already */
	const char **known = gn_arena_alloc(&p->topology->arena, (n + 1) * sizeof(*known));

	if (!known) {
		gn_errs_no_memory(p->errs);
		return;
	}
	for (unsigned i = 0; i < n; i++)
		known[i] = gn_conf_name(gn_conf_index(device->node, i));
	known[n] = NULL;
	gn_conf_options(device->node, gn_auth_options, &device->auth, known, p->errs);
}

/* Check the text of an endpoint whose name the device does not map. */
static void check_endpoint(struct gn_topo_parse *p, struct gn_conf_node *group,
			   const struct gn_endpoint *endpoint, const struct gn_topo_device *device)
{
	char remedy[160];

	if (!device || !device->plugin || !endpoint->service || endpoint->service != endpoint->name)
		return;
	snprintf(remedy, sizeof(remedy), ", or map the name in services of the device \"%s\"",
		 device->name);
	gn_service_check(device->plugin, device->conf, endpoint->service,
			 gn_conf_child(group, "name"), remedy, p->errs);
}

void gn_topo_services(struct gn_topo_parse *p)
{
	for (uint32_t i = 0; i < p->topology->n_devices; i++) {
		const struct gn_topo_device *device = &p->topology->devices[i];

		if (device->plugin)
			gn_services_check(device->node, device->plugin, device->conf, p->errs);
	}
	for (uint32_t i = 0; i < p->topology->n_roles; i++) {
		const struct gn_topo_role *role = &p->topology->roles[i];

		if (role->listen)
			check_endpoint(p, gn_conf_child(role->node, "listen"), role->listen,
				       role->listen_device);
		for (uint32_t k = 0; k < role->spec.n_connects; k++)
			check_endpoint(p, gn_topology_connect_node(role, k), &role->connects[k],
				       role->connect_devices[k]);
	}
}
