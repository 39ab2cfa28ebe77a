/* SPDX-License-Identifier: BSD-3-Clause */
/* Log lines: their destination, their format, and filtering by level. */
#include <doca_log.h>
#include <errno.h>
#include <pthread.h>
#include <regex.h>

#include "captured.h"
#include "common/gd_log.h"

DOCA_LOG_REGISTER(TEST::LOG);

static char buf[64], flushed[256];

static void all_levels(void)
{
	DOCA_LOG_CRIT("text %s", "crit");
	DOCA_LOG_ERR("text err");
	DOCA_LOG_WARN("text warn");
	DOCA_LOG_INFO("text info");
	DOCA_LOG_DBG("text debug");
	doca_log(DOCA_LOG_LEVEL_TRACE, log_source, __FILE__, __LINE__, __func__, "text trace");
}

static void all_sdk_levels(void)
{
	for (uint32_t level = DOCA_LOG_LEVEL_CRIT; level <= DOCA_LOG_LEVEL_TRACE; level += 10)
		gd_log(level, "sdk %d", (int)level);
}

/* a constructor registers a source before main() and before any other call */
static void a_source_is_registered_before_main(void)
{
	int source = -1;

	TEST_ASSERT_TRUE(log_source >= 0);
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_log_register_source("OTHER", &source));
	TEST_ASSERT_TRUE(source >= 0 && source != log_source);
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_log_unregister_source(source));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_log_unregister_source(source));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_log_unregister_source(-1));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_log_register_source(NULL, &source));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_log_register_source("X", NULL));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_log_register_source("AGAIN", &source));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_log_unregister_source(source));
}

static void run_nothing_set(void)
{
	all_levels();
	all_sdk_levels();
}

static void without_a_backend_only_warnings_of_the_library_are_seen(void)
{
	TEST_ASSERT_EQUAL_INT(0, captured(run_nothing_set));
	TEST_ASSERT_EQUAL_STRING("", captured_out);
	TEST_ASSERT_EQUAL_INT(3, count(captured_err, "\n"));
	TEST_ASSERT_EQUAL_INT(1, count(captured_err, "sdk 40"));
}

static void run_standard(void)
{
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_log_backend_create_standard());
	/* a second call changes nothing */
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_log_backend_create_standard());
	all_levels();
}

/* stdout for INFO and more verbose, stderr for WARNING to CRIT; the default level hides DBG */
static void standard_backends_split_at_info(void)
{
	TEST_ASSERT_EQUAL_INT(0, captured(run_standard));
	TEST_ASSERT_EQUAL_INT(1, count(captured_out, "\n"));
	TEST_ASSERT_EQUAL_INT(1, count(captured_out, "text info"));
	TEST_ASSERT_EQUAL_INT(3, count(captured_err, "\n"));
	TEST_ASSERT_EQUAL_INT(1, count(captured_err, "text warn"));
	TEST_ASSERT_EQUAL_INT(1, count(captured_err, "text crit"));
}

static void run_debug(void)
{
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_log_backend_create_standard());
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS,
			      doca_log_level_set_global_lower_limit(DOCA_LOG_LEVEL_TRACE));
	TEST_ASSERT_EQUAL_UINT32(DOCA_LOG_LEVEL_TRACE, doca_log_level_get_global_lower_limit());
	all_levels();
}

static void run_errors_only(void)
{
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS,
			      doca_log_level_set_global_lower_limit(DOCA_LOG_LEVEL_ERROR));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_log_backend_create_standard());
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS,
			      doca_log_level_set_global_upper_limit(DOCA_LOG_LEVEL_ERROR));
	TEST_ASSERT_EQUAL_UINT32(DOCA_LOG_LEVEL_ERROR, doca_log_level_get_global_upper_limit());
	all_levels();
}

static void run_disabled(void)
{
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_log_backend_create_standard());
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS,
			      doca_log_level_set_global_lower_limit(DOCA_LOG_LEVEL_DISABLE));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS,
			      doca_log_level_set_global_sdk_limit(DOCA_LOG_LEVEL_DISABLE));
	all_levels();
	all_sdk_levels();
}

static void global_limits_move_all_backends(void)
{
	TEST_ASSERT_EQUAL_INT(0, captured(run_debug));
	TEST_ASSERT_EQUAL_INT(3, count(captured_out, "\n"));
	TEST_ASSERT_EQUAL_INT(3, count(captured_err, "\n"));
	TEST_ASSERT_EQUAL_INT(0, captured(run_errors_only));
	TEST_ASSERT_EQUAL_STRING("", captured_out);
	TEST_ASSERT_EQUAL_INT(1, count(captured_err, "\n"));
	TEST_ASSERT_EQUAL_INT(1, count(captured_err, "text err"));
	TEST_ASSERT_EQUAL_INT(0, captured(run_disabled));
	TEST_ASSERT_EQUAL_STRING("", captured_out);
	TEST_ASSERT_EQUAL_STRING("", captured_err);
}

/* [HH:MM:SS:uuuuuu][pid][DOCA][ERR][file.c:LINE][function] text */
static void a_line_has_time_process_level_place_and_text(void)
{
	regex_t re;

	TEST_ASSERT_EQUAL_INT(0, captured(run_standard));
	TEST_ASSERT_EQUAL_INT(
		0,
		regcomp(&re,
			"^\\[[0-2][0-9]:[0-5][0-9]:[0-6][0-9]:[0-9]{6}\\]\\[[0-9]+\\]\\[DOCA\\]\\[CRT\\]"
			"\\[log\\.c:[0-9]+\\]\\[all_levels\\] text crit\n",
			REG_EXTENDED | REG_NOSUB));
	TEST_ASSERT_EQUAL_INT(0, regexec(&re, captured_err, 0, NULL, 0));
	regfree(&re);
	TEST_ASSERT_EQUAL_INT(1, count(captured_err, "[ERR]"));
	TEST_ASSERT_EQUAL_INT(1, count(captured_err, "[WRN]"));
	TEST_ASSERT_EQUAL_INT(1, count(captured_out, "[INF]"));
	TEST_ASSERT_EQUAL_INT(0, captured(run_debug));
	TEST_ASSERT_EQUAL_INT(1, count(captured_out, "[DBG]"));
	TEST_ASSERT_EQUAL_INT(1, count(captured_out, "[TRC]"));
}

/* the first calls of every program */
static void run_program(void)
{
	struct doca_log_backend *sdk;

	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_log_backend_create_standard());
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_log_backend_create_with_file_sdk(stderr, &sdk));
	all_sdk_levels();
	fprintf(stderr, "---\n");
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS,
			      doca_log_backend_set_sdk_level(sdk, DOCA_LOG_LEVEL_ERROR));
	all_sdk_levels();
	fprintf(stderr, "---\n");
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS,
			      doca_log_level_set_global_sdk_limit(DOCA_LOG_LEVEL_DEBUG));
	TEST_ASSERT_EQUAL_UINT32(DOCA_LOG_LEVEL_DEBUG, doca_log_level_get_global_sdk_limit());
	all_sdk_levels();
}

static void sdk_backends_have_a_separate_level(void)
{
	char *second, *third;

	TEST_ASSERT_EQUAL_INT(0, captured(run_program));
	TEST_ASSERT_EQUAL_STRING("", captured_out);
	second = strstr(captured_err, "---\n");
	TEST_ASSERT_NOT_NULL(second);
	*second++ = '\0';
	third = strstr(second, "---\n");
	TEST_ASSERT_NOT_NULL(third);
	*third++ = '\0';
	TEST_ASSERT_EQUAL_INT(4, count(captured_err, "sdk ")); /* INFO at first */
	TEST_ASSERT_EQUAL_INT(2, count(second, "sdk "));
	TEST_ASSERT_EQUAL_INT(5, count(third, "sdk "));
}

static void run_files(void)
{
	struct doca_log_backend *fd, *file, *strict;

	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_log_backend_create_with_fd(STDOUT_FILENO, &fd));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_log_backend_create_with_file(stderr, &file));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS,
			      doca_log_backend_create_with_fd(STDOUT_FILENO, &strict));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_log_backend_set_level_lower_limit_strict(strict));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_log_backend_set_level_upper_limit_strict(strict));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS,
			      doca_log_level_set_global_lower_limit(DOCA_LOG_LEVEL_DEBUG));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS,
			      doca_log_level_set_global_upper_limit(DOCA_LOG_LEVEL_ERROR));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS,
			      doca_log_backend_set_level_lower_limit(file, DOCA_LOG_LEVEL_CRIT));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS,
			      doca_log_backend_set_level_upper_limit(file, DOCA_LOG_LEVEL_CRIT));
	all_levels();
}

static void a_backend_may_have_limits_of_its_own_and_keep_them(void)
{
	TEST_ASSERT_EQUAL_INT(0, captured(run_files));
	/* one backend prints ERR to DBG, the strict one CRIT to INFO */
	TEST_ASSERT_EQUAL_INT(4 + 4, count(captured_out, "\n"));
	TEST_ASSERT_EQUAL_INT(1, count(captured_out, "text crit"));
	TEST_ASSERT_EQUAL_INT(1, count(captured_out, "text debug"));
	TEST_ASSERT_EQUAL_INT(1, count(captured_err, "\n"));
	TEST_ASSERT_EQUAL_INT(1, count(captured_err, "text crit"));
}

static void on_flush(char *text)
{
	TEST_ASSERT_EQUAL_PTR(buf, text);
	snprintf(flushed + strlen(flushed), sizeof(flushed) - strlen(flushed), "%s|", text);
	DOCA_LOG_ERR("a line inside"); /* dropped: this backend is busy */
}

static void run_buf(void)
{
	struct doca_log_backend *backend;

	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_log_backend_create_with_buf(buf, sizeof(buf),
									     on_flush, &backend));
	DOCA_LOG_ERR(
		"a text that does not fit into sixty-four bytes with all that stands before it");
	DOCA_LOG_INFO("next");
	printf("%s", flushed);
}

static void a_buffer_is_flushed_for_each_line_and_cut(void)
{
	TEST_ASSERT_EQUAL_INT(0, captured(run_buf));
	TEST_ASSERT_EQUAL_INT(2, count(captured_out, "|"));
	TEST_ASSERT_EQUAL_INT(sizeof(buf) - 1, strcspn(captured_out, "|"));
	TEST_ASSERT_EQUAL_INT(1, count(captured_out, "] next\n|"));
	TEST_ASSERT_EQUAL_INT(0, count(captured_out, "inside"));
}

static void run_syslog(void)
{
	struct doca_log_backend *backend;

	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS,
			      doca_log_backend_create_with_syslog("gantry-test", &backend));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS,
			      doca_log_backend_create_with_syslog_sdk("gantry-test", &backend));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS,
			      doca_log_backend_set_sdk_level(backend, DOCA_LOG_LEVEL_CRIT));
	DOCA_LOG_DBG("not shown");
}

static void syslog_is_a_backend_too(void)
{
	TEST_ASSERT_EQUAL_INT(0, captured(run_syslog));
}

static int n_evaluated;

static int evaluated(void)
{
	return ++n_evaluated;
}

static void run_hidden(void)
{
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_log_backend_create_standard());
	DOCA_LOG_DBG("hidden %d", evaluated());
	TEST_ASSERT_EQUAL_INT(1, n_evaluated);
	DOCA_LOG_TRC("not there at all %d", evaluated());
	TEST_ASSERT_EQUAL_INT(1, n_evaluated);
	DOCA_LOG_INFO("100%%");
}

/*
 * the arguments of a line are evaluated at every level, except those of TRC, which is not compiled
 * in
 */
static void arguments_are_evaluated_though_the_level_hides_the_line(void)
{
	TEST_ASSERT_EQUAL_INT_MESSAGE(0, captured(run_hidden), captured_out);
	TEST_ASSERT_EQUAL_INT(1, count(captured_out, "\n"));
	TEST_ASSERT_EQUAL_INT(1, count(captured_out, "] 100%\n"));
}

static void wrong_arguments_are_refused(void)
{
	struct doca_log_backend *b = NULL;

	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE,
			      doca_log_backend_create_with_file(NULL, &b));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE,
			      doca_log_backend_create_with_file(stderr, NULL));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE,
			      doca_log_backend_create_with_file_sdk(NULL, &b));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE,
			      doca_log_backend_create_with_file_sdk(stderr, NULL));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_log_backend_create_with_fd(-1, &b));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE,
			      doca_log_backend_create_with_fd_sdk(1, NULL));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE,
			      doca_log_backend_create_with_buf(NULL, 1, on_flush, &b));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE,
			      doca_log_backend_create_with_buf(buf, 0, on_flush, &b));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE,
			      doca_log_backend_create_with_buf_sdk(buf, 1, NULL, &b));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE,
			      doca_log_backend_create_with_syslog(NULL, &b));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE,
			      doca_log_backend_create_with_syslog_sdk("x", NULL));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE,
			      doca_log_backend_set_sdk_level(NULL, DOCA_LOG_LEVEL_INFO));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE,
			      doca_log_backend_set_level_lower_limit(NULL, DOCA_LOG_LEVEL_INFO));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE,
			      doca_log_backend_set_level_upper_limit(NULL, DOCA_LOG_LEVEL_INFO));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE,
			      doca_log_backend_set_level_lower_limit_strict(NULL));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE,
			      doca_log_backend_set_level_upper_limit_strict(NULL));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_log_level_set_global_lower_limit(0));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_log_level_set_global_upper_limit(71));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE,
			      doca_log_level_set_global_sdk_limit(UINT32_MAX));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_log(5, log_source, "f", 1, "f", "x"));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE,
			      doca_log(UINT32_MAX, log_source, "f", 1, "f", "x"));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS,
			      doca_log(DOCA_LOG_LEVEL_ERROR, log_source, NULL, 1, NULL, "x"));
}

static void run_nulls(void)
{
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_log_backend_create_standard());
	errno = 42;
	doca_log(25, log_source, NULL, -1, NULL, "%0*d", 9000, 7);
	TEST_ASSERT_EQUAL_INT(42, errno);
}

static void a_line_without_a_place_or_too_long_is_still_a_line(void)
{
	TEST_ASSERT_EQUAL_INT(0, captured(run_nulls));
	TEST_ASSERT_EQUAL_INT(1, count(captured_err, "[ERR][?:-1][?] 000"));
	TEST_ASSERT_EQUAL_INT('\n', captured_err[strlen(captured_err) - 1]);
}

static void *log_a_lot(void *arg)
{
	for (int i = 0; i < 200; i++)
		DOCA_LOG_ERR("thread line");
	return arg;
}

static void run_threads(void)
{
	struct doca_log_backend *backend;
	pthread_t threads[4];

	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_log_backend_create_standard());
	for (int i = 0; i < 4; i++)
		TEST_ASSERT_EQUAL_INT(0, pthread_create(&threads[i], NULL, log_a_lot, NULL));
	for (int i = 0; i < 20; i++) {
		doca_log_level_set_global_lower_limit(i % 2 ? DOCA_LOG_LEVEL_INFO
							    : DOCA_LOG_LEVEL_DEBUG);
		doca_log_backend_create_with_file_sdk(stderr, &backend);
	}
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
}

static void lines_of_threads_do_not_mix(void)
{
	char *line, *rest = captured_err;
	int n = 0;

	TEST_ASSERT_EQUAL_INT(0, captured(run_threads));
	while ((line = strsep(&rest, "\n")) && *line) {
		TEST_ASSERT_EQUAL_INT('[', line[0]);
		TEST_ASSERT_EQUAL_STRING("thread line", line + strlen(line) - 11);
		n++;
	}
	TEST_ASSERT_EQUAL_INT(800, n);
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(a_source_is_registered_before_main);
	RUN_TEST(without_a_backend_only_warnings_of_the_library_are_seen);
	RUN_TEST(standard_backends_split_at_info);
	RUN_TEST(global_limits_move_all_backends);
	RUN_TEST(a_line_has_time_process_level_place_and_text);
	RUN_TEST(sdk_backends_have_a_separate_level);
	RUN_TEST(a_backend_may_have_limits_of_its_own_and_keep_them);
	RUN_TEST(a_buffer_is_flushed_for_each_line_and_cut);
	RUN_TEST(syslog_is_a_backend_too);
	RUN_TEST(a_line_without_a_place_or_too_long_is_still_a_line);
	RUN_TEST(arguments_are_evaluated_though_the_level_hides_the_line);
	RUN_TEST(lines_of_threads_do_not_mix);
	RUN_TEST(wrong_arguments_are_refused);
	return UNITY_END();
}
