/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What no endpoint shows by itself: two of them at one service, IO in a circle, or too many
 * sessions on one device.
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

/* The volume would stand twice in what is shown, and each of its bytes would have two places. */
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
				"leads to \"%s\" of this device, as connect[%u] does: the volume would follow itself, and "
				"each byte be in two places; leave this out (for more threads, write lanes = 2 in each role)",
				connect->service, i);
			return;
		}
}

struct gn_conf_node *gn_topology_connect_node(const struct gn_topo_role *role, uint32_t connect)
{
	struct gn_conf_node *node = gn_conf_child(role->node, "connect");

	return gn_conf_is_list(node) ? gn_conf_index(node, connect) : node;
}

/* -- circles -- */

enum mark { UNSEEN, ON_THE_WAY, DONE };

struct walk {
	struct gn_topo_parse *p;
	uint8_t *marks; /* enum mark of each role */
	uint32_t *way;  /* roles from the first to the one that is looked at */
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

/* The connect at the end of the way leads back to the role `again`. */
static void report_circle(struct walk *walk, uint32_t connect, uint32_t again)
{
	const struct gn_topo_role *roles = walk->p->topology->roles,
				  *last = &roles[walk->way[walk->length - 1]];
	char text[256] = "";
	uint32_t i = walk->length;

	while (walk->way[--i] != again)
		;
	for (size_t n = 0; i < walk->length && n < sizeof(text); i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s -> ",
				      roles[walk->way[i]].name);
	gn_conf_fault(
		walk->p->errs, gn_topology_connect_node(last, connect),
		"IO would go in a circle: %s%s; connect to a target, or to a gateway that leads to one",
		text, roles[again].name);
}

static void visit(struct walk *walk, uint32_t index)
{
	struct gn_topology *t = walk->p->topology;
	const struct gn_topo_role *role = &t->roles[index];

	walk->marks[index] = ON_THE_WAY;
	walk->way[walk->length++] = index;
	for (uint32_t i = 0; role->listen && i < role->spec.n_connects; i++) {
		struct gn_topo_role *next = gn_topo_next_role(t, role, i);

		if (next && walk->marks[next - t->roles] == ON_THE_WAY)
			report_circle(walk, i, (uint32_t)(next - t->roles));
		else if (next && walk->marks[next - t->roles] == UNSEEN)
			visit(walk, (uint32_t)(next - t->roles));
	}
	walk->length--;
	walk->marks[index] = DONE;
}

int gn_topo_graph(struct gn_topo_parse *p)
{
	struct gn_topology *t = p->topology;
	struct walk walk = {.p = p,
			    .marks = gn_arena_alloc(&t->arena, t->n_roles + 1),
			    .way = gn_arena_alloc(&t->arena, (t->n_roles + 1) * sizeof(*walk.way))};

	if (!walk.marks || !walk.way)
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

/* The first listener whose sessions go beyond what the device serves. */
static void check_sessions(struct gn_topo_parse *p, const struct gn_topo_device *device,
			   uint32_t limit)
{
	uint64_t sum = 0;

	for (const struct gn_topo_role *role = p->topology->roles;
	     role < p->topology->roles + p->topology->n_roles; role++) {
		uint32_t own = role->listen && role->listen_device == device
				       ? role->listen->max_sessions
				       : 0;
		char all[64] = "", advice[64] = "use another device for one of these roles",
		     text[256];

		sum += own;
		if (sum <= limit)
			continue;
		if (sum > own)
			snprintf(all, sizeof(all), ", with those of other roles %llu,",
				 (unsigned long long)sum);
		if (limit > sum - own)
			snprintf(advice, sizeof(advice), "write max_sessions = %llu or less",
				 (unsigned long long)(limit - (sum - own)));
		snprintf(
			text, sizeof(text),
			"%u sessions%s are more than the %u connections that listeners of the device \"%s\" "
			"serve; %s",
			own, all, limit, device->name, advice);
		gn_conf_fault_option(p->errs, role->node, "listen.max_sessions", text);
		return;
	}
}

void gn_topo_sessions(struct gn_topo_parse *p)
{
	for (uint32_t i = 0; i < p->topology->n_devices; i++) {
		const struct gn_topo_device *device = &p->topology->devices[i];
		const struct gantry_transport_ops *ops = device->plugin && device->conf
								 ? device->plugin->ops
								 : NULL;
		uint32_t limit = ops ? ops->max_connections(device->conf) : 0;

		if (limit)
			check_sessions(p, device, limit);
	}
}
