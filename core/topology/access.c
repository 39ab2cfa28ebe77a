/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * access.c - who may open what a role serves: the rules of its `listen` group, against what its transport can enforce.
 *
 * The flags of a transport say which rules that are: GANTRY_TRANSPORT_UIDS and GANTRY_TRANSPORT_INSIDE. A transport with
 * neither is one of a network, whose peers nothing authenticates.
 */
#include "topology/topology_priv.h"

static bool is_network(const struct gantry_transport_ops *ops)
{
	return !(ops->flags & (GANTRY_TRANSPORT_UIDS | GANTRY_TRANSPORT_INSIDE));
}

static void check_listen(struct gn_topo_parse *p, struct gn_conf_node *listen, const struct gn_topo_device *device)
{
	struct gn_conf_node *uids = gn_conf_child(listen, "uids");

	if (!device || !device->plugin || !is_network(device->plugin->ops))
		return;
	if (uids)
		gn_conf_fault(p->errs, uids,
			      "the transport of the device does not report the user of a peer (device=%s, transport=%s): leave "
			      "uids out, and keep hosts that may not connect off its network", device->name,
			      device->plugin->desc->name);
}

void gn_topo_access(struct gn_topo_parse *p)
{
	for (uint32_t i = 0; i < p->topology->n_roles; i++) {
		const struct gn_topo_role *role = &p->topology->roles[i];

		if (role->listen)
			check_listen(p, gn_conf_child(role->node, "listen"), role->listen_device);
	}
}
