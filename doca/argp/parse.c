/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * parse.c - converts argv and the JSON file to a list of options, checks it, and runs the callbacks
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include <doca_version.h>

#include "argp/argp.h"
#include "common/gd_log.h"

/* -- options and their values -- */

static bool has_name(const char *name, const char *text, size_t length)
{
	return name && strlen(name) == length && memcmp(name, text, length) == 0;
}

static struct doca_argp_param *find_in(struct doca_argp_param *list, const char *name,
				       size_t length, bool is_long, bool inherited)
{
	for (; list; list = list->next)
		if (has_name(is_long ? list->long_name : list->short_name, name, length) &&
		    (!inherited || list->inherited))
			return list;
	return NULL;
}

struct doca_argp_param *gd_argp_find(const struct argp *argp, const char *name, size_t length,
				     bool is_long)
{
	struct doca_argp_param *param;

	for (const struct doca_argp_cmd *cmd = argp->cmd; cmd; cmd = cmd->parent) {
		param = find_in(cmd->params, name, length, is_long, cmd != argp->cmd);
		if (param)
			return param;
	}
	return find_in(gd_argp_flags, name, length, is_long, false);
}

const char *gd_argp_name(const struct doca_argp_param *param)
{
	return param->long_name ? param->long_name : param->short_name ? param->short_name : "?";
}

/* Parse a decimal number, or hexadecimal digits after 0x, in the range of int. */
static bool parse_int(const char *text, int *number)
{
	const char *digits = text + (*text == '-' || *text == '+');
	long value;
	char *end;

	if (*digits < '0' || *digits > '9')
		return false;
	errno = 0;
	value = strtol(text, &end,
		       digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X') ? 16 : 10);
	if (errno || *end || value < INT_MIN || value > INT_MAX)
		return false;
	*number = (int)value;
	return true;
}

static bool parse_bool(const char *text, bool *truth)
{
	*truth = strcmp(text, "true") == 0;
	return *truth || strcmp(text, "false") == 0;
}

static bool parse_value(const struct argp *argp, struct argp_found *found)
{
	const struct doca_argp_param *param = found->param;

	if (param->type == DOCA_ARGP_TYPE_INT && !parse_int(found->text, &found->number)) {
		gd_argp_error(argp, "option %s: not a number: \"%s\"", gd_argp_name(param),
			      found->text);
		return false;
	}
	if (param->type == DOCA_ARGP_TYPE_BOOLEAN && !parse_bool(found->text, &found->truth)) {
		gd_argp_error(argp, "option %s: not true or false: \"%s\"", gd_argp_name(param),
			      found->text);
		return false;
	}
	if ((param->flag == ARGP_LOG_LEVEL || param->flag == ARGP_SDK_LOG_LEVEL) &&
	    !GD_LOG_LEVEL_OK(found->number)) {
		gd_argp_error(argp, "option %s: invalid level %d (range 10 to 70)",
			      gd_argp_name(param), found->number);
		return false;
	}
	return true;
}

doca_error_t gd_argp_note(struct argp *argp, struct doca_argp_param *param, const char *text,
			  bool json)
{
	struct argp_found *found;

	if (json && param->seen_cli && !param->multiple)
		return DOCA_SUCCESS; /* the command line has precedence */
	if ((json ? param->seen_json : param->seen_cli) && !param->multiple) {
		gd_argp_error(argp, "option %s occurs more than once", gd_argp_name(param));
		return DOCA_ERROR_INVALID_VALUE;
	}
	found = calloc(1, sizeof(*found));
	if (!found)
		return DOCA_ERROR_NO_MEMORY;
	found->param = param;
	found->json = json;
	found->text = strdup(text ? text : "true");
	*argp->found_end = found;
	argp->found_end = &found->next;
	if (!found->text)
		return DOCA_ERROR_NO_MEMORY;
	*(json ? &param->seen_json : &param->seen_cli) += 1;
	return parse_value(argp, found) ? DOCA_SUCCESS : DOCA_ERROR_INVALID_VALUE;
}

void gd_argp_forget(struct argp *argp)
{
	for (struct argp_found *found = argp->found, *next; found; found = next) {
		next = found->next;
		free(found->text);
		free(found);
	}
	argp->found = NULL;
	argp->found_end = &argp->found;
	for (struct doca_argp_param *param = argp->params; param; param = param->next_all)
		param->seen_cli = param->seen_json = 0;
	for (struct doca_argp_param *param = gd_argp_flags; param; param = param->next)
		param->seen_cli = param->seen_json = 0;
}

/* -- the command line -- */

/* End the process for --help and --version. */
static void leave(struct argp *argp)
{
	argp->running = argp->end = false;
	doca_argp_destroy();
	exit(EXIT_SUCCESS);
}

static void help_or_version(struct argp *argp, enum argp_flag flag)
{
	if (flag == ARGP_HELP)
		gd_argp_usage(argp, stdout);
	else if (argp->version)
		argp->version(NULL, argp->config);
	else
		printf("%s\n", doca_version_runtime());
	leave(argp);
}

/* Find the option of an argument such as "-x", "--long" or "--long=value". NULL: none. */
static struct doca_argp_param *option_of(const struct argp *argp, const char *word)
{
	size_t dashes = word[0] == '-' ? 1 + (word[1] == '-') : 0,
	       length = strcspn(word + dashes, "=");
	struct doca_argp_param *param = NULL;

	if (dashes == 1)
		param = gd_argp_find(argp, word + 1, length, false);
	if (dashes && !param)
		param = gd_argp_find(argp, word + dashes, length, true);
	return param;
}

/* Parse one option at argv[*i]. *i becomes the index of its last argument. */
static doca_error_t take_option(struct argp *argp, int argc, char **argv, int *i)
{
	const char *word = argv[*i], *value = strchr(word, '=');
	struct doca_argp_param *param = option_of(argp, word);

	if (!param) {
		gd_argp_error(argp, "unknown option %s", word);
		return DOCA_ERROR_INVALID_VALUE;
	}
	if (value) {
		value++;
	} else if (param->type != DOCA_ARGP_TYPE_BOOLEAN) {
		if (*i + 1 >= argc || !argv[*i + 1] || option_of(argp, argv[*i + 1])) {
			gd_argp_error(argp, "option %s: value missing", word);
			return DOCA_ERROR_INVALID_VALUE;
		}
		value = argv[++*i];
	}
	if (!value && (param->flag == ARGP_HELP || param->flag == ARGP_VERSION))
		help_or_version(argp, param->flag);
	return gd_argp_note(argp, param, value, false);
}

/* Parse an argument that is not an option: a sub-command. */
static doca_error_t take_cmd(struct argp *argp, const char *word)
{
	for (struct doca_argp_cmd *cmd = argp->cmd->cmds; cmd; cmd = cmd->next)
		if (strcmp(cmd->name, word) == 0) {
			argp->cmd = cmd;
			return DOCA_SUCCESS;
		}
	gd_argp_error(argp, argp->cmd->cmds ? "unknown command %s" : "unexpected argument %s",
		      word);
	return DOCA_ERROR_INVALID_VALUE;
}

static doca_error_t take_words(struct argp *argp, int argc, char **argv)
{
	doca_error_t result = DOCA_SUCCESS;
	bool options = true;

	for (int i = 1; i < argc && argv[i] && result == DOCA_SUCCESS; i++) {
		if (options && strcmp(argv[i], "--") == 0)
			options = false;
		else if (options && argv[i][0] == '-' && argv[i][1])
			result = take_option(argp, argc, argv, &i);
		else
			result = take_cmd(argp, argv[i]);
	}
	return result;
}

/* Pass the arguments before "--" to the DPDK callback. */
static doca_error_t take_dpdk(struct argp *argp, int *argc, char ***argv)
{
	int n = 1;
	doca_error_t result;

	if (!argp->dpdk)
		return DOCA_SUCCESS;
	while (n < *argc && (*argv)[n] && strcmp((*argv)[n], "--") != 0)
		n++;
	if (n == *argc || !(*argv)[n])
		n = 0; /* no "--": all arguments belong to this parser */
	result = argp->dpdk(n ? n : 1, *argv);
	*argc -= n;
	*argv += n;
	return result;
}

/* -- after parsing -- */

static doca_error_t apply_flags(struct argp *argp, bool json)
{
	doca_error_t result = DOCA_SUCCESS;

	for (struct argp_found *found = argp->found; found && result == DOCA_SUCCESS;
	     found = found->next) {
		if (found->json != json)
			continue;
		if (found->param->flag == ARGP_LOG_LEVEL) {
			argp->log_level = found->number;
			result = doca_log_level_set_global_lower_limit((uint32_t)found->number);
		} else if (found->param->flag == ARGP_SDK_LOG_LEVEL) {
			argp->sdk_log_level = found->number;
			result = doca_log_level_set_global_sdk_limit((uint32_t)found->number);
		} else if (found->param->flag == ARGP_JSON) {
			result = gd_argp_read_json(argp, found->text);
		}
	}
	return result;
}

static doca_error_t check_mandatory(const struct argp *argp)
{
	for (const struct doca_argp_cmd *cmd = argp->cmd; cmd; cmd = cmd->parent)
		for (const struct doca_argp_param *param = cmd->params; param; param = param->next)
			if (param->mandatory && !param->seen_cli && !param->seen_json) {
				gd_argp_error(argp, "option %s is missing", gd_argp_name(param));
				return DOCA_ERROR_INVALID_VALUE;
			}
	return DOCA_SUCCESS;
}

/* Check the list. A singular option excludes all other options, and no option is mandatory then. */
static doca_error_t check_found(const struct argp *argp)
{
	const struct doca_argp_param *single = NULL;
	unsigned int n = 0;

	for (const struct argp_found *found = argp->found; found; found = found->next) {
		n += found->param->flag == ARGP_PROGRAM;
		if (found->param->singular)
			single = found->param;
	}
	if (single && n > 1) {
		gd_argp_error(argp, "option %s must be the only option", gd_argp_name(single));
		return DOCA_ERROR_INVALID_VALUE;
	}
	if (argp->cmd->cmds && !argp->cmd->callback && argp->cmd != &argp->root) {
		gd_argp_error(argp, "command missing after %s", argp->cmd->name);
		return DOCA_ERROR_INVALID_VALUE;
	}
	return single ? DOCA_SUCCESS : check_mandatory(argp);
}

static doca_error_t call_param(const struct argp *argp, struct argp_found *found)
{
	void *value = found->param->type == DOCA_ARGP_TYPE_INT       ? (void *)&found->number
		      : found->param->type == DOCA_ARGP_TYPE_BOOLEAN ? (void *)&found->truth
								     : found->text;
	doca_error_t result;

	if (found->param->flag != ARGP_PROGRAM)
		return DOCA_SUCCESS;
	result = found->param->callback(value, argp->config);
	if (result != DOCA_SUCCESS)
		gd_argp_error(argp, "option %s: value \"%s\" rejected by the program: %s",
			      gd_argp_name(found->param), found->text, doca_error_get_name(result));
	return result;
}

static doca_error_t call_program(struct argp *argp)
{
	doca_error_t result = DOCA_SUCCESS;

	for (int json = 1; json >= 0; json--)
		for (struct argp_found *found = argp->found; found && result == DOCA_SUCCESS;
		     found = found->next)
			if (found->json == json)
				result = call_param(argp, found);
	if (result == DOCA_SUCCESS && argp->cmd->callback)
		result = argp->cmd->callback(argp->config);
	if (result == DOCA_SUCCESS && argp->validate)
		result = argp->validate(argp->config);
	return result;
}

doca_error_t gd_argp_run(struct argp *argp, int argc, char **argv)
{
	doca_error_t result;

	gd_argp_forget(argp);
	argp->cmd = &argp->root;
	result = take_dpdk(argp, &argc, &argv);
	if (result != DOCA_SUCCESS)
		return result;
	result = take_words(argp, argc, argv);
	if (result == DOCA_SUCCESS)
		result = apply_flags(argp, false);
	if (result == DOCA_SUCCESS)
		result = apply_flags(argp, true);
	if (result == DOCA_SUCCESS)
		result = check_found(argp);
	if (result != DOCA_SUCCESS) {
		if (!argp->logger)
			gd_argp_usage(argp, stderr);
		return result;
	}
	return call_program(argp);
}
