/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kit_plugin.c - cases of plugins of every kind: open and close, the limits of the options, and
 * allocations that fail.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "fake/chain.h"
#include "fake/role_host.h"
#include "fake/shortage.h"
#include "gantry/observer.h"
#include "kit/kit_program.h"

#define TEXT 512
#define MOST 2000 /* limit of allocations of an open */
/* an option such as a size can ask for more memory than the machine has */
#define ADDRESS_SPACE ((rlim_t)4 << 30)

static struct fake_host host;

/* -- open and close, by kind -- */

static int open_transport(void *conf)
{
	const struct gantry_transport_ops *ops = kit_program.loaded->ops;
	void *device;
	int rc = ops->open(&host.pub, conf, &device);

	if (!rc)
		ops->close(device);
	return rc;
}

static int open_stage(void *conf)
{
	const struct gantry_stage_ops *ops = kit_program.loaded->ops;
	struct gantry_lane lane;
	void *stage = NULL, *self;
	int rc = ops->open(&host.pub, conf, &stage);

	if (rc)
		return rc;
	fake_lane_init(&lane, &host, 0, 1);
	self = stage;
	rc = ops->start(stage, &lane, &self);
	if (!rc)
		ops->stop(self);
	ops->close(stage);
	return rc;
}

static int open_backend(void *conf)
{
	const struct gantry_backend_ops *ops = kit_program.loaded->ops;
	struct gantry_lane lane;
	void *backend = NULL, *self;
	int rc = ops->open(&host.pub, conf, &backend);

	if (rc)
		return rc;
	fake_lane_init(&lane, &host, 0, 1);
	self = backend;
	rc = ops->start(backend, &lane, FAKE_IOS, &self);
	if (!rc)
		ops->stop(self);
	ops->close(backend);
	return rc;
}

static int open_role(void *conf)
{
	static struct fake_role_host rh;
	const struct gantry_role_ops *ops = kit_program.loaded->ops;
	void *role = NULL;
	int rc;

	fake_role_init(&rh, &host, 1, 1 << 20, 4096);
	rc = ops->open(&rh.pub, conf, &role);
	if (!rc)
		ops->close(role);
	fake_role_fini(&rh);
	return rc;
}

static int open_observer(void *conf)
{
	const struct gantry_observer_ops *ops = kit_program.loaded->ops;
	void *observer = NULL;
	int rc = ops->open(&host.pub, conf, &observer);

	if (!rc)
		ops->close(observer);
	return rc;
}

int kit_open_and_close(void *conf, char *log, size_t size)
{
	int (*const open[])(void *conf) = {
		[GANTRY_KIND_TRANSPORT] = open_transport, [GANTRY_KIND_STAGE] = open_stage,
		[GANTRY_KIND_BACKEND] = open_backend,     [GANTRY_KIND_ROLE] = open_role,
		[GANTRY_KIND_OBSERVER] = open_observer,
	};
	int rc;

	fake_host_init(&host, "test");
	host.real_clock = 1;
	rc = open[kit_program.plugin->kind](conf);
	snprintf(log, size, "%s", host.log);
	return rc;
}

/* -- cases -- */

static void opens_and_closes(void)
{
	char log[TEXT];
	void *conf = kit_conf_copy();
	long blocks, fds;

	/* twice: do not count what libraries allocate once and keep */
	RIG_RC(0, kit_open_and_close(conf, log, sizeof(log)), log);
	blocks = shortage_blocks();
	fds = shortage_entries("/proc/self/fd");
	RIG_RC(0, kit_open_and_close(conf, log, sizeof(log)), log);
	RIG_NUM((uint64_t)fds, (uint64_t)shortage_entries("/proc/self/fd"),
		"open descriptors after close");
	RIG_NUM((uint64_t)blocks, (uint64_t)shortage_blocks(), "blocks of memory after close");
	free(conf);
}

/* Allocation `at` of the plugin fails; later ones fail too if it lasts. Returns whether one did. */
static int open_short_of(void *conf, uint32_t at, uint32_t lasts)
{
	struct shortage shortage = {.at = at, .lasts = lasts, .foreign = 1};
	long blocks = shortage_blocks(), fds = shortage_entries("/proc/self/fd");
	char log[TEXT], what[TEXT];
	int rc;

	shortage_use(&shortage);
	rc = kit_open_and_close(conf, log, sizeof(log));
	shortage_use(NULL);
	snprintf(what, sizeof(what), "result of open and start when allocation %u fails%s", at,
		 lasts ? ", and all later ones" : "");
	if (rc)
		RIG_RC(-ENOMEM, rc, what);
	snprintf(what, sizeof(what), "blocks of memory after allocation %u has failed", at);
	RIG_NUM((uint64_t)blocks, (uint64_t)shortage_blocks(), what);
	snprintf(what, sizeof(what), "open descriptors after allocation %u has failed", at);
	RIG_NUM((uint64_t)fds, (uint64_t)shortage_entries("/proc/self/fd"), what);
	return shortage.failed > 0;
}

static void failed_allocations_are_reported(void)
{
	char log[TEXT];
	void *conf;

	if (!shortage_can())
		rig_skip("skipped: allocations cannot fail in this build");
	conf = kit_conf_copy();
	kit_open_and_close(conf, log, sizeof(log));
	for (uint32_t lasts = 0; lasts < 2; lasts++)
		for (uint32_t at = 1; at < MOST && open_short_of(conf, at, lasts); at++)
			;
	free(conf);
}

/* -- the table of options -- */

/*
 * An instance either opens with options that the table and `check` accept, or fails and logs the
 * reason. EINVAL would say that `check` has overlooked a fault.
 */
static void try_setting(const char *setting)
{
	char why[TEXT], log[TEXT], what[2 * TEXT];
	void *conf = kit_conf_with(setting, why, sizeof(why));
	int rc;

	if (*why) /* rejected, with a reason */
		return;
	rc = kit_open_and_close(conf, log, sizeof(log));
	free(conf);
	if (!rc)
		return;
	snprintf(what, sizeof(what),
		 "open with %s, which check accepts: a failure other than -EINVAL", setting);
	RIG_HOLDS(rc != -EINVAL, what);
	snprintf(what, sizeof(what), "open with %s fails with %s: a logged reason", setting,
		 strerrorname_np(-rc));
	RIG_HOLDS(*log || rc == -ENOMEM, what);
}

static void try_number(const char *prefix, const struct gantry_option *row, int64_t number)
{
	char setting[TEXT];

	snprintf(setting, sizeof(setting), "%s%s=%lld%s", prefix, row->name, (long long)number,
		 row->type == GANTRY_OPT_TIME ? "ns" : "");
	try_setting(setting);
}

static void try_words(const char *prefix, const struct gantry_option *row)
{
	static const char *const bools[] = {"false", "true", NULL};
	char setting[TEXT];

	for (const char *const *word = row->type == GANTRY_OPT_BOOL ? bools : row->choices; *word;
	     word++) {
		snprintf(setting, sizeof(setting), "%s%s=%s", prefix, row->name, *word);
		try_setting(setting);
	}
}

static void try_rows(const char *prefix, const struct gantry_option *rows)
{
	char inner[TEXT];

	for (const struct gantry_option *row = rows; row && row->name; row++) {
		if (row->type == GANTRY_OPT_GROUP) {
			snprintf(inner, sizeof(inner), "%s%s.", prefix, row->name);
			try_rows(inner, row->group);
		} else if (row->type == GANTRY_OPT_BOOL || row->type == GANTRY_OPT_CHOICE) {
			try_words(prefix, row);
		} else if (row->type != GANTRY_OPT_STRING && (row->min || row->max)) {
			try_number(prefix, row, row->min);
			try_number(prefix, row, row->min + 1);
			try_number(prefix, row, row->max);
		}
	}
}

static void limits_of_options_open_or_are_rejected(void)
{
	const struct rlimit limit = {ADDRESS_SPACE, ADDRESS_SPACE};

	if (!shortage_can())
		rig_skip("skipped: memory cannot be limited in this build");
	setrlimit(RLIMIT_AS, &limit);
	try_rows("", kit_program.plugin->options);
}

void kit_plugin_cases(void)
{
	RIG_CASE(opens_and_closes);
	RIG_CASE(failed_allocations_are_reported);
	RIG_CASE(limits_of_options_open_or_are_rejected);
}
