/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/stat_view.h"

#include <errno.h>
#include <gantry/rundir.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/stat_client.h"

int gn_stat_view_open(const struct gn_cli *cli, const char *role, struct gn_stat_view *view)
{
	struct gn_errs errs = {0};
	struct gn_config *config = cli->config ? gn_config_open(cli->config, NULL, 0, &errs) : NULL;
	const char *dir = cli->dir;

	*view = (struct gn_stat_view){.cli = cli, .role = role};
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

void gn_stat_view_close(struct gn_stat_view *view)
{
	free(view->file);
	view->file = NULL;
}

/* True if the process runs the configuration, and has the role. */
static bool is_wanted(const struct gn_stat_view *view, const json_t *process)
{
	const char *file = json_string_value(json_object_get(process, "config_path"));

	if (view->file && (!file || strcmp(file, view->file) != 0))
		return false;
	return !view->role || json_object_get(json_object_get(process, "roles"), view->role);
}

json_t *gn_stat_view_ask(const struct gn_stat_view *view, json_t *silent, int *error_p)
{
	json_t *all = gn_stat_ask(view->dir, silent, error_p), *list = json_array(), *process;
	size_t i;

	json_array_foreach (all, i, process)
		if (is_wanted(view, process))
			json_array_append(list, process);
	json_decref(all);
	return list;
}

int gn_stat_view_found(const struct gn_stat_view *view, const json_t *list, int error)
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

void gn_stat_block_ends(sigset_t *ends)
{
	sigemptyset(ends);
	sigaddset(ends, SIGINT);
	sigaddset(ends, SIGTERM);
	sigprocmask(SIG_BLOCK, ends, NULL);
}

bool gn_stat_wait(const sigset_t *ends, unsigned seconds)
{
	const struct timespec interval = {.tv_sec = seconds};
	int signal;

	do
		signal = sigtimedwait(ends, NULL, &interval);
	while (signal < 0 && errno == EINTR); /* the process was stopped and continued */
	return signal < 0;
}
