/* SPDX-License-Identifier: BSD-3-Clause */
/* cmd_plugins.c - gantry plugins: lists the files of plugins, and their options. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "report/report.h"
#include "topology/topology.h"

struct listing {
	const struct gn_cli *cli;
	json_t *list; /* list that --json prints; NULL: print text */
	bool shown;   /* at least one plugin was shown */
};

static void add_json(struct listing *listing, const struct gn_plugin_file *file)
{
	const struct gantry_plugin *desc = file->plugin ? file->plugin->desc : NULL;
	json_t *row = json_pack("{so so sb so*}", "name", gn_report_string(file->name), "path",
				gn_report_string(file->path), "usable", desc != NULL, "why",
				file->why ? gn_report_string(file->why) : NULL);

	if (desc) {
		json_object_set_new(row, "kind", json_string(gn_kind_name(desc->kind)));
		json_object_set_new(row, "version", gn_report_string(desc->version));
		json_object_set_new(row, "abi",
				    json_sprintf("%u.%u", desc->abi_major, desc->abi_minor));
		json_object_set_new(row, "summary", gn_report_string(desc->summary));
		if (listing->cli->options)
			json_object_set_new(row, "options", gn_options_json(desc->options));
	}
	json_array_append_new(listing->list, row);
}

static void print_plugin(const struct listing *listing, const struct gn_plugin_file *file)
{
	const struct gantry_plugin *desc = file->plugin ? file->plugin->desc : NULL;

	if (!desc) {
		gn_report_print_plain(stdout, file->name);
		printf("%*s %-10s ", (int)(strlen(file->name) < 12 ? 12 - strlen(file->name) : 0),
		       "", "unusable");
		gn_report_print_plain(stdout, file->path);
		printf(": %s\n", file->why);
		return;
	}
	printf("%-12s %-10s %-6s ABI %u.%u  %s\n", file->name, gn_kind_name(desc->kind),
	       desc->version, desc->abi_major, desc->abi_minor, file->path);
	printf("%-12s %s\n", "", desc->summary);
	if (listing->cli->options && desc->options && desc->options->name) {
		gn_option_print(stdout, desc->options, GN_OPTION_TEXT, "");
		putchar('\n');
	}
}

static int show(void *arg, const struct gn_plugin_file *file)
{
	struct listing *listing = arg;
	const struct gn_strlist *asked = &listing->cli->args;

	if (asked->n && !gn_strlist_has(asked, file->name))
		return 0;
	listing->shown = true;
	if (listing->list)
		add_json(listing, file);
	else
		print_plugin(listing, file);
	return 0;
}

struct nearest {
	const char *wanted;
	int errors;
	char name[64];
};

static int compare(void *arg, const struct gn_plugin_file *file)
{
	struct nearest *nearest = arg;

	if (file->plugin && gn_config_nearer(nearest->wanted, file->name, &nearest->errors))
		snprintf(nearest->name, sizeof(nearest->name), "%s", file->name);
	return 0;
}

int gn_cli_need_plugin(struct gn_loader *loader, const char *name)
{
	struct nearest nearest = {.wanted = name, .errors = GN_NEAR_NONE};
	const struct gn_plugin *plugin;
	int rc = gn_loader_find(loader, 0, name, &plugin);

	if (!rc)
		return GN_EXIT_OK;
	if (rc != -ENOENT && rc != -EINVAL)
		return gn_cli_fail(GN_EXIT_USAGE, "%s", gn_loader_error(loader));
	gn_loader_each(loader, compare, &nearest);
	if (!nearest.name[0])
		return gn_cli_fail(GN_EXIT_USAGE, "no plugin \"%s\" in %s", name,
				   gn_loader_dirs(loader));
	return gn_cli_fail(GN_EXIT_USAGE, "no plugin \"%s\" in %s; did you mean \"%s\"?", name,
			   gn_loader_dirs(loader), nearest.name);
}

static int list(struct listing *listing, struct gn_loader *loader)
{
	const struct gn_strlist *asked = &listing->cli->args;
	int code = GN_EXIT_OK, rc;

	if (!listing->cli->json)
		printf("in %s:\n", gn_loader_dirs(loader));
	rc = gn_loader_each(loader, show, listing);
	if (rc)
		return gn_cli_fail(GN_EXIT_FAILED, "out of memory");
	if (!listing->shown && !asked->n && !listing->list)
		puts("none; use --plugin-dir DIR to search another directory");
	if (listing->list) {
		json_t *tree = json_pack("{si so sO}", "schema", 1, "searched",
					 gn_report_string(gn_loader_dirs(loader)), "plugins",
					 listing->list);

		code = gn_cli_print_json(tree);
		json_decref(tree);
	}
	gn_cli_flush();
	for (size_t i = 0; i < asked->n; i++)
		if (gn_cli_need_plugin(loader, asked->word[i]))
			code = GN_EXIT_USAGE;
	return code;
}

int gn_cli_plugins(const struct gn_cli *cli)
{
	struct listing listing = {.cli = cli};
	struct gn_loader *loader = NULL;
	struct gn_config *config = NULL;
	struct gn_errs errs = {0};
	int code;

	if (cli->config)
		config = gn_config_open(cli->config, NULL, 0, &errs);
	if (!errs.n)
		gn_topology_loader(config, &cli->topology, &errs, &loader);
	if (errs.n) {
		code = gn_cli_complain(&errs);
	} else {
		listing.list = cli->json ? json_array() : NULL;
		code = list(&listing, loader);
		json_decref(listing.list);
	}
	gn_loader_close(&loader);
	gn_config_close(&config);
	return code;
}
