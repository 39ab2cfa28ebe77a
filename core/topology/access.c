/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * access.c - compare the access rules of each `listen` group with what its transport can enforce
 *
 * gn_transport_is_network() tells from the flags of a transport whether it reports the users of its peers. Nothing authenticates
 * the peers on a network, so a role listens there only with insecure = true.
 */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "topology/topology_priv.h"

/* A transport that reports users names a peer by its uid, another one by its host. */
static void check_weights(struct gn_topo_parse *p, const struct gn_topo_role *role, bool network)
{
	struct gn_conf_node *weights = gn_conf_child(gn_conf_child(role->node, "listen"), "weights");
	const char *kind = network ? "host " : "uid ";

	for (uint32_t i = 0; i < role->listen->n_weights; i++)
		if (strncmp(role->listen->weights[i].peer, kind, strlen(kind)) != 0)
			gn_conf_fault(p->errs, weights,
				      "the transport of the device names its peers otherwise (peer=%s, device=%s, transport=%s): "
				      "write \"%sPEER=%u\"", role->listen->weights[i].peer, role->listen_device->name,
				      role->listen_device->plugin->desc->name, kind, role->listen->weights[i].weight);
}

static void check_listen(struct gn_topo_parse *p, const struct gn_topo_role *role)
{
	struct gn_conf_node *listen = gn_conf_child(role->node, "listen"), *uids = gn_conf_child(listen, "uids");
	const struct gn_topo_device *device = role->listen_device;
	bool network;

	if (!device || !device->plugin || !role->listen->service)
		return;
	network = gn_transport_is_network(device->plugin->ops);
	check_weights(p, role, network);
	if (!network)
		return;
	if (!role->listen->insecure)
		gn_conf_fault(p->errs, listen,
			      "the transport of the device does not authenticate peers (device=%s, transport=%s): every host that "
			      "reaches %s could read and write the volume; to accept that, write insecure = true", device->name,
			      device->plugin->desc->name, role->listen->service);
	if (uids)
		gn_conf_fault(p->errs, uids,
			      "the transport of the device does not report the user of a peer (device=%s, transport=%s): leave "
			      "uids out, and keep hosts that may not connect off its network", device->name,
			      device->plugin->desc->name);
}

void gn_topo_access(struct gn_topo_parse *p)
{
	for (uint32_t i = 0; i < p->topology->n_roles; i++)
		if (p->topology->roles[i].listen)
			check_listen(p, &p->topology->roles[i]);
}

void gn_topo_warn_of_access(const struct gn_topo_role *role)
{
	char who[80];

	if (!role->listen || !gn_transport_is_network(role->listen_device->plugin->ops))
		return;
	snprintf(who, sizeof(who), "roles.%s", role->name);
	gn_log(GN_LOG_WARN, who,
	       "the listener accepts peers that nothing authenticates (device=%s, service=%s): every host that reaches it can "
	       "read and write the volume (listen.insecure)", role->listen_device->name, role->listen->service);
}
