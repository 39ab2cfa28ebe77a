/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cmd_stat.c - gantry stat: what the running processes of a directory do, as a table, as their
 * reports, or as JSON
 */
#include <errno.h>
#include <gantry/rundir.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/cli.h"
#include "cli/report.h"
#include "cli/stat_client.h"
#include "cli/stat_metrics.h"
#include "cli/stat_table.h"

/* What to look at. */
struct view {
	const struct gn_cli *cli;
	char dir[PATH_MAX];
	char *file;       /* only processes of this configuration; NULL: all */
	const char *role; /* NULL: all */
};

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

/* True if the process runs the configuration, and has the role. */
static bool is_wanted(const struct view *view, const json_t *process)
{
	const char *file = json_string_value(json_object_get(process, "config_path"));

	if (view->file && (!file || strcmp(file, view->file) != 0))
		return false;
	return !view->role || json_object_get(json_object_get(process, "roles"), view->role);
}

/* Request the reports that the view selects. */
static json_t *look(const struct view *view, json_t *silent, int *error_p)
{
	json_t *all = gn_stat_ask(view->dir, silent, error_p), *list = json_array(), *process;
	size_t i;

	json_array_foreach (all, i, process)
		if (is_wanted(view, process))
			json_array_append(list, process);
	json_decref(all);
	return list;
}

/* Complain if there is no process. Returns an exit code. */
static int found(const struct view *view, const json_t *list, int error)
{
	if (json_array_size(list))
		return GN_EXIT_OK;
	return gn_cli_fail(
		GN_EXIT_FAILED,
		"no running gantry process%s%s%s%s%s answers in %s%s%s%s; use --dir DIR to search another directory",
		view->role ? " with a role \"" : "", view->role ? view->role : "",
		view->role ? "\"" : "", view->file ? " of " : "",
		view->file ? view->cli->config : "", view->dir, error ? " (" : "",
		error ? strerror(error) : "", error ? ")" : "");
}

static int print_once(const struct view *view)
{
	json_t *silent = json_array(), *list, *tree;
	int code = GN_EXIT_OK, error;

	list = look(view, silent, &error);
	if (view->cli->json) {
		tree = json_pack("{si sO sO}", "schema", 1, "processes", list, "silent", silent);
		code = gn_cli_print_json(tree);
		json_decref(tree);
	} else if (view->cli->openmetrics) {
		gn_stat_print_metrics(stdout, list, view->role);
	} else if (json_array_size(list) && view->cli->topology.verbose) {
		print(list, view->role);
	} else if (json_array_size(list)) {
		gn_stat_print_table(stdout, list, NULL, view->role);
	}
	print_silent(silent);
	if (found(view, list, error))
		code = GN_EXIT_FAILED;
	json_decref(list);
	json_decref(silent);
	return code;
}

/* Wait for some seconds. Returns false after SIGINT or SIGTERM. */
static bool wait_turn(const sigset_t *ends, unsigned seconds)
{
	const struct timespec interval = {.tv_sec = seconds};
	int signal;

	do
		signal = sigtimedwait(ends, NULL, &interval);
	while (signal < 0 && errno == EINTR); /* the process was stopped and continued */
	return signal < 0;
}

/* Keep the reports of processes that did not answer this time, for the rates of the next table. */
static void keep_silent(json_t *list, const json_t *before, const json_t *silent)
{
	json_t *old, *pid;
	size_t i, j;

	json_array_foreach ((json_t *)silent, i, pid)
		json_array_foreach ((json_t *)before, j, old)
			if (json_equal(json_object_get(old, "pid"), pid))
				json_array_append(list, old);
}

/* Print a table every watch_s seconds, with the rates since the previous table. */
static int watch(const struct view *view)
{
	json_t *before = NULL, *list, *silent;
	int code = GN_EXIT_OK, error;
	sigset_t ends;

	sigemptyset(&ends);
	sigaddset(&ends, SIGINT);
	sigaddset(&ends, SIGTERM);
	sigprocmask(SIG_BLOCK, &ends, NULL);
	do {
		silent = json_array();
		list = look(view, silent, &error);
		code = found(view, list, error);
		if (code == GN_EXIT_OK)
			gn_stat_print_table(stdout, list, before, view->role);
		print_silent(silent);
		gn_cli_flush();
		keep_silent(list, before, silent);
		json_decref(silent);
		json_decref(before);
		before = list;
	} while (code == GN_EXIT_OK && !ferror(stdout) && wait_turn(&ends, view->cli->watch_s));
	json_decref(before);
	return code;
}

/* Find the directory of the sockets. Returns an exit code. */
static int find_dir(struct view *view)
{
	const struct gn_cli *cli = view->cli;
	struct gn_errs errs = {0};
	struct gn_config *config = cli->config ? gn_config_open(cli->config, NULL, 0, &errs) : NULL;
	const char *dir = cli->dir;

	if (errs.n)
		return gn_cli_complain(&errs);
	if (config && !dir)
		dir = gn_conf_string(gn_conf_child(gn_conf_child(gn_config_root(config), "runtime"),
						   "stat_dir"));
	if (dir && *dir)
		snprintf(view->dir, sizeof(view->dir), "%s", dir);
	else
		gantry_rundir(view->dir, sizeof(view->dir));
	if (config)
		view->file = realpath(cli->config, NULL);
	gn_config_close(&config);
	return GN_EXIT_OK;
}

int gn_cli_stat(const struct gn_cli *cli)
{
	struct view view = {.cli = cli, .role = cli->args.n ? cli->args.word[0] : NULL};
	int code;

	if ((cli->watch_s != 0) + cli->json + cli->openmetrics + (cli->topology.verbose != 0) > 1)
		return gn_cli_fail(GN_EXIT_USAGE,
				   "only one of --watch, --json, --openmetrics and -v can be used");
	code = find_dir(&view);
	if (code == GN_EXIT_OK)
		code = cli->watch_s ? watch(&view) : print_once(&view);
	free(view.file);
	return code;
}
