/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cmd_top.c - gantry top: what the running processes of a directory do, in the terminal or as text
 */
#include <stdio.h>
#include <time.h>

#include "cli/cli.h"
#include "cli/stat_client.h"
#include "cli/stat_view.h"
#include "top/top_model.h"
#include "top/top_screen.h"
#include "cli/top_view.h"

/* Request reports, and let the model take them. */
static void sample(const struct gn_stat_view *view, struct gn_top_model *m)
{
	json_t *silent = json_array(), *list;
	int error;

	list = gn_stat_view_ask(view, silent, &error);
	gn_top_update(m, list, silent, time(NULL));
	json_decref(silent);
}

static void print_screen(struct gn_top_model *m, struct gn_top_screen *screen)
{
	gn_top_draw(m, 0, 0, screen);
	for (size_t i = 0; i < screen->n; i++)
		puts(screen->lines[i].text);
	gn_cli_flush();
}

/*
 * Print a screen after each interval, so that all rates are about an interval. A process that
 * started in it has rates since its start.
 */
static int run_batch(const struct gn_stat_view *view, struct gn_top_model *m)
{
	struct gn_top_screen screen = {0};
	unsigned n = 0;
	sigset_t ends;

	gn_stat_block_ends(&ends);
	sample(view, m);
	while (m->n_processes && !ferror(stdout) && gn_stat_wait(&ends, m->interval_s)) {
		sample(view, m);
		if (n)
			putchar('\n');
		print_screen(m, &screen);
		if (++n == view->cli->count)
			break;
	}
	gn_top_screen_fini(&screen);
	if (!m->n_processes)
		return gn_cli_fail(GN_EXIT_FAILED, GN_TOP_NONE, view->dir);
	return GN_EXIT_OK;
}

int gn_cli_top(const struct gn_cli *cli)
{
	struct gn_stat_view view;
	struct gn_top_model m;
	int code;

	if (cli->json)
		return gn_cli_fail(GN_EXIT_USAGE, "top has no JSON: use gantry stat --json");
	if (cli->count && !cli->batch)
		return gn_cli_fail(GN_EXIT_USAGE, "--count can be used only with --batch");
	code = gn_stat_view_open(cli, cli->args.n ? cli->args.word[0] : NULL, &view);
	if (code != GN_EXIT_OK)
		return code;
	gn_top_init(&m, view.dir, view.role);
	if (cli->interval_s)
		m.interval_s = cli->interval_s;
	code = cli->batch ? run_batch(&view, &m) : gn_top_view_run(&m, &view);
	gn_top_fini(&m);
	gn_stat_view_close(&view);
	return code;
}
