/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * If a plugin returns a value that its interface forbids, the core reports that this plugin is
 * defective, and not a failure of the system.
 */
#include <errno.h>
#include <string.h>

#include "unit/session/rig.h"

static char said[4096];
static int answers[2]; /* return values of open and start */
static unsigned n_closed;

static void record_error(enum gn_log_level level, const char *who, const char *message)
{
	size_t n = strlen(said);

	if (level == GN_LOG_ERROR)
		snprintf(said + n, sizeof(said) - n, "%s: %s\n", who, message);
}

static int part_open(const struct gantry_host *host, const void *conf, void **self_p)
{
	(void)host;
	(void)conf;
	*self_p = NULL;
	return answers[0];
}

static int role_open(const struct gantry_role_host *host, const void *conf, void **self_p)
{
	(void)host;
	(void)conf;
	*self_p = NULL;
	return answers[0];
}

static int stage_start(void *stage, struct gantry_lane *lane, void **self_p)
{
	(void)stage;
	(void)lane;
	*self_p = NULL;
	return answers[1];
}

static int backend_start(void *backend, struct gantry_lane *lane, uint32_t depth, void **self_p)
{
	(void)depth;
	return stage_start(backend, lane, self_p);
}

static int role_start(void *role)
{
	(void)role;
	return answers[1];
}

static void volume(void *backend, struct gantry_volume_info *info)
{
	(void)backend;
	*info = (struct gantry_volume_info){
		.size = 1 << 20, .block_size = 512, .ops = 0x3f, .max_io = 65536};
}

static void closed(void *self)
{
	(void)self;
	n_closed++;
}

static const struct gantry_stage_ops stage_ops = {
	.open = part_open, .start = stage_start, .close = closed};
static const struct gantry_backend_ops backend_ops = {
	.open = part_open, .volume = volume, .start = backend_start, .close = closed};
static const struct gantry_role_ops role_ops = {
	.open = role_open, .start = role_start, .close = closed};

/* Create a role of these parts, and start it. */
static int make(const struct gn_plugin_instance *stage, const struct gn_plugin_instance *backend)
{
	struct gn_worker *workers[1] = {fc.worker};
	struct gn_role_spec spec = {
		.name = "odd",
		.part = {.name = "strange",
			 .ops = stage || backend ? fc.ops : &role_ops,
			 .conf = &fc},
		.n_lanes = 1,
		.workers = workers,
		.stages = stage,
		.n_stages = stage != NULL,
		.backend = backend,
	};
	struct gn_role *role = NULL;
	int rc;

	said[0] = '\0';
	n_closed = 0;
	gn_log_set_hook(record_error);
	rc = gn_role_create(fc.loop, &spec, &role);
	if (rc == 0)
		rc = gn_role_start(role);
	gn_role_destroy(&role);
	gn_log_set_hook(NULL);
	return rc;
}

static void expect_plugin_bug(const char *who, const char *function)
{
	char text[128];

	snprintf(text, sizeof(text),
		 "%s: plugin bug: function %s returned 5, only 0 and -errno are valid", who,
		 function);
	TEST_ASSERT_NOT_NULL_MESSAGE(strstr(said, text), said);
	TEST_ASSERT_NULL_MESSAGE(strstr(said, "Unknown error"), said);
}

static void invalid_return_values_of_plugins_are_logged(void)
{
	static const struct gn_plugin_instance stage = {.name = "strange", .ops = &stage_ops};
	static const struct gn_plugin_instance backend = {.name = "strange", .ops = &backend_ops};
	static const struct gn_plugin_instance *const parts[][2] = {
		{&stage, NULL}, {NULL, &backend}, {NULL, NULL}};

	fake_core_start(&fc, 1);
	for (unsigned i = 0; i < 3; i++)
		for (unsigned in_start = 0; in_start < 2; in_start++) {
			answers[0] = in_start ? 0 : 5;
			answers[1] = 5;
			TEST_ASSERT_EQUAL_INT(-EPROTO, make(parts[i][0], parts[i][1]));
			expect_plugin_bug("strange", in_start ? "start" : "open");
			TEST_ASSERT_EQUAL_UINT(in_start, n_closed);
		}
}

static void invalid_return_value_of_a_transport_is_logged(void)
{
	static const struct gantry_transport_ops ops = {.open = part_open};
	struct gn_device *device;
	int rc;

	fake_core_start(&fc, 1);
	answers[0] = 5;
	said[0] = '\0';
	gn_log_set_hook(record_error);
	rc = gn_device_open(fc.loop, "odd", "strange", &ops, NULL, NULL, &device);
	gn_log_set_hook(NULL);
	TEST_ASSERT_EQUAL_INT(-EPROTO, rc);
	expect_plugin_bug("strange", "open");
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(invalid_return_values_of_plugins_are_logged);
	RUN_TEST(invalid_return_value_of_a_transport_is_logged);
	return UNITY_END();
}
