/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/topology.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "base/log.h"
#include "cli/topology_priv.h"

static const char *const log_words[] = {"error", "warn", "info", "debug", NULL};
static const char *const form_words[] = {"text", "json", NULL};
static const char *const thread_words[] = {"shared", "separate", NULL};

struct runtime_conf {
	uint32_t log, log_format;
	struct gn_runtime out;
};

#define RUNTIME(name) offsetof(struct runtime_conf, out.name)

const struct gantry_option gn_runtime_options[] = {
	{"log", GANTRY_OPT_CHOICE, offsetof(struct runtime_conf, log), "warn", 0, 0, log_words, NULL,
	 "How much is logged; -v on the command line wins."},
	{"log_format", GANTRY_OPT_CHOICE, offsetof(struct runtime_conf, log_format), "text", 0, 0, form_words, NULL,
	 "How a line of the log looks: text for people, json for machines. It goes to the standard error."},
	{"spin", GANTRY_OPT_TIME, RUNTIME(spin_ns), "100us", 0, 1000000000, NULL, NULL,
	 "How long a thread without work spins before it sleeps."},
	{"threads", GANTRY_OPT_CHOICE, RUNTIME(threads), "shared", 0, 0, thread_words, NULL,
	 "shared: lane k of every role runs on thread k; separate: a thread for each lane."},
	{"cpus", GANTRY_OPT_STRING, RUNTIME(cpus), "", 0, 0, NULL, NULL,
	 "Pin thread k to the k-th of these CPUs, \"0-3,8\"."},
	{"stat", GANTRY_OPT_BOOL, RUNTIME(stat), "true", 0, 0, NULL, NULL, "Answer gantry stat."},
	{"stat_dir", GANTRY_OPT_STRING, RUNTIME(stat_dir), "", 0, 0, NULL, NULL,
	 "Where the socket for gantry stat lies; empty: $XDG_RUNTIME_DIR/gantry, for root /run/gantry, else /tmp/gantry-UID."},
	GANTRY_OPTION_END,
};

int gn_topology_complain(struct gn_errs *errs)
{
	size_t kept = gn_errs_kept(errs);

	for (size_t i = 0; i < kept; i++)
		fprintf(stderr, "gantry: %s\n", errs->text[i]);
	if (errs->n > kept)
		fprintf(stderr, "gantry: and %zu more\n", errs->n - kept);
	gn_errs_fini(errs);
	return GN_EXIT_USAGE;
}

/* -- plugin directories -- */

/* Add an absolute form of dir; one that is not there stands in the current one, so that messages name it. */
static void add_dir(struct gn_words *dirs, struct gn_arena *arena, const char *dir)
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
	if (kept)
		gn_words_add(dirs, kept);
}

static int add_config_dirs(struct gn_words *dirs, struct gn_conf_node *list, struct gn_errs *errs)
{
	int rc = 0;

	if (!gn_conf_is_list(list)) {
		gn_conf_fault(errs, list, "is no list; write [ \"/absolute/directory\" ]");
		return -EINVAL;
	}
	for (unsigned i = 0; i < gn_conf_length(list); i++) {
		struct gn_conf_node *item = gn_conf_index(list, i);
		const char *dir = gn_conf_string(item);

		if (dir && dir[0] == '/') {
			gn_words_add(dirs, dir);
			continue;
		}
		gn_conf_fault(errs, item, "is no absolute path; write it with a leading slash, in double quotes");
		rc = -EINVAL;
	}
	return rc;
}

static void add_env_dirs(struct gn_words *dirs, struct gn_arena *arena, const char *path)
{
	while (*path) {
		size_t n = strcspn(path, ":");
		char *dir = gn_arena_strndup(arena, path, n);

		if (n && dir)
			add_dir(dirs, arena, dir);
		path += n + (path[n] == ':');
	}
}

int gn_topology_loader(struct gn_config *config, const struct gn_cli *cli, struct gn_errs *errs,
		       struct gn_loader **loader_p)
{
	struct gn_conf_node *list = NULL;
	const char *env = getauxval(AT_SECURE) ? NULL : getenv("GANTRY_PLUGIN_PATH"), *text;
	struct gn_words dirs = {0};
	struct gn_arena arena = {0};
	int rc = 0;

	if (config)
		list = gn_conf_child(gn_conf_child(gn_config_root(config), "runtime"), "plugin_dirs");
	for (size_t i = 0; i < cli->plugin_dirs.n; i++)
		add_dir(&dirs, &arena, cli->plugin_dirs.word[i]);
	if (!dirs.n && list)
		rc = add_config_dirs(&dirs, list, errs);
	else if (!dirs.n && env)
		add_env_dirs(&dirs, &arena, env);
	if (!dirs.n && !list)
		gn_words_add(&dirs, GANTRY_PLUGINDIR);
	if (!rc) {
		rc = gn_loader_open(dirs.word, dirs.n, loader_p, &text);
		if (rc)
			gn_errs_add(errs, "%s", text);
	}
	free(dirs.word);
	gn_arena_fini(&arena);
	return rc;
}

/* -- plugins -- */

struct names {
	unsigned kind;
	char text[512];
};

static int note_name(void *arg, const struct gn_plugin_file *file)
{
	struct names *names = arg;
	size_t n = strlen(names->text);

	if (file->plugin && file->plugin->desc->kind == names->kind)
		snprintf(names->text + n, sizeof(names->text) - n, "%s%s", n ? ", " : "", file->name);
	return 0;
}

const struct gn_plugin *gn_topo_plugin(struct gn_topo_parse *p, unsigned kind, struct gn_conf_node *owner,
				       const char *key)
{
	struct gn_conf_node *node = gn_conf_child(owner, key);
	struct gn_loader *loader = p->topology->loader;
	struct names names = {.kind = kind};
	const struct gn_plugin *plugin;
	const char *name = gn_conf_string(node);
	int rc;

	if (!name) {
		gn_conf_fault(p->errs, node ? node : owner, "\"%s\" must be given: the name of a %s plugin, in double quotes",
			      key, gn_kind_name(kind));
		return NULL;
	}
	rc = gn_loader_find(loader, kind, name, &plugin);
	if (!rc)
		return plugin;
	if (rc == -ENOENT) {
		gn_loader_each(loader, note_name, &names);
		gn_conf_fault(p->errs, node, "no plugin \"%s\" in %s; %s plugins there: %s", name, gn_loader_dirs(loader),
			      gn_kind_name(kind), names.text[0] ? names.text : "none; --plugin-dir DIR looks elsewhere");
	} else {
		gn_conf_fault(p->errs, node, "%s", gn_loader_error(loader));
	}
	return NULL;
}

/* Takes the mistakes that a plugin finds in its options. */
struct objections {
	struct gantry_option_faults pub;
	struct gn_errs *errs;
	struct gn_conf_node *group;
};

__attribute__((format(printf, 3, 4)))
static void object(const struct gantry_option_faults *faults, const char *option, const char *fmt, ...)
{
	const struct objections *o = faults->core;
	char text[512];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	gn_conf_fault_option(o->errs, o->group, option, text);
}

int gn_topo_check_options(struct gn_topo_parse *p, const struct gn_plugin *plugin, struct gn_conf_node *group,
			  const void *conf)
{
	struct objections o = {.pub = {&o, object}, .errs = p->errs, .group = group};
	size_t before = p->errs->n;

	plugin->check(conf, &o.pub);
	return p->errs->n == before ? 0 : -EINVAL;
}

const struct gn_plugin *gn_topo_part(struct gn_topo_parse *p, unsigned kind, struct gn_conf_node *group,
				     const char *key, struct gn_part *part)
{
	const char *also[] = {key, NULL};
	const struct gn_plugin *plugin;
	void *conf;

	if (!gn_conf_is_group(group)) {
		gn_conf_fault(p->errs, group, "is no group; write { %s = \"NAME\"; ... }", key);
		return NULL;
	}
	plugin = gn_topo_plugin(p, kind, group, key);
	if (!plugin)
		return NULL;
	conf = gn_arena_alloc(&p->topology->arena, plugin->desc->conf_size + 1);
	if (!conf) {
		gn_errs_add(p->errs, "out of memory");
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

/* -- sections -- */


int gn_topo_numbers(struct gn_topo_parse *p, struct gn_conf_node *node, const char *text, uint32_t max,
		    const uint32_t **list_p, uint32_t *n_p)
{
	enum { LIMIT = 1024 };
	uint32_t *list = gn_arena_alloc(&p->topology->arena, LIMIT * sizeof(*list)), n = 0;

	if (!list)
		return -ENOMEM;
	while (*text) {
		unsigned long long first, last;
		char *end;

		first = last = strtoull(text, &end, 10);
		if (end != text && *end == '-' && end[1] >= '0' && end[1] <= '9')
			last = strtoull(end + 1, &end, 10);
		if (end == text || *text < '0' || *text > '9' || (*end && *end != ',') || (*end == ',' && !end[1]) ||
		    first > last || last > max || last - first >= LIMIT - n)
			goto wrong;
		for (; first <= last; first++)
			list[n++] = (uint32_t)first;
		text = end + (*end == ',');
	}
	*list_p = list;
	*n_p = n;
	return 0;

wrong:
	gn_conf_fault(p->errs, node, "is no list of numbers up to %u; write such as \"0-3,8\"", max);
	return -EINVAL;
}

static int parse_runtime(struct gn_topo_parse *p, const struct gn_cli *cli)
{
	static const char *const also[] = {"plugin_dirs", NULL};
	struct gn_conf_node *group = gn_conf_child(gn_config_root(p->topology->config), "runtime");
	struct runtime_conf conf = {0};
	int rc;

	rc = gn_conf_options(group, gn_runtime_options, &conf, also, p->errs);
	if (rc)
		return rc;
	p->topology->runtime = conf.out;
	if (!cli->verbose)
		gn_log_set_level((enum gn_log_level)conf.log);
	gn_log_set_sink(STDERR_FILENO, (enum gn_log_form)conf.log_format);
	return gn_topo_numbers(p, group ? gn_conf_child(group, "cpus") : NULL, conf.out.cpus, 4095,
			       &p->topology->runtime.cpu, &p->topology->runtime.n_cpus);
}

/* The members of `devices` or `roles`; NULL with n 0 when that is wrong. */
static struct gn_conf_node *section(struct gn_topo_parse *p, const char *name, unsigned *n_p)
{
	struct gn_conf_node *node = gn_conf_child(gn_config_root(p->topology->config), name);

	*n_p = 0;
	if (!node)
		gn_errs_add(p->errs, "%s: there is no \"%s\"; write %s = { NAME = { ... }; };", p->topology->file, name, name);
	else if (!gn_conf_is_group(node))
		gn_conf_fault(p->errs, node, "is no group; write %s = { NAME = { ... }; };", name);
	else
		*n_p = gn_conf_length(node);
	return node;
}

static int list_entries(struct gn_topo_parse *p, const struct gn_cli *cli)
{
	struct gn_topology *t = p->topology;
	struct gn_conf_node *devices, *roles;

	devices = section(p, "devices", &t->n_devices);
	roles = section(p, "roles", &t->n_roles);
	t->devices = gn_arena_alloc(&t->arena, (t->n_devices + 1) * sizeof(*t->devices));
	t->roles = gn_arena_alloc(&t->arena, (t->n_roles + 1) * sizeof(*t->roles));
	if (!t->devices || !t->roles) {
		t->n_devices = t->n_roles = 0;
		return -ENOMEM;
	}
	for (unsigned i = 0; i < t->n_devices; i++) {
		t->devices[i].node = gn_conf_index(devices, i);
		t->devices[i].name = gn_conf_name(t->devices[i].node);
	}
	for (unsigned i = 0; i < t->n_roles; i++) {
		t->roles[i].node = gn_conf_index(roles, i);
		t->roles[i].name = gn_conf_name(t->roles[i].node);
		t->roles[i].topology = t;
		t->roles[i].selected = !cli->roles.n || gn_words_has(&cli->roles, t->roles[i].name);
	}
	return 0;
}

static void check_role_names(struct gn_topo_parse *p, const struct gn_cli *cli)
{
	struct gn_topology *t = p->topology;

	if (!t->n_roles && gn_conf_is_group(gn_conf_child(gn_config_root(t->config), "roles")))
		gn_errs_add(p->errs, "%s: \"roles\" is empty; there is nothing to run", t->file);
	for (size_t i = 0; i < cli->roles.n; i++) {
		struct gn_words known = {0};
		char text[256] = "";

		for (unsigned j = 0; j < t->n_roles; j++) {
			size_t n = strlen(text);

			gn_words_add(&known, t->roles[j].name);
			snprintf(text + n, sizeof(text) - n, "%s%s", n ? ", " : "", t->roles[j].name);
		}
		if (!gn_words_has(&known, cli->roles.word[i]))
			gn_errs_add(p->errs, "--role %s: %s has no such role; it has: %s", cli->roles.word[i], t->file,
				    text[0] ? text : "none");
		free(known.word);
	}
}

static void parse_devices(struct gn_topo_parse *p, bool all)
{
	struct gn_topology *t = p->topology;

	for (unsigned i = 0; i < t->n_devices; i++) {
		struct gn_topo_device *device = &t->devices[i];
		struct gn_part part = {0};

		if (!device->used && !all)
			continue;
		device->plugin = gn_topo_part(p, GANTRY_KIND_TRANSPORT, device->node, "transport", &part);
		device->conf = (void *)part.conf;
	}
}

int gn_topology_load(struct gn_topology *topology, const char *file, const struct gn_cli *cli, struct gn_errs *errs)
{
	static const char *const sections[] = {"runtime", "devices", "roles", NULL};
	struct gn_topo_parse p = {.topology = topology, .errs = errs};

	topology->file = file;
	topology->config = gn_config_open(file, cli->sets.word, cli->sets.n, errs);
	if (!topology->config)
		return -EINVAL;
	gn_conf_options(gn_config_root(topology->config), NULL, NULL, sections, errs);
	parse_runtime(&p, cli);
	if (gn_topology_loader(topology->config, cli, errs, &topology->loader))
		return -EINVAL;
	if (list_entries(&p, cli)) {
		gn_errs_add(errs, "out of memory");
		return -ENOMEM;
	}
	check_role_names(&p, cli);
	for (unsigned i = 0; i < topology->n_roles; i++)
		if (topology->roles[i].selected)
			gn_topo_role(&p, &topology->roles[i]);
	if (gn_topo_graph(&p))
		gn_errs_add(errs, "out of memory");
	parse_devices(&p, !cli->roles.n);
	gn_topo_services(&p);
	return errs->n ? -EINVAL : 0;
}
