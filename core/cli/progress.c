/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/progress.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <gantry/observer.h>

#include "base/clock.h"
#include "base/host.h"
#include "base/log.h"
#include "cli/progress_line.h"
#include "report/report.h"

#define INTERVAL_NS GN_NS_PER_S

struct gn_observer {
	struct gn_host host;
	const struct gantry_observer_ops *ops;
	void *self;
};

/* -- values -- */

static uint64_t number(const json_t *values, const char *path)
{
	double value = gn_report_number(values, path, 0);

	return value > 0 && value < 0x1p64 ? (uint64_t)value : 0;
}

/* Get the progress of a role from its report. Texts are valid as long as the report. */
static struct gantry_progress measure(const struct gn_progress *progress,
				      const struct gn_topo_role *role, const json_t *values,
				      enum gantry_progress_state state)
{
	const json_t *unit = json_object_get(json_object_get(values, "progress"), "unit");
	struct gantry_progress p = {.role = role->name,
				    .elapsed_ns = gn_now_ns() - progress->start_ns,
				    .done = number(values, "progress.done"),
				    .target = number(values, "progress.target"),
				    .unit = json_is_string(unit) ? json_string_value(unit) : "",
				    .ops = number(values, "total.ops"),
				    .bytes = number(values, "total.bytes"),
				    .state = state};

	if (p.done > p.target)
		p.done = p.target;
	if (state == GANTRY_PROGRESS_WORKING && gn_report_number(values, "submitted", 1) <= 0)
		p.state = GANTRY_PROGRESS_WAITING;
	return p;
}

static bool works(const struct gn_topo_role *role)
{
	return role->started && (role->flags & GANTRY_ROLE_WORKS);
}

/* Give the progress of a role to the observers. */
static void observe(struct gn_progress *progress, const struct gn_topo_role *role,
		    enum gantry_progress_state state)
{
	struct gn_report report;
	struct gantry_progress p;
	const json_t *tree;
	bool usable; /* out of memory: only the end is reported, with values of 0 */

	gn_report_init(&report);
	gn_role_report(role->role, &report.w);
	tree = gn_report_tree(&report);
	usable = tree || state != GANTRY_PROGRESS_WORKING;
	p = measure(progress, role, json_object_get(tree, role->name), state);
	for (uint32_t i = 0; i < progress->n_observers && usable; i++)
		progress->observers[i].ops->progress(progress->observers[i].self, &p);
	gn_report_fini(&report);
}

static void tick(void *arg)
{
	struct gn_progress *progress = arg;
	struct gn_topology *t = progress->topology;

	gn_loop_set_timer(progress->loop, &progress->timer, gn_now_ns() + INTERVAL_NS);
	for (uint32_t i = 0; i < t->n_roles; i++)
		if (works(&t->roles[i]) && !t->roles[i].finished)
			observe(progress, &t->roles[i], GANTRY_PROGRESS_WORKING);
}

/* all: a role that has not finished has failed. */
static void report_ends(struct gn_progress *progress, bool all)
{
	struct gn_topology *t = progress->topology;

	for (uint32_t i = 0; progress->n_observers && i < t->n_roles; i++) {
		const struct gn_topo_role *role = &t->roles[i];

		if (!works(role) || progress->ended[i] || !(role->finished || all))
			continue;
		progress->ended[i] = true;
		observe(progress, role,
			role->finished && !role->status ? GANTRY_PROGRESS_DONE
							: GANTRY_PROGRESS_FAILED);
	}
}

void gn_progress_report_ends(struct gn_progress *progress)
{
	report_ends(progress, false);
}

/* -- open and close -- */

/* node: its entry in the configuration; NULL: it is part of the program */
static int open_observer(struct gn_progress *progress, const struct gn_plugin_instance *part,
			 struct gn_conf_node *node)
{
	struct gn_observer *observer = &progress->observers[progress->n_observers];
	int rc;

	observer->ops = part->ops;
	gn_host_init(&observer->host, "%s", node ? gn_conf_path(node) : part->name);
	rc = gn_host_returned(
		&observer->host, part->name, "open",
		observer->ops->open(&observer->host.pub, part->conf, &observer->self));
	if (!rc) {
		progress->n_observers++;
		return 0;
	}
	gn_log(GN_LOG_ERROR, "gantry", "%s: %s: cannot open the observer: %s",
	       node ? gn_conf_where(node) : "stderr", observer->host.name, strerror(-rc));
	gn_host_fini(&observer->host);
	return rc;
}

/* The observers of the configuration, and one for a terminal. */
static int open_observers(struct gn_progress *progress, struct gn_topology *t)
{
	struct gn_conf_node *list = gn_conf_child(gn_config_root(t->config), "observers");
	int rc = 0;

	progress->observers = gn_arena_alloc(&t->arena,
					     (t->n_observers + 1) * sizeof(*progress->observers));
	progress->ended = gn_arena_alloc(&t->arena, (t->n_roles + 1) * sizeof(*progress->ended));
	if (!progress->observers || !progress->ended)
		return -ENOMEM;
	for (uint32_t i = 0; i < t->n_observers && !rc; i++)
		rc = open_observer(progress, &t->observers[i], gn_conf_index(list, i));
	if (!rc && isatty(STDERR_FILENO))
		rc = open_observer(progress, &gn_progress_line, NULL);
	return rc;
}

static void close_observers(struct gn_progress *progress)
{
	while (progress->n_observers > 0) {
		struct gn_observer *observer = &progress->observers[--progress->n_observers];

		observer->ops->close(observer->self);
		gn_host_fini(&observer->host);
	}
}

int gn_progress_open(struct gn_progress *progress, struct gn_loop *loop,
		     struct gn_topology *topology)
{
	int rc;

	memset(progress, 0, sizeof(*progress));
	rc = open_observers(progress, topology);
	if (rc)
		close_observers(progress);
	if (!progress->n_observers)
		return rc;
	progress->loop = loop;
	progress->topology = topology;
	progress->start_ns = gn_now_ns();
	progress->timer.fn = tick;
	progress->timer.arg = progress;
	gn_loop_set_timer(loop, &progress->timer, progress->start_ns + INTERVAL_NS);
	return 0;
}

void gn_progress_close(struct gn_progress *progress)
{
	report_ends(progress, true);
	close_observers(progress);
	if (progress->loop)
		gn_loop_clear_timer(progress->loop, &progress->timer);
	progress->loop = NULL;
}
