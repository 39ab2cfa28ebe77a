/* SPDX-License-Identifier: BSD-3-Clause */
/* broken_backend.c - the backend of kit_fake.c as a plugin. Its option is the number of the bug. */
#define GANTRY_API_VERSION 1

#include <stdlib.h>

#include "unit/backend/kit.h"

struct broken_conf {
	const char *bug;
};

static struct gantry_backend_ops ops;

static const struct gantry_option options[] = {
	{"bug", GANTRY_OPT_STRING, offsetof(struct broken_conf, bug), "0", 0, 0, NULL, NULL,
	 "The bug, a number of enum kit_bug."},
	GANTRY_OPTION_END,
};

/* The store keeps its data and what it counts until the process ends. */
static int broken_open(const struct gantry_host *host, const void *arg, void **backend_p)
{
	const struct gantry_backend_ops *fake = kit_fake.ops;
	const struct broken_conf *conf = arg;
	static int is_open;

	if (!is_open)
		kit_fake_bug((enum kit_bug)atoi(conf->bug));
	is_open = 1;
	return fake->open(host, conf, backend_p);
}

__attribute__((constructor)) static void fill(void)
{
	ops = *(const struct gantry_backend_ops *)kit_fake.ops;
	ops.open = broken_open;
}

GANTRY_PLUGIN(broken_backend) = {
	GANTRY_PLUGIN_HEAD,
	.kind = GANTRY_KIND_BACKEND,
	.name = "broken-backend",
	.version = "1",
	.summary = "has a bug: for tests of tests",
	.options = options,
	.conf_size = sizeof(struct broken_conf),
	.ops_size = sizeof(ops),
	.ops = &ops,
};
