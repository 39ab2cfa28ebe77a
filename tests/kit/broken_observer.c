/* SPDX-License-Identifier: BSD-3-Clause */
/* broken_observer.c - an observer with a selectable bug, to show that gantry conform finds it. */
#define GANTRY_API_VERSION 1

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <gantry/observer.h>

struct broken_conf {
	const char *bug;
};

struct broken {
	const char *bug, *role; /* role: name in the last call */
	volatile uint64_t percent;
	void *kept;
};

static const struct gantry_option options[] = {
	{"bug", GANTRY_OPT_STRING, offsetof(struct broken_conf, bug), "none", 0, 0, NULL, NULL,
	 "The bug."},
	GANTRY_OPTION_END,
};

static int has(const struct broken *b, const char *bug)
{
	return strcmp(b->bug, bug) == 0;
}

static int broken_open(const struct gantry_host *host, const void *conf, void **observer_p)
{
	struct broken *b = calloc(1, sizeof(*b));

	(void)host;
	if (!b)
		return -ENOMEM;
	b->bug = ((const struct broken_conf *)conf)->bug;
	*observer_p = b;
	return 0;
}

static void broken_progress(void *observer, const struct gantry_progress *p)
{
	struct broken *b = observer;

	if (has(b, "divides-by-zero") || p->target)
		b->percent = (uint64_t)((unsigned __int128)p->done * 100 / p->target);
	if (has(b, "keeps-a-pointer") && b->role)
		b->percent += (unsigned char)b->role[0];
	b->role = p->role;
	if (has(b, "leaks") && !b->kept)
		b->kept = malloc(100);
	if (has(b, "crashes-at-the-end") && p->done == UINT64_MAX)
		abort();
}

static void broken_close(void *observer)
{
	struct broken *b = observer;

	if (!has(b, "leaks"))
		free(b->kept);
	free(b);
}

static const struct gantry_observer_ops ops = {
	.open = broken_open,
	.progress = broken_progress,
	.close = broken_close,
};

GANTRY_PLUGIN(broken_observer) = {
	GANTRY_PLUGIN_HEAD,
	.kind = GANTRY_KIND_OBSERVER,
	.name = "broken-observer",
	.version = "1",
	.summary = "has a bug: for tests of tests",
	.options = options,
	.conf_size = sizeof(struct broken_conf),
	.ops_size = sizeof(ops),
	.ops = &ops,
};
