/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cmd_stat.c - gantry stat: what the running processes of a directory do, as a table, as their
 * reports, or as JSON
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "report/report.h"
#include "cli/stat_client.h"
#include "report/stat_metrics.h"
#include "report/stat_rates.h"
#include "report/stat_table.h"
#include "cli/stat_view.h"

static void print_silent(const json_t *silent)
{
	json_t *pid;
	size_t i;

	json_array_foreach ((json_t *)silent, i, pid)
		gn_cli_fail(0,
			    "process %" JSON_INTEGER_FORMAT
			    " has not answered for %d ms; it may be stopped",
			    json_integer_value(pid), GN_STAT_TIMEOUT_MS);
}

static void print(const json_t *list, const char *role)
{
	json_t *tree;
	size_t i;

	json_array_foreach ((json_t *)list, i, tree) {
		const char *file = json_string_value(json_object_get(tree, "config"));

		printf("process %.0f  %s\n", gn_report_number(tree, "pid", 0), file ? file : "");
		if (role) {
			gn_report_print_text(
				stdout, json_object_get(json_object_get(tree, "roles"), role), 1);
			continue;
		}
		json_object_del(tree, "pid");
		json_object_del(tree, "config");
		json_object_del(tree, "config_path");
		json_object_del(tree, "schema");
		json_object_del(tree, "version");
		json_object_del(tree, "command");
		gn_report_print_text(stdout, tree, 1);
	}
}

static int print_once(const struct gn_stat_view *view)
{
	json_t *silent = json_array(), *list, *tree;
	int code = GN_EXIT_OK, error;

	list = gn_stat_view_ask(view, silent, &error);
	if (view->cli->json) {
		tree = json_pack("{si sO sO}", "schema", 1, "processes", list, "silent", silent);
		code = gn_cli_print_json(tree);
		json_decref(tree);
	} else if (view->cli->openmetrics) {
		gn_stat_print_metrics(stdout, GN_METRICS_OPEN, list, silent, view->role);
	} else if (json_array_size(list) && view->cli->topology.verbose) {
		print(list, view->role);
	} else if (json_array_size(list)) {
		gn_stat_print_table(stdout, list, NULL, view->role);
	}
	print_silent(silent);
	if (gn_stat_view_found(view, list, error))
		code = GN_EXIT_FAILED;
	json_decref(list);
	json_decref(silent);
	return code;
}

/* Print a table every watch_s seconds, with the rates since the previous table. */
static int watch(const struct gn_stat_view *view)
{
	json_t *before = NULL, *list, *silent;
	int code = GN_EXIT_OK, error;
	sigset_t ends;

	gn_stat_block_ends(&ends);
	do {
		silent = json_array();
		list = gn_stat_view_ask(view, silent, &error);
		code = gn_stat_view_found(view, list, error);
		if (code == GN_EXIT_OK)
			gn_stat_print_table(stdout, list, before, view->role);
		print_silent(silent);
		gn_cli_flush();
		gn_stat_keep_silent(list, before, silent);
		json_decref(silent);
		json_decref(before);
		before = list;
	} while (code == GN_EXIT_OK && !ferror(stdout) && gn_stat_wait(&ends, view->cli->watch_s));
	json_decref(before);
	return code;
}

int gn_cli_stat(const struct gn_cli *cli)
{
	struct gn_stat_view view;
	int code;

	if ((cli->watch_s != 0) + cli->json + cli->openmetrics + (cli->topology.verbose != 0) > 1)
		return gn_cli_fail(GN_EXIT_USAGE,
				   "only one of --watch, --json, --openmetrics and -v can be used");
	code = gn_stat_view_open(cli, cli->args.n ? cli->args.word[0] : NULL, &view);
	if (code == GN_EXIT_OK)
		code = cli->watch_s ? watch(&view) : print_once(&view);
	gn_stat_view_close(&view);
	return code;
}
