/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * wrong_profile.c - a program that runs with the profile of the other side, or without a usable run
 * directory, gets one line of the log that names the problem and the remedy
 */
#include <doca_comch.h>
#include <doca_dev.h>
#include <doca_mmap.h>

#include "captured.h"
#include "comch_rig.h"

void setUp(void)
{
}

void tearDown(void)
{
}

/* Check that the program has logged one line, at level error, with these texts. */
static void one_line(const char *problem, const char *remedy)
{
	TEST_ASSERT_EQUAL_INT_MESSAGE(1, count(captured_err, "\n"), captured_err);
	TEST_ASSERT_NOT_NULL_MESSAGE(strstr(captured_err, "[ERR]"), captured_err);
	TEST_ASSERT_NOT_NULL_MESSAGE(strstr(captured_err, problem), captured_err);
	TEST_ASSERT_NOT_NULL_MESSAGE(strstr(captured_err, remedy), captured_err);
}

static struct side s;

static void server_on_the_host(void)
{
	struct doca_comch_server *server;

	side_open_dev(&s, "b1:00.0");
	NEED_RESULT(DOCA_ERROR_INVALID_VALUE,
		    doca_comch_server_create(s.dev, NULL, RIG_NAME, &server));
}

static void client_on_the_dpu(void)
{
	struct doca_comch_client *client;

	side_open_dev(&s, "03:00.0");
	NEED_RESULT(DOCA_ERROR_INITIALIZATION, doca_comch_client_create(s.dev, RIG_NAME, &client));
}

static void server_without_representor(void)
{
	struct doca_comch_server *server;

	side_open_dev(&s, "03:00.0");
	NEED_RESULT(DOCA_ERROR_INVALID_VALUE,
		    doca_comch_server_create(s.dev, NULL, RIG_NAME, &server));
}

static void a_server_on_the_host_needs_the_profile_dpu(void)
{
	TEST_ASSERT_EQUAL_INT_MESSAGE(0, captured(server_on_the_host), captured_err);
	one_line("the device is a function of the host", "$(gantry env dpu)");
}

static void a_client_on_the_dpu_needs_the_profile_host(void)
{
	TEST_ASSERT_EQUAL_INT_MESSAGE(0, captured(client_on_the_dpu), captured_err);
	one_line("the device is a function of the DPU", "$(gantry env host)");
}

static void a_server_needs_a_representor(void)
{
	TEST_ASSERT_EQUAL_INT_MESSAGE(0, captured(server_without_representor), captured_err);
	one_line("no open representor", "doca_devinfo_rep_create_list()");
}

static const char *run_directory;

static void start_a_server(void)
{
	setenv("GANTRY_RUNDIR", run_directory, 1);
	side_server(&s, RIG_NAME);
	NEED_RESULT(DOCA_ERROR_INITIALIZATION, doca_ctx_start(s.ctx));
}

static void a_missing_run_directory_is_reported(void)
{
	run_directory = "/tmp/gantry-test-absent/directory";
	TEST_ASSERT_EQUAL_INT_MESSAGE(0, captured(start_a_server), captured_err);
	TEST_ASSERT_NOT_NULL_MESSAGE(
		strstr(captured_err, "/tmp/gantry-test-absent/directory: does not exist"),
		captured_err);
	TEST_ASSERT_NOT_NULL_MESSAGE(strstr(captured_err, "set GANTRY_RUNDIR"), captured_err);
	TEST_ASSERT_NULL_MESSAGE(strstr(captured_err, "Permission denied"), captured_err);
	run_directory = "/dev/null";
	TEST_ASSERT_EQUAL_INT_MESSAGE(0, captured(start_a_server), captured_err);
	TEST_ASSERT_NOT_NULL_MESSAGE(strstr(captured_err, "/dev/null: not a directory"),
				     captured_err);
	run_directory = "here";
	TEST_ASSERT_EQUAL_INT_MESSAGE(0, captured(start_a_server), captured_err);
	TEST_ASSERT_NOT_NULL_MESSAGE(strstr(captured_err, "here: not an absolute path"),
				     captured_err);
}

int main(void)
{
	rig_init();
	UNITY_BEGIN();
	RUN_TEST(a_server_on_the_host_needs_the_profile_dpu);
	RUN_TEST(a_client_on_the_dpu_needs_the_profile_host);
	RUN_TEST(a_server_needs_a_representor);
	RUN_TEST(a_missing_run_directory_is_reported);
	rig_fini();
	return UNITY_END();
}
