/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cmd_copy.c - gantry copy: runs a role that can copy, with --set options that make it copy a file
 * instead of its workload.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "cli/cli.h"
#include "report/report.h"
#include "cli/cmd_run.h"
#include "topology/topology.h"

#define VOLUME "volume:"
#define GROUP "copy" /* group of options of the role plugin, with `from` and `to` */
#define N_SETS 4     /* options that the command sets */

/*
 * Get the role of a volume argument: "" for "volume:", "load" for "volume:load", NULL for other
 * arguments.
 */
static const char *volume_role(const char *word)
{
	return strncmp(word, VOLUME, strlen(VOLUME)) ? NULL : word + strlen(VOLUME);
}

/*
 * Check whether the plugin of a role has the option group `copy`. Returns 1: yes; 0: no; or -errno
 * of gn_loader_find().
 */
static int can_copy(struct gn_loader *loader, struct gn_conf_node *role)
{
	const char *name = gn_conf_string(gn_conf_child(role, "role"));
	const struct gn_plugin *plugin;
	int rc = name ? gn_loader_find(loader, GANTRY_KIND_ROLE, name, &plugin) : -ENOENT;

	if (rc)
		return rc;
	for (const struct gantry_option *o = plugin->desc->options; o && o->name; o++)
		if (gantry_option_type(o) == GANTRY_OPT_GROUP && !strcmp(o->name, GROUP))
			return 1;
	return 0;
}

/*
 * Find the only role of the configuration that can copy. Returns its name, valid as long as the
 * configuration; NULL, after a message.
 */
static const char *only_copier(const struct gn_cli *cli, struct gn_config *config,
			       struct gn_loader *loader)
{
	struct gn_conf_node *roles = gn_conf_child(gn_config_root(config), "roles");
	const char *found = NULL;
	char why[512] = "";
	unsigned n = 0;

	for (unsigned i = 0; i < gn_conf_length(roles); i++) {
		struct gn_conf_node *role = gn_conf_index(roles, i);
		int rc = can_copy(loader, role);

		if (rc > 0)
			found = gn_conf_name(role);
		else if (rc < 0 && rc != -ENOENT && !why[0])
			snprintf(why, sizeof(why), "roles.%s: %s", gn_conf_name(role),
				 gn_loader_error(loader));
		n += rc > 0;
	}
	if (n == 1)
		return found;
	/* the role whose plugin did not load could be the only one that can copy */
	if (n == 0 && why[0])
		gn_cli_fail(GN_EXIT_USAGE, "%s: %s", cli->config, why);
	else
		gn_cli_fail(GN_EXIT_USAGE, "%s has %u roles that can copy; write volume:ROLE",
			    cli->config, n);
	return NULL;
}

/*
 * Check the named role. A plugin that does not load is reported later, when the role runs. Returns
 * the name; NULL, after a message.
 */
static const char *named_copier(const struct gn_cli *cli, struct gn_config *config,
				struct gn_loader *loader, const char *name)
{
	struct gn_conf_node *role = gn_conf_child(gn_conf_child(gn_config_root(config), "roles"),
						  name);
	const char *plugin_name = gn_conf_string(gn_conf_child(role, "role"));
	const struct gn_plugin *plugin;

	if (!role) {
		gn_cli_fail(GN_EXIT_USAGE, "%s has no role \"%s\"", cli->config, name);
		return NULL;
	}
	if (!plugin_name || gn_loader_find(loader, GANTRY_KIND_ROLE, plugin_name, &plugin) ||
	    can_copy(loader, role) != 0)
		return name;
	gn_cli_fail(GN_EXIT_USAGE,
		    "%s: the role \"%s\" cannot copy: it is a \"%s\"; name an initiator",
		    cli->config, name, plugin_name);
	return NULL;
}

/*
 * Find the role that copies. asked: role that the command line names; NULL: none. Returns
 * GN_EXIT_OK; or another code, after a message.
 */
static int find_role(const struct gn_cli *cli, const char *asked, char **role_p)
{
	struct gn_errs errs = {0};
	struct gn_config *config = gn_config_open(cli->config, cli->topology.sets.word,
						  cli->topology.sets.n, &errs);
	struct gn_loader *loader = NULL;
	const char *found = NULL;
	int code;

	if (config && !gn_topology_loader(config, &cli->topology, &errs, &loader))
		found = asked ? named_copier(cli, config, loader, asked)
			      : only_copier(cli, config, loader);
	gn_cli_complain(&errs);
	*role_p = found ? strdup(found) : NULL;
	code = *role_p ? GN_EXIT_OK
	       : found ? gn_cli_fail(GN_EXIT_FAILED, "out of memory")
		       : GN_EXIT_USAGE;
	gn_loader_close(&loader);
	gn_config_close(&config);
	return code;
}

/*
 * Format "roles.NAME.copy.from=..." for --set. Quotes keep the value a string, even if the file is
 * named "3".
 */
static char *set_text(const char *role, const char *key, const char *value, bool is_string)
{
	const char *quote = is_string ? "\"" : "";
	char *text;

	return asprintf(&text, "roles.%s." GROUP ".%s=%s%s%s", role, key, quote, value, quote) < 0
		       ? NULL
		       : text;
}

static const json_t *only_role(const json_t *report)
{
	return json_object_iter_value(json_object_iter(json_object_get(report, "roles")));
}

static int print(const struct gn_cli *cli, const json_t *report)
{
	const json_t *role = only_role(report);
	/* not total.bytes, which counts whole blocks of the volume */
	double bytes = gn_report_number(role, "progress.done", 0),
	       ns = gn_report_number(role, "elapsed_ns", 0);
	char size[GN_UNITS_BYTES], time[GN_UNITS_BYTES], speed[GN_UNITS_BYTES];
	const char *result = json_string_value(json_object_get(report, "result"));
	bool whole = bytes >= gn_report_number(role, "progress.target", 0);
	bool ok = result && !strcmp(result, "ok");
	/* a session can end without an error before all bytes are copied */
	int code = ok && !whole ? GN_EXIT_FAILED : GN_EXIT_OK;

	if (cli->json)
		return gn_cli_print_json(report) ? GN_EXIT_FAILED : code;
	printf("%s: %.0f bytes (%s) in %s, %s/s\n", ok && whole ? "copied" : "stopped after", bytes,
	       gn_size_format(size, sizeof(size), (uint64_t)bytes),
	       gn_time_format(time, sizeof(time), (uint64_t)ns),
	       gn_size_format(speed, sizeof(speed), ns > 0 ? (uint64_t)(bytes * 1e9 / ns) : 0));
	if (cli->topology.verbose && gn_run_print_all(report))
		return GN_EXIT_FAILED;
	return code;
}

/*
 * Append the --set words that make the role copy. texts: out; the caller frees them after the copy.
 * Returns 0; -1: out of memory.
 */
static int add_sets(const struct gn_cli *cli, const char *role, const char *key, const char *file,
		    struct gn_strlist *sets, char *texts[])
{
	const struct {
		const char *key, *value; /* value NULL: leave the option as the file has it */
		bool is_string;
	} rows[N_SETS] = {
		{key, file, true},
		{!strcmp(key, "from") ? "to" : "from", "", true},
		{"state", cli->state, true},
		{"verify", cli->verify ? "true" : NULL, false},
	};

	for (size_t i = 0; i < N_SETS; i++) {
		if (!rows[i].value)
			continue;
		texts[i] = set_text(role, rows[i].key, rows[i].value, rows[i].is_string);
		if (!texts[i])
			return -1;
		gn_cli_add_word(sets, texts[i]);
	}
	return 0;
}

static int copy(const struct gn_cli *cli, const char *role, const char *key, const char *file)
{
	struct gn_cli copy_cli = *cli;
	char *texts[N_SETS] = {NULL};
	int code;

	copy_cli.topology.sets = (struct gn_strlist){0};
	copy_cli.topology.roles = (struct gn_strlist){0};
	for (size_t i = 0; i < cli->topology.sets.n; i++)
		gn_cli_add_word(&copy_cli.topology.sets, cli->topology.sets.word[i]);
	gn_cli_add_word(&copy_cli.topology.roles, role);
	code = add_sets(cli, role, key, file, &copy_cli.topology.sets, texts)
		       ? gn_cli_fail(GN_EXIT_FAILED, "out of memory")
		       : gn_run(&copy_cli, cli->config, true, print);
	gn_strlist_fini(&copy_cli.topology.sets);
	gn_strlist_fini(&copy_cli.topology.roles);
	for (size_t i = 0; i < N_SETS; i++)
		free(texts[i]);
	return code;
}

static bool is_file_name(const char *name)
{
	return name[0] && !strchr(name, '"');
}

int gn_cli_copy(const struct gn_cli *cli)
{
	const char *from = cli->args.word[0], *to = cli->args.word[1];
	const char *named = volume_role(to) ? volume_role(to) : volume_role(from);
	const char *file = volume_role(to) ? from : to;
	char *role;
	int code;

	if (!cli->config)
		return gn_cli_fail(GN_EXIT_USAGE, "copy needs a configuration: write -c FILE");
	if (!volume_role(from) == !volume_role(to))
		return gn_cli_fail(
			GN_EXIT_USAGE,
			"one of SRC and DST must be \"volume:\" or \"volume:ROLE\", the other a file");
	if (!is_file_name(file))
		return gn_cli_fail(GN_EXIT_USAGE, "\"%s\" is not a valid file name", file);
	if (cli->state && !is_file_name(cli->state))
		return gn_cli_fail(GN_EXIT_USAGE, "\"%s\" is not a valid file name", cli->state);
	if (cli->topology.roles.n > 1 ||
	    (cli->topology.roles.n && named[0] && strcmp(named, cli->topology.roles.word[0])))
		return gn_cli_fail(GN_EXIT_USAGE,
				   "copy runs one role; write volume:ROLE or --role ROLE");
	code = find_role(cli,
			 named[0]                ? named
			 : cli->topology.roles.n ? cli->topology.roles.word[0]
						 : NULL,
			 &role);
	if (code)
		return code;
	code = copy(cli, role, volume_role(to) ? "from" : "to", file);
	free(role);
	return code;
}
