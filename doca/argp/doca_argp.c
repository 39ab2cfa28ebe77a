/* SPDX-License-Identifier: BSD-3-Clause */
/* doca_argp.c - the parser of command lines: creation and end, and registration by programs */
#include <doca_argp.h>

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "argp/argp.h"

static struct argp parser;

/* Returns the parser of this process; NULL: not created. */
static struct argp *the_parser(void)
{
	return parser.started ? &parser : NULL;
}

void gd_argp_error(const struct argp *argp, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	if (argp->logger) {
		argp->logger(DOCA_LOG_LEVEL_ERROR, format, args);
	} else {
		fprintf(stderr,
			"%s: ", argp->program ? argp->program : program_invocation_short_name);
		vfprintf(stderr, format, args);
		fputc('\n', stderr);
	}
	va_end(args);
}

/* -- creation and end -- */

doca_error_t doca_argp_init(const char *program_name, void *program_config)
{
	if (parser.started)
		return DOCA_ERROR_BAD_STATE;
	memset(&parser, 0, sizeof(parser));
	if (program_name) {
		parser.program = strdup(program_name);
		if (!parser.program)
			return DOCA_ERROR_NO_MEMORY;
	}
	parser.config = program_config;
	parser.cmd = &parser.root;
	parser.found_end = &parser.found;
	parser.log_level = (int)doca_log_level_get_global_lower_limit();
	parser.sdk_log_level = (int)doca_log_level_get_global_sdk_limit();
	parser.started = true;
	return DOCA_SUCCESS;
}

static void set_text(const char **field, const char *text)
{
	free((char *)*field);
	*field = text ? strdup(text) : NULL;
}

static void free_param(struct doca_argp_param *param)
{
	set_text(&param->short_name, NULL);
	set_text(&param->long_name, NULL);
	set_text(&param->arguments, NULL);
	set_text(&param->description, NULL);
	free(param);
}

static void free_cmd(struct doca_argp_cmd *cmd)
{
	set_text(&cmd->name, NULL);
	set_text(&cmd->description, NULL);
	free(cmd);
}

doca_error_t doca_argp_destroy(void)
{
	struct argp *argp = the_parser();

	if (!argp || argp->end)
		return DOCA_ERROR_BAD_STATE;
	if (argp->running) {
		argp->end = true;
		return DOCA_SUCCESS;
	}
	gd_argp_forget(argp);
	for (struct doca_argp_param *param = argp->params, *next; param; param = next) {
		next = param->next_all;
		free_param(param);
	}
	for (struct doca_argp_cmd *cmd = argp->cmds, *next; cmd; cmd = next) {
		next = cmd->next_all;
		free_cmd(cmd);
	}
	free(argp->program);
	argp->program = NULL;
	argp->started = false;
	return DOCA_SUCCESS;
}

doca_error_t doca_argp_start(int argc, char **argv)
{
	struct argp *argp = the_parser();
	doca_error_t result;

	if (!argp || argp->running)
		return DOCA_ERROR_BAD_STATE;
	if (argc < 1 || !argv)
		return DOCA_ERROR_INVALID_VALUE;
	argp->running = true;
	result = gd_argp_run(argp, argc, argv);
	argp->running = false;
	gd_argp_forget(argp);
	if (argp->end) {
		argp->end = false;
		doca_argp_destroy();
	}
	return result;
}

void doca_argp_usage(void)
{
	if (the_parser())
		gd_argp_usage(the_parser(), stdout);
}

/* -- objects: the parser owns them, and rejects pointers that it does not know -- */

static bool known_param(const struct argp *argp, const struct doca_argp_param *param)
{
	for (const struct doca_argp_param *p = argp->params; p; p = p->next_all)
		if (p == param)
			return true;
	return false;
}

static bool known_cmd(const struct argp *argp, const struct doca_argp_cmd *cmd)
{
	for (const struct doca_argp_cmd *c = argp->cmds; c; c = c->next_all)
		if (c == cmd)
			return true;
	return false;
}

/* Returns whether an object exists and is not registered. */
static bool open_param(const struct doca_argp_param *param)
{
	return param && the_parser() && known_param(the_parser(), param) && !param->registered;
}

static bool open_cmd(const struct doca_argp_cmd *cmd)
{
	return cmd && the_parser() && known_cmd(the_parser(), cmd) && !cmd->registered;
}

doca_error_t doca_argp_param_create(struct doca_argp_param **param)
{
	struct argp *argp = the_parser();

	if (!param)
		return DOCA_ERROR_INVALID_VALUE;
	if (!argp || argp->running)
		return DOCA_ERROR_BAD_STATE;
	*param = calloc(1, sizeof(**param));
	if (!*param)
		return DOCA_ERROR_NO_MEMORY;
	(*param)->next_all = argp->params;
	argp->params = *param;
	return DOCA_SUCCESS;
}

doca_error_t doca_argp_cmd_create(struct doca_argp_cmd **cmd)
{
	struct argp *argp = the_parser();

	if (!cmd)
		return DOCA_ERROR_INVALID_VALUE;
	if (!argp || argp->running)
		return DOCA_ERROR_BAD_STATE;
	*cmd = calloc(1, sizeof(**cmd));
	if (!*cmd)
		return DOCA_ERROR_NO_MEMORY;
	(*cmd)->next_all = argp->cmds;
	argp->cmds = *cmd;
	return DOCA_SUCCESS;
}

doca_error_t doca_argp_param_destroy(struct doca_argp_param *param)
{
	struct argp *argp = the_parser();

	if (!argp || argp->running)
		return DOCA_ERROR_BAD_STATE;
	for (struct doca_argp_param **p = &argp->params; *p; p = &(*p)->next_all) {
		if (*p != param)
			continue;
		if (param->registered)
			return DOCA_ERROR_BAD_STATE;
		*p = param->next_all;
		free_param(param);
		return DOCA_SUCCESS;
	}
	return DOCA_ERROR_INVALID_VALUE;
}

doca_error_t doca_argp_cmd_destroy(struct doca_argp_cmd *cmd)
{
	struct argp *argp = the_parser();

	if (!argp || argp->running)
		return DOCA_ERROR_BAD_STATE;
	for (struct doca_argp_cmd **p = &argp->cmds; *p; p = &(*p)->next_all) {
		if (*p != cmd)
			continue;
		if (cmd->registered || cmd->cmds || cmd->params)
			return DOCA_ERROR_BAD_STATE;
		*p = cmd->next_all;
		free_cmd(cmd);
		return DOCA_SUCCESS;
	}
	return DOCA_ERROR_INVALID_VALUE;
}

void doca_argp_param_set_short_name(struct doca_argp_param *param, const char *name)
{
	if (open_param(param))
		set_text(&param->short_name, name);
}

void doca_argp_param_set_long_name(struct doca_argp_param *param, const char *name)
{
	if (open_param(param))
		set_text(&param->long_name, name);
}

void doca_argp_param_set_arguments(struct doca_argp_param *param, const char *arguments)
{
	if (open_param(param))
		set_text(&param->arguments, arguments);
}

void doca_argp_param_set_description(struct doca_argp_param *param, const char *description)
{
	if (open_param(param))
		set_text(&param->description, description);
}

void doca_argp_param_set_callback(struct doca_argp_param *param, doca_argp_param_cb_t callback)
{
	if (open_param(param))
		param->callback = callback;
}

void doca_argp_param_set_type(struct doca_argp_param *param, enum doca_argp_type type)
{
	if (open_param(param))
		param->type = type;
}

void doca_argp_param_set_mandatory(struct doca_argp_param *param)
{
	if (open_param(param))
		param->mandatory = true;
}

void doca_argp_param_set_cli_only(struct doca_argp_param *param)
{
	if (open_param(param))
		param->cli_only = true;
}

void doca_argp_param_set_multiplicity(struct doca_argp_param *param)
{
	if (open_param(param))
		param->multiple = true;
}

void doca_argp_param_set_singular(struct doca_argp_param *param)
{
	if (open_param(param))
		param->singular = true;
}

void doca_argp_param_set_inherited(struct doca_argp_param *param)
{
	if (open_param(param))
		param->inherited = true;
}

void doca_argp_param_set_hidden(struct doca_argp_param *param)
{
	if (open_param(param))
		param->hidden = true;
}

void doca_argp_cmd_set_name(struct doca_argp_cmd *cmd, const char *name)
{
	if (open_cmd(cmd))
		set_text(&cmd->name, name);
}

void doca_argp_cmd_set_description(struct doca_argp_cmd *cmd, const char *description)
{
	if (open_cmd(cmd))
		set_text(&cmd->description, description);
}

void doca_argp_cmd_set_callback(struct doca_argp_cmd *cmd, doca_argp_cmd_cb_t callback)
{
	if (open_cmd(cmd))
		cmd->callback = callback;
}

void doca_argp_cmd_set_hidden(struct doca_argp_cmd *cmd)
{
	if (open_cmd(cmd))
		cmd->hidden = true;
}

/* -- registration -- */

/* Returns whether the name is valid for an option or a command. */
static bool good_name(const char *name)
{
	return !name || (name[0] && name[0] != '-' && !strpbrk(name, "= \t\n"));
}

static bool same(const char *a, const char *b)
{
	return a && b && strcmp(a, b) == 0;
}

/* Returns the first parameter of a list with one of the names of `param`. */
static const struct doca_argp_param *taken(const struct doca_argp_param *list,
					   const struct doca_argp_param *param)
{
	for (; list; list = list->next)
		if (same(list->short_name, param->short_name) ||
		    same(list->long_name, param->long_name))
			return list;
	return NULL;
}

static doca_error_t check_param(const struct argp *argp, const struct doca_argp_cmd *cmd,
				const struct doca_argp_param *param)
{
	const char *name = gd_argp_name(param);
	const char *missing = !param->short_name && !param->long_name ? "name"
			      : !param->description                   ? "description"
			      : !param->callback                      ? "callback"
			      : param->type == DOCA_ARGP_TYPE_UNKNOWN ? "type"
								      : NULL;

	if (missing) {
		gd_argp_error(argp, "option %s cannot be registered: no %s", name, missing);
		return DOCA_ERROR_INITIALIZATION;
	}
	if ((unsigned int)param->type > DOCA_ARGP_TYPE_JSON_OBJ || !good_name(param->short_name) ||
	    !good_name(param->long_name)) {
		gd_argp_error(argp, "option %s cannot be registered: invalid name or type", name);
		return DOCA_ERROR_INVALID_VALUE;
	}
	if (taken(cmd->params, param) || taken(gd_argp_flags, param)) {
		gd_argp_error(argp, "option %s cannot be registered: the name is in use", name);
		return DOCA_ERROR_INVALID_VALUE;
	}
	return DOCA_SUCCESS;
}

static doca_error_t register_param(struct doca_argp_cmd *cmd, struct doca_argp_param *param)
{
	struct argp *argp = the_parser();
	struct doca_argp_param **end = &cmd->params;
	doca_error_t result;

	if (!open_param(param))
		return DOCA_ERROR_INVALID_VALUE;
	result = check_param(argp, cmd, param);
	if (result != DOCA_SUCCESS)
		return result;
	while (*end)
		end = &(*end)->next;
	*end = param;
	param->registered = true;
	return DOCA_SUCCESS;
}

doca_error_t doca_argp_register_param(struct doca_argp_param *input_param)
{
	struct argp *argp = the_parser();

	if (!argp || argp->running)
		return DOCA_ERROR_BAD_STATE;
	return register_param(&argp->root, input_param);
}

doca_error_t doca_argp_cmd_register_param(struct doca_argp_cmd *cmd,
					  struct doca_argp_param *input_param)
{
	struct argp *argp = the_parser();

	if (!argp || argp->running)
		return DOCA_ERROR_BAD_STATE;
	return known_cmd(argp, cmd) ? register_param(cmd, input_param) : DOCA_ERROR_INVALID_VALUE;
}

static bool is_ancestor(const struct doca_argp_cmd *cmd, const struct doca_argp_cmd *of)
{
	for (; of; of = of->parent)
		if (of == cmd)
			return true;
	return false;
}

static doca_error_t register_cmd(struct doca_argp_cmd *parent, struct doca_argp_cmd *cmd)
{
	struct argp *argp = the_parser();
	struct doca_argp_cmd **end;

	if (!open_cmd(cmd) || is_ancestor(cmd, parent))
		return DOCA_ERROR_INVALID_VALUE;
	if (!cmd->name || !cmd->description) {
		gd_argp_error(argp, "command %s cannot be registered: no name or no description",
			      cmd->name ? cmd->name : "?");
		return DOCA_ERROR_INITIALIZATION;
	}
	for (end = &parent->cmds; *end && strcmp((*end)->name, cmd->name) != 0; end = &(*end)->next)
		;
	if (*end || !good_name(cmd->name)) {
		gd_argp_error(argp,
			      "command %s cannot be registered: the name is invalid or in use",
			      cmd->name);
		return DOCA_ERROR_INVALID_VALUE;
	}
	*end = cmd;
	cmd->parent = parent;
	cmd->registered = true;
	return DOCA_SUCCESS;
}

doca_error_t doca_argp_register_cmd(struct doca_argp_cmd *input_cmd)
{
	struct argp *argp = the_parser();

	if (!argp || argp->running)
		return DOCA_ERROR_BAD_STATE;
	return register_cmd(&argp->root, input_cmd);
}

doca_error_t doca_argp_cmd_register_cmd(struct doca_argp_cmd *cmd, struct doca_argp_cmd *input_cmd)
{
	struct argp *argp = the_parser();

	if (!argp || argp->running)
		return DOCA_ERROR_BAD_STATE;
	return known_cmd(argp, cmd) ? register_cmd(cmd, input_cmd) : DOCA_ERROR_INVALID_VALUE;
}

doca_error_t doca_argp_register_version_callback(doca_argp_param_cb_t callback)
{
	struct argp *argp = the_parser();

	if (!argp)
		return DOCA_ERROR_BAD_STATE;
	if (!callback)
		return DOCA_ERROR_INVALID_VALUE;
	argp->version = callback;
	return DOCA_SUCCESS;
}

doca_error_t doca_argp_register_validation_callback(doca_argp_validation_cb_t callback)
{
	struct argp *argp = the_parser();

	if (!argp)
		return DOCA_ERROR_BAD_STATE;
	if (!callback)
		return DOCA_ERROR_INVALID_VALUE;
	argp->validate = callback;
	return DOCA_SUCCESS;
}

doca_error_t doca_argp_register_logger_callback(doca_argp_logger_cb_t callback)
{
	struct argp *argp = the_parser();

	if (!argp)
		return DOCA_ERROR_BAD_STATE;
	if (!callback)
		return DOCA_ERROR_INVALID_VALUE;
	if (argp->logger)
		return DOCA_ERROR_ALREADY_EXIST;
	argp->logger = callback;
	return DOCA_SUCCESS;
}

doca_error_t doca_argp_disable_logger_callback(void)
{
	struct argp *argp = the_parser();

	if (!argp)
		return DOCA_ERROR_BAD_STATE;
	argp->logger = NULL;
	return DOCA_SUCCESS;
}

void doca_argp_set_dpdk_program(doca_argp_dpdk_cb_t callback)
{
	if (the_parser())
		the_parser()->dpdk = callback;
}

/* -- getters: valid before init and after destroy, too -- */

doca_error_t doca_argp_get_log_level(int *log_level)
{
	if (!log_level)
		return DOCA_ERROR_INVALID_VALUE;
	*log_level = the_parser() ? the_parser()->log_level
				  : (int)doca_log_level_get_global_lower_limit();
	return DOCA_SUCCESS;
}

doca_error_t doca_argp_get_sdk_log_level(int *log_level)
{
	if (!log_level)
		return DOCA_ERROR_INVALID_VALUE;
	*log_level = the_parser() ? the_parser()->sdk_log_level
				  : (int)doca_log_level_get_global_sdk_limit();
	return DOCA_SUCCESS;
}
