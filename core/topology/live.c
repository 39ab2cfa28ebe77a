/* SPDX-License-Identifier: BSD-3-Clause */
#include "topology/live.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <unistd.h>

#include "base/log.h"
#include "base/safe_path.h"
#include "session/session_server.h"
#include "topology/topology_priv.h"

#define TEXT_BYTES 1024

/* -- options and instances -- */

/* Get the part of `path` below `group`; NULL: the path is not inside of the group. */
static const char *below(const char *path, const char *group)
{
	size_t n = strlen(group);

	return strncmp(path, group, n) == 0 && path[n] == '.' ? path + n + 1 : NULL;
}

struct search {
	const char *path;
	struct gn_topo_instance found;
	const struct gantry_option *row;
};

static int match(void *arg, const struct gn_topo_instance *instance)
{
	struct search *search = arg;
	const char *rest = below(search->path, gn_conf_path(instance->group));

	if (!rest)
		return 0;
	search->row = gn_option_find(instance->plugin->desc->options, rest);
	search->found = *instance;
	return search->row != NULL;
}

/* Find the instance and the row of an option. Returns false if no instance has the option. */
static bool find(struct gn_topology *t, const char *path, struct search *search)
{
	*search = (struct search){.path = path};
	return gn_topo_each_instance(t, match, search) != 0;
}

/* Find the row of an option of `runtime` or of an instance that can change. NULL: there is none. */
static const struct gantry_option *find_row(struct gn_topology *t, const char *path)
{
	const char *rest = below(path, "runtime");
	struct search search;

	if (rest)
		return gn_option_find(gn_runtime_options, rest);
	return find(t, path, &search) && search.found.kind != GANTRY_KIND_OBSERVER ? search.row
										   : NULL;
}

/* True if a setting is inside of `allow` of a listener: a reload replaces all its rows together. */
static bool is_access(const char *path)
{
	const char *rest = below(path, "roles");

	rest = rest ? strchr(rest, '.') : NULL;
	return rest && strncmp(rest, ".listen.allow", 13) == 0 &&
	       (rest[13] == '\0' || rest[13] == '[');
}

/* True if a setting belongs to a role or device that this process does not use. */
static bool is_unused(const struct gn_topology *t, const char *path)
{
	for (uint32_t i = 0; i < t->n_roles; i++)
		if (!t->roles[i].selected && below(path, gn_conf_path(t->roles[i].node)))
			return true;
	for (uint32_t i = 0; i < t->n_devices; i++)
		if (!t->devices[i].plugin && below(path, gn_conf_path(t->devices[i].node)))
			return true;
	return false;
}

/* Get the object that `open` of the plugin of an instance stored; NULL: it is not open. */
static void *object_of(struct gn_topology *t, const struct gn_topo_instance *instance)
{
	struct gn_topo_role *role = instance->role;

	if (role)
		return role->role ? gn_role_instance(role->role, instance->kind,
						     instance->part ? (uint32_t)(instance->part -
										 role->stages)
								    : 0)
				  : NULL;
	for (uint32_t i = 0; i < t->n_devices; i++)
		if (t->devices[i].node == instance->group && t->devices[i].device)
			return t->devices[i].device->dev;
	return NULL;
}

/* -- changes -- */

static void change_runtime(struct gn_topology *t, const char *name, const struct gn_runtime *to)
{
	if (strcmp(name, "log") == 0)
		gn_log_set_level((enum gn_log_level)to->log);
	else if (strcmp(name, "log_format") == 0)
		gn_log_set_sink(STDERR_FILENO, (enum gn_log_form)to->log_format);
	else if (strcmp(name, "spin") == 0)
		for (uint32_t i = 0; i < t->n_workers; i++)
			gn_worker_set_spin(t->workers[i], to->spin_ns);
	else if (strcmp(name, "stage_times") == 0)
		for (uint32_t i = 0; i < t->n_roles; i++)
			if (t->roles[i].role)
				gn_role_measure(t->roles[i].role, to->stage_times);
}

/* Pass the values of `loaded` to the instance, or the part of the core, that has the option. */
static void change(struct gn_topology *t, struct gn_topology *loaded, const char *path)
{
	const char *rest = below(path, "runtime");
	struct search running, fresh;
	void *object;

	if (rest) {
		change_runtime(t, rest, &loaded->runtime);
		return;
	}
	if (!find(t, path, &running) || !find(loaded, path, &fresh))
		return;
	object = object_of(t, &running.found);
	if (object)
		running.found.plugin->desc->change(object, fresh.found.conf);
}

/* A setting that differs from its present value, and can change. */
struct difference {
	char *path, *from, *to;
	char *set; /* "PATH=VALUE" */
	STAILQ_ENTRY(difference) link;
};

STAILQ_HEAD(difference_list, difference);

/* The differences between the present values and a loaded topology. */
struct differences {
	struct gn_live *live;
	const struct gn_topology *loaded;
	struct difference_list list;
	char *unchangeable; /* path of the first one that cannot change */
	bool no_memory;
};

/* Allocate the text of a value, or of the default of its row. Returns NULL without memory. */
static char *value_text(struct gn_conf_node *node, const struct gantry_option *row)
{
	char text[64];

	if (!node)
		return strdup(row && row->dflt ? row->dflt : "");
	return strdup(gn_conf_string(node) ? gn_conf_string(node)
					   : gn_conf_text(node, text, sizeof(text)));
}

static void free_difference(struct difference *d)
{
	free(d->path);
	free(d->from);
	free(d->to);
	free(d->set);
	free(d);
}

/* Allocate a difference. Returns NULL without memory. */
static struct difference *make_difference(const char *path, const struct gantry_option *row,
					  struct gn_conf_node *from, struct gn_conf_node *to)
{
	struct difference *d = calloc(1, sizeof(*d));
	const uint32_t type = row ? gantry_option_type(row) : GANTRY_OPT_STRING;
	const char *quote = type == GANTRY_OPT_STRING || type == GANTRY_OPT_CHOICE ? "\"" : "";

	if (!d)
		return NULL;
	d->path = strdup(path);
	d->from = value_text(from, row);
	d->to = value_text(to, row);
	if (d->path && d->from && d->to &&
	    asprintf(&d->set, "%s=%s%s%s", path, quote, d->to, quote) >= 0)
		return d;
	d->set = NULL;
	free_difference(d);
	return NULL;
}

static void add_difference(void *arg, struct gn_conf_node *from, struct gn_conf_node *to)
{
	struct differences *all = arg;
	struct gn_live *live = all->live;
	const char *path = gn_conf_path(to ? to : from);
	const struct gantry_option *row = find_row(live->topology, path);
	struct difference *d;

	if (is_access(path) || is_unused(live->topology, path) || is_unused(all->loaded, path) ||
	    (live->keeps_log && strcmp(path, "runtime.log") == 0))
		return;
	d = make_difference(path, row, from, to);
	if (!d) {
		all->no_memory = true;
	} else if (row && strcmp(d->from, d->to) == 0) {
		free_difference(d);
	} else if (row && row->type & GANTRY_OPT_CHANGEABLE) {
		STAILQ_INSERT_TAIL(&all->list, d, link);
	} else {
		live->on_difference(live->arg, false, d->path, d->from, d->to);
		if (!all->unchangeable)
			all->unchangeable = strdup(path);
		free_difference(d);
	}
}

static void free_words(struct gn_strlist *list)
{
	for (size_t i = 0; i < list->n; i++)
		free((char *)list->word[i]);
	gn_strlist_fini(list);
}

static void free_differences(struct differences *all)
{
	struct difference *d;

	while ((d = STAILQ_FIRST(&all->list))) {
		STAILQ_REMOVE_HEAD(&all->list, link);
		free_difference(d);
	}
	free(all->unchangeable);
}

/* -- loading -- */

struct gn_config *gn_live_config(const struct gn_live *live)
{
	return live->values ? live->values : live->topology->config;
}

static char *dump(struct gn_config *config)
{
	char *text = NULL;
	size_t n = 0;
	FILE *out = open_memstream(&text, &n);

	if (!out)
		return NULL;
	gn_config_dump(config, out);
	if (fclose(out) == 0)
		return text;
	free(text);
	return NULL;
}

static int add_all(struct gn_strlist *list, const struct gn_strlist *more)
{
	int rc = 0;

	for (size_t i = 0; i < more->n && rc == 0; i++)
		rc = gn_strlist_add(list, more->word[i]);
	return rc;
}

/*
 * Load the configuration of the start with all changes so far and some more. Returns as
 * gn_topology_load_text().
 */
static int load_values(struct gn_live *live, const struct gn_strlist *more,
		       struct gn_topology *loaded, struct gn_errs *errs)
{
	struct gn_topology_args args = *live->args;
	char *text = dump(live->topology->config);
	int rc = text ? 0 : -ENOMEM;

	args.sets = (struct gn_strlist){0};
	args.probe = false;
	args.values_only = true;
	/* apply the overrides of the start again: the dump has lost which numbers are strings */
	if (rc == 0 && !add_all(&args.sets, &live->args->sets) &&
	    !add_all(&args.sets, &live->changes) && !add_all(&args.sets, more)) {
		rc = gn_topology_load_text(loaded, live->topology->file, text, &args, errs);
	} else {
		gn_errs_no_memory(errs);
		rc = -ENOMEM;
	}
	gn_strlist_fini(&args.sets);
	free(text);
	return rc;
}

/* Add a change to live->changes, or replace the earlier change of this path. Takes its string. */
static int keep_change(struct gn_live *live, struct difference *d)
{
	size_t n = strlen(d->path);
	int rc;

	for (size_t i = 0; i < live->changes.n; i++) {
		if (strncmp(live->changes.word[i], d->path, n) != 0 ||
		    live->changes.word[i][n] != '=')
			continue;
		free((char *)live->changes.word[i]);
		live->changes.word[i] = d->set;
		d->set = NULL;
		return 0;
	}
	rc = gn_strlist_add(&live->changes, d->set);
	if (rc == 0)
		d->set = NULL;
	return rc;
}

/* Load the present values with the differences. */
static int load_differences(struct gn_live *live, const struct differences *all,
			    struct gn_topology *loaded, struct gn_errs *errs)
{
	struct gn_strlist sets = {0};
	struct difference *d;
	int rc = 0;

	STAILQ_FOREACH (d, &all->list, link)
		rc = rc ? rc : gn_strlist_add(&sets, d->set);
	if (rc)
		gn_errs_no_memory(errs);
	else
		rc = load_values(live, &sets, loaded, errs);
	gn_strlist_fini(&sets);
	return rc;
}

/* Load the differences, change the options, report the changes, and keep the values. */
static int change_all(struct gn_live *live, const struct differences *all, struct gn_errs *errs)
{
	struct gn_topology loaded = {0};
	struct difference *d;
	int rc = load_differences(live, all, &loaded, errs);

	STAILQ_FOREACH (d, &all->list, link) {
		if (rc)
			break;
		rc = keep_change(live, d);
		if (rc) {
			gn_errs_no_memory(errs);
			break;
		}
		change(live->topology, &loaded, d->path);
		live->on_difference(live->arg, true, d->path, d->from, d->to);
	}
	if (rc == 0) {
		gn_config_close(&live->values);
		live->values = loaded.config;
		loaded.config = NULL;
	}
	gn_topology_close(&loaded);
	return rc;
}

/*
 * Change what `loaded` has differently, and free it. rc: of its loading. strict: fail if something
 * cannot change.
 */
static int change_to(struct gn_live *live, struct gn_topology *loaded, int rc, bool strict,
		     struct gn_errs *errs)
{
	struct differences all = {.live = live, .loaded = loaded};

	STAILQ_INIT(&all.list);
	if (rc == 0)
		gn_config_diff(gn_live_config(live), loaded->config, add_difference, &all);
	if (all.no_memory) {
		gn_errs_no_memory(errs);
		rc = -ENOMEM;
	} else if (strict && all.unchangeable) {
		gn_errs_add(
			errs,
			"%s: the setting cannot change while the process runs: edit %s and restart",
			all.unchangeable, live->topology->file);
		rc = -EPERM;
	}
	if (rc == 0 && !STAILQ_EMPTY(&all.list))
		rc = change_all(live, &all, errs);
	free_differences(&all);
	gn_topology_close(loaded);
	return rc;
}

int gn_live_set(struct gn_live *live, const char *set, struct gn_errs *errs)
{
	const char *word[] = {set};
	const struct gn_strlist sets = {.word = word, .n = 1};
	struct gn_topology loaded = {0};
	int rc;

	if (is_unused(live->topology, set)) {
		gn_errs_add(errs, "%.*s: this process does not use that role or device",
			    (int)strcspn(set, "="), set);
		return -EPERM;
	}
	rc = load_values(live, &sets, &loaded, errs);
	return change_to(live, &loaded, rc, true, errs);
}

static struct gn_topo_role *find_listener(const struct gn_topology *t, const char *name)
{
	for (uint32_t i = 0; i < t->n_roles; i++)
		if (t->roles[i].listen && strcmp(t->roles[i].name, name) == 0)
			return &t->roles[i];
	return NULL;
}

/* Copy the rows in force of a listener to the configuration that `ctl config` shows. */
static int show_access(struct gn_config *config, const char *role, struct gn_conf_node *allow)
{
	struct gn_conf_node *roles = gn_conf_child(gn_config_root(config), "roles");

	return gn_conf_copy(gn_conf_child(gn_conf_child(roles, role), "listen"), "allow", allow);
}

/*
 * Take over the rows of listen.allow that have changed. `loaded` gets the old ones, to free.
 * Returns 0 or -ENOMEM: not all rows are shown.
 */
static int take_access(struct gn_live *live, const struct gn_topology *loaded, struct gn_errs *errs)
{
	int rc = 0;

	for (uint32_t i = 0; i < loaded->n_roles; i++) {
		struct gn_topo_role *from = &loaded->roles[i],
				    *to = find_listener(live->topology, from->name);
		struct gn_conf_node *allow;
		struct gn_access *old;
		char path[TEXT_BYTES], words[2][32];

		if (!to || !to->selected || !from->listen ||
		    gn_access_equal(to->listen->access, from->listen->access))
			continue;
		old = to->listen->access;
		to->listen->access = from->listen->access;
		from->listen->access = old;
		allow = gn_conf_child(gn_conf_child(from->node, "listen"), "allow");
		rc = rc ? rc : show_access(live->topology->config, to->name, allow);
		if (live->values)
			rc = rc ? rc : show_access(live->values, to->name, allow);
		snprintf(path, sizeof(path), "roles.%s.listen.allow", to->name);
		snprintf(words[0], sizeof(words[0]), "%u rows", old ? old->n : 0);
		snprintf(words[1], sizeof(words[1]), "%u rows",
			 to->listen->access ? to->listen->access->n : 0);
		live->on_difference(live->arg, true, path, words[0], words[1]);
	}
	if (rc)
		gn_errs_no_memory(errs);
	return rc;
}

/* Read the keys and certificates of all devices again. */
static int reload_keys(const struct gn_topology *t, struct gn_errs *errs)
{
	int rc = 0;

	for (uint32_t i = 0; i < t->n_devices; i++) {
		struct gn_device *device = t->devices[i].device;
		char why[GN_PATH_WHY];
		int failed = device && device->host.auth ? gn_auth_reload(device->host.auth, why)
							 : 0;

		if (failed) {
			gn_errs_add(errs, "%s", why);
			rc = failed;
		}
	}
	return rc;
}

/* End the sessions whose peers have lost rights. */
static void check_rights(const struct gn_topology *t)
{
	for (uint32_t i = 0; i < t->n_roles; i++)
		if (t->roles[i].role && t->roles[i].listen)
			gn_rights_check(t->roles[i].role);
}

int gn_live_reload(struct gn_live *live, struct gn_errs *errs)
{
	struct gn_topology_args args = *live->args;
	struct gn_topology loaded = {0};
	int rc;

	args.probe = false;
	args.values_only = true;
	live->keeps_log = args.verbose > 0;
	rc = gn_topology_load(&loaded, live->topology->file, &args, errs);
	if (rc == 0) {
		int shown = take_access(live, &loaded, errs);

		rc = reload_keys(live->topology, errs);
		rc = rc ? rc : shown;
		check_rights(live->topology);
	}
	rc = change_to(live, &loaded, rc, false, errs);
	live->keeps_log = false;
	return rc;
}

void gn_live_fini(struct gn_live *live)
{
	gn_config_close(&live->values);
	free_words(&live->changes);
}

/* -- list of options -- */

struct listing {
	const struct gn_live *live;
	void (*fn)(void *arg, const char *path, const struct gantry_option *row, const char *value);
	void *arg;
};

/* Find a setting by its path. NULL: it is not set. */
static struct gn_conf_node *node_at(struct gn_conf_node *node, const char *path)
{
	char name[TEXT_BYTES];

	while (node && *path) {
		size_t n = strcspn(path, ".[");

		if (*path == '[') {
			node = gn_conf_index(node, (unsigned)strtoul(path + 1, NULL, 10));
			path += strcspn(path, "]") + 1;
		} else {
			snprintf(name, sizeof(name), "%.*s", (int)n, path);
			node = gn_conf_child(node, name);
			path += n;
		}
		path += *path == '.';
	}
	return node;
}

static void list_rows(const struct listing *listing, const char *group,
		      const struct gantry_option *table)
{
	for (; table && table->name; table++) {
		char path[TEXT_BYTES], *text;

		snprintf(path, sizeof(path), "%s.%s", group, table->name);
		if (gantry_option_type(table) == GANTRY_OPT_GROUP)
			list_rows(listing, path, table->group);
		if (!(table->type & GANTRY_OPT_CHANGEABLE))
			continue;
		text = value_text(node_at(gn_config_root(gn_live_config(listing->live)), path),
				  table);
		if (text)
			listing->fn(listing->arg, path, table, text);
		free(text);
	}
}

static int list_instance(void *arg, const struct gn_topo_instance *instance)
{
	if (instance->kind != GANTRY_KIND_OBSERVER)
		list_rows(arg, gn_conf_path(instance->group), instance->plugin->desc->options);
	return 0;
}

void gn_live_each_option(const struct gn_live *live,
			 void (*fn)(void *arg, const char *path, const struct gantry_option *row,
				    const char *value),
			 void *arg)
{
	struct listing listing = {live, fn, arg};

	list_rows(&listing, "runtime", gn_runtime_options);
	gn_topo_each_instance(live->topology, list_instance, &listing);
}
