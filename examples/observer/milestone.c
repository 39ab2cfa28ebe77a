/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * milestone.c - an observer that logs the progress of each role with work at steps of its work, such
 * as each tenth
 *
 *     cc -O2 -fPIC -shared -Wl,-z,defs $(pkg-config --cflags gantry-plugin) -o milestone.so milestone.c
 *     gantry run milestone.conf -v --plugin-dir . \
 *         --plugin-dir $(pkg-config --variable=plugindir gantry-plugin)
 */
#define GANTRY_API_VERSION 1

#include <gantry/observer.h>

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define ROLES 16 /* roles that the observer tells apart; it logs each call for further roles */

struct milestone_conf {
	int64_t steps;
};

struct milestone {
	const struct gantry_host *host;
	uint64_t n_steps;
	uint64_t *n_logged;
	struct {
		char name[64];
		uint64_t next; /* first step that is not logged */
	} roles[ROLES];
};

static const struct gantry_option options[] = {
	{"steps", GANTRY_OPT_INT, offsetof(struct milestone_conf, steps), "10", 1, 1000, NULL, NULL,
	 "Lines for the whole work of a role."},
	GANTRY_OPTION_END,
};

static int milestone_open(const struct gantry_host *host, const void *arg, void **observer_p)
{
	const struct milestone_conf *conf = arg;
	struct milestone *milestone = calloc(1, sizeof(*milestone));

	if (!milestone)
		return -ENOMEM;
	milestone->host = host;
	milestone->n_steps = (uint64_t)conf->steps;
	milestone->n_logged = host->counter(host, "logged");
	if (!milestone->n_logged) {
		free(milestone);
		return -ENOMEM;
	}
	*observer_p = milestone;
	return 0;
}

/* Returns the next step of a role; NULL: there are too many roles. The name is copied. */
static uint64_t *next_of(struct milestone *milestone, const char *role)
{
	for (unsigned i = 0; i < ROLES; i++) {
		char *name = milestone->roles[i].name;

		if (!*name)
			strncpy(name, role, sizeof(milestone->roles[i].name) - 1);
		if (!strncmp(name, role, sizeof(milestone->roles[i].name) - 1))
			return &milestone->roles[i].next;
	}
	return NULL;
}

/* Returns whether the role has reached another step, and moves to the step after it. */
static int reached(struct milestone *milestone, const struct gantry_progress *p)
{
	uint64_t *next = next_of(milestone, p->role);
	/* a target of 0 is not known; the product of large numbers needs 128 bits */
	uint64_t step =
		p->target ? (uint64_t)((unsigned __int128)p->done * milestone->n_steps / p->target)
			  : 0;

	if (!next)
		return 1;
	if (step < *next)
		return 0;
	*next = step + 1;
	return 1;
}

static void milestone_progress(void *observer, const struct gantry_progress *p)
{
	static const char *const states[] = {
		[GANTRY_PROGRESS_WAITING] = "waiting",
		[GANTRY_PROGRESS_WORKING] = "working",
		[GANTRY_PROGRESS_DONE] = "done",
		[GANTRY_PROGRESS_FAILED] = "failed",
	};
	struct milestone *milestone = observer;

	if (p->state < GANTRY_PROGRESS_DONE && !reached(milestone, p))
		return;
	gantry_count(milestone->n_logged, 1);
	gantry_log_info(milestone->host, "%s is %s: %" PRIu64 " of %" PRIu64 " %s", p->role,
			states[p->state], p->done, p->target, p->unit);
}

static const struct gantry_observer_ops ops = {
	.open = milestone_open,
	.progress = milestone_progress,
	.close = free,
};

GANTRY_PLUGIN(milestone) = {
	GANTRY_PLUGIN_HEAD,
	.kind = GANTRY_KIND_OBSERVER,
	.name = "milestone",
	.version = "1",
	.summary = "logs the progress of roles",
	.options = options,
	.conf_size = sizeof(struct milestone_conf),
	.ops_size = sizeof(ops),
	.ops = &ops,
};
