/* SPDX-License-Identifier: BSD-3-Clause */
/* The parser of command lines: registered parameters, arguments of users, and errors. */
#include <doca_version.h>
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>

#include "argp_rig.h"

/*
 * The options of the program. The callbacks copy the values, as programs must: the storage
 * applications of DOCA destroy the parser right after doca_argp_start().
 */
static struct config {
	char calls[256]; /* one word for each callback */
	char pci[32], text[64];
	int num, cpus[4], n_cpus;
	bool flag;
	doca_error_t refuse, invalid;
} config;

void setUp(void)
{
	memset(&config, 0, sizeof(config));
}

void tearDown(void)
{
	doca_argp_destroy();
}

static void called(const char *what)
{
	strncat(config.calls, what, sizeof(config.calls) - strlen(config.calls) - 1);
}

static doca_error_t on_pci(void *value, void *arg)
{
	TEST_ASSERT_EQUAL_PTR(&config, arg);
	called("pci ");
	snprintf(config.pci, sizeof(config.pci), "%s", (char *)value);
	return config.refuse;
}

static doca_error_t on_text(void *value, void *arg)
{
	(void)arg;
	called("text ");
	snprintf(config.text, sizeof(config.text), "%s", (char *)value);
	return DOCA_SUCCESS;
}

static doca_error_t on_num(void *value, void *arg)
{
	(void)arg;
	called("num ");
	config.num = *(int *)value;
	return DOCA_SUCCESS;
}

static doca_error_t on_cpu(void *value, void *arg)
{
	(void)arg;
	called("cpu ");
	config.cpus[config.n_cpus++ % 4] = *(int *)value;
	return DOCA_SUCCESS;
}

static doca_error_t on_flag(void *value, void *arg)
{
	(void)arg;
	called("flag ");
	config.flag = *(bool *)value;
	return DOCA_SUCCESS;
}

static doca_error_t on_validate(void *arg)
{
	TEST_ASSERT_EQUAL_PTR(&config, arg);
	called("validate ");
	return config.invalid;
}

/* A program with an option of each kind. */
static void program(void)
{
	struct doca_argp_param *cpu;

	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_argp_init("prog", &config));
	add(make("p", "pci-addr", DOCA_ARGP_TYPE_STRING, on_pci));
	add(make("ns", "num-src", DOCA_ARGP_TYPE_INT, on_num));
	add(make("cm", NULL, DOCA_ARGP_TYPE_BOOLEAN, on_flag));
	cpu = make(NULL, "cpu", DOCA_ARGP_TYPE_INT, on_cpu);
	doca_argp_param_set_multiplicity(cpu);
	add(cpu);
}

/* -- what users write -- */

/* short names of several letters have one dash */
static void options_are_written_in_several_ways(void)
{
	program();
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS,
			      START("-p", "03:00.0", "-ns", "7", "-cm", "--cpu", "1", "--cpu=2"));
	TEST_ASSERT_EQUAL_STRING("pci num flag cpu cpu ", config.calls);
	TEST_ASSERT_EQUAL_STRING("03:00.0", config.pci);
	TEST_ASSERT_EQUAL_INT(7, config.num);
	TEST_ASSERT_TRUE(config.flag);
	TEST_ASSERT_EQUAL_INT(2, config.n_cpus);
	TEST_ASSERT_EQUAL_INT(2, config.cpus[1]);
	setUp();
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, START("--pci-addr=a=b", "-ns=-5", "-cpu", "0x1F"));
	TEST_ASSERT_EQUAL_STRING("a=b", config.pci);
	TEST_ASSERT_EQUAL_INT(-5, config.num);
	TEST_ASSERT_EQUAL_INT(31, config.cpus[0]);
	setUp();
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, START("-ns", "-2147483648", "-p", "-", "-cm=false"));
	TEST_ASSERT_EQUAL_INT(-2147483647 - 1, config.num);
	TEST_ASSERT_EQUAL_STRING("-", config.pci);
	TEST_ASSERT_EQUAL_STRING("num pci flag ", config.calls);
	TEST_ASSERT_FALSE(config.flag);
	setUp();
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, START("--"));
	TEST_ASSERT_EQUAL_STRING("", config.calls);
}

static void wrong_words(void)
{
	static const char *wrong[][4] = {
		{"prog", "-x", NULL},
		{"prog", "--pci", "a", NULL},
		{"prog", "stray", NULL},
		{"prog", "-p", NULL},
		{"prog", "-p", "-ns", "1"},
		{"prog", "-ns", "seven", NULL},
		{"prog", "-ns", "12x", NULL},
		{"prog", "-ns", "", NULL},
		{"prog", "-ns", "2147483648", NULL},
		{"prog", "-cm=maybe", NULL, NULL},
		{"prog", "--ns", "1", NULL},
		{"prog", "--num-src=", NULL, NULL},
		{"prog", "-ns=1", "-ns=2", NULL},
		{"prog", "-l", "5", NULL},
		{"prog", "-l", "71", NULL},
		{"prog", "---", NULL, NULL},
		{"prog", "-=", NULL, NULL},
		{"prog", "", NULL, NULL},
		{"prog", "--sdk-log-level", NULL},
		{"prog", "--", "-ns", "1"},
		{"prog", "-l=99999999999", NULL, NULL},
		{"prog", "-ns=0x", NULL, NULL},
		{"prog", "--help=no", "x", NULL},
	};

	program();
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		int n = 0;

		while (n < 4 && wrong[i][n])
			n++;
		TEST_ASSERT_EQUAL_INT_MESSAGE(DOCA_ERROR_INVALID_VALUE,
					      doca_argp_start(n, (char **)wrong[i]), wrong[i][1]);
		TEST_ASSERT_EQUAL_STRING("", config.calls);
	}
	printf("%zu", sizeof(wrong) / sizeof(wrong[0]));
}

/* an error prints a message and the usage, and start returns it */
static void invalid_arguments_are_reported_and_no_callback_runs(void)
{
	int n;

	TEST_ASSERT_EQUAL_INT(0, captured(wrong_words));
	n = atoi(captured_out);
	TEST_ASSERT_TRUE(n > 20);
	TEST_ASSERT_EQUAL_INT(n, count(captured_err, "prog: "));
	TEST_ASSERT_EQUAL_INT(n, count(captured_err, "Usage: prog [DOCA Flags] [Program Flags]"));
	TEST_ASSERT_EQUAL_INT(1, count(captured_err, "unknown option -x"));
	TEST_ASSERT_EQUAL_INT(1, count(captured_err, "not a number: \"seven\""));
	TEST_ASSERT_EQUAL_INT(1, count(captured_err, "option num-src occurs more than once"));
}

static void mandatory(void)
{
	struct doca_argp_param *param;

	program();
	param = make("t", "text", DOCA_ARGP_TYPE_STRING, on_text);
	doca_argp_param_set_mandatory(param);
	add(param);
	param = make(NULL, "list", DOCA_ARGP_TYPE_BOOLEAN, on_flag);
	doca_argp_param_set_singular(param);
	add(param);
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, START("-p", "x"));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, START("--list", "-p", "x"));
	TEST_ASSERT_EQUAL_STRING("", config.calls);
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, START("-t", "x"));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, START("--list"));
	TEST_ASSERT_EQUAL_STRING("text flag ", config.calls);
}

/* start returns an error if a mandatory option is missing */
static void missing_mandatory_option_is_an_error(void)
{
	TEST_ASSERT_EQUAL_INT(0, captured(mandatory));
	TEST_ASSERT_EQUAL_INT(1, count(captured_err, "option text is missing"));
	TEST_ASSERT_EQUAL_INT(1, count(captured_err, "option list must be the only option"));
}

static void refused(void)
{
	program();
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_argp_register_validation_callback(on_validate));
	config.refuse = DOCA_ERROR_TOO_BIG;
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_TOO_BIG, START("-p", "x", "-ns", "1"));
	TEST_ASSERT_EQUAL_STRING("pci ", config.calls);
}

static void error_of_a_callback_is_returned(void)
{
	TEST_ASSERT_EQUAL_INT(0, captured(refused));
	TEST_ASSERT_EQUAL_INT(1, count(captured_err, "DOCA_ERROR_TOO_BIG"));
	TEST_ASSERT_EQUAL_INT(0, count(captured_err, "Usage"));
}

/* after parsing, start calls the validation callback and returns its error */
static void validation_comes_last(void)
{
	program();
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_argp_register_validation_callback(on_validate));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, START("-p", "x"));
	TEST_ASSERT_EQUAL_STRING("pci validate ", config.calls);
	config.invalid = DOCA_ERROR_NOT_FOUND;
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_NOT_FOUND, START());
}

/* -- the flags of every program -- */

static void show_help(void)
{
	struct doca_argp_param *param;

	program();
	param = make(NULL, "secret", DOCA_ARGP_TYPE_BOOLEAN, on_flag);
	doca_argp_param_set_hidden(param);
	add(param);
	param = make("g", "gid-index", DOCA_ARGP_TYPE_INT, on_num);
	doca_argp_param_set_arguments(param, "<index>");
	doca_argp_param_set_mandatory(param);
	add(param);
	START("-p", "x", "--help", "-bogus");
	_exit(7);
}

/* --help prints the usage and exits with success */
static void help_prints_the_usage_and_ends_the_program(void)
{
	TEST_ASSERT_EQUAL_INT(0, captured(show_help));
	TEST_ASSERT_EQUAL_STRING("", captured_err);
	TEST_ASSERT_EQUAL_INT(
		0, strncmp(captured_out,
			   "Usage: prog [DOCA Flags] [Program Flags]\n\nDOCA Flags:\n", 54));
	TEST_ASSERT_EQUAL_INT(1, count(captured_out, "\n  -h, --help "));
	TEST_ASSERT_EQUAL_INT(1, count(captured_out, "\n  -v, --version "));
	TEST_ASSERT_EQUAL_INT(1, count(captured_out, "\n  -l, --log-level "));
	TEST_ASSERT_EQUAL_INT(1, count(captured_out, "\n  --sdk-log-level "));
	TEST_ASSERT_EQUAL_INT(1, count(captured_out, "\n  -j, --json <path> "));
	TEST_ASSERT_EQUAL_INT(1, count(captured_out, "\nProgram Flags:\n  -p, --pci-addr "));
	TEST_ASSERT_EQUAL_INT(1, count(captured_out, "\n  -cm "));
	TEST_ASSERT_EQUAL_INT(1, count(captured_out, "\n  --cpu "));
	TEST_ASSERT_EQUAL_INT(1, count(captured_out, "\n  -g, --gid-index <index> "));
	TEST_ASSERT_EQUAL_INT(0, count(captured_out, "secret"));
}

static void usage_twice(void)
{
	doca_argp_usage(); /* prints nothing, because there is no parser */
	program();
	doca_argp_usage();
}

static void program_can_print_the_usage(void)
{
	TEST_ASSERT_EQUAL_INT(0, captured(usage_twice));
	TEST_ASSERT_EQUAL_INT(1, count(captured_out, "Usage: prog"));
}

static void nameless(void)
{
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_argp_init(NULL, &config));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, START("-x"));
}

/* a program that sets no name has the name of its file, without the directory */
static void program_without_a_name_has_the_name_of_its_file(void)
{
	char usage[300];

	TEST_ASSERT_EQUAL_INT(0, captured(nameless));
	snprintf(usage, sizeof(usage), "Usage: %.250s [DOCA Flags]", program_invocation_short_name);
	TEST_ASSERT_NULL(strchr(program_invocation_short_name, '/'));
	TEST_ASSERT_EQUAL_INT(1, count(captured_err, usage));
}

static void plain_version(void)
{
	program();
	START("-v");
	_exit(7);
}

static doca_error_t on_version(void *value, void *arg)
{
	(void)value;
	(void)arg;
	printf("version callback\n");
	if (doca_argp_destroy() != DOCA_SUCCESS)
		_exit(8);
	exit(EXIT_SUCCESS);
}

static doca_error_t on_version_returns(void *value, void *arg)
{
	(void)value;
	(void)arg;
	return doca_argp_destroy();
}

static void own_version(void)
{
	program();
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_argp_register_version_callback(on_version));
	START("--version");
	_exit(7);
}

static void returning_version(void)
{
	program();
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS,
			      doca_argp_register_version_callback(on_version_returns));
	START("--version");
	_exit(7);
}

/* the version callback prints, destroys the parser and exits */
static void version_is_that_of_the_program_or_of_the_library(void)
{
	TEST_ASSERT_EQUAL_INT(0, captured(plain_version));
	TEST_ASSERT_EQUAL_INT(1, count(captured_out, doca_version_runtime()));
	TEST_ASSERT_EQUAL_INT(0, captured(own_version));
	TEST_ASSERT_EQUAL_STRING("version callback\n", captured_out);
	TEST_ASSERT_EQUAL_INT(0, captured(returning_version));
}

/* log levels on the command line are the numbers 10 to 70 */
static void log_levels_are_set(void)
{
	int level = 0, sdk = 0;

	program();
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_argp_get_log_level(&level));
	TEST_ASSERT_EQUAL_INT(DOCA_LOG_LEVEL_INFO, level);
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, START("-l", "60", "--sdk-log-level", "70"));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_argp_get_log_level(&level));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_argp_get_sdk_log_level(&sdk));
	TEST_ASSERT_EQUAL_INT(60, level);
	TEST_ASSERT_EQUAL_INT(70, sdk);
	TEST_ASSERT_EQUAL_UINT32(60, doca_log_level_get_global_lower_limit());
	TEST_ASSERT_EQUAL_UINT32(70, doca_log_level_get_global_sdk_limit());
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_argp_get_log_level(NULL));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_argp_get_sdk_log_level(NULL));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, START("-l=50", "--sdk-log-level=50"));
}

static char logged[256];

static doca_error_t on_log(enum doca_log_level level, const char *format, va_list args)
{
	TEST_ASSERT_EQUAL_INT(DOCA_LOG_LEVEL_ERROR, level);
	vsnprintf(logged, sizeof(logged), format, args);
	return DOCA_SUCCESS;
}

static void own_logger(void)
{
	program();
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_argp_register_logger_callback(on_log));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_ALREADY_EXIST, doca_argp_register_logger_callback(on_log));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, START("-x"));
	TEST_ASSERT_EQUAL_STRING("unknown option -x", logged);
	printf("logged");
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_argp_disable_logger_callback());
	START("-y");
}

static void errors_go_to_the_logger_of_the_program(void)
{
	TEST_ASSERT_EQUAL_INT(0, captured(own_logger));
	TEST_ASSERT_EQUAL_STRING("logged", captured_out);
	TEST_ASSERT_EQUAL_INT(0, count(captured_err, "-x"));
	TEST_ASSERT_EQUAL_INT(1, count(captured_err, "prog: unknown option -y"));
}

/* -- creation and destruction of the parser -- */

static void every_function_needs_a_parser(void)
{
	struct doca_argp_param *param;
	struct doca_argp_cmd *cmd;

	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_BAD_STATE, doca_argp_destroy());
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_BAD_STATE, START());
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_BAD_STATE, doca_argp_param_create(&param));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_BAD_STATE, doca_argp_param_destroy(NULL));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_BAD_STATE, doca_argp_register_param(NULL));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_BAD_STATE, doca_argp_cmd_create(&cmd));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_BAD_STATE, doca_argp_cmd_destroy(NULL));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_BAD_STATE, doca_argp_register_cmd(NULL));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_BAD_STATE, doca_argp_cmd_register_param(NULL, NULL));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_BAD_STATE, doca_argp_cmd_register_cmd(NULL, NULL));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_BAD_STATE, doca_argp_register_version_callback(on_pci));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_BAD_STATE,
			      doca_argp_register_validation_callback(on_validate));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_BAD_STATE, doca_argp_register_logger_callback(on_log));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_BAD_STATE, doca_argp_disable_logger_callback());
	doca_argp_set_dpdk_program(NULL);
	doca_argp_param_set_long_name(NULL, "x");
	doca_argp_cmd_set_name(NULL, "x");
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_argp_init(NULL, NULL));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_BAD_STATE, doca_argp_init("again", NULL));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_argp_start(0, NULL));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_argp_param_create(NULL));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_argp_param_destroy(NULL));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_argp_register_param(NULL));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE,
			      doca_argp_register_validation_callback(NULL));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_argp_register_version_callback(NULL));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_argp_register_logger_callback(NULL));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_argp_destroy());
}

static void incomplete(void)
{
	struct doca_argp_param *param;

	program();
	param = make(NULL, NULL, DOCA_ARGP_TYPE_INT, on_num);
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INITIALIZATION, doca_argp_register_param(param));
	param = make("z", NULL, DOCA_ARGP_TYPE_INT, NULL);
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INITIALIZATION, doca_argp_register_param(param));
	param = make("z", NULL, DOCA_ARGP_TYPE_UNKNOWN, on_num);
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INITIALIZATION, doca_argp_register_param(param));
	param = make("z", NULL, DOCA_ARGP_TYPE_INT, on_num);
	doca_argp_param_set_description(param, NULL);
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INITIALIZATION, doca_argp_register_param(param));
	param = make("z", NULL, (enum doca_argp_type)9, on_num);
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_argp_register_param(param));
	param = make("-z", NULL, DOCA_ARGP_TYPE_INT, on_num);
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_argp_register_param(param));
	param = make("z", "cpu", DOCA_ARGP_TYPE_INT, on_num);
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_argp_register_param(param));
	param = make("h", "host", DOCA_ARGP_TYPE_INT, on_num);
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_argp_register_param(param));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_argp_param_destroy(param));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_argp_param_destroy(param));
	param = make("z", "zed", DOCA_ARGP_TYPE_INT, on_num);
	add(param);
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_INVALID_VALUE, doca_argp_register_param(param));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_BAD_STATE, doca_argp_param_destroy(param));
	doca_argp_param_set_callback(param, NULL); /* too late: nothing changes */
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, START("-z", "4"));
	TEST_ASSERT_EQUAL_INT(4, config.num);
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_argp_destroy());
}

/* the parser owns all params, including those whose registration failed */
static void an_incomplete_option_is_refused(void)
{
	TEST_ASSERT_EQUAL_INT(0, captured(incomplete));
	TEST_ASSERT_EQUAL_INT(8, count(captured_err, "cannot be registered"));
}

static doca_error_t on_end(void *value, void *arg)
{
	struct doca_argp_param *param;

	(void)value;
	(void)arg;
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_BAD_STATE, doca_argp_param_create(&param));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_BAD_STATE, START());
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, doca_argp_destroy());
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_BAD_STATE, doca_argp_destroy());
	return DOCA_SUCCESS;
}

static void a_callback_may_destroy_the_parser(void)
{
	program();
	add(make("e", NULL, DOCA_ARGP_TYPE_BOOLEAN, on_end));
	TEST_ASSERT_EQUAL_INT(DOCA_SUCCESS, START("-e", "-ns", "3"));
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_BAD_STATE, doca_argp_destroy());
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(options_are_written_in_several_ways);
	RUN_TEST(invalid_arguments_are_reported_and_no_callback_runs);
	RUN_TEST(missing_mandatory_option_is_an_error);
	RUN_TEST(error_of_a_callback_is_returned);
	RUN_TEST(validation_comes_last);
	RUN_TEST(help_prints_the_usage_and_ends_the_program);
	RUN_TEST(program_can_print_the_usage);
	RUN_TEST(program_without_a_name_has_the_name_of_its_file);
	RUN_TEST(version_is_that_of_the_program_or_of_the_library);
	RUN_TEST(log_levels_are_set);
	RUN_TEST(errors_go_to_the_logger_of_the_program);
	RUN_TEST(every_function_needs_a_parser);
	RUN_TEST(an_incomplete_option_is_refused);
	RUN_TEST(a_callback_may_destroy_the_parser);
	return UNITY_END();
}
