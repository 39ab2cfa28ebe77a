/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/progress_line.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <gantry/observer.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/units.h"

#define BAR 20

struct line {
	char *role; /* the role that is shown; NULL: none */
	/* last values of that role */
	uint64_t elapsed_ns, ops, bytes;
};

static int line_open(const struct gantry_host *host, const void *conf, void **observer_p)
{
	(void)host;
	(void)conf;
	*observer_p = calloc(1, sizeof(struct line));
	return *observer_p ? 0 : -ENOMEM;
}

/* Returns the increase per second. */
static double rate(uint64_t before, uint64_t now, double seconds)
{
	return now > before && seconds > 0 ? (double)(now - before) / seconds : 0;
}

static void print_bar(const struct gantry_progress *p)
{
	const double done = (double)p->done / (double)p->target;
	char bar[BAR + 1];

	memset(bar, '.', BAR);
	memset(bar, '#', (size_t)(done * BAR));
	bar[BAR] = '\0';
	fprintf(stderr, " [%s] %3.0f%%", bar, 100 * done);
}

static void print_rates(const struct line *line, const struct gantry_progress *p)
{
	const double seconds = (double)(p->elapsed_ns - line->elapsed_ns) / 1e9;
	char bytes[GN_UNITS_BYTES];

	gn_size_format(bytes, sizeof(bytes), (uint64_t)rate(line->bytes, p->bytes, seconds));
	fprintf(stderr, "  %.0f IO/s  %s/s", rate(line->ops, p->ops, seconds), bytes);
}

static void print(const struct line *line, const struct gantry_progress *p)
{
	char elapsed[GN_UNITS_BYTES];

	gn_time_format(elapsed, sizeof(elapsed), p->elapsed_ns / GN_NS_PER_S * GN_NS_PER_S);
	fprintf(stderr, "\r\033[K%s %s", p->role, elapsed);
	if (p->target)
		print_bar(p);
	if (p->state == GANTRY_PROGRESS_WAITING)
		fputs("  no IO yet: waiting for its peer", stderr);
	else
		print_rates(line, p);
	fflush(stderr);
	gn_log_set_over(true);
}

static void forget(struct line *line)
{
	free(line->role);
	*line = (struct line){.role = NULL};
	gn_log_erase_line();
}

static void line_progress(void *observer, const struct gantry_progress *p)
{
	const bool ends = p->state == GANTRY_PROGRESS_DONE || p->state == GANTRY_PROGRESS_FAILED;
	struct line *line = observer;

	if (!line->role && !ends)
		line->role = strdup(p->role);
	if (!line->role || strcmp(line->role, p->role) != 0)
		return;
	if (ends) {
		forget(line);
		return;
	}
	print(line, p);
	line->elapsed_ns = p->elapsed_ns;
	line->ops = p->ops;
	line->bytes = p->bytes;
}

static void line_close(void *observer)
{
	forget(observer);
	free(observer);
}

static const struct gantry_observer_ops ops = {
	.open = line_open,
	.progress = line_progress,
	.close = line_close,
};

const struct gn_plugin_instance gn_progress_line = {.name = "progress line", .ops = &ops};
