/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plugins.c - find the directories of plugins, and make plugin instances from groups of the
 * configuration.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include "secure/auth.h"
#include "topology/topology_priv.h"

/* -- directories -- */

/*
 * Add the absolute path of dir. A missing directory is added relative to the working directory, so
 * that messages name it.
 */
static int add_dir(struct gn_strlist *dirs, struct gn_arena *arena, const char *dir)
{
	char *real = realpath(dir, NULL), *here, *kept;

	if (!real && dir[0] && dir[0] != '/') {
		here = realpath(".", NULL);
		if (!here || asprintf(&real, "%s/%s", here, dir) < 0)
			real = NULL;
		free(here);
	}
	kept = gn_arena_strdup(arena, real ? real : dir);
	free(real);
	return kept ? gn_strlist_add(dirs, kept) : -ENOMEM;
}

/* Check a list of directories of the configuration, and add them to `dirs` unless that is NULL. */
static int add_config_dirs(struct gn_strlist *dirs, struct gn_conf_node *list, struct gn_errs *errs)
{
	int rc = 0;

	if (!gn_conf_is_list(list)) {
		gn_conf_fault(errs, list, "is not a list; write [ \"/absolute/directory\" ]");
		return -EINVAL;
	}
	for (unsigned i = 0; i < gn_conf_length(list); i++) {
		struct gn_conf_node *item = gn_conf_index(list, i);
		const char *dir = gn_conf_string(item);

		if (!dir || dir[0] != '/') {
			gn_conf_fault(
				errs, item,
				"is not an absolute path; write it with a leading slash, in double quotes");
			rc = -EINVAL;
		} else if (dirs && gn_strlist_add(dirs, dir)) {
			return -ENOMEM;
		}
	}
	return rc;
}

static int add_env_dirs(struct gn_strlist *dirs, struct gn_arena *arena, const char *path)
{
	int rc = 0;

	while (*path && !rc) {
		size_t n = strcspn(path, ":");
		char *dir = gn_arena_strndup(arena, path, n);

		if (n)
			rc = dir ? add_dir(dirs, arena, dir) : -ENOMEM;
		path += n + (path[n] == ':');
	}
	return rc;
}

/*
 * Get the directories of the command line, else of the configuration, else of the environment, else
 * the built-in directory.
 */
static int find_dirs(struct gn_strlist *dirs, struct gn_arena *arena,
		     const struct gn_strlist *args_dirs, struct gn_conf_node *list,
		     struct gn_errs *errs)
{
	const char *env = getauxval(AT_SECURE) ? NULL : getenv("GANTRY_PLUGIN_PATH");
	int rc = 0;

	for (size_t i = 0; i < args_dirs->n && !rc; i++)
		rc = add_dir(dirs, arena, args_dirs->word[i]);
	if (list && !rc)
		rc = add_config_dirs(args_dirs->n ? NULL : dirs, list, errs);
	else if (!args_dirs->n && env)
		rc = add_env_dirs(dirs, arena, env);
	if (!dirs->n && !list && !rc)
		rc = gn_strlist_add(dirs, GANTRY_PLUGINDIR);
	if (rc == -ENOMEM)
		gn_errs_no_memory(errs);
	return rc;
}

int gn_topology_loader(struct gn_config *config, const struct gn_topology_args *args,
		       struct gn_errs *errs, struct gn_loader **loader_p)
{
	struct gn_conf_node *list = NULL;
	struct gn_strlist dirs = {0};
	struct gn_arena arena = {0};
	const char *text;
	int rc;

	if (config)
		list = gn_conf_child(gn_conf_child(gn_config_root(config), "runtime"),
				     "plugin_dirs");
	rc = find_dirs(&dirs, &arena, &args->plugin_dirs, list, errs);
	if (!rc) {
		rc = gn_loader_open(dirs.word, dirs.n, loader_p, &text);
		if (rc) {
			gn_errs_because(errs, rc);
			gn_errs_add(errs, "%s", text);
		} else if (args->probe) {
			gn_loader_probe(*loader_p);
		}
	}
	gn_strlist_fini(&dirs);
	gn_arena_fini(&arena);
	return rc;
}

/* -- plugins -- */

struct names {
	unsigned kind;
	const char *wanted;
	int errors; /* edit distance of `nearest` */
	char nearest[64];
	char text[512];
};

static int note_name(void *arg, const struct gn_plugin_file *file)
{
	struct names *names = arg;
	size_t n = strlen(names->text);

	if (!file->plugin || file->plugin->desc->kind != names->kind)
		return 0;
	snprintf(names->text + n, sizeof(names->text) - n, "%s%s", n ? ", " : "", file->name);
	if (gn_config_nearer(names->wanted, file->name, &names->errors))
		snprintf(names->nearest, sizeof(names->nearest), "%s", file->name);
	return 0;
}

/*
 * Report that the loader has no plugin of that name. rc: -ENOENT; or -EINVAL: the name is not
 * valid.
 */
static void report_missing(struct gn_topo_parse *p, struct gn_conf_node *node, unsigned kind,
			   const char *name, int rc)
{
	struct gn_loader *loader = p->topology->loader;
	struct names names = {.kind = kind, .wanted = name, .errors = GN_NEAR_NONE};

	gn_loader_each(loader, note_name, &names);
	if (rc == -EINVAL && names.errors != 0) /* not 0: the name differs in more than case */
		gn_conf_fault(p->errs, node, "%s", gn_loader_error(loader));
	else if (names.nearest[0])
		gn_conf_fault(p->errs, node,
			      "no plugin \"%s\" in %s; did you mean \"%s\"? %s plugins there: %s",
			      name, gn_loader_dirs(loader), names.nearest, gn_kind_name(kind),
			      names.text);
	else
		gn_conf_fault(p->errs, node, "no plugin \"%s\" in %s; %s plugins there: %s", name,
			      gn_loader_dirs(loader), gn_kind_name(kind),
			      names.text[0]
				      ? names.text
				      : "none; use --plugin-dir DIR to search another directory");
}

/*
 * Get the member of a group that could be a misspelling of `key`, which the group does not have;
 * NULL: none.
 */
static struct gn_conf_node *find_misspelling(struct gn_conf_node *group, const char *key)
{
	struct gn_conf_node *nearest = NULL;
	int errors = GN_NEAR_NONE;

	for (unsigned i = 0; i < gn_conf_length(group); i++)
		if (gn_config_nearer(gn_conf_name(gn_conf_index(group, i)), key, &errors))
			nearest = gn_conf_index(group, i);
	return nearest;
}

const struct gn_plugin *gn_topo_plugin(struct gn_topo_parse *p, unsigned kind,
				       struct gn_conf_node *owner, const char *key)
{
	struct gn_conf_node *node = gn_conf_child(owner, key);
	struct gn_loader *loader = p->topology->loader;
	const struct gn_plugin *plugin;
	const char *name = gn_conf_string(node);
	int rc;

	if (!name) {
		/* an entry that --set has created is probably misspelled */
		bool is_from_set = !node && !strcmp(gn_conf_where(owner), "--set");
		struct gn_conf_node *near = node ? NULL : find_misspelling(owner, key);

		if (near)
			gn_conf_fault(p->errs, near, "unknown key; did you mean \"%s\"?", key);
		else
			gn_conf_fault(
				p->errs, node ? node : owner,
				"%s\"%s\" must be given: the name of %s plugin, in double quotes",
				is_from_set ? "the file has no such entry; for a new one, " : "",
				key, gn_kind_phrase(kind));
		return NULL;
	}
	rc = gn_loader_find(loader, kind, name, &plugin);
	if (!rc)
		return plugin;
	if (rc == -ENOENT || rc == -EINVAL) {
		report_missing(p, node, kind, name, rc);
	} else {
		gn_errs_because(p->errs, rc);
		gn_conf_fault(p->errs, node, "%s", gn_loader_error(loader));
	}
	return NULL;
}

int gn_topo_check_options(struct gn_topo_parse *p, const struct gn_plugin *plugin,
			  struct gn_conf_node *group, const void *conf)
{
	struct gantry_check check = {.flags = 0};
	size_t before = p->errs->n;

	gn_plugin_check(plugin, conf, group, p->errs, &check);
	return p->errs->n == before ? 0 : -EINVAL;
}

const struct gn_plugin *gn_topo_plugin_instance(struct gn_topo_parse *p, unsigned kind,
						struct gn_conf_node *group, const char *key,
						struct gn_plugin_instance *part)
{
	const char *const own[] = {key, NULL};
	/* keys that belong to the core */
	const char *const *also = kind == GANTRY_KIND_TRANSPORT ? gn_device_keys : own;
	const struct gn_plugin *plugin;
	void *conf;

	if (!gn_conf_is_group(group)) {
		gn_conf_fault(p->errs, group, "is not a group; write { %s = \"NAME\"; ... }", key);
		return NULL;
	}
	plugin = gn_topo_plugin(p, kind, group, key);
	if (!plugin)
		return NULL;
	conf = gn_arena_alloc(&p->topology->arena, plugin->desc->conf_size + 1);
	if (!conf) {
		gn_errs_no_memory(p->errs);
		return NULL;
	}
	if (gn_conf_options(group, plugin->desc->options, conf, also, p->errs) ||
	    gn_topo_check_options(p, plugin, group, conf))
		return NULL;
	part->name = plugin->desc->name;
	part->ops = plugin->ops;
	part->conf = conf;
	return plugin;
}

int gn_topo_plugin_list(struct gn_topo_parse *p, unsigned kind, struct gn_conf_node *list,
			struct gn_plugin_instance **parts_p, uint32_t *n_p)
{
	unsigned n = gn_conf_length(list);
	int rc = 0;

	if (!list)
		return 0;
	if (!gn_conf_is_list(list)) {
		gn_conf_fault(p->errs, list, "is not a list; write ( { type = \"NAME\"; }, ... )");
		return -EINVAL;
	}
	*parts_p = gn_arena_alloc(&p->topology->arena, (n + 1) * sizeof(**parts_p));
	if (!*parts_p)
		return -ENOMEM;
	*n_p = n;
	for (unsigned i = 0; i < n; i++)
		if (!gn_topo_plugin_instance(p, kind, gn_conf_index(list, i), "type",
					     &(*parts_p)[i]))
			rc = -EINVAL;
	return rc;
}
