/* SPDX-License-Identifier: BSD-3-Clause */
/* The demands on a device with small limits: their sums, and the messages if a sum is too large. */
#include "cli/budget.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "report/report.h"
#include "unity.h"

#define NO_LIMIT UINT64_MAX
#define KIB 1024ull

static const char text[] = "store = {\n"
			   "  listen = {\n"
			   "    max_sessions = 4;\n"
			   "    max_lanes = 2;\n"
			   "    max_depth = 8;\n"
			   "    max_regions = 2;\n"
			   "    max_region_bytes = \"1MiB\";\n"
			   "  };\n"
			   "};\n"
			   "load = {\n"
			   "  connect = { };\n"
			   "  lanes = 3;\n"
			   "  workload = { depth = 4;\n"
			   "    block = \"8KiB\"; };\n"
			   "};\n";

static char path[] = "/tmp/gantry-budget-XXXXXX";
static struct gn_config *config;
static struct gn_errs errs;
static struct gn_budget_device devices[2];
static struct gn_demand demands[2];
static struct gn_budget budget;

/* A target and an initiator use the first device; no role uses the second device. */
void setUp(void)
{
	int fd;

	strcpy(path + strlen(path) - 6, "XXXXXX");
	fd = mkstemp(path);
	TEST_ASSERT_EQUAL_INT((int)strlen(text), write(fd, text, strlen(text)));
	close(fd);
	config = gn_config_open(path, NULL, 0, &errs);
	unlink(path);
	TEST_ASSERT_NOT_NULL(config);
	memset(devices, 0, sizeof(devices));
	devices[0].name = "nic";
	devices[1].name = "dpu";
	devices[0].info = (struct gantry_device_info){.caps = GANTRY_CAP_PINS,
						      .conn_queues = 1,
						      .lane_queues = 2,
						      .conn_bytes = 4 * KIB,
						      .lane_bytes = 16 * KIB};
	demands[0] = (struct gn_demand){
		.device = &devices[0],
		.role = gn_conf_child(gn_config_root(config), "store"),
		.serves = true,
		.plan = {.sessions = 4,
			 .lanes = 2,
			 .depth = 8,
			 .regions = 2,
			 .region_bytes = 1024 * KIB,
			 .sessions_option = "listen.max_sessions",
			 .lanes_option = "listen.max_lanes",
			 .depth_option = "listen.max_depth",
			 .regions_option = "listen.max_regions",
			 .bytes_option = "listen.max_region_bytes"},
		.bounce_bytes = 64 * KIB,
	};
	demands[1] = (struct gn_demand){
		.device = &devices[0],
		.role = gn_conf_child(gn_config_root(config), "load"),
		.plan = {.sessions = 1,
			 .lanes = 3,
			 .depth = 4,
			 .regions = 1,
			 .region_bytes = 96 * KIB,
			 .io_bytes = 8 * KIB,
			 .lanes_option = "lanes",
			 .depth_option = "workload.depth",
			 .bytes_option = "workload.block"},
	};
	budget = (struct gn_budget){
		.devices = devices, .demands = demands, .n_devices = 2, .n_demands = 2};
}

void tearDown(void)
{
	gn_errs_fini(&errs);
	gn_config_close(&config);
}

static void check(uint64_t memlock_bytes)
{
	gn_budget_sum(&budget);
	gn_budget_check(&budget, memlock_bytes, &errs);
}

/* Expect this message, without the file name, and no other message. */
static void says(const char *message)
{
	TEST_ASSERT_EQUAL_UINT_MESSAGE(1, errs.n, errs.n > 1 ? errs.text[1] : "");
	TEST_ASSERT_EQUAL_STRING(message, errs.text[0] + strlen(path) + 1);
}

static void sums_are_those_of_all_roles(void)
{
	struct gn_report report;
	char *out;

	check(NO_LIMIT);
	TEST_ASSERT_EQUAL_UINT(0, errs.n);
	TEST_ASSERT_EQUAL_UINT64(5, devices[0].sessions);
	TEST_ASSERT_EQUAL_UINT64(4 * 2 + 3, devices[0].lanes);
	TEST_ASSERT_EQUAL_UINT64(4 * (1 + 2 * 2) + 1 + 3 * 2, devices[0].queue_pairs);
	TEST_ASSERT_EQUAL_UINT64((4 * (4 + 2 * 16) + 4 + 3 * 16) * KIB, devices[0].queue_bytes);
	TEST_ASSERT_EQUAL_UINT64(4 * 2 * 64 * KIB, devices[0].bounce_bytes);
	/* only regions that the initiator exports count: the exporter locks a region */
	TEST_ASSERT_EQUAL_UINT64(96 * KIB, devices[0].region_bytes);
	TEST_ASSERT_EQUAL_UINT64(devices[0].queue_bytes + devices[0].bounce_bytes +
					 devices[0].region_bytes,
				 budget.locked_bytes);
	TEST_ASSERT_EQUAL_UINT64(0, devices[1].sessions);
	gn_report_init(&report);
	gn_budget_write(&devices[0], &report.w);
	out = json_dumps(gn_report_tree(&report), JSON_COMPACT);
	TEST_ASSERT_EQUAL_STRING(
		"{\"needs\":{\"sessions\":5,\"lanes\":11,\"queue_pairs\":27,\"queue_memory_bytes\":200704,"
		"\"bounce_memory_bytes\":524288,\"region_memory_bytes\":98304}}",
		out);
	free(out);
	gn_report_fini(&report);
}

static void memory_that_is_not_pinned_needs_no_lock_limit(void)
{
	devices[0].info.caps = 0;
	check(0);
	TEST_ASSERT_EQUAL_UINT(0, errs.n);
	TEST_ASSERT_EQUAL_UINT64(0, budget.locked_bytes);
}

static void queues_that_are_too_short(void)
{
	devices[0].info.max_depth = 15;
	check(NO_LIMIT);
	says("5: store.listen.max_depth: 8 IOs in flight need queues of 16 entries; the device \"nic\" supports up to 15; "
	     "write max_depth = 7 or less");
	gn_errs_fini(&errs);
	devices[0].info.max_depth = 1;
	check(NO_LIMIT);
	TEST_ASSERT_EQUAL_UINT(2, errs.n); /* the messages advise no number */
	TEST_ASSERT_NOT_NULL(strstr(
		errs.text[0],
		"store.listen: each IO in flight needs a queue of 2 entries; the device \"nic\" supports up "
		"to 1, so no IO can use it"));
	gn_errs_fini(&errs);
	devices[0].info.max_depth = 16;
	check(NO_LIMIT);
	TEST_ASSERT_EQUAL_UINT(0, errs.n);
	demands[1].plan.depth = 9;
	check(NO_LIMIT);
	says("13: load.workload.depth: 9 IOs in flight need queues of 18 entries; the device \"nic\" supports up to 16; "
	     "write depth = 8 or less");
	gn_errs_fini(&errs);
	demands[1].plan.depth_option = NULL;
	check(NO_LIMIT);
	says("11: load.connect: 9 IOs in flight need queues of 18 entries; the device \"nic\" supports up to 16");
}

static void regions_that_do_not_fit(void)
{
	devices[0].info.max_regions = 1;
	check(NO_LIMIT);
	says("6: store.listen.max_regions: a session has up to 2 regions; the device \"nic\" supports up to 1; "
	     "write max_regions = 1 or less");
	gn_errs_fini(&errs);
	devices[0].info.max_regions = 0;
	devices[0].info.max_region_bytes = 768 * KIB;
	check(NO_LIMIT);
	says("7: store.listen.max_region_bytes: a session has regions of up to 1MiB; the device \"nic\" supports up to 768KiB; "
	     "write max_region_bytes = \"768KiB\" or less");
	gn_errs_fini(&errs);
	demands[0].plan.region_bytes = 0; /* unknown */
	devices[0].info.max_region_bytes = 95 * KIB;
	check(NO_LIMIT);
	says("14: load.workload.block: a session has regions of up to 96KiB; the device \"nic\" supports up to 95KiB; "
	     "write block = \"4KiB\" or less");
}

static void more_queue_pairs_than_there_are(void)
{
	devices[0].info.max_queues = 26;
	check(NO_LIMIT);
	says("3: store.listen.max_sessions: 4 sessions of 2 lanes can need 20 queue pairs, "
	     "and all roles on the device together 27; the device \"nic\" supports up to 26; write max_sessions = 3 or less");
	gn_errs_fini(&errs);
	budget.n_demands = 1;
	devices[0].info.max_queues = 4;
	check(NO_LIMIT);
	says("3: store.listen.max_sessions: 4 sessions of 2 lanes can need 20 queue pairs; the device \"nic\" supports up to 4; "
	     "write max_sessions = 1 and max_lanes = 1 or less");
	gn_errs_fini(&errs);
	devices[0].info.max_queues = 2;
	check(NO_LIMIT);
	says("3: store.listen.max_sessions: 4 sessions of 2 lanes can need 20 queue pairs; the device \"nic\" supports up to 2; "
	     "use another device for one of these roles");
}

static void advised_numbers_pass_the_check(void)
{
	for (uint32_t max = 1; max < 27; max++) {
		struct gn_demand *d = &demands[0];

		tearDown();
		setUp();
		devices[0].info.max_queues = max;
		check(NO_LIMIT);
		TEST_ASSERT_EQUAL_UINT(1, errs.n);
		if (sscanf(strstr(errs.text[0], "supports up to "),
			   "supports up to %*u; write max_sessions = %u and max_lanes = %u",
			   &d->plan.sessions, &d->plan.lanes) < 1)
			continue; /* the message advises no number */
		gn_errs_fini(&errs);
		check(NO_LIMIT);
		TEST_ASSERT_EQUAL_UINT_MESSAGE(0, errs.n, errs.n ? errs.text[0] : "");
	}
}

static void more_memory_than_may_be_locked(void)
{
	check(804 * KIB);
	TEST_ASSERT_EQUAL_UINT(0, errs.n);
	check(500 * KIB); /* of which the initiator needs 148 KiB */
	says("3: store.listen.max_sessions: 4 sessions of 2 lanes can lock 656KiB of memory on the device \"nic\", the whole process "
	     "804KiB, but the limit of this process is 500KiB (RLIMIT_MEMLOCK); raise it before the start with \"ulimit -l 804\", or "
	     "LimitMEMLOCK=804K in a unit of systemd; or write max_sessions = 2 or less");
}

static void numbers_that_overflow_are_too_much(void)
{
	devices[0].info.lane_bytes = UINT64_MAX / 2;
	check(UINT64_MAX - 1);
	TEST_ASSERT_EQUAL_UINT64(UINT64_MAX, budget.locked_bytes);
	TEST_ASSERT_EQUAL_UINT(1, errs.n);
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(sums_are_those_of_all_roles);
	RUN_TEST(memory_that_is_not_pinned_needs_no_lock_limit);
	RUN_TEST(queues_that_are_too_short);
	RUN_TEST(regions_that_do_not_fit);
	RUN_TEST(more_queue_pairs_than_there_are);
	RUN_TEST(advised_numbers_pass_the_check);
	RUN_TEST(more_memory_than_may_be_locked);
	RUN_TEST(numbers_that_overflow_are_too_much);
	return UNITY_END();
}
