/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * topology_role.c - parse one entry of `roles`. Its group has keys of the core and options of the
 * role plugin.
 */
#include <errno.h>
#include <string.h>

#include "topology/topology_priv.h"

struct role_conf {
	int64_t lanes;
	uint8_t check_stages;
};

const struct gantry_option gn_role_options[] = {
	{"lanes", GANTRY_OPT_INT, offsetof(struct role_conf, lanes), "1", 1, GN_TOPOLOGY_LANES_MAX,
	 NULL, NULL,
	 "Number of lanes of this role. Each has its own queues; runtime.threads selects its thread."},
	{"check_stages", GANTRY_OPT_BOOL, offsetof(struct role_conf, check_stages), "false", 0, 0,
	 NULL, NULL,
	 "Check each completion of an IO, to name the stage or backend that completes an IO which it does not hold."},
	GANTRY_OPTION_END,
};

static const char *const core_keys[] = {"role", "listen", "connect", "stages", "backend", NULL};

static size_t count_rows(const struct gantry_option *table)
{
	size_t n = 0;

	while (table && table[n].name)
		n++;
	return n;
}

/*
 * Append copies of rows to a table, with offsets increased by `shift`. Groups are copied
 * recursively. NULL: out of memory.
 */
static struct gantry_option *shift_rows(struct gn_arena *arena, struct gantry_option *to,
					const struct gantry_option *from, uint32_t shift)
{
	for (; from && from->name; from++, to++) {
		struct gantry_option *group;

		*to = *from;
		to->offset += shift;
		if (gantry_option_type(from) != GANTRY_OPT_GROUP)
			continue;
		group = gn_arena_alloc(arena, (count_rows(from->group) + 1) * sizeof(*group));
		if (!group || !shift_rows(arena, group, from->group, shift))
			return NULL;
		to->group = group;
	}
	return to;
}

/*
 * Join both tables to one table, for a struct with struct role_conf first and the conf of the
 * plugin at offset `shift`. With one table, an unknown key is reported once, with the names of both
 * tables as hints.
 */
static const struct gantry_option *join_tables(struct gn_arena *arena,
					       const struct gantry_option *plugin_rows,
					       uint32_t shift)
{
	size_t n = count_rows(gn_role_options) + count_rows(plugin_rows) + 1;
	struct gantry_option *table = gn_arena_alloc(arena, n * sizeof(*table)), *at;

	if (!table)
		return NULL;
	at = shift_rows(arena, table, gn_role_options, 0);
	return at && shift_rows(arena, at, plugin_rows, shift) ? table : NULL;
}

static int parse_options(struct gn_topo_parse *p, struct gn_topo_role *role)
{
	struct gn_arena *arena = &p->topology->arena;
	enum { shift = 64 }; /* suffices for any alignment */
	const struct gantry_option *table;
	char *conf;

	_Static_assert(sizeof(struct role_conf) <= shift, "the plugin's conf follows it");
	table = join_tables(arena, role->plugin->desc->options, shift);
	conf = gn_arena_alloc(arena, shift + role->plugin->desc->conf_size + 1);
	if (!table || !conf) {
		gn_errs_no_memory(p->errs);
		return -ENOMEM;
	}
	if (gn_conf_options(role->node, table, conf, core_keys, p->errs) ||
	    gn_topo_check_options(p, role->plugin, role->node, conf + shift))
		return -EINVAL;
	role->spec.n_lanes = (uint32_t)((struct role_conf *)conf)->lanes;
	role->spec.check_stages = ((struct role_conf *)conf)->check_stages;
	role->spec.part.name = role->plugin->desc->name;
	role->spec.part.ops = role->plugin->ops;
	role->spec.part.conf = conf + shift;
	return 0;
}

/* -- the embedded role -- */

static bool connects_once(uint32_t flags)
{
	const uint32_t needed = GANTRY_ROLE_CONNECTS | GANTRY_ROLE_ONE_VOLUME;

	return (flags & needed) == needed && !(flags & GANTRY_ROLE_LISTENS);
}

bool gn_topo_can_be_own(struct gn_topo_parse *p, struct gn_conf_node *node)
{
	struct gn_conf_node *type = gn_conf_child(node, "role");
	const struct gn_plugin *plugin;

	if (!gn_conf_is_group(node) || !type)
		return gn_conf_is_group(node);
	return gn_conf_string(type) &&
	       !gn_loader_find(p->topology->loader, GANTRY_KIND_ROLE, gn_conf_string(type),
			       &plugin) &&
	       connects_once(((const struct gantry_role_ops *)plugin->ops)->flags);
}

/*
 * Replace a role of the configuration by the embedded role. The plugin is not used, but faults in
 * its options are reported.
 */
static void replace_role(struct gn_topo_parse *p, struct gn_topo_role *role,
			 const struct gn_topo_embedded_role *own)
{
	struct role_conf conf;

	if (!role->plugin)
		gn_conf_options(role->node, gn_role_options, &conf, core_keys, p->errs);
	else if (!connects_once(role->flags))
		gn_conf_fault(
			p->errs, gn_conf_child(role->node, "role"),
			"a program that uses libgantry can replace only a role that connects to one service, as an initiator does; \"%s\" is no such role",
			role->plugin->desc->name);
	role->flags = GANTRY_ROLE_WORKS | GANTRY_ROLE_CONNECTS | GANTRY_ROLE_ONE_VOLUME;
	role->spec.part =
		(struct gn_plugin_instance){.name = own->name, .ops = own->ops, .conf = own->conf};
	role->spec.n_lanes = own->n_lanes;
}

/* -- sections -- */

static int parse_stages(struct gn_topo_parse *p, struct gn_topo_role *role,
			struct gn_conf_node *list)
{
	unsigned n = gn_conf_length(list);
	int rc;

	if (gn_conf_is_list(list) && n > GANTRY_CHAIN_STAGES) {
		gn_conf_fault(p->errs, list, "has %u stages; a pipeline holds up to %d", n,
			      GANTRY_CHAIN_STAGES);
		return -EINVAL;
	}
	rc = gn_topo_plugin_list(p, GANTRY_KIND_STAGE, list, &role->stages, &role->spec.n_stages);
	role->spec.stages = role->stages;
	return rc;
}

static int parse_backend(struct gn_topo_parse *p, struct gn_topo_role *role,
			 struct gn_conf_node *group)
{
	if (!group)
		return 0;
	role->backend = gn_arena_alloc(&p->topology->arena, sizeof(*role->backend));
	if (!role->backend)
		return -ENOMEM;
	role->spec.backend = role->backend;
	return gn_topo_plugin_instance(p, GANTRY_KIND_BACKEND, group, "type", role->backend)
		       ? 0
		       : -EINVAL;
}

/* Check that the role has the sections that its plugin needs, and no others. */
static int check_section(struct gn_topo_parse *p, struct gn_topo_role *role, uint32_t flag,
			 const char *key, const char *verb, const char *example)
{
	struct gn_conf_node *node = gn_conf_child(role->node, key);
	const char *type = role->plugin ? role->plugin->desc->name : role->spec.part.name;

	if (node && !(role->flags & flag))
		gn_conf_fault(p->errs, node, "the role \"%s\" does not %s; remove this section",
			      type, verb);
	else if (!node && (role->flags & flag))
		gn_conf_fault(p->errs, role->node,
			      "the role \"%s\" needs \"%s\"; write %s = { %s };", type, key, key,
			      example);
	else
		return 0;
	return -EINVAL;
}

/*
 * Reject several lanes for a plugin without per-lane state: they would call it from several threads
 * at the same time.
 */
static void check_lanes(struct gn_topo_parse *p, struct gn_topo_role *role)
{
	struct gn_conf_node *lanes = gn_conf_child(role->node, "lanes");
	const struct gn_plugin_instance *lone = NULL;

	for (uint32_t i = 0; i < role->spec.n_stages; i++)
		if (role->stages[i].ops &&
		    gn_ops_serve_one_lane(GANTRY_KIND_STAGE, role->stages[i].ops))
			lone = &role->stages[i];
	if (role->backend && role->backend->ops &&
	    gn_ops_serve_one_lane(GANTRY_KIND_BACKEND, role->backend->ops))
		lone = role->backend;
	if (lone && role->spec.n_lanes > 1)
		gn_conf_fault(
			p->errs, lanes ? lanes : role->node,
			"the role has %u lanes, but the plugin \"%s\" serves one: it has no start(), which would "
			"create the state of each lane; write lanes = 1, see gantry-plugin(7)",
			role->spec.n_lanes, lone->name);
}

/* Reject a stage that transforms data in a role that has no private memory for it. */
static void check_bounce(struct gn_topo_parse *p, const struct gn_topo_role *role)
{
	struct gn_conf_node *list = gn_conf_child(role->node, "stages");

	if (role->flags & GANTRY_ROLE_STORES)
		return;
	for (uint32_t i = 0; i < role->spec.n_stages; i++) {
		const struct gantry_stage_ops *ops = role->stages[i].ops;

		if (ops && ops->needs_bounce)
			gn_conf_fault(
				p->errs, gn_conf_index(list, i),
				"the stage \"%s\" transforms data, and this role does not store data: use it in the role that has the backend",
				role->stages[i].name);
	}
}

/* Reject a stage that changes the volume in a role whose own work has its volume already. */
static void check_volume_stages(struct gn_topo_parse *p, const struct gn_topo_role *role)
{
	struct gn_conf_node *list = gn_conf_child(role->node, "stages");

	if (role->flags & GANTRY_ROLE_LISTENS)
		return;
	for (uint32_t i = 0; i < role->spec.n_stages; i++) {
		const struct gantry_stage_ops *ops = role->stages[i].ops;

		if (ops && ops->volume)
			gn_conf_fault(
				p->errs, gn_conf_index(list, i),
				"the stage \"%s\" changes the volume, and this role has no clients: use it in a role that listens",
				role->stages[i].name);
	}
}

int gn_topo_role(struct gn_topo_parse *p, struct gn_topo_role *role)
{
	const struct gn_topo_embedded_role *own = role->is_embedded ? p->topology->own : NULL;
	struct gn_conf_node *node = role->node;
	size_t before = p->errs->n;

	if (!gn_conf_is_group(node)) {
		gn_conf_fault(p->errs, node, "is not a group; write { role = \"NAME\"; ... }");
		return -EINVAL;
	}
	role->spec.name = role->name;
	if (!own || gn_conf_child(node, "role"))
		role->plugin = gn_topo_plugin(p, GANTRY_KIND_ROLE, node, "role");
	if (role->plugin) {
		role->flags = ((const struct gantry_role_ops *)role->plugin->ops)->flags;
		parse_options(p, role);
	}
	if (own)
		replace_role(p, role, own);
	if (role->plugin || own) {
		check_section(p, role, GANTRY_ROLE_LISTENS, "listen", "listen",
			      "device = \"NAME\"; name = \"SERVICE\";");
		check_section(p, role, GANTRY_ROLE_CONNECTS, "connect", "connect",
			      "device = \"NAME\"; name = \"SERVICE\";");
		check_section(p, role, GANTRY_ROLE_STORES, "backend", "store anything",
			      "type = \"NAME\";");
	}
	if (gn_topo_listen(p, role, gn_conf_child(node, "listen")) == -ENOMEM ||
	    gn_topo_connect(p, role, gn_conf_child(node, "connect")) == -ENOMEM ||
	    parse_stages(p, role, gn_conf_child(node, "stages")) == -ENOMEM ||
	    parse_backend(p, role, gn_conf_child(node, "backend")) == -ENOMEM)
		gn_errs_no_memory(p->errs);
	check_lanes(p, role);
	check_bounce(p, role);
	check_volume_stages(p, role);
	return p->errs->n == before ? 0 : -EINVAL;
}
