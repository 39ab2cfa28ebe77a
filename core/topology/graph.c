/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * graph.c - check relations between endpoints: two listeners at one service, IO that would
 * circulate in a loop, or too many sessions on one device.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "topology/topology_priv.h"

static bool serves(const struct gn_topo_role *role, const struct gn_topo_device *device,
		   const char *service)
{
	return role->listen && role->listen->service && role->listen_device == device &&
	       !strcmp(role->listen->service, service);
}

static void check_service_twice(struct gn_topo_parse *p, const struct gn_topo_role *role)
{
	if (!role->listen_device || !role->listen->service)
		return;
	for (const struct gn_topo_role *other = p->topology->roles; other < role; other++)
		if (serves(other, role->listen_device, role->listen->service))
			gn_conf_fault(
				p->errs, gn_conf_child(role->node, "listen"),
				"the role \"%s\" (%s) listens at \"%s\" of this device already; write another name",
				other->name, other->listen->where, role->listen->service);
}

/*
 * Reject two connects to the same service: the volume would appear twice in the volume of the
 * gateway.
 */
static void check_connects_twice(struct gn_topo_parse *p, const struct gn_topo_role *role,
				 uint32_t index)
{
	const struct gn_endpoint *connect = &role->connects[index];

	if (!role->connect_devices[index] || !connect->service)
		return;
	for (uint32_t i = 0; i < index; i++)
		if (role->connect_devices[i] == role->connect_devices[index] &&
		    role->connects[i].service &&
		    !strcmp(role->connects[i].service, connect->service)) {
			gn_conf_fault(
				p->errs, gn_conf_index(gn_conf_child(role->node, "connect"), index),
				"connects to \"%s\" of this device, as connect[%u] does: the volume would appear twice; "
				"remove this entry (for more threads, write lanes = 2 in each role)",
				connect->service, i);
			return;
		}
}

struct gn_conf_node *gn_topology_connect_node(const struct gn_topo_role *role, uint32_t connect)
{
	struct gn_conf_node *node = gn_conf_child(role->node, "connect");

	return gn_conf_is_list(node) ? gn_conf_index(node, connect) : node;
}

/* -- loops -- */

enum mark { UNSEEN, ON_PATH, DONE };

struct walk {
	struct gn_topo_parse *p;
	uint8_t *marks; /* enum mark of each role */
	uint32_t *path; /* roles from the first to the current one */
	uint32_t length;
};

struct gn_topo_role *gn_topo_next_role(struct gn_topology *t, const struct gn_topo_role *role,
				       uint32_t i)
{
	if (!role->connect_devices[i] || !role->connects[i].service)
		return NULL;
	for (uint32_t k = 0; k < t->n_roles; k++)
		if (serves(&t->roles[k], role->connect_devices[i], role->connects[i].service))
			return &t->roles[k];
	return NULL;
}

/* Report that a connect of the last role of the path leads back to the role `again`. */
static void report_loop(struct walk *walk, uint32_t connect, uint32_t again)
{
	const struct gn_topo_role *roles = walk->p->topology->roles,
				  *last = &roles[walk->path[walk->length - 1]];
	char text[256] = "";
	uint32_t i = walk->length;

	while (walk->path[--i] != again)
		;
	for (size_t n = 0; i < walk->length && n < sizeof(text); i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s -> ",
				      roles[walk->path[i]].name);
	gn_conf_fault(walk->p->errs, gn_topology_connect_node(last, connect),
		      "IO would loop: %s%s; connect to a target, or to a gateway that leads to one",
		      text, roles[again].name);
}

static void visit(struct walk *walk, uint32_t index)
{
	struct gn_topology *t = walk->p->topology;
	const struct gn_topo_role *role = &t->roles[index];

	walk->marks[index] = ON_PATH;
	walk->path[walk->length++] = index;
	for (uint32_t i = 0; role->listen && i < role->spec.n_connects; i++) {
		struct gn_topo_role *next = gn_topo_next_role(t, role, i);

		if (next && walk->marks[next - t->roles] == ON_PATH)
			report_loop(walk, i, (uint32_t)(next - t->roles));
		else if (next && walk->marks[next - t->roles] == UNSEEN)
			visit(walk, (uint32_t)(next - t->roles));
	}
	walk->length--;
	walk->marks[index] = DONE;
}

int gn_topo_graph(struct gn_topo_parse *p)
{
	struct gn_topology *t = p->topology;
	struct walk walk = {
		.p = p,
		.marks = gn_arena_alloc(&t->arena, t->n_roles + 1),
		.path = gn_arena_alloc(&t->arena, (t->n_roles + 1) * sizeof(*walk.path))};

	if (!walk.marks || !walk.path)
		return -ENOMEM;
	for (uint32_t i = 0; i < t->n_roles; i++) {
		check_service_twice(p, &t->roles[i]);
		for (uint32_t k = 1; k < t->roles[i].spec.n_connects; k++)
			check_connects_twice(p, &t->roles[i], k);
		if (walk.marks[i] == UNSEEN)
			visit(&walk, i);
	}
	return 0;
}

/* -- sessions -- */

/* Report the first listener with which the sum of sessions exceeds the limit of the device. */
static void check_sessions(struct gn_topo_parse *p, const struct gn_topo_device *device,
			   uint32_t limit)
{
	uint64_t sum = 0;

	for (const struct gn_topo_role *role = p->topology->roles;
	     role < p->topology->roles + p->topology->n_roles; role++) {
		uint64_t role_sessions = role->listen && role->listen_device == device
						 ? role->listen->max_sessions
						 : 0;
		char total_text[64] = "", advice[64] = "use another device for one of these roles",
		     text[256];

		sum += role_sessions;
		if (sum <= limit)
			continue;
		if (sum > role_sessions)
			snprintf(total_text, sizeof(total_text),
				 ", %llu together with those of other roles,",
				 (unsigned long long)sum);
		if (limit > sum - role_sessions)
			snprintf(advice, sizeof(advice), "write max_sessions = %llu or less",
				 (unsigned long long)(limit - (sum - role_sessions)));
		snprintf(
			text, sizeof(text),
			"%llu sessions%s are more than the %u connections that listeners of the device \"%s\" "
			"serve; %s",
			(unsigned long long)role_sessions, total_text, limit, device->name, advice);
		gn_conf_fault_option(p->errs, role->node, "listen.max_sessions", text);
		return;
	}
}

uint32_t gn_topo_max_connections(const struct gn_topo_device *device)
{
	return device->plugin && device->conf
		       ? gn_plugin_properties(device->plugin, device->conf).max_connections
		       : 0;
}

void gn_topo_sessions(struct gn_topo_parse *p)
{
	for (uint32_t i = 0; i < p->topology->n_devices; i++) {
		const struct gn_topo_device *device = &p->topology->devices[i];
		uint32_t limit = gn_topo_max_connections(device);

		if (limit)
			check_sessions(p, device, limit);
	}
}
