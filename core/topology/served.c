/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * served.c - for `gantry check` and `gantry run`: connects to services that no role of the file
 * serves
 *
 * A file can describe one end only, and each role can run in a process of its own. So the check
 * searches the `listen` groups of all roles of the file, including roles that are not selected. A
 * connect without a listener is a fault if
 *
 *     - the transport reaches only this process, or
 *     - the service is a name, and other roles listen on the device: it must be one of their names,
 *       or
 *     - the service is an address, and another role listens at another port of the same host.
 *
 * Otherwise it is a warning: a process with another file could serve it. `gantry run` reports only
 * connects that reach only this process: nothing can serve them later.
 */
#include <stdio.h>
#include <string.h>

#include "topology/topology_priv.h"

struct search {
	struct gn_topology *t;
	const struct gn_topo_role *role;
	const struct gn_topo_device *device;
	const char *service;
	bool inside;     /* the transport reaches only this process */
	bool found;      /* a role serves it */
	bool only_here;  /* other listeners in the file show that no other process serves it */
	bool shared;     /* the role itself listens on the device */
	char known[256]; /* services of other roles on the device */
	const char *nearest;
	int errors; /* edit distance of service and nearest; GN_NEAR_NONE: no nearest */
};

static struct gn_conf_node *find_device(const struct gn_topology *t, const char *name)
{
	for (uint32_t i = 0; i < t->n_devices; i++)
		if (!strcmp(t->devices[i].name, name))
			return t->devices[i].node;
	return NULL;
}

/* True if each string in the group `a` is in the group `b` as well. */
static bool has_strings(struct gn_conf_node *b, struct gn_conf_node *a)
{
	for (unsigned i = 0; i < gn_conf_length(a); i++) {
		struct gn_conf_node *node = gn_conf_index(a, i);
		const char *text = gn_conf_string(node),
			   *other = gn_conf_string(gn_conf_child(b, gn_conf_name(node)));

		if (text && (!other || strcmp(text, other)))
			return false;
	}
	return true;
}

/* Get the part of "HOST:PORT" from the last colon on; NULL: the service is a name. */
static const char *port_of(const char *service)
{
	return strrchr(service, ':');
}

static bool same_host(const char *a, const char *b)
{
	const char *a_port = port_of(a), *b_port = port_of(b);

	return a_port && b_port && a_port - a == b_port - b && !strncmp(a, b, (size_t)(a_port - a));
}

static bool is_any_host(const char *address)
{
	return !strncmp(address, "0.0.0.0:", 8) || !strncmp(address, "[::]:", 5);
}

/* True if a listener at `there` receives connections to `service`. */
static bool serves(const char *there, const char *service)
{
	const char *port = port_of(service), *port_there = port_of(there);

	return !strcmp(there, service) ||
	       (port && port_there && is_any_host(there) && !strcmp(port, port_there));
}

/* True if a listener on another device of the file can receive connections from this device. */
static bool reaches(const struct search *s, const char *device)
{
	struct gn_conf_node *mine = s->device->node, *theirs = find_device(s->t, device);
	const char *transport = gn_conf_string(gn_conf_child(theirs, "transport"));

	if (s->inside || !transport)
		return false;
	if (port_of(s->service))
		return !strcmp(transport, s->device->plugin->desc->name);
	return has_strings(mine, theirs) && has_strings(theirs, mine);
}

static void record_listener(struct search *s, const char *there)
{
	size_t n = strlen(s->known);

	snprintf(s->known + n, sizeof(s->known) - n, "%s%s", n ? ", " : "", there);
	if (gn_config_nearer(s->service, there, &s->errors))
		s->nearest = there;
	s->only_here |= !port_of(s->service) || same_host(there, s->service);
}

static void match_role(struct search *s, const struct gn_topo_role *other)
{
	struct gn_conf_node *listen = gn_conf_child(other->node, "listen");
	const char *device = gn_conf_string(gn_conf_child(listen, "device")),
		   *name = gn_conf_string(gn_conf_child(listen, "name")), *there;
	bool same_device = device && !strcmp(device, s->device->name);

	if (!name || !device)
		return;
	there = gn_service_text(find_device(s->t, device), name);
	if (serves(there, s->service) && (same_device || reaches(s, device)))
		s->found = true;
	else if (same_device && other == s->role)
		s->shared = true;
	else if (same_device)
		record_listener(s, there);
}

static void report_fault(struct search *s, struct gn_conf_node *node, struct gn_errs *errs)
{
	const char *inside = s->inside ? ", which reaches only this process" : "";

	if (s->nearest)
		gn_conf_fault(
			errs, node,
			"no role of this file listens at \"%s\" of the device \"%s\"%s; did you mean \"%s\"?",
			s->service, s->device->name, inside, s->nearest);
	else if (s->known[0])
		gn_conf_fault(errs, node,
			      "no role of this file listens at \"%s\" of the device \"%s\"%s; "
			      "write one of: %s",
			      s->service, s->device->name, inside, s->known);
	else
		gn_conf_fault(errs, node,
			      "no role of this file listens at \"%s\" of the device \"%s\"%s: "
			      "add a role that listens there",
			      s->service, s->device->name, inside);
}

static void report_warning(const struct search *s, struct gn_conf_node *node,
			   struct gn_errs *warnings)
{
	if (s->known[0])
		gn_conf_fault(
			warnings, node,
			"no role of this file listens at \"%s\": another process must serve it",
			s->service);
	else
		gn_conf_fault(
			warnings, node,
			"no %srole of this file listens on the device \"%s\": another process must serve \"%s\"",
			s->shared ? "other " : "", s->device->name, s->service);
}

/* True if the transport of a device reaches only this process. */
static bool is_inside(const struct gn_topo_device *device)
{
	const struct gantry_transport_ops *ops = device && device->plugin ? device->plugin->ops
									  : NULL;

	return ops && (ops->flags & GANTRY_TRANSPORT_INSIDE);
}

static void check_connect(struct gn_topology *t, const struct gn_topo_role *role, uint32_t connect,
			  struct gn_errs *errs, struct gn_errs *warnings)
{
	struct gn_conf_node *node = gn_topology_connect_node(role, connect);
	struct search s = {.t = t,
			   .role = role,
			   .device = role->connect_devices[connect],
			   .errors = GN_NEAR_NONE,
			   .service = role->connects[connect].service};

	if (!s.device || !s.device->plugin || !s.service)
		return;
	s.inside = is_inside(s.device);
	for (uint32_t i = 0; i < t->n_roles; i++)
		match_role(&s, &t->roles[i]);
	if (s.found && gn_topology_leads_nowhere(t, role, connect))
		gn_conf_fault(
			warnings, node,
			"connects to \"%s\" on the device \"%s\", which reaches only this process, and no role "
			"that this process runs listens there",
			s.service, s.device->name);
	else if (!s.found && (s.inside || s.only_here))
		report_fault(&s, node, errs);
	else if (!s.found)
		report_warning(&s, node, warnings);
}

/* Check the connects of the selected roles; only_inside: those that reach only this process. */
static void check_selected(struct gn_topology *topology, bool only_inside, struct gn_errs *errs,
			   struct gn_errs *warnings)
{
	for (uint32_t i = 0; i < topology->n_roles; i++) {
		const struct gn_topo_role *role = &topology->roles[i];

		for (uint32_t k = 0; role->selected && k < role->spec.n_connects; k++)
			if (!only_inside || is_inside(role->connect_devices[k]))
				check_connect(topology, role, k, errs, warnings);
	}
}

void gn_topology_check_connects(struct gn_topology *topology, struct gn_errs *errs,
				struct gn_errs *warnings)
{
	check_selected(topology, false, errs, warnings);
}

void gn_topology_check_inside(struct gn_topology *topology, struct gn_errs *errs)
{
	check_selected(topology, true, errs, errs);
}
