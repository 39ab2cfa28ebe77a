/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * embedded.c - select the roles that an embedded role reaches over transports inside the process.
 * No other process can reach them, so this process must run them.
 */
#include <string.h>

#include "topology/topology_priv.h"

static bool is_inside(struct gn_topo_parse *p, const struct gn_topo_device *device)
{
	const struct gn_plugin *plugin = gn_topo_plugin(p, GANTRY_KIND_TRANSPORT, device->node,
							"transport");

	return plugin && (((const struct gantry_transport_ops *)plugin->ops)->flags &
			  GANTRY_TRANSPORT_INSIDE);
}

static bool listens_at(const struct gn_topo_role *role, const struct gn_topo_device *device,
		       const char *service)
{
	struct gn_conf_node *listen = gn_conf_child(role->node, "listen");
	const char *where = gn_conf_string(gn_conf_child(listen, "device")),
		   *name = gn_conf_string(gn_conf_child(listen, "name"));

	return where && name && !strcmp(where, device->name) &&
	       !strcmp(gn_service_text(device->node, name), service);
}

/* Give the role as many lanes as the embedded role has, on the same workers. */
static void match_lanes(struct gn_topo_role *role, const struct gn_topo_embedded_role *own)
{
	role->spec.n_lanes = own->n_lanes;
	if (role->listen && role->listen->max_lanes < own->n_lanes &&
	    !gn_conf_child(gn_conf_child(role->node, "listen"), "max_lanes"))
		role->listen->max_lanes = own->n_lanes;
}

static void select_served_by(struct gn_topo_parse *p, const struct gn_topo_role *from,
			     uint32_t connect)
{
	const struct gn_topo_device *device = from->connect_devices[connect];
	const char *service = from->connects[connect].service;
	struct gn_topology *t = p->topology;

	if (!device || !service || !is_inside(p, device))
		return;
	for (uint32_t i = 0; i < t->n_roles; i++) {
		struct gn_topo_role *role = &t->roles[i];

		if (!listens_at(role, device, service))
			continue;
		if (!role->selected) {
			role->selected = true;
			gn_topo_role(p, role);
			match_lanes(role, t->own);
			gn_topo_select_reachable(p, role);
		}
		return;
	}
	gn_conf_fault(
		p->errs, gn_conf_child(from->node, "connect"),
		"connects to \"%s\" on the device \"%s\", which reaches only this process, and no role of the file listens there",
		service, device->name);
}

void gn_topo_select_reachable(struct gn_topo_parse *p, const struct gn_topo_role *role)
{
	for (uint32_t i = 0; i < role->spec.n_connects; i++)
		select_served_by(p, role, i);
}

bool gn_topology_leads_nowhere(const struct gn_topology *t, const struct gn_topo_role *role,
			       uint32_t connect)
{
	const struct gn_topo_device *device = role->connect_devices[connect];
	const struct gantry_transport_ops *ops = device->plugin->ops;
	const char *service = role->connects[connect].service;

	if (!(ops->flags & GANTRY_TRANSPORT_INSIDE))
		return false;
	for (uint32_t i = 0; i < t->n_roles; i++)
		if (t->roles[i].selected && t->roles[i].listen_device == device &&
		    t->roles[i].listen->service && !strcmp(t->roles[i].listen->service, service))
			return false;
	return true;
}
