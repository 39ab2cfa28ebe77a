/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * argp.h - the parser of command lines inside: one per process, used by one thread.
 *
 *     doca_argp.c its life, and what programs register
 *     parse.c     argv and the JSON file become a list of options found; then they are checked,
 *                 then callbacks run
 *     json.c      the JSON file
 *     usage.c     the text of --help
 */
#ifndef GD_ARGP_H
#define GD_ARGP_H

#include <doca_argp.h>

#include <stdbool.h>
#include <stddef.h>

/* Options that every program has; the others are the program's own. */
enum argp_flag {
	ARGP_PROGRAM,
	ARGP_HELP,
	ARGP_VERSION,
	ARGP_LOG_LEVEL,
	ARGP_SDK_LOG_LEVEL,
	ARGP_JSON
};

struct doca_argp_param {
	struct doca_argp_param *next;     /* of its command, in the order of registration */
	struct doca_argp_param *next_all; /* of the parser, which owns it */
	/* malloc, but for those of all programs */
	const char *short_name, *long_name, *arguments, *description;
	doca_argp_param_cb_t callback;
	enum doca_argp_type type;
	enum argp_flag flag;
	bool registered, mandatory, cli_only, multiple, singular, inherited, hidden;
	unsigned int seen_cli, seen_json; /* in this run */
};

struct doca_argp_cmd {
	struct doca_argp_cmd *next; /* of its parent */
	struct doca_argp_cmd *next_all;
	struct doca_argp_cmd *parent;
	struct doca_argp_cmd *cmds;
	struct doca_argp_param *params;
	const char *name, *description;
	doca_argp_cmd_cb_t callback;
	bool registered, hidden;
};

/* An option that was found, with its value. */
struct argp_found {
	struct argp_found *next;
	struct doca_argp_param *param;
	bool json;
	int number;
	bool truth;
	char *text; /* as it stood there; the value of a STRING or JSON_OBJ */
};

struct argp {
	bool started, running, end; /* end: destroyed by a callback while running */
	char *program;              /* its name; NULL: as it was called */
	void *config;
	struct doca_argp_cmd root;      /* the program itself */
	struct doca_argp_cmd *cmd;      /* the command of the command line; root, or below */
	struct doca_argp_param *params; /* all that there are, by next_all */
	struct doca_argp_cmd *cmds;
	doca_argp_param_cb_t version;
	doca_argp_validation_cb_t validate;
	doca_argp_logger_cb_t logger;
	doca_argp_dpdk_cb_t dpdk;
	struct argp_found *found, **found_end;
	int log_level, sdk_log_level;
};

/* The options of every program, a list by next. */
extern struct doca_argp_param *const gd_argp_flags;

/* An error, to the program's logger or to stderr. */
void gd_argp_error(const struct argp *argp, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* argv, then the JSON file, then the callbacks. Ends the process for --help and --version. */
doca_error_t gd_argp_run(struct argp *argp, int argc, char **argv);
/* What a run has found, forgotten. */
void gd_argp_forget(struct argp *argp);

/*
 * The option with that name in the command that was chosen: its own, those that it inherits, those
 * of all; NULL.
 */
struct doca_argp_param *gd_argp_find(const struct argp *argp, const char *name, size_t length,
				     bool is_long);
/* How the option is named in messages. */
const char *gd_argp_name(const struct doca_argp_param *param);
/*
 * Note one occurrence; text NULL: a flag without value. INVALID_VALUE after a message, NO_MEMORY.
 */
doca_error_t gd_argp_note(struct argp *argp, struct doca_argp_param *param, const char *text,
			  bool json);

/* The options that stand in a file. IO_FAILED, INVALID_VALUE, NO_MEMORY after a message. */
doca_error_t gd_argp_read_json(struct argp *argp, const char *path);

void gd_argp_usage(const struct argp *argp, FILE *out);

#endif
