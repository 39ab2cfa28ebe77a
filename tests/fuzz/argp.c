/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * argp.c - a command line and a JSON file of any content: no crash, a message for each rejection,
 * and callbacks only for a valid input. Each word of the command line ends with a newline; an empty
 * word ends the command line, and the rest of the input is the file.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <doca_argp.h>

#include "fuzz/require.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { WORDS_MAX = 32 };

static int n_errors, n_calls;

static doca_error_t on_error(enum doca_log_level level, const char *format, va_list args)
{
	char text[64];

	require(level == DOCA_LOG_LEVEL_ERROR && vsnprintf(text, sizeof(text), format, args) > 0);
	n_errors++;
	return DOCA_SUCCESS;
}

static doca_error_t on_text(void *value, void *config)
{
	require(config == &n_calls && strlen(value) < SIZE_MAX);
	n_calls++;
	return DOCA_SUCCESS;
}

static doca_error_t on_int(void *value, void *config)
{
	require(config == &n_calls);
	n_calls++;
	return *(int *)value == 42 ? DOCA_ERROR_SKIPPED : DOCA_SUCCESS;
}

static doca_error_t on_bool(void *value, void *config)
{
	uint8_t truth;

	memcpy(&truth, value, 1);
	require(config == &n_calls && truth < 2);
	n_calls++;
	return DOCA_SUCCESS;
}

static doca_error_t on_cmd(void *config)
{
	require(config == &n_calls);
	return DOCA_SUCCESS;
}

static struct doca_argp_param *make(const char *s, const char *l, enum doca_argp_type type,
				    doca_argp_param_cb_t callback)
{
	struct doca_argp_param *param;

	require(doca_argp_param_create(&param) == DOCA_SUCCESS);
	doca_argp_param_set_short_name(param, s);
	doca_argp_param_set_long_name(param, l);
	doca_argp_param_set_description(param, "any");
	doca_argp_param_set_callback(param, callback);
	doca_argp_param_set_type(param, type);
	return param;
}

static void add(struct doca_argp_param *param)
{
	require(doca_argp_register_param(param) == DOCA_SUCCESS);
}

static void program(void)
{
	struct doca_argp_param *cpu, *all;
	struct doca_argp_cmd *cmd;

	require(doca_argp_init("prog", &n_calls) == DOCA_SUCCESS);
	require(doca_argp_register_logger_callback(on_error) == DOCA_SUCCESS);
	add(make("p", "path", DOCA_ARGP_TYPE_STRING, on_text));
	add(make("ns", NULL, DOCA_ARGP_TYPE_INT, on_int));
	add(make(NULL, "tree", DOCA_ARGP_TYPE_JSON_OBJ, on_text));
	cpu = make("c", "cpu", DOCA_ARGP_TYPE_INT, on_int);
	doca_argp_param_set_multiplicity(cpu);
	add(cpu);
	all = make("a", "all", DOCA_ARGP_TYPE_BOOLEAN, on_bool);
	doca_argp_param_set_inherited(all);
	add(all);
	require(doca_argp_cmd_create(&cmd) == DOCA_SUCCESS);
	doca_argp_cmd_set_name(cmd, "do");
	doca_argp_cmd_set_description(cmd, "any");
	doca_argp_cmd_set_callback(cmd, on_cmd);
	require(doca_argp_cmd_register_param(
			cmd, make("x", NULL, DOCA_ARGP_TYPE_STRING, on_text)) == DOCA_SUCCESS);
	require(doca_argp_register_cmd(cmd) == DOCA_SUCCESS);
}

/* Returns whether a word would end the process, or names a file of the system. */
static bool is_forbidden(const char *word)
{
	static const char *const words[] = {"-h", "--help", "-help", "-v", "--version", "-version"};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcmp(word, words[i]) == 0)
			return true;
	return strstr(word, "-j") != NULL;
}

/* Splits text into words. Returns the text after the empty word, or the end of the text. */
static char *cut(char *text, char **argv, int *argc_p)
{
	while (*text && *argc_p < WORDS_MAX) {
		char *word = strsep(&text, "\n");

		if (*word == '\0' || !text)
			break;
		if (!is_forbidden(word))
			argv[(*argc_p)++] = word;
	}
	return text ? text : (char *)"";
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = strndup((const char *)data, size), *argv[WORDS_MAX + 3], *json, path[40];
	int argc = 1, fd = memfd_create("json", MFD_CLOEXEC);
	doca_error_t result;

	require(text && fd >= 0);
	argv[0] = (char *)"prog";
	json = cut(text, argv, &argc);
	if (*json) {
		require(write(fd, json, strlen(json)) == (ssize_t)strlen(json));
		snprintf(path, sizeof(path), "--json=/proc/self/fd/%d", fd);
		argv[argc++] = path;
	}
	argv[argc] = NULL;
	n_errors = n_calls = 0;
	program();
	result = doca_argp_start(argc, argv);
	require((result == DOCA_SUCCESS) == (n_errors == 0) || result == DOCA_ERROR_NO_MEMORY);
	require(n_calls == 0 || result == DOCA_SUCCESS || result == DOCA_ERROR_SKIPPED);
	require(doca_argp_destroy() == DOCA_SUCCESS);
	close(fd);
	free(text);
	return 0;
}
