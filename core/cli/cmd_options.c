/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cmd_options.c - gantry options: lists the options of plugins and of the groups of a configuration
 * that belong to the core.
 */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "report/report.h"
#include "topology/topology.h"

static const struct {
	const char *name, *summary;
	const struct gantry_option *options;
} sections[] = {
	{"runtime", "the group runtime, next to plugin_dirs", gn_runtime_options},
	{"role",
	 "an entry of roles, next to role, listen, connect, stages, backend and what its plugin accepts",
	 gn_role_options},
	{"device", "an entry of devices, for every transport", gn_auth_options},
	{"listen", "the group listen of a role", gn_listen_options},
	{"allow", "each group of the list allow of listen", gn_allow_options},
	{"connect", "the group connect of a role, or each of a list of them", gn_connect_options},
};

#define KEY_BYTES 256
#define N_SECTIONS (sizeof(sections) / sizeof(sections[0]))

struct search {
	const struct gn_cli *cli;
	const char *name; /* name of the section or plugin to show */
	json_t *list;     /* list that --json prints; NULL: print text */
	bool found;
};

/* Print one option table. prefix: prefix of the option names; "": none. */
static void print(const struct search *search, const char *name, const char *summary,
		  const struct gantry_option *options, const char *prefix)
{
	if (search->list) {
		json_array_append_new(search->list, json_pack("{ss so so}", "name", name, "summary",
							      gn_report_string(summary), "options",
							      gn_options_json(options)));
		return;
	}
	if (search->cli->mdoc) {
		gn_option_print(stdout, options, GN_OPTION_MDOC, prefix);
		return;
	}
	printf("%s: %s\n", name, summary);
	gn_option_print(stdout, options, GN_OPTION_TEXT, prefix);
	putchar('\n');
}

static int match(void *arg, const struct gn_plugin_file *file)
{
	struct search *search = arg;

	if (!file->plugin || strcmp(file->name, search->name))
		return 0;
	search->found = true;
	print(search, file->name, file->plugin->desc->summary, file->plugin->desc->options, "");
	return 0;
}

/* Show the section or plugin with the name of the search. */
static int show(struct search *search, struct gn_loader *loader)
{
	for (size_t i = 0; i < N_SECTIONS; i++) {
		if (strcmp(sections[i].name, search->name))
			continue;
		print(search, search->name, sections[i].summary, sections[i].options, "");
		return GN_EXIT_OK;
	}
	if (gn_loader_each(loader, match, search))
		return gn_cli_fail(GN_EXIT_FAILED, "out of memory");
	if (search->found)
		return GN_EXIT_OK;
	for (size_t i = 0; i < N_SECTIONS; i++)
		if (gn_config_near(search->name, sections[i].name) >= 0)
			return gn_cli_fail(GN_EXIT_USAGE, "no section \"%s\"; did you mean \"%s\"?",
					   search->name, sections[i].name);
	gn_cli_need_plugin(loader, search->name);
	return gn_cli_fail(
		GN_EXIT_USAGE,
		"the sections are runtime, role, listen and connect, gantry plugins lists the plugins");
}

static int show_all(struct search *search, struct gn_loader *loader)
{
	const struct gn_strlist *asked = &search->cli->args;
	int code = GN_EXIT_OK;

	for (size_t i = 0; i < N_SECTIONS && !asked->n; i++) {
		search->name = sections[i].name;
		code = show(search, loader);
	}
	for (size_t i = 0; i < asked->n && code == GN_EXIT_OK; i++) {
		search->name = asked->word[i];
		search->found = false;
		code = show(search, loader);
	}
	return code;
}

/* -- options of a configuration: keys with full names, in the syntax of --set -- */

/*
 * Format the path of a node in the syntax of --set: "roles.bridge.stages[1]" becomes
 * "roles.bridge.stages.1".
 */
static void key_of(struct gn_conf_node *node, char *key, size_t size)
{
	const char *path = gn_conf_path(node);
	size_t n = 0;

	for (; *path && n + 1 < size; path++)
		if (*path != ']')
			key[n++] = *path == '[' ? '.' : *path;
	key[n] = '\0';
}

static void show_section(const struct search *search, struct gn_conf_node *node, const char *name)
{
	char key[KEY_BYTES];
	size_t i = 0;

	while (strcmp(sections[i].name, name) != 0)
		i++;
	key_of(node, key, sizeof(key));
	print(search, key, sections[i].summary, sections[i].options, key);
}

/* Show the options of the plugin that `member` of the group names, if it can be loaded. */
static void show_plugin(const struct search *search, struct gn_loader *loader,
			struct gn_conf_node *node, unsigned kind, const char *member)
{
	const char *name = gn_conf_string(gn_conf_child(node, member));
	const struct gn_plugin *plugin;
	char key[KEY_BYTES];

	if (!name || gn_loader_find(loader, kind, name, &plugin))
		return;
	key_of(node, key, sizeof(key));
	print(search, key, plugin->desc->summary, plugin->desc->options, key);
}

static void show_role(const struct search *search, struct gn_loader *loader,
		      struct gn_conf_node *role)
{
	struct gn_conf_node *listen = gn_conf_child(role, "listen"),
			    *connect = gn_conf_child(role, "connect");
	struct gn_conf_node *stages = gn_conf_child(role, "stages");

	show_section(search, role, "role");
	show_plugin(search, loader, role, GANTRY_KIND_ROLE, "role");
	if (listen)
		show_section(search, listen, "listen");
	if (gn_conf_is_group(connect))
		show_section(search, connect, "connect");
	for (unsigned int i = 0; gn_conf_is_list(connect) && i < gn_conf_length(connect); i++)
		show_section(search, gn_conf_index(connect, i), "connect");
	for (unsigned int i = 0; i < gn_conf_length(stages); i++)
		show_plugin(search, loader, gn_conf_index(stages, i), GANTRY_KIND_STAGE, "type");
	show_plugin(search, loader, gn_conf_child(role, "backend"), GANTRY_KIND_BACKEND, "type");
}

static int show_config(const struct search *search, struct gn_loader *loader,
		       struct gn_config *config)
{
	struct gn_conf_node *devices = gn_conf_child(gn_config_root(config), "devices");
	struct gn_conf_node *roles = gn_conf_child(gn_config_root(config), "roles");
	struct gn_conf_node *observers = gn_conf_child(gn_config_root(config), "observers");

	print(search, sections[0].name, sections[0].summary, sections[0].options, sections[0].name);
	for (unsigned int i = 0; i < gn_conf_length(devices); i++)
		show_plugin(search, loader, gn_conf_index(devices, i), GANTRY_KIND_TRANSPORT,
			    "transport");
	for (unsigned int i = 0; i < gn_conf_length(roles); i++)
		show_role(search, loader, gn_conf_index(roles, i));
	for (unsigned int i = 0; i < gn_conf_length(observers); i++)
		show_plugin(search, loader, gn_conf_index(observers, i), GANTRY_KIND_OBSERVER,
			    "type");
	return GN_EXIT_OK;
}

int gn_cli_options(const struct gn_cli *cli)
{
	struct search search = {.cli = cli};
	struct gn_loader *loader = NULL;
	struct gn_config *config = NULL;
	struct gn_errs errs = {0};
	json_t *tree;
	int code;

	if (cli->config && cli->args.n)
		return gn_cli_fail(
			GN_EXIT_USAGE,
			"options shows what a configuration accepts, or NAMEs, not both");
	if (cli->config)
		config = gn_config_open(cli->config, NULL, 0, &errs);
	if (!errs.n)
		gn_topology_loader(config, &cli->topology, &errs, &loader);
	if (errs.n) {
		code = gn_cli_complain(&errs);
		goto out;
	}
	search.list = cli->json ? json_array() : NULL;
	code = config ? show_config(&search, loader, config) : show_all(&search, loader);
	if (search.list && code == GN_EXIT_OK) {
		tree = json_pack("{si sO}", "schema", 1, "sections", search.list);
		code = gn_cli_print_json(tree);
		json_decref(tree);
	}
	json_decref(search.list);
out:
	gn_loader_close(&loader);
	gn_config_close(&config);
	return code;
}
