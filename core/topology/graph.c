/* SPDX-License-Identifier: BSD-3-Clause */
/* What no endpoint shows by itself: two of them at one service, or IO that would go in a circle. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "topology/topology_priv.h"

static bool serves(const struct gn_topo_role *role, const struct gn_topo_device *device, const char *service)
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
			gn_conf_fault(p->errs, gn_conf_child(role->node, "listen"),
				      "the role \"%s\" (%s) listens at \"%s\" of this device already; write another name",
				      other->name, other->listen->where, role->listen->service);
}

/* The volume would stand twice in what is shown, and each of its bytes would have two places. */
static void check_connects_twice(struct gn_topo_parse *p, const struct gn_topo_role *role, uint32_t index)
{
	const struct gn_endpoint *connect = &role->connects[index];

	if (!role->connect_devices[index] || !connect->service)
		return;
	for (uint32_t i = 0; i < index; i++)
		if (role->connect_devices[i] == role->connect_devices[index] && role->connects[i].service &&
		    !strcmp(role->connects[i].service, connect->service)) {
			gn_conf_fault(p->errs, gn_conf_index(gn_conf_child(role->node, "connect"), index),
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
	uint8_t *marks;  /* enum mark of each role */
	uint32_t *way;   /* roles from the first to the one that is looked at */
	uint32_t length;
};

struct gn_topo_role *gn_topo_next_role(struct gn_topology *t, const struct gn_topo_role *role, uint32_t i)
{
	if (!role->connect_devices[i] || !role->connects[i].service)
		return NULL;
	for (uint32_t k = 0; k < t->n_roles; k++)
		if (serves(&t->roles[k], role->connect_devices[i], role->connects[i].service))
			return &t->roles[k];
	return NULL;
}

/* The connect at the end of the way leads back to the role `again`. */
static void complain(struct walk *walk, uint32_t connect, uint32_t again)
{
	const struct gn_topo_role *roles = walk->p->topology->roles, *last = &roles[walk->way[walk->length - 1]];
	char text[256] = "";
	uint32_t i = walk->length;

	while (walk->way[--i] != again)
		;
	for (size_t n = 0; i < walk->length && n < sizeof(text); i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s -> ", roles[walk->way[i]].name);
	gn_conf_fault(walk->p->errs, gn_topology_connect_node(last, connect),
		      "IO would go in a circle: %s%s; connect to a target, or to a gateway that leads to one", text,
		      roles[again].name);
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
			complain(walk, i, (uint32_t)(next - t->roles));
		else if (next && walk->marks[next - t->roles] == UNSEEN)
			visit(walk, (uint32_t)(next - t->roles));
	}
	walk->length--;
	walk->marks[index] = DONE;
}

int gn_topo_graph(struct gn_topo_parse *p)
{
	struct gn_topology *t = p->topology;
	struct walk walk = {.p = p, .marks = gn_arena_alloc(&t->arena, t->n_roles + 1),
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
