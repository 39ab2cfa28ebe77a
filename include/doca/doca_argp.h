/* SPDX-License-Identifier: BSD-3-Clause */
/* doca_argp.h - options of a command line, and of a JSON file */
#ifndef DOCA_ARGP_H
#define DOCA_ARGP_H

#include <stdarg.h>

#include <doca_error.h>
#include <doca_log.h>
#include <doca_types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct doca_argp_cmd;
struct doca_argp_param;

enum doca_argp_type {
	DOCA_ARGP_TYPE_UNKNOWN = 0,
	DOCA_ARGP_TYPE_STRING = 1,
	DOCA_ARGP_TYPE_INT = 2,
	DOCA_ARGP_TYPE_BOOLEAN = 3,
	DOCA_ARGP_TYPE_JSON_OBJ = 4,
};

typedef doca_error_t (*doca_argp_param_cb_t)(void *, void *);
typedef doca_error_t (*doca_argp_cmd_cb_t)(void *);
typedef doca_error_t (*doca_argp_dpdk_cb_t)(int argc, char **argv);
typedef doca_error_t (*doca_argp_validation_cb_t)(void *);
typedef doca_error_t (*doca_argp_logger_cb_t)(enum doca_log_level level, const char *format,
					      va_list args);

/* Print how the program is called. */
DOCA_EXPERIMENTAL void doca_argp_usage(void);

/*
 * Begin: one parser in a process. Name of the program, or NULL for the file's; program_config goes
 * to all callbacks. BAD_STATE when it has begun. Errors: NO_MEMORY.
 */
DOCA_EXPERIMENTAL doca_error_t doca_argp_init(const char *program_name, void *program_config);

/*
 * Take a parameter over, also when it fails. INITIALIZATION: it lacks name, description, callback
 * or type. Errors: BAD_STATE.
 */
DOCA_EXPERIMENTAL doca_error_t doca_argp_register_param(struct doca_argp_param *input_param);

/* Take a command over, also when it fails. Errors: BAD_STATE, INITIALIZATION. */
DOCA_EXPERIMENTAL doca_error_t doca_argp_register_cmd(struct doca_argp_cmd *input_cmd);

/* What --version does instead of printing the version of the library. Errors: BAD_STATE. */
DOCA_EXPERIMENTAL doca_error_t doca_argp_register_version_callback(doca_argp_param_cb_t callback);

/*
 * Called with program_config when all is parsed; its error is that of doca_argp_start. Errors:
 * BAD_STATE.
 */
DOCA_EXPERIMENTAL doca_error_t
doca_argp_register_validation_callback(doca_argp_validation_cb_t callback);

/* Where the parser's own messages go; ALREADY_EXIST for a second one. Errors: BAD_STATE. */
DOCA_EXPERIMENTAL doca_error_t doca_argp_register_logger_callback(doca_argp_logger_cb_t callback);

/* Messages go to standard error again. Errors: BAD_STATE. */
DOCA_EXPERIMENTAL doca_error_t doca_argp_disable_logger_callback(void);

/*
 * Parse: callbacks run in the order of the arguments, after those of a JSON file. What is wrong is
 * printed, with the usage. Errors: BAD_STATE, INITIALIZATION, IO_FAILED, NO_MEMORY, NOT_SUPPORTED.
 *
 * Options are written -s VALUE, --long VALUE or --long=VALUE; short names may have several letters.
 * --json FILE reads options by their long names, comments as in C are left out, and the command
 * line goes before the file:
 *     {"doca_general_flags": {"log-level": 60}, "doca_program_flags": {"pci-addr": "03:00.0",
 *     "cpu": [1, 2]}}
 */
DOCA_EXPERIMENTAL doca_error_t doca_argp_start(int argc, char **argv);

/* End: parameters and commands are freed. Errors: BAD_STATE. */
DOCA_EXPERIMENTAL doca_error_t doca_argp_destroy(void);

/* Arguments after -- go to this callback, for programs that hand them to another library. */
DOCA_EXPERIMENTAL void doca_argp_set_dpdk_program(doca_argp_dpdk_cb_t callback);

/* A parameter, not yet known to the parser. BAD_STATE before doca_argp_init. Errors: NO_MEMORY. */
DOCA_EXPERIMENTAL doca_error_t doca_argp_param_create(struct doca_argp_param **param);

/* Name after one dash; may have several letters. Texts are copied. */
DOCA_EXPERIMENTAL void doca_argp_param_set_short_name(struct doca_argp_param *param,
						      const char *name);

/* Name after two dashes, and key in a JSON file. */
DOCA_EXPERIMENTAL void doca_argp_param_set_long_name(struct doca_argp_param *param,
						     const char *name);

/* What stands for the value in the usage. */
DOCA_EXPERIMENTAL void doca_argp_param_set_arguments(struct doca_argp_param *param,
						     const char *arguments);

/* Its text in the usage; each parameter needs one. */
DOCA_EXPERIMENTAL void doca_argp_param_set_description(struct doca_argp_param *param,
						       const char *description);

/*
 * Called as callback(value, program_config); value is a char *, int * or bool *, and lives only
 * during the call.
 */
DOCA_EXPERIMENTAL void doca_argp_param_set_callback(struct doca_argp_param *param,
						    doca_argp_param_cb_t callback);

/* Strings and numbers take a value, booleans do not. */
DOCA_EXPERIMENTAL void doca_argp_param_set_type(struct doca_argp_param *param,
						enum doca_argp_type type);

/* Without it parsing fails. */
DOCA_EXPERIMENTAL void doca_argp_param_set_mandatory(struct doca_argp_param *param);

/* Not taken from a JSON file. */
DOCA_EXPERIMENTAL void doca_argp_param_set_cli_only(struct doca_argp_param *param);

/* It may be given several times; the callback runs for each. */
DOCA_EXPERIMENTAL void doca_argp_param_set_multiplicity(struct doca_argp_param *param);

/* Alone on a command line: no other parameter is then needed. */
DOCA_EXPERIMENTAL void doca_argp_param_set_singular(struct doca_argp_param *param);

/* Commands below the one that it is registered with take it too. */
DOCA_EXPERIMENTAL void doca_argp_param_set_inherited(struct doca_argp_param *param);

/* Not shown in the usage. */
DOCA_EXPERIMENTAL void doca_argp_param_set_hidden(struct doca_argp_param *param);

/* Free one that was not registered. Errors: BAD_STATE. */
DOCA_EXPERIMENTAL doca_error_t doca_argp_param_destroy(struct doca_argp_param *param);

/* A command, not yet known to the parser. Errors: NO_MEMORY, BAD_STATE. */
DOCA_EXPERIMENTAL doca_error_t doca_argp_cmd_create(struct doca_argp_cmd **cmd);

/* The word that calls it. */
DOCA_EXPERIMENTAL void doca_argp_cmd_set_name(struct doca_argp_cmd *cmd, const char *name);

/* Its text in the usage. */
DOCA_EXPERIMENTAL void doca_argp_cmd_set_description(struct doca_argp_cmd *cmd,
						     const char *description);

/* Called with program_config when the command is given. */
DOCA_EXPERIMENTAL void doca_argp_cmd_set_callback(struct doca_argp_cmd *cmd,
						  doca_argp_cmd_cb_t callback);

/* Not shown in the usage. */
DOCA_EXPERIMENTAL void doca_argp_cmd_set_hidden(struct doca_argp_cmd *cmd);

/* A parameter of this command; taken over. Errors: BAD_STATE, INITIALIZATION. */
DOCA_EXPERIMENTAL doca_error_t doca_argp_cmd_register_param(struct doca_argp_cmd *cmd,
							    struct doca_argp_param *input_param);

/* A command below this one; taken over. Errors: BAD_STATE, INITIALIZATION. */
DOCA_EXPERIMENTAL doca_error_t doca_argp_cmd_register_cmd(struct doca_argp_cmd *cmd,
							  struct doca_argp_cmd *input_cmd);

/* Free one that was not registered. Errors: BAD_STATE. */
DOCA_EXPERIMENTAL doca_error_t doca_argp_cmd_destroy(struct doca_argp_cmd *cmd);

/* The level that the command line asks for. */
DOCA_EXPERIMENTAL doca_error_t doca_argp_get_log_level(int *log_level);
DOCA_EXPERIMENTAL doca_error_t doca_argp_get_sdk_log_level(int *log_level);

#ifdef __cplusplus
}
#endif

#endif
