/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * access.c - compare the access rules and quotas of each `listen` group with what its device can
 * enforce
 *
 * The flags of a transport show whether it reports the users of its peers
 * (gn_transport_is_network()). A device on a network must say how its peers prove who they are
 * (`auth`).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "topology/topology_priv.h"

/*
 * Check the kind of peer in each weight: a transport that reports users identifies a peer by its
 * uid, a network by its host.
 */
static void check_weights(struct gn_topo_parse *p, const struct gn_topo_role *role, bool network)
{
	struct gn_conf_node *weights = gn_conf_child(gn_conf_child(role->node, "listen"),
						     "weights");
	const char *kind = network ? "host " : "uid ";

	for (uint32_t i = 0; i < role->listen->n_weights; i++)
		if (strncmp(role->listen->weights[i].peer, kind, strlen(kind)) != 0)
			gn_conf_fault(
				p->errs, weights,
				"wrong kind of peer for the transport of the device (peer=%s, device=%s, transport=%s): "
				"write \"%sPEER=%u\"",
				role->listen->weights[i].peer, role->listen_device->name,
				role->listen_device->plugin->desc->name, kind,
				role->listen->weights[i].weight);
}

/* Get the option `uids` of a device, such as "0,1000"; NULL: its transport has no such option. */
static const char *device_uids(const struct gn_topo_device *device)
{
	for (const struct gantry_option *o = device->plugin->desc->options;
	     device->conf && o && o->name; o++)
		if (gantry_option_type(o) == GANTRY_OPT_STRING && strcmp(o->name, "uids") == 0) {
			const char *text;

			memcpy(&text, (const char *)device->conf + o->offset, sizeof(text));
			return text;
		}
	return NULL;
}

/*
 * True if the list contains the uid. Also true for an invalid list, because the transport reports
 * that fault.
 */
static bool has_uid(const char *list, uint32_t uid)
{
	while (*list) {
		char *end;

		if (strtoul(list, &end, 10) == uid || end == list)
			return true;
		list = *end ? end + 1 : end;
	}
	return false;
}

/*
 * Check that the device accepts each user of `listen.uids`. It accepts the user of this process and
 * those of its option `uids`.
 */
static void check_uids(struct gn_topo_parse *p, const struct gn_topo_role *role,
		       struct gn_conf_node *uids)
{
	const struct gn_endpoint *listen = role->listen;
	const char *allowed = device_uids(role->listen_device);

	for (uint32_t i = 0; allowed && i < listen->n_uids; i++)
		if (listen->uids[i] != geteuid() && !has_uid(allowed, listen->uids[i])) {
			gn_conf_fault(
				p->errs, uids,
				"the device rejects a user of this list (uid=%u, devices.%s.uids=\"%s\"): add %u there, or "
				"omit it here",
				listen->uids[i], role->listen_device->name, allowed,
				listen->uids[i]);
			return;
		}
}

/* Check that each row of `allow` names a peer of the kind that the transport reports. */
static void check_allow(struct gn_topo_parse *p, const struct gn_topo_role *role, bool network)
{
	struct gn_conf_node *allow = gn_conf_child(gn_conf_child(role->node, "listen"), "allow");
	const struct gn_access *access = role->listen->access;
	const struct gn_topo_device *device = role->listen_device;

	if (!access)
		return;
	if (network && device->auth.mode == GN_AUTH_NONE)
		gn_conf_fault(
			p->errs, allow,
			"the peers of the device are not authenticated (device=%s, auth=none): write devices.%s.auth = "
			"\"psk\" or \"x509\", or omit allow",
			device->name, device->name);
	for (uint32_t i = 0; i < access->n; i++)
		if (!access->rows[i].identity == network)
			gn_conf_fault(
				p->errs, gn_conf_index(allow, i),
				"wrong kind of peer for the transport of the device (device=%s, transport=%s): write %s",
				device->name, device->plugin->desc->name,
				network ? "identity" : "user, uid or group");
	if (gn_conf_child(gn_conf_child(role->node, "listen"), "uids"))
		gn_conf_fault(p->errs, allow, "stands beside uids, which it replaces: omit uids");
}

static void check_listen(struct gn_topo_parse *p, const struct gn_topo_role *role)
{
	struct gn_conf_node *listen = gn_conf_child(role->node, "listen"),
			    *uids = gn_conf_child(listen, "uids");
	const struct gn_topo_device *device = role->listen_device;
	bool network;

	if (!device || !device->plugin || !role->listen->service)
		return;
	network = gn_transport_is_network(device->plugin->ops);
	check_weights(p, role, network);
	check_allow(p, role, network);
	if (!network)
		check_uids(p, role, uids);
	else if (uids)
		gn_conf_fault(
			p->errs, uids,
			"the transport of the device does not report the user of a peer (device=%s, transport=%s): "
			"omit uids, and write allow",
			device->name, device->plugin->desc->name);
}

/* Check how the peers of a device are authenticated. */
static void check_auth(struct gn_topo_parse *p, const struct gn_topo_device *device)
{
	const struct gn_auth_conf *auth = &device->auth;
	const char *missing = gn_auth_missing(auth, device->connects);

	if (!gn_transport_is_network(device->plugin->ops)) {
		if (gn_auth_is_on(auth))
			gn_conf_fault(
				p->errs, gn_conf_child(device->node, "auth"),
				"has no effect, because the kernel reports the peers of this transport (transport=%s): omit it",
				device->plugin->desc->name);
		return;
	}
	if (auth->mode == GN_AUTH_UNSET)
		gn_conf_fault(
			p->errs, device->node,
			"does not say how peers on the network prove who they are (transport=%s): write auth = \"psk\" or "
			"\"x509\", see gantry-security(7); auth = \"none\" lets every host that reaches the device read and write the volumes",
			device->plugin->desc->name);
	if (missing)
		gn_conf_fault(p->errs, device->node, "\"%s\" is missing; auth needs it%s", missing,
			      device->connects ? "" : " to listen");
}

void gn_topo_access(struct gn_topo_parse *p)
{
	struct gn_topology *t = p->topology;

	for (uint32_t i = 0; i < t->n_roles; i++) {
		if (t->roles[i].listen)
			check_listen(p, &t->roles[i]);
		for (uint32_t k = 0; k < t->roles[i].spec.n_connects; k++)
			if (t->roles[i].selected && t->roles[i].connect_devices[k])
				t->roles[i].connect_devices[k]->connects = true;
	}
	for (uint32_t i = 0; i < t->n_devices; i++)
		if (t->devices[i].plugin)
			check_auth(p, &t->devices[i]);
}

/* Warn about an option that is set above another limit that is reached first. limit 0: none. */
static void check_limit(struct gn_errs *warnings, const struct gn_topo_role *role, const char *key,
			uint64_t value, const char *limit_key, uint64_t limit)
{
	struct gn_conf_node *node = gn_conf_child(gn_conf_child(role->node, "listen"), key);

	if (node && limit != 0 && value > limit)
		gn_conf_fault(warnings, node,
			      "is never reached (%s=%llu, limit %s=%llu): write %llu or less", key,
			      (unsigned long long)value, limit_key, (unsigned long long)limit,
			      (unsigned long long)limit);
}

static void check_quotas(const struct gn_topo_role *role, struct gn_errs *warnings)
{
	const struct gn_topo_device *device = role->listen_device;
	const struct gn_endpoint *listen = role->listen;

	check_limit(warnings, role, "max_peer_sessions", listen->max_peer_sessions, "max_sessions",
		    listen->max_sessions);
	check_limit(warnings, role, "max_region_bytes", listen->max_region_bytes,
		    "max_peer_region_bytes", listen->max_peer_region_bytes);
	check_limit(warnings, role, "move_memory", listen->move_memory, "max_peer_queue_memory",
		    listen->max_peer_queue_memory);
	if (device)
		check_limit(warnings, role, "max_half_open", listen->max_half_open,
			    "connections of the device", gn_topo_max_connections(device));
}

void gn_topology_check_quotas(const struct gn_topology *topology, struct gn_errs *warnings)
{
	for (uint32_t i = 0; i < topology->n_roles; i++)
		if (topology->roles[i].listen)
			check_quotas(&topology->roles[i], warnings);
}

void gn_topo_warn_of_access(const struct gn_topo_role *role)
{
	const char *name, *text;
	char source[80];

	if (!role->listen || !gn_transport_is_network(role->listen_device->plugin->ops) ||
	    gn_auth_is_on(&role->listen_device->auth))
		return;
	name = role->listen->name;
	text = role->listen->service;
	snprintf(source, sizeof(source), "roles.%s", role->name);
	gn_log(GN_LOG_WARN, source,
	       "the listener accepts unauthenticated peers (device=%s, service=%s%s%s): every host that reaches it can "
	       "read and write the volume (devices.%s.auth=none)",
	       role->listen_device->name, name, strcmp(name, text) ? ", address=" : "",
	       strcmp(name, text) ? text : "", role->listen_device->name);
}
