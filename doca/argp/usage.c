/* SPDX-License-Identifier: BSD-3-Clause */
/* usage.c - the options that every program has, and the text of --help */
#include <errno.h>
#include <stdio.h>

#include "argp/argp.h"

#define LEVELS "<10=DISABLE, 20=CRITICAL, 30=ERROR, 40=WARNING, 50=INFO, 60=DEBUG, 70=TRACE>"
#define COLUMN 36 /* column of descriptions */

static struct doca_argp_param flags[] = {
	{.next = &flags[1],
	 .flag = ARGP_HELP,
	 .short_name = "h",
	 .long_name = "help",
	 .type = DOCA_ARGP_TYPE_BOOLEAN,
	 .description = "Print this help"},
	{.next = &flags[2],
	 .flag = ARGP_VERSION,
	 .short_name = "v",
	 .long_name = "version",
	 .type = DOCA_ARGP_TYPE_BOOLEAN,
	 .description = "Print the version"},
	{.next = &flags[3],
	 .flag = ARGP_LOG_LEVEL,
	 .short_name = "l",
	 .long_name = "log-level",
	 .type = DOCA_ARGP_TYPE_INT,
	 .description = "Log level of the program " LEVELS},
	{.next = &flags[4],
	 .flag = ARGP_SDK_LOG_LEVEL,
	 .long_name = "sdk-log-level",
	 .type = DOCA_ARGP_TYPE_INT,
	 .description = "Log level of the libraries " LEVELS},
	{.flag = ARGP_JSON,
	 .short_name = "j",
	 .long_name = "json",
	 .type = DOCA_ARGP_TYPE_STRING,
	 .arguments = "<path>",
	 .cli_only = true,
	 .description = "Read options from a JSON file"},
};

struct doca_argp_param *const gd_argp_flags = flags;

static void print_param(FILE *out, const struct doca_argp_param *param)
{
	int n;

	if (param->hidden)
		return;
	n = fprintf(out, "  %s%s%s%s%s%s%s", param->short_name ? "-" : "",
		    param->short_name ? param->short_name : "",
		    param->short_name && param->long_name ? ", " : "", param->long_name ? "--" : "",
		    param->long_name ? param->long_name : "", param->arguments ? " " : "",
		    param->arguments ? param->arguments : "");
	fprintf(out, "%*s%s%s\n", n < COLUMN ? COLUMN - n : 2, "", param->description,
		param->mandatory ? " (mandatory)" : "");
}

/* Print the names of the commands from the program down to this one. */
static void print_path(FILE *out, const struct doca_argp_cmd *cmd)
{
	if (!cmd->parent)
		return;
	print_path(out, cmd->parent);
	fprintf(out, " %s", cmd->name);
}

/* Print the options of the command and the inherited ones. */
static void print_params(FILE *out, const struct doca_argp_cmd *of)
{
	for (const struct doca_argp_cmd *cmd = of; cmd; cmd = cmd->parent)
		for (const struct doca_argp_param *param = cmd->params; param; param = param->next)
			if (cmd == of || param->inherited)
				print_param(out, param);
}

void gd_argp_usage(const struct argp *argp, FILE *out)
{
	const struct doca_argp_cmd *cmd = argp->cmd;

	fprintf(out, "Usage: %s", argp->program ? argp->program : program_invocation_short_name);
	print_path(out, cmd);
	fprintf(out, "%s [DOCA Flags] [Program Flags]%s\n\nDOCA Flags:\n",
		argp->dpdk ? " [DPDK Flags] --" : "", cmd->cmds ? " [Command]" : "");
	for (const struct doca_argp_param *param = gd_argp_flags; param; param = param->next)
		print_param(out, param);
	fprintf(out, "\nProgram Flags:\n");
	print_params(out, cmd);
	if (cmd->cmds)
		fprintf(out, "\nProgram Commands:\n");
	for (const struct doca_argp_cmd *c = cmd->cmds; c; c = c->next)
		if (!c->hidden)
			fprintf(out, "  %-*s%s\n", COLUMN - 2, c->name, c->description);
	fputc('\n', out);
	fflush(out);
}
