/* SPDX-License-Identifier: BSD-3-Clause */
#include "topology/topology.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "topology/topology_priv.h"

static const char *const log_words[] = {"error", "warn", "info", "debug", NULL};
static const char *const form_words[] = {"text", "json", NULL};
static const char *const thread_words[] = {"shared", "separate", NULL};

#define RUNTIME(name) offsetof(struct gn_runtime, name)

const struct gantry_option gn_runtime_options[] = {
	{"log", GANTRY_OPT_CHOICE | GANTRY_OPT_CHANGEABLE, RUNTIME(log), "warn", 0, 0, log_words,
	 NULL, "Log level; -v on the command line overrides it."},
	{"log_format", GANTRY_OPT_CHOICE | GANTRY_OPT_CHANGEABLE, RUNTIME(log_format), "text", 0, 0,
	 form_words, NULL, "Format of log lines. The log is written to the standard error."},
	{"spin", GANTRY_OPT_TIME | GANTRY_OPT_CHANGEABLE, RUNTIME(spin_ns), "100us", 0, 1000000000,
	 NULL, NULL, "How long a thread without work spins before it sleeps."},
	{"threads", GANTRY_OPT_CHOICE, RUNTIME(threads), "shared", 0, 0, thread_words, NULL,
	 "shared: lane k of every role runs on thread k; separate: a thread for each lane."},
	{"cpus", GANTRY_OPT_STRING, RUNTIME(cpus), "", 0, 0, NULL, NULL,
	 "Pin thread k to the k-th of these CPUs, \"0-3,8\"."},
	{"stop_limit", GANTRY_OPT_TIME, RUNTIME(stop_limit_ns), "60s", 0, 86400 * GN_NS_PER_S, NULL,
	 NULL,
	 "Longest time for the roles to end; then the process logs what they wait for, and fails. 0s: no limit."},
	{"stage_times", GANTRY_OPT_BOOL | GANTRY_OPT_CHANGEABLE, RUNTIME(stage_times), "false", 0,
	 0, NULL, NULL,
	 "Measure how long each stage, and the backend or connect of a role, has each IO."},
	{"stat", GANTRY_OPT_BOOL, RUNTIME(stat), "true", 0, 0, NULL, NULL, "Answer gantry stat."},
	{"stat_dir", GANTRY_OPT_STRING, RUNTIME(stat_dir), "", 0, 0, NULL, NULL,
	 "Directory of the socket for gantry stat; empty: $XDG_RUNTIME_DIR/gantry, for root /run/gantry, else /tmp/gantry-UID."},
	GANTRY_OPTION_END,
};

int gn_topo_numbers(struct gn_topo_parse *p, struct gn_conf_node *node, const char *text,
		    uint32_t max, const uint32_t **list_p, uint32_t *n_p)
{
	enum { LIMIT = 1024 };
	uint32_t *list = gn_arena_alloc(&p->topology->arena, LIMIT * sizeof(*list)), n = 0;

	if (!list) {
		gn_errs_no_memory(p->errs);
		return -ENOMEM;
	}
	while (*text) {
		unsigned long long first, last;
		char *end;

		first = last = strtoull(text, &end, 10);
		if (end != text && *end == '-' && end[1] >= '0' && end[1] <= '9')
			last = strtoull(end + 1, &end, 10);
		if (end == text || *text < '0' || *text > '9' || (*end && *end != ',') ||
		    (*end == ',' && !end[1]) || first > last || last > max ||
		    last - first >= LIMIT - n)
			goto wrong;
		for (; first <= last; first++)
			list[n++] = (uint32_t)first;
		text = end + (*end == ',');
	}
	*list_p = list;
	*n_p = n;
	return 0;

wrong:
	gn_conf_fault(p->errs, node,
		      "is not a list of at most %d numbers from 0 to %u; write such as \"0-3,8\"",
		      LIMIT, max);
	return -EINVAL;
}

static int parse_runtime(struct gn_topo_parse *p, const struct gn_topology_args *args)
{
	static const char *const also[] = {"plugin_dirs", NULL};
	struct gn_conf_node *group = gn_conf_child(gn_config_root(p->topology->config), "runtime");
	struct gn_runtime *runtime = &p->topology->runtime;
	int rc;

	rc = gn_conf_options(group, gn_runtime_options, runtime, also, p->errs);
	if (rc)
		return rc;
	if (!args->verbose && !args->values_only)
		gn_log_set_level((enum gn_log_level)runtime->log);
	if (!args->values_only)
		gn_log_set_sink(STDERR_FILENO, (enum gn_log_form)runtime->log_format);
	return gn_topo_numbers(p, group ? gn_conf_child(group, "cpus") : NULL, runtime->cpus, 4095,
			       &runtime->cpu, &runtime->n_cpus);
}

/*
 * Get the group `devices` or `roles`, and its number of members. A missing or invalid group is a
 * fault, with *n_p 0.
 */
static struct gn_conf_node *section(struct gn_topo_parse *p, const char *name, unsigned *n_p)
{
	struct gn_conf_node *node = gn_conf_child(gn_config_root(p->topology->config), name);

	*n_p = 0;
	if (!node)
		gn_errs_add_at(p->errs, &(struct gn_err_place){.file = p->topology->file},
			       "there is no \"%s\"; write %s = { NAME = { ... }; };", name, name);
	else if (!gn_conf_is_group(node))
		gn_conf_fault(p->errs, node, "is not a group; write %s = { NAME = { ... }; };",
			      name);
	else
		*n_p = gn_conf_length(node);
	return node;
}

static int list_entries(struct gn_topo_parse *p, const struct gn_topology_args *args)
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
		t->roles[i].is_embedded = args->own && args->roles.n &&
					  gn_strlist_has(&args->roles, t->roles[i].name);
		t->roles[i].selected = args->roles.n
					       ? gn_strlist_has(&args->roles, t->roles[i].name)
					       : !args->own;
	}
	return 0;
}

static const struct gn_topo_role *find_role(const struct gn_topology *t, const char *name)
{
	for (uint32_t i = 0; i < t->n_roles; i++)
		if (!strcmp(t->roles[i].name, name))
			return &t->roles[i];
	return NULL;
}

static void check_role_names(struct gn_topo_parse *p, const struct gn_topology_args *args)
{
	struct gn_topology *t = p->topology;
	char known[256] = "";

	if (!t->n_roles && gn_conf_is_group(gn_conf_child(gn_config_root(t->config), "roles")))
		gn_errs_add_at(p->errs, &(struct gn_err_place){.file = t->file},
			       "\"roles\" is empty; there is nothing to run");
	for (uint32_t i = 0; i < t->n_roles; i++) {
		size_t n = strlen(known);

		snprintf(known + n, sizeof(known) - n, "%s%s", n ? ", " : "", t->roles[i].name);
	}
	for (size_t i = 0; i < args->roles.n; i++) {
		if (find_role(t, args->roles.word[i]))
			continue;
		gn_errs_because(p->errs, -ENOENT);
		gn_errs_add(p->errs, "%s%s: %s has no such role; it has: %s",
			    t->own ? "" : "--role ", args->roles.word[i], t->file,
			    known[0] ? known : "none");
	}
}

/*
 * Call this if no role was found that the embedded role can replace: report the role plugins that
 * do not load, which can be the cause. Returns the number of faults.
 */
static size_t report_unloadable(struct gn_topo_parse *p)
{
	struct gn_topology *t = p->topology;
	size_t before = p->errs->n;

	for (uint32_t i = 0; i < t->n_roles; i++)
		if (gn_conf_child(t->roles[i].node, "role"))
			gn_topo_plugin(p, GANTRY_KIND_ROLE, t->roles[i].node, "role");
	return p->errs->n - before;
}

/* Choose the only role that the embedded role can replace, if the caller has named none. */
static void choose_own(struct gn_topo_parse *p)
{
	struct gn_topology *t = p->topology;
	char found[256] = "";
	uint32_t n_found = 0, last = 0;

	for (uint32_t i = 0; i < t->n_roles; i++) {
		size_t n = strlen(found);

		if (!gn_topo_can_be_own(p, t->roles[i].node))
			continue;
		n_found++;
		last = i;
		snprintf(found + n, sizeof(found) - n, "%s%s", n ? ", " : "", t->roles[i].name);
	}
	if (n_found == 1) {
		t->roles[last].selected = t->roles[last].is_embedded = true;
	} else if (n_found) {
		gn_errs_add(p->errs,
			    "%s: no role is named, and the program can use several; "
			    "name one of: %s",
			    t->file, found);
	} else if (!report_unloadable(p)) {
		gn_errs_because(p->errs, -ENOENT);
		gn_errs_add(p->errs,
			    "%s: no role that the program can use: add one that connects to one "
			    "service, as an initiator does",
			    t->file);
	}
}

static void parse_devices(struct gn_topo_parse *p, bool all)
{
	struct gn_topology *t = p->topology;

	for (unsigned i = 0; i < t->n_devices; i++) {
		struct gn_topo_device *device = &t->devices[i];
		struct gn_plugin_instance part = {0};

		if (!device->used && !all)
			continue;
		device->plugin = gn_topo_plugin_instance(p, GANTRY_KIND_TRANSPORT, device->node,
							 "transport", &part);
		device->conf = part.conf;
		if (device->plugin)
			gn_topo_device_options(p, device);
	}
}

/* An embedding program has no observers. */
static int parse_observers(struct gn_topo_parse *p)
{
	struct gn_topology *t = p->topology;
	struct gn_conf_node *list = gn_conf_child(gn_config_root(t->config), "observers");

	return gn_topo_plugin_list(p, GANTRY_KIND_OBSERVER, t->own ? NULL : list, &t->observers,
				   &t->n_observers);
}

static int load(struct gn_topology *topology, const struct gn_topology_args *args,
		struct gn_errs *errs)
{
	static const char *const sections[] = {"runtime", "devices", "roles", "observers", NULL};
	struct gn_topo_parse p = {.topology = topology, .errs = errs};

	topology->own = args->own;
	gn_conf_options(gn_config_root(topology->config), NULL, NULL, sections, errs);
	parse_runtime(&p, args);
	if (gn_topology_loader(topology->config, args, errs, &topology->loader))
		return gn_errs_rc(errs);
	if (list_entries(&p, args)) {
		gn_errs_no_memory(errs);
		return gn_errs_rc(errs);
	}
	if (args->own && !args->roles.n)
		choose_own(&p);
	else
		check_role_names(&p, args);
	for (unsigned i = 0; i < topology->n_roles; i++)
		if (topology->roles[i].selected)
			gn_topo_role(&p, &topology->roles[i]);
	for (unsigned i = 0; i < topology->n_roles; i++)
		if (topology->roles[i].is_embedded)
			gn_topo_select_reachable(&p, &topology->roles[i]);
	if (parse_observers(&p) == -ENOMEM || gn_topo_graph(&p) || gn_topo_paths(&p))
		gn_errs_no_memory(errs);
	parse_devices(&p, !args->roles.n && !args->own);
	gn_topo_services(&p);
	gn_topo_sessions(&p);
	gn_topo_access(&p);
	return gn_errs_rc(errs);
}

int gn_topology_load(struct gn_topology *topology, const char *file,
		     const struct gn_topology_args *args, struct gn_errs *errs)
{
	topology->file = file;
	topology->config = gn_config_open(file, args->sets.word, args->sets.n, errs);
	return topology->config ? load(topology, args, errs) : gn_errs_rc(errs);
}

int gn_topology_load_text(struct gn_topology *topology, const char *name, const char *text,
			  const struct gn_topology_args *args, struct gn_errs *errs)
{
	topology->file = name;
	topology->config = gn_config_open_text(name, text, args->sets.word, args->sets.n, errs);
	return topology->config ? load(topology, args, errs) : gn_errs_rc(errs);
}
