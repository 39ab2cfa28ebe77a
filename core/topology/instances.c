/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * instances.c - iterate over the plugin instances of a configuration, and over their options that
 * are paths
 */
#include <string.h>

#include "topology/topology_priv.h"

typedef int instance_fn(void *arg, const struct gn_topo_instance *instance);

/*
 * Visit a stage, a backend or an observer. An instance with faults in its options has no conf, and
 * is skipped.
 */
static int visit_part(struct gn_topology *t, struct gn_topo_role *role, unsigned kind,
		      struct gn_conf_node *group, struct gn_plugin_instance *part, instance_fn *fn,
		      void *arg)
{
	struct gn_topo_instance instance = {
		.kind = kind, .group = group, .role = role, .part = part};

	if (!part || !part->conf || gn_loader_find(t->loader, kind, part->name, &instance.plugin))
		return 0;
	instance.conf = part->conf;
	return fn(arg, &instance);
}

static int visit_role(struct gn_topology *t, struct gn_topo_role *role, instance_fn *fn, void *arg)
{
	struct gn_conf_node *stages = gn_conf_child(role->node, "stages");
	const struct gn_topo_instance instance = {GANTRY_KIND_ROLE,     role->node, role->plugin,
						  role->spec.part.conf, role,       NULL};
	int rc = 0;

	if (role->plugin && !role->is_embedded && instance.conf)
		rc = fn(arg, &instance);
	for (uint32_t i = 0; i < role->spec.n_stages && !rc; i++)
		rc = visit_part(t, role, GANTRY_KIND_STAGE, gn_conf_index(stages, i),
				&role->stages[i], fn, arg);
	if (!rc)
		rc = visit_part(t, role, GANTRY_KIND_BACKEND, gn_conf_child(role->node, "backend"),
				role->backend, fn, arg);
	return rc;
}

int gn_topo_each_instance(struct gn_topology *t, instance_fn *fn, void *arg)
{
	struct gn_conf_node *observers = gn_conf_child(gn_config_root(t->config), "observers");
	int rc = 0;

	for (uint32_t i = 0; i < t->n_devices && !rc; i++) {
		const struct gn_topo_device *device = &t->devices[i];
		const struct gn_topo_instance instance = {
			GANTRY_KIND_TRANSPORT, device->node, device->plugin,
			device->conf,          NULL,         NULL};

		if (device->plugin && device->conf)
			rc = fn(arg, &instance);
	}
	for (uint32_t i = 0; i < t->n_roles && !rc; i++)
		if (t->roles[i].selected)
			rc = visit_role(t, &t->roles[i], fn, arg);
	for (uint32_t i = 0; i < t->n_observers && !rc; i++)
		rc = visit_part(t, NULL, GANTRY_KIND_OBSERVER, gn_conf_index(observers, i),
				&t->observers[i], fn, arg);
	return rc;
}

typedef int path_fn(void *arg, const struct gn_topo_instance *instance,
		    const struct gn_topo_path *path);

static int visit_options(const struct gn_topo_instance *instance, struct gn_conf_node *group,
			 const struct gantry_option *table, path_fn *fn, void *arg)
{
	int rc = 0;

	for (const struct gantry_option *row = table; row && row->name && !rc; row++) {
		struct gn_conf_node *node = gn_conf_child(group, row->name);
		struct gn_topo_path path = {.node = node ? node : group, .use = row->min};

		if (gantry_option_type(row) == GANTRY_OPT_GROUP && node)
			rc = visit_options(instance, node, row->group, fn, arg);
		if (gantry_option_type(row) != GANTRY_OPT_STRING || !row->min)
			continue;
		memcpy(&path.text, (const char *)instance->conf + row->offset, sizeof(path.text));
		if (path.text && *path.text)
			rc = fn(arg, instance, &path);
	}
	return rc;
}

int gn_topo_each_path(const struct gn_topo_instance *instance, path_fn *fn, void *arg)
{
	return visit_options(instance, instance->group, instance->plugin->desc->options, fn, arg);
}
