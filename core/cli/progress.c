/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/progress.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/units.h"
#include "cli/report.h"

#define INTERVAL_NS GN_NS_PER_S
#define BAR 20

static const struct gn_topo_role *worker_role(const struct gn_topology *t)
{
	for (uint32_t i = 0; i < t->n_roles; i++)
		if (t->roles[i].started && !t->roles[i].finished &&
		    (t->roles[i].flags & GANTRY_ROLE_WORKS))
			return &t->roles[i];
	return NULL;
}

static void show(struct gn_progress *progress, const struct gn_topo_role *role,
		 const json_t *values)
{
	double ios = gn_report_number(values, "total.ops", 0),
	       bytes = gn_report_number(values, "total.bytes", 0);
	double target = gn_report_number(values, "progress.target", 0);
	double done = target > 0 ? gn_report_number(values, "progress.done", 0) / target : -1;
	uint64_t now = gn_now_ns();
	double seconds = (double)(now - progress->last_ns) / 1e9;
	char elapsed[GN_UNITS_BYTES], rate[GN_UNITS_BYTES], bar[BAR + 1];

	gn_time_format(elapsed, sizeof(elapsed),
		       (now - progress->start_ns) / GN_NS_PER_S * GN_NS_PER_S);
	gn_size_format(rate, sizeof(rate),
		       bytes > progress->last_bytes && seconds > 0
			       ? (uint64_t)((bytes - progress->last_bytes) / seconds)
			       : 0);
	fprintf(stderr, "\r\033[K%s %s", role->name, elapsed);
	if (done >= 0) {
		int filled = (int)((done > 1 ? 1 : done) * BAR);

		memset(bar, '.', BAR);
		memset(bar, '#', (size_t)filled);
		bar[BAR] = '\0';
		fprintf(stderr, " [%s] %3.0f%%", bar, 100 * (done > 1 ? 1 : done));
	}
	if (gn_report_number(values, "submitted", 1) > 0)
		fprintf(stderr, "  %.0f IO/s  %s/s",
			seconds > 0 && ios > progress->last_ios
				? (ios - progress->last_ios) / seconds
				: 0,
			rate);
	else
		fputs("  no IO yet: waiting for its peer", stderr);
	fflush(stderr);
	gn_log_set_over(true);
	progress->last_ns = now;
	progress->last_ios = ios;
	progress->last_bytes = bytes;
	progress->shown = true;
}

static void tick(void *arg)
{
	struct gn_progress *progress = arg;
	const struct gn_topo_role *role = worker_role(progress->topology);
	struct gn_report report;
	const json_t *tree;

	gn_loop_set_timer(progress->loop, &progress->timer, gn_now_ns() + INTERVAL_NS);
	if (!role)
		return;
	gn_report_init(&report);
	gn_role_report(role->role, &report.w);
	tree = gn_report_tree(&report);
	if (tree)
		show(progress, role, json_object_get(tree, role->name));
	gn_report_fini(&report);
}

void gn_progress_open(struct gn_progress *progress, struct gn_loop *loop,
		      struct gn_topology *topology)
{
	memset(progress, 0, sizeof(*progress));
	if (!isatty(STDERR_FILENO))
		return;
	progress->loop = loop;
	progress->topology = topology;
	progress->start_ns = progress->last_ns = gn_now_ns();
	progress->timer.fn = tick;
	progress->timer.arg = progress;
	gn_loop_set_timer(loop, &progress->timer, progress->start_ns + INTERVAL_NS);
}

void gn_progress_clear(struct gn_progress *progress)
{
	if (progress->shown)
		fputs("\r\033[K", stderr);
	gn_log_set_over(false);
	progress->shown = false;
}

void gn_progress_close(struct gn_progress *progress)
{
	gn_progress_clear(progress);
	if (progress->loop)
		gn_loop_clear_timer(progress->loop, &progress->timer);
	progress->loop = NULL;
}
