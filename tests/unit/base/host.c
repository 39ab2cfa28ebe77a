/* SPDX-License-Identifier: BSD-3-Clause */
/* The services that the host gives each plugin instance: name, log, clock, counters. */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/host.h"
#include "base/log.h"
#include "fake/host.h"
#include "fake/worker.h"
#include "unity.h"

static struct gn_host host;

void setUp(void)
{
	gn_host_init(&host, "roles.%s", "bridge");
}

void tearDown(void)
{
	gn_host_fini(&host);
}

static void host_has_a_name_that_fits(void)
{
	char longer[300];

	TEST_ASSERT_EQUAL_STRING("roles.bridge", host.pub.name);
	TEST_ASSERT_EQUAL_UINT(sizeof(struct gantry_host), host.pub.struct_size);
	memset(longer, 'x', sizeof(longer));
	longer[299] = '\0';
	gn_host_fini(&host);
	gn_host_init(&host, "%s", longer);
	TEST_ASSERT_EQUAL_UINT(95, strlen(host.pub.name));
}

static void counters_of_one_name_are_added_and_reported_once(void)
{
	uint64_t *a = host.pub.counter(&host.pub, "ops"), *b = host.pub.counter(&host.pub, "lost");
	uint64_t *c = host.pub.counter(&host.pub, "ops");
	struct fake_report report;

	TEST_ASSERT_EQUAL_UINT64(0, *a);
	gantry_count(a, 5);
	gantry_count(b, 1);
	gantry_count(c, 7);
	TEST_ASSERT_EQUAL_UINT64(12, gn_host_counter(&host, "ops"));
	TEST_ASSERT_EQUAL_UINT64(1, gn_host_counter(&host, "lost"));
	TEST_ASSERT_EQUAL_UINT64(0, gn_host_counter(&host, "op"));
	fake_report_init(&report);
	gn_host_report(&host, &report.pub);
	TEST_ASSERT_EQUAL_STRING("counters.ops=12\ncounters.lost=1\n", report.text);
}

static void a_long_name_of_a_counter_is_cut(void)
{
	char name[80];

	memset(name, 'n', sizeof(name));
	name[79] = '\0';
	gantry_count(host.pub.counter(&host.pub, name), 3);
	name[47] = '\0';
	TEST_ASSERT_EQUAL_UINT64(3, gn_host_counter(&host, name));
}

static void log_line_has_the_host_name_and_obeys_the_level(void)
{
	int fd = memfd_create("log", MFD_CLOEXEC);
	char text[4096] = "", longer[1000];

	memset(longer, 'y', sizeof(longer));
	longer[999] = '\0';
	gn_log_set_sink(fd, GN_LOG_TEXT);
	gantry_log_warn(&host.pub, "odd a=%d", 1);
	gantry_log_debug(&host.pub, "not shown");
	host.pub.log(&host.pub, 99, "not shown either");
	host.pub.log(&host.pub, -1, "nor this");
	gantry_log_error(&host.pub, "%s", longer);
	gn_log_set_sink(2, GN_LOG_TEXT);
	TEST_ASSERT_TRUE(pread(fd, text, sizeof(text) - 1, 0) > 0);
	close(fd);
	TEST_ASSERT_NOT_NULL(strstr(text, "warn roles.bridge: odd a=1\n"));
	TEST_ASSERT_NOT_NULL(strstr(text, "error roles.bridge: yyyy"));
	TEST_ASSERT_NULL(strstr(text, "not shown"));
	TEST_ASSERT_NULL(strstr(text, "nor this"));
}

static void host_time_is_the_time_of_the_clock(void)
{
	uint64_t before;

	fake_clock_start();
	before = host.pub.now_ns(&host.pub);
	fake_clock_advance(17);
	TEST_ASSERT_EQUAL_UINT64(17, host.pub.now_ns(&host.pub) - before);
	fake_clock_stop();
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(host_has_a_name_that_fits);
	RUN_TEST(counters_of_one_name_are_added_and_reported_once);
	RUN_TEST(a_long_name_of_a_counter_is_cut);
	RUN_TEST(log_line_has_the_host_name_and_obeys_the_level);
	RUN_TEST(host_time_is_the_time_of_the_clock);
	return UNITY_END();
}
