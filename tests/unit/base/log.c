/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/log.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "unity.h"

static int pipe_fds[2];
static char out[8192];
static uint64_t fake_time;

static uint64_t fake_now(void)
{
	return fake_time;
}

/*
 * Returns what was logged since the last call. A text line is returned without its time stamp.
 * `out` still contains the time stamp.
 */
static const char *logged(void)
{
	ssize_t n;

	gn_log_set_level(GN_LOG_ERROR);
	if (write(pipe_fds[1], "", 1) != 1)
		return NULL;
	n = read(pipe_fds[0], out, sizeof(out) - 1);
	if (n < 1)
		return NULL;
	out[n] = '\0';
	gn_log_set_level(GN_LOG_INFO);
	return strchr(out, ' ') && out[0] != '{' ? strchr(out, ' ') + 1 : out;
}

void setUp(void)
{
	TEST_ASSERT_EQUAL_INT(0, pipe(pipe_fds));
	gn_log_set_level(GN_LOG_INFO);
	gn_log_set_sink(pipe_fds[1], GN_LOG_TEXT);
}

void tearDown(void)
{
	gn_log_set_sink(STDERR_FILENO, GN_LOG_TEXT);
	gn_clock_set_fake(NULL);
	close(pipe_fds[0]);
	close(pipe_fds[1]);
}

static void text_line_has_time_level_speaker_and_message(void)
{
	gn_log(GN_LOG_WARN, "session", "gone id=%d", 7);
	TEST_ASSERT_EQUAL_STRING("warn session: gone id=7\n", logged());
	TEST_ASSERT_EQUAL_INT('Z', out[23]);
	TEST_ASSERT_EQUAL_INT('T', out[10]);
}

static void a_line_takes_the_place_of_one_that_has_not_ended(void)
{
	int terminal = dup(STDERR_FILENO);

	gn_log_set_over(true);
	gn_log(GN_LOG_WARN, "session", "gone");
	/* the line begins with the year, not with a control sequence: the log is no terminal */
	TEST_ASSERT_EQUAL_INT('2', (logged(), out[0]));
	gn_log_set_sink(STDERR_FILENO, GN_LOG_TEXT);
	dup2(pipe_fds[1], STDERR_FILENO);
	gn_log(GN_LOG_WARN, "session", "gone");
	gn_log_set_over(false);
	TEST_ASSERT_EQUAL_STRING("warn session: gone\n", logged());
	TEST_ASSERT_EQUAL_INT(0, strncmp(out, "\r\033[K2", 5));
	gn_log(GN_LOG_WARN, "session", "gone");
	dup2(terminal, STDERR_FILENO);
	close(terminal);
	TEST_ASSERT_EQUAL_INT('2', (logged(), out[0]));
}

static char hooked[64];

static void hook(enum gn_log_level level, const char *who, const char *message)
{
	snprintf(hooked, sizeof(hooked), "%d %s %s", (int)level, who, message);
	errno = EIO;
}

static void a_hook_gets_the_lines_instead(void)
{
	gn_log_set_hook(hook);
	errno = EAGAIN;
	gn_log(GN_LOG_WARN, "session", "gone id=%d", 7);
	gn_log(GN_LOG_DEBUG, "session", "not shown");
	gn_log_set_hook(NULL);
	TEST_ASSERT_EQUAL_INT(EAGAIN, errno);
	TEST_ASSERT_EQUAL_STRING("1 session gone id=7", hooked);
	gn_log(GN_LOG_WARN, "session", "here");
	TEST_ASSERT_EQUAL_STRING("warn session: here\n", logged());
}

static void level_above_the_limit_is_silent(void)
{
	gn_log(GN_LOG_DEBUG, "session", "detail");
	TEST_ASSERT_EQUAL_STRING("", logged());
	TEST_ASSERT_FALSE(gn_log_on(GN_LOG_DEBUG));
	TEST_ASSERT_TRUE(gn_log_on(GN_LOG_INFO));
}

static void newline_in_a_message_cannot_forge_a_line(void)
{
	gn_log(GN_LOG_INFO, "a\nb", "x\n2026 error y\x1b[2J\x7f");
	TEST_ASSERT_EQUAL_STRING("info a\\x0ab: x\\x0a2026 error y\\x1b[2J\\x7f\n", logged());
}

static void json_line_is_escaped(void)
{
	gn_log_set_sink(pipe_fds[1], GN_LOG_JSON);
	gn_log(GN_LOG_ERROR, "w", "say \"hi\" \\ \n \xff");
	TEST_ASSERT_NOT_NULL(strstr(logged(), "Z\",\"level\":\"error\",\"who\":\"w\",\"message\":"
					      "\"say \\\"hi\\\" \\\\ \\u000a \\u00ff\"}\n"));
}

static void long_message_is_cut_and_still_a_line(void)
{
	static char big[4 * GN_LOG_LINE_MAX];

	memset(big, '\n', sizeof(big) - 1);
	gn_log(GN_LOG_INFO, "w", "%s", big);
	TEST_ASSERT_NOT_NULL(logged());
	TEST_ASSERT_EQUAL_INT('\n', out[strlen(out) - 1]);
	TEST_ASSERT_EQUAL_PTR(out + strlen(out) - 1, strchr(out, '\n'));
}

static void errno_is_kept(void)
{
	gn_log_set_sink(-1, GN_LOG_TEXT);
	errno = ENOTTY;
	gn_log(GN_LOG_ERROR, "w", "nobody hears this");
	TEST_ASSERT_EQUAL_INT(ENOTTY, errno);
}

static void ratelimit_lets_ten_through_and_reports_the_rest(void)
{
	struct gn_log_limit limit = {0};
	int let = 0;

	fake_time = 5;
	gn_clock_set_fake(fake_now);
	for (int i = 0; i < 25; i++)
		let += gn_log_ratelimit(&limit, GN_LOG_WARN, "conn");
	TEST_ASSERT_EQUAL_INT(10, let);
	TEST_ASSERT_EQUAL_STRING("", logged());
	fake_time += GN_NS_PER_S - 1;
	TEST_ASSERT_FALSE(gn_log_ratelimit(&limit, GN_LOG_WARN, "conn"));
	fake_time += 1;
	TEST_ASSERT_TRUE(gn_log_ratelimit(&limit, GN_LOG_WARN, "conn"));
	TEST_ASSERT_EQUAL_STRING("warn conn: further lines were suppressed count=16\n", logged());
	TEST_ASSERT_EQUAL_UINT(0, limit.suppressed);
}

static void escape_keeps_print_and_shows_the_rest(void)
{
	char dst[GN_ESCAPE_BYTES];

	TEST_ASSERT_EQUAL_STRING("a b\\x5c\\x0a\\x00\\xff~",
				 gn_escape(dst, sizeof(dst), "a b\\\n\0\xff~", 8));
	TEST_ASSERT_EQUAL_STRING("", gn_escape(dst, sizeof(dst), "", 0));
}

static void escape_caps_the_source(void)
{
	char src[GN_ESCAPE_MAX + 1], dst[GN_ESCAPE_BYTES];

	memset(src, 0xee, sizeof(src));
	gn_escape(dst, sizeof(dst), src, GN_ESCAPE_MAX);
	TEST_ASSERT_EQUAL_INT(4 * GN_ESCAPE_MAX, strlen(dst));
	gn_escape(dst, sizeof(dst), src, sizeof(src));
	TEST_ASSERT_EQUAL_INT(4 * GN_ESCAPE_MAX + 3, strlen(dst));
	TEST_ASSERT_EQUAL_STRING("\\xee...", dst + 4 * GN_ESCAPE_MAX - 4);
}

static void escape_fits_any_destination(void)
{
	char dst[12];

	TEST_ASSERT_EQUAL_STRING("", gn_escape(dst, 1, "abc", 3));
	TEST_ASSERT_EQUAL_STRING(".", gn_escape(dst, 2, "abc", 3));
	TEST_ASSERT_EQUAL_STRING("abc", gn_escape(dst, 4, "abc", 3));
	TEST_ASSERT_EQUAL_STRING("...", gn_escape(dst, 4, "abcd", 4));
	TEST_ASSERT_EQUAL_STRING("a...", gn_escape(dst, 5, "abcde", 5));
	TEST_ASSERT_EQUAL_STRING("\\x01...", gn_escape(dst, 8, "\1\2\3", 3));
	TEST_ASSERT_EQUAL_STRING("a\\x01...", gn_escape(dst, 10, "a\1\2\3", 4));
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(text_line_has_time_level_speaker_and_message);
	RUN_TEST(a_line_takes_the_place_of_one_that_has_not_ended);
	RUN_TEST(a_hook_gets_the_lines_instead);
	RUN_TEST(level_above_the_limit_is_silent);
	RUN_TEST(newline_in_a_message_cannot_forge_a_line);
	RUN_TEST(json_line_is_escaped);
	RUN_TEST(long_message_is_cut_and_still_a_line);
	RUN_TEST(errno_is_kept);
	RUN_TEST(ratelimit_lets_ten_through_and_reports_the_rest);
	RUN_TEST(escape_keeps_print_and_shows_the_rest);
	RUN_TEST(escape_caps_the_source);
	RUN_TEST(escape_fits_any_destination);
	return UNITY_END();
}
