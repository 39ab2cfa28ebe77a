/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * argp.h - the parser of command lines: internal interface. A process has one parser, which one
 * thread uses.
 *
 *     doca_argp.c  creation and end, and registration by programs
 *     parse.c      converts argv and the JSON file to a list of options, checks it, runs callbacks
 *     json.c       the JSON file
 *     usage.c      the text of --help
 */
#ifndef GD_ARGP_H
#define GD_ARGP_H

#include <doca_argp.h>

#include <stdbool.h>
#include <stddef.h>

/* Options that every program has; ARGP_PROGRAM: an option of the program. */
enum argp_flag {
	ARGP_PROGRAM,
	ARGP_HELP,
	ARGP_VERSION,
	ARGP_LOG_LEVEL,
	ARGP_SDK_LOG_LEVEL,
	ARGP_JSON
};

struct doca_argp_param {
	struct doca_argp_param *next;     /* next of the command, in the order of registration */
	struct doca_argp_param *next_all; /* next parameter of the parser, which owns it */
	/* allocated by malloc(3), except for options that every program has */
	const char *short_name, *long_name, *arguments, *description;
	doca_argp_param_cb_t callback;
	enum doca_argp_type type;
	enum argp_flag flag;
	bool registered, mandatory, cli_only, multiple, singular, inherited, hidden;
	unsigned int seen_cli, seen_json; /* occurrences in this run */
};

struct doca_argp_cmd {
	struct doca_argp_cmd *next; /* next command of the parent */
	struct doca_argp_cmd *next_all;
	struct doca_argp_cmd *parent;
	struct doca_argp_cmd *cmds;
	struct doca_argp_param *params;
	const char *name, *description;
	doca_argp_cmd_cb_t callback;
	bool registered, hidden;
};

/* An option in the arguments or the file, with its value. */
struct argp_found {
	struct argp_found *next;
	struct doca_argp_param *param;
	bool json;
	int number;
	bool truth;
	char *text; /* text of the value; the value of a STRING or JSON_OBJ */
};

struct argp {
	bool started, running, end; /* end: a callback destroyed the parser while it runs */
	char *program;              /* name; NULL: as in argv[0] */
	void *config;
	struct doca_argp_cmd root;      /* the program itself */
	struct doca_argp_cmd *cmd;      /* the selected command: root, or a sub-command */
	struct doca_argp_param *params; /* all parameters, linked by next_all */
	struct doca_argp_cmd *cmds;
	doca_argp_param_cb_t version;
	doca_argp_validation_cb_t validate;
	doca_argp_logger_cb_t logger;
	doca_argp_dpdk_cb_t dpdk;
	struct argp_found *found, **found_end;
	int log_level, sdk_log_level;
};

/* The options that every program has, a list linked by `next`. */
extern struct doca_argp_param *const gd_argp_flags;

/* Report an error to the logger of the program or to standard error. */
void gd_argp_error(const struct argp *argp, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/*
 * Parse argv, then the JSON file, then run the callbacks. Ends the process for --help and
 * --version.
 */
doca_error_t gd_argp_run(struct argp *argp, int argc, char **argv);
/* Free the results of a run. */
void gd_argp_forget(struct argp *argp);

/*
 * Find an option of the selected command by its name: its own options, inherited ones, then those
 * of every program. NULL: none.
 */
struct doca_argp_param *gd_argp_find(const struct argp *argp, const char *name, size_t length,
				     bool is_long);
/* Returns the name of an option for messages. */
const char *gd_argp_name(const struct doca_argp_param *param);
/*
 * Record one occurrence. text NULL: a flag without value. INVALID_VALUE: the error was reported;
 * NO_MEMORY.
 */
doca_error_t gd_argp_note(struct argp *argp, struct doca_argp_param *param, const char *text,
			  bool json);

/*
 * Read the options of a JSON file. IO_FAILED, INVALID_VALUE, NOT_SUPPORTED: the error was reported;
 * NO_MEMORY.
 */
doca_error_t gd_argp_read_json(struct argp *argp, const char *path);

void gd_argp_usage(const struct argp *argp, FILE *out);

#endif
