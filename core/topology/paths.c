/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * paths.c - reject a configuration in which one option replaces a file that another option uses
 *
 * The option tables mark paths with GANTRY_PATH_*. Two options that name the same file are a fault if one of them
 * replaces it. For example, a trace would truncate the recording to replay, or a volume.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "topology/topology_priv.h"

/* An option that names a file. */
struct path {
	struct gn_conf_node *node; /* of the option; of its group if the option is omitted */
	const char *text;
	int64_t use;    /* GANTRY_PATH_* */
	bool exists;
	struct stat st; /* if the file exists */
	const char *place; /* if not: the resolved path; NULL: its directory does not exist */
	struct path *next;
};

/* Returns "/real/directory/name" in the arena; NULL if the directory cannot be resolved. */
static const char *resolve(struct gn_arena *arena, const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	char dir[PATH_MAX], real[PATH_MAX];
	char *place;
	size_t n;

	if (snprintf(dir, sizeof(dir), "%.*s", slash ? (int)(slash - path) + 1 : 1, slash ? path : ".") >= (int)sizeof(dir) ||
	    !realpath(dir, real))
		return NULL;
	n = strlen(real) + strlen(name) + 2;
	place = gn_arena_alloc(arena, n);
	if (place)
		snprintf(place, n, "%s/%s", real, name);
	return place;
}

static bool is_same(const struct path *a, const struct path *b)
{
	if (a->exists != b->exists)
		return false;
	if (!a->exists)
		return a->place && b->place && !strcmp(a->place, b->place);
	if (S_ISBLK(a->st.st_mode) && S_ISBLK(b->st.st_mode))
		return a->st.st_rdev == b->st.st_rdev;
	return S_ISREG(a->st.st_mode) && a->st.st_dev == b->st.st_dev && a->st.st_ino == b->st.st_ino;
}

static const char *use_text(const struct path *path)
{
	return path->use & GANTRY_PATH_REPLACE ? "replaces" : "uses";
}

/* Report the fault for the option that replaces the file; if both do, for the later one. */
static void compare(struct gn_topo_parse *p, const struct path *earlier, const struct path *later)
{
	const struct path *culprit = later->use & GANTRY_PATH_REPLACE ? later : earlier;
	const struct path *other = culprit == later ? earlier : later;

	if ((culprit->use & GANTRY_PATH_REPLACE) && is_same(earlier, later))
		gn_conf_fault(p->errs, culprit->node, "\"%s\" would be replaced, and %s (%s) %s the same file; write another path",
			      culprit->text, gn_conf_path(other->node), gn_conf_where(other->node), use_text(other));
}

/* Compare a path with all earlier ones, and append it to the list. 0; -ENOMEM. */
static int add_path(struct gn_topo_parse *p, struct path **paths, struct gn_conf_node *node, const char *text, int64_t use)
{
	struct path *path = gn_arena_alloc(&p->topology->arena, sizeof(*path));

	if (!path)
		return -ENOMEM;
	*path = (struct path){.node = node, .text = text, .use = use, .next = *paths};
	path->exists = stat(text, &path->st) == 0;
	if (!path->exists)
		path->place = resolve(&p->topology->arena, text);
	for (const struct path *before = *paths; before; before = before->next)
		compare(p, before, path);
	*paths = path;
	return 0;
}

static int add_options(struct gn_topo_parse *p, struct path **paths, struct gn_conf_node *group,
		       const struct gantry_option *table, const void *conf)
{
	int rc = 0;

	for (const struct gantry_option *row = table; row && row->name && !rc; row++) {
		struct gn_conf_node *node = gn_conf_child(group, row->name);
		const char *text;

		if (row->type == GANTRY_OPT_GROUP && node)
			rc = add_options(p, paths, node, row->group, conf);
		if (row->type != GANTRY_OPT_STRING || !(row->min & (GANTRY_PATH_KEEP | GANTRY_PATH_REPLACE)))
			continue;
		memcpy(&text, (const char *)conf + row->offset, sizeof(text));
		if (text && *text)
			rc = add_path(p, paths, node ? node : group, text, row->min);
	}
	return rc;
}

static int add_part(struct gn_topo_parse *p, struct path **paths, unsigned kind, struct gn_conf_node *group,
		    const struct gn_part *part)
{
	const struct gn_plugin *plugin;

	if (!part || !part->conf || gn_loader_find(p->topology->loader, kind, part->name, &plugin))
		return 0;
	return add_options(p, paths, group, plugin->desc->options, part->conf);
}

static int add_role(struct gn_topo_parse *p, struct path **paths, const struct gn_topo_role *role)
{
	struct gn_conf_node *stages = gn_conf_child(role->node, "stages");
	int rc = 0;

	if (role->plugin && !role->is_own && role->spec.part.conf)
		rc = add_options(p, paths, role->node, role->plugin->desc->options, role->spec.part.conf);
	for (uint32_t i = 0; i < role->spec.n_stages && !rc; i++)
		rc = add_part(p, paths, GANTRY_KIND_STAGE, gn_conf_index(stages, i), &role->stages[i]);
	if (!rc)
		rc = add_part(p, paths, GANTRY_KIND_BACKEND, gn_conf_child(role->node, "backend"), role->backend);
	return rc;
}

int gn_topo_paths(struct gn_topo_parse *p)
{
	struct path *paths = NULL;
	int rc = 0;

	for (uint32_t i = 0; i < p->topology->n_roles && !rc; i++)
		if (p->topology->roles[i].selected)
			rc = add_role(p, &paths, &p->topology->roles[i]);
	return rc;
}
