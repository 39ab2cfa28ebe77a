/* SPDX-License-Identifier: BSD-3-Clause */
/* Options in a JSON file, sub-commands, and the command-line arguments of DPDK. */
#include <stdarg.h>
#include <stdbool.h>

#include "argp_rig.h"

static char calls[512], mark[] = "!";

void setUp(void)
{
	calls[0] = '\0';
}

void tearDown(void)
{
	doca_argp_destroy();
}

static void called(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(calls + strlen(calls), sizeof(calls) - strlen(calls), format, args);
	va_end(args);
}

static doca_error_t on_string(void *value, void *arg)
{
	(void)arg;
	called("s=%s ", (char *)value);
	return DOCA_SUCCESS;
}

static doca_error_t on_int(void *value, void *arg)
{
	(void)arg;
	called("i=%d ", *(int *)value);
	return DOCA_SUCCESS;
}

static doca_error_t on_bool(void *value, void *arg)
{
	(void)arg;
	called("b=%d ", *(bool *)value);
	return DOCA_SUCCESS;
}

static void program(void)
{
	struct doca_argp_param *cpu, *only;

	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_argp_init("prog", NULL));
	add(make(NULL, "file", DOCA_ARGP_TYPE_STRING, on_string));
	add(make(NULL, "num", DOCA_ARGP_TYPE_INT, on_int));
	add(make(NULL, "flag", DOCA_ARGP_TYPE_BOOLEAN, on_bool));
	add(make(NULL, "tree", DOCA_ARGP_TYPE_JSON_OBJ, on_string));
	cpu = make(NULL, "cpu", DOCA_ARGP_TYPE_INT, on_int);
	doca_argp_param_set_multiplicity(cpu);
	add(cpu);
	only = make(NULL, "only", DOCA_ARGP_TYPE_INT, on_int);
	doca_argp_param_set_cli_only(only);
	add(only);
}

/* call doca_argp_start with a file that contains `text`, and with one more word */
static int start_file(const char *text, const char *word)
{
	char path[40], *argv[] = {(char[]){"prog"}, (char[]){"-j"}, path, (char *)word, NULL};
	int fd = memfd_create("json", MFD_CLOEXEC), ret;

	TEST_ASSERT_EQUAL_INT(strlen(text), write(fd, text, strlen(text)));
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	ret = (int)doca_argp_start(word ? 4 : 3, argv);
	close(fd);
	return ret;
}

static const char full[] =
	"{ // general ones\n"
	"  \"doca_general_flags\": {\"log-level\": 60, \"sdk-log-level\": 40},\n"
	"  /* those of the\n program: \"file\": 1 */\n"
	"  \"doca_program_flags\": {\n"
	"    \"file\": \"http://x/*y*/\\\"//\", // a comment starts behind the string\n"
	"    \"num\": -7, \"flag\": true, \"cpu\": [1, 2, 3], \"tree\": {\"a\": [1]}\n"
	"  }\n"
	"}\n";

/* objects doca_general_flags and doca_program_flags, long names, comments of both kinds */
static void a_file_gives_options(void)
{
	program();
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, start_file(full, NULL));
	TEST_ASSERT_EQUAL_STRING("s=http://x/*y*/\"// i=-7 b=1 i=1 i=2 i=3 s={\"a\":[1]} ", calls);
	TEST_ASSERT_EQUAL_UINT32(60, doca_log_level_get_global_lower_limit());
	TEST_ASSERT_EQUAL_UINT32(40, doca_log_level_get_global_sdk_limit());
	doca_log_level_set_global_lower_limit(DOCA_LOG_LEVEL_INFO);
}

static void command_line_overrides_the_file(void)
{
	program();
	TEST_ASSERT_EQUAL_INT(
		DOCA_SUCCESS,
		start_file("{\"doca_program_flags\": {\"num\": 1, \"flag\": false}}", "--num=2"));
	TEST_ASSERT_EQUAL_STRING("b=0 i=2 ", calls);
	setUp();
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS,
			      start_file("{\"doca_program_flags\": {\"cpu\": 1}}", "--cpu=2"));
	TEST_ASSERT_EQUAL_STRING("i=1 i=2 ", calls);
}

static void file_can_set_a_mandatory_option(void)
{
	struct doca_argp_param *param;

	program();
	param = make(NULL, "must", DOCA_ARGP_TYPE_INT, on_int);
	doca_argp_param_set_mandatory(param);
	add(param);
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS,
			      start_file("{\"doca_program_flags\": {\"must\": 1}}", NULL));
}

static void wrong_files(void)
{
	static const struct {
		const char *text;
		doca_error_t error;
	} wrong[] = {
		{"", DOCA_ERROR_INVALID_VALUE},
		{"[]", DOCA_ERROR_INVALID_VALUE},
		{"{\"doca_program_flags\": 1}", DOCA_ERROR_INVALID_VALUE},
		{"{\"doca_program_flags\": {\"num\": 1}", DOCA_ERROR_INVALID_VALUE},
		{"{\"doca_program_flags\": {\"num\": \"1\"}}", DOCA_ERROR_INVALID_VALUE},
		{"{\"doca_program_flags\": {\"num\": 1.5}}", DOCA_ERROR_INVALID_VALUE},
		{"{\"doca_program_flags\": {\"num\": 99999999999}}", DOCA_ERROR_INVALID_VALUE},
		{"{\"doca_program_flags\": {\"num\": [1]}}", DOCA_ERROR_INVALID_VALUE},
		{"{\"doca_program_flags\": {\"file\": null}}", DOCA_ERROR_INVALID_VALUE},
		{"{\"doca_program_flags\": {\"file\": \"a\\u0000b\"}}", DOCA_ERROR_INVALID_VALUE},
		{"{\"doca_program_flags\": {\"nothing\": 1}}", DOCA_ERROR_INVALID_VALUE},
		{"{\"doca_program_flags\": {\"only\": 1}}", DOCA_ERROR_INVALID_VALUE},
		{"{\"doca_program_flags\": {\"json\": \"x\"}}", DOCA_ERROR_INVALID_VALUE},
		{"{\"doca_general_flags\": {\"num\": 1}}", DOCA_ERROR_INVALID_VALUE},
		{"{\"doca_general_flags\": {\"help\": true}}", DOCA_ERROR_INVALID_VALUE},
		{"{\"doca_general_flags\": {\"json\": \"x\"}}", DOCA_ERROR_INVALID_VALUE},
		{"{\"doca_general_flags\": {\"log-level\": 9}}", DOCA_ERROR_INVALID_VALUE},
		{"{\"doca_program_flags\": {\"num\": 1, \"num\": 2}}", DOCA_ERROR_INVALID_VALUE},
		{"{} /* open", DOCA_ERROR_INVALID_VALUE},
		{"{} /", DOCA_ERROR_INVALID_VALUE},
		{"{\"open", DOCA_ERROR_INVALID_VALUE},
		{"{\"other\": {}}", DOCA_ERROR_INVALID_VALUE},
		{"{\"doca_dpdk_flags\": {}}", DOCA_ERROR_NOT_SUPPORTED},
	};

	static const char *unreadable[][3] = {
		{"prog", "--json=/"}, {"prog", "-j=/no/file"}, {"prog", "-j=/dev/zero"}};

	program();
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		TEST_ASSERT_EQUAL_INT_MESSAGE(wrong[i].error, start_file(wrong[i].text, NULL),
					      wrong[i].text);
		TEST_ASSERT_EQUAL_STRING("", calls);
	}
	for (int i = 0; i < 3; i++)
		TEST_ASSERT_EQUAL_INT(DOCA_ERROR_IO_FAILED,
				      doca_argp_start(2, (char **)unreadable[i]));
	printf("%zu", sizeof(wrong) / sizeof(wrong[0]) + 3);
}

static void invalid_file_is_reported_and_runs_no_callback(void)
{
	TEST_ASSERT_EQUAL_INT(0, captured(wrong_files));
	TEST_ASSERT_EQUAL_INT(atoi(captured_out), count(captured_err, "prog: "));
	TEST_ASSERT_EQUAL_INT(1, count(captured_err, "unknown option nothing"));
	TEST_ASSERT_EQUAL_INT(
		1, count(captured_err, "option only is permitted only on the command line"));
	TEST_ASSERT_EQUAL_INT(1, count(captured_err, "/no/file: No such file"));
}

/* -- sub-commands -- */

static doca_error_t on_add(void *arg)
{
	called("add%s ", (char *)arg);
	return DOCA_SUCCESS;
}

static doca_error_t on_remote(void *arg)
{
	called("remote%s ", (char *)arg);
	return DOCA_SUCCESS;
}

static struct doca_argp_cmd *make_cmd(const char *name, doca_argp_cmd_cb_t callback)
{
	struct doca_argp_cmd *cmd;

	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_argp_cmd_create(&cmd));
	doca_argp_cmd_set_name(cmd, name);
	doca_argp_cmd_set_description(cmd, "what it does");
	doca_argp_cmd_set_callback(cmd, callback);
	return cmd;
}

/* prog [--all] [--mine] remote add [--url U]; prog hidden */
static void program_with_cmds(void)
{
	struct doca_argp_cmd *remote, *more, *hidden;
	struct doca_argp_param *all;

	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_argp_init("prog", mark));
	all = make(NULL, "all", DOCA_ARGP_TYPE_BOOLEAN, on_bool);
	doca_argp_param_set_inherited(all);
	add(all);
	add(make(NULL, "mine", DOCA_ARGP_TYPE_INT, on_int));
	remote = make_cmd("remote", NULL);
	more = make_cmd("add", on_add);
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS,
			      doca_argp_cmd_register_param(
				      more, make(NULL, "url", DOCA_ARGP_TYPE_STRING, on_string)));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_argp_cmd_register_cmd(remote, more));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_argp_register_cmd(remote));
	hidden = make_cmd("hidden", on_remote);
	doca_argp_cmd_set_hidden(hidden);
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_argp_register_cmd(hidden));
}

static void a_command_has_options_of_its_own(void)
{
	program_with_cmds();
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, START("--mine=1", "remote", "add", "--url=u"));
	TEST_ASSERT_EQUAL_STRING("i=1 s=u add! ", calls);
	setUp();
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, START("remote", "add", "--all"));
	TEST_ASSERT_EQUAL_STRING("b=1 add! ", calls);
	setUp();
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, START("hidden"));
	TEST_ASSERT_EQUAL_STRING("remote! ", calls);
}

static void wrong_cmds(void)
{
	struct doca_argp_cmd *cmd;

	program_with_cmds();
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, START("remote"));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, START("remote", "--mine=1", "add"));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, START("--url=u", "remote", "add"));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, START("removed"));
	TEST_ASSERT_EQUAL_STRING("", calls);
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INITIALIZATION,
			      doca_argp_register_cmd(make_cmd(NULL, on_add)));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE,
			      doca_argp_register_cmd(make_cmd("remote", on_add)));
	cmd = make_cmd("-x", on_add);
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_argp_register_cmd(cmd));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_argp_cmd_destroy(cmd));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_argp_cmd_destroy(cmd));
	cmd = make_cmd("own", on_add);
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_argp_cmd_register_cmd(cmd, cmd));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_argp_cmd_register_cmd(NULL, cmd));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_argp_register_cmd(cmd));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_BAD_STATE, doca_argp_cmd_destroy(cmd));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INITIALIZATION,
			      doca_argp_cmd_register_cmd(cmd, make_cmd(NULL, on_add)));
	TEST_ASSERT_EQUAL_INT(
		DOCA_ERROR_INITIALIZATION,
		doca_argp_cmd_register_param(cmd, make(NULL, "y", DOCA_ARGP_TYPE_INT, NULL)));
	START("remote", "-h");
	_exit(7);
}

static void invalid_command_is_reported(void)
{
	TEST_ASSERT_EQUAL_INT(0, captured(wrong_cmds));
	TEST_ASSERT_EQUAL_INT(1, count(captured_err, "command missing after remote"));
	TEST_ASSERT_EQUAL_INT(1, count(captured_err, "unknown command removed"));
	TEST_ASSERT_EQUAL_INT(
		1,
		count(captured_out, "Usage: prog remote [DOCA Flags] [Program Flags] [Command]"));
	TEST_ASSERT_EQUAL_INT(1, count(captured_out, "\nProgram Commands:\n  add "));
	TEST_ASSERT_EQUAL_INT(1, count(captured_out, "\n  --all "));
	TEST_ASSERT_EQUAL_INT(0, count(captured_out, "mine"));
}

static doca_error_t on_dpdk(int argc, char **argv)
{
	called("dpdk%d%s ", argc, argv[argc - 1]);
	return DOCA_SUCCESS;
}

static doca_error_t refuse_dpdk(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return DOCA_ERROR_INITIALIZATION;
}

static void arguments_before_the_dashes_go_to_dpdk(void)
{
	program();
	doca_argp_set_dpdk_program(on_dpdk);
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, START("-a", "x", "--", "--num=1"));
	TEST_ASSERT_EQUAL_STRING("dpdk3x i=1 ", calls);
	setUp();
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, START("--num=1"));
	TEST_ASSERT_EQUAL_STRING("dpdk1prog i=1 ", calls);
	setUp();
	doca_argp_set_dpdk_program(refuse_dpdk);
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INITIALIZATION, START("-a", "--", "--num=1"));
	TEST_ASSERT_EQUAL_STRING("", calls);
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(a_file_gives_options);
	RUN_TEST(command_line_overrides_the_file);
	RUN_TEST(file_can_set_a_mandatory_option);
	RUN_TEST(invalid_file_is_reported_and_runs_no_callback);
	RUN_TEST(a_command_has_options_of_its_own);
	RUN_TEST(invalid_command_is_reported);
	RUN_TEST(arguments_before_the_dashes_go_to_dpdk);
	return UNITY_END();
}
