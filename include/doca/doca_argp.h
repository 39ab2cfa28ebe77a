/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * doca_argp.h - parser for options of a command line and of a JSON file
 *
 * A process has one parser. A program creates it, registers parameters and commands, and starts it.
 * One thread uses the parser.
 */
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

/* Types of parameters. */
enum doca_argp_type {
	DOCA_ARGP_TYPE_UNKNOWN = 0,
	DOCA_ARGP_TYPE_STRING = 1,
	DOCA_ARGP_TYPE_INT = 2,
	DOCA_ARGP_TYPE_BOOLEAN = 3,
	DOCA_ARGP_TYPE_JSON_OBJ = 4,
};

/*
 * Callbacks of parameters (value, program_config), commands (program_config), DPDK arguments, and
 * validation (program_config). An error ends doca_argp_start() with that error.
 */
typedef doca_error_t (*doca_argp_param_cb_t)(void *, void *);
typedef doca_error_t (*doca_argp_cmd_cb_t)(void *);
typedef doca_error_t (*doca_argp_dpdk_cb_t)(int argc, char **argv);
typedef doca_error_t (*doca_argp_validation_cb_t)(void *);
/* Logger for messages of the parser. Its result is ignored. */
typedef doca_error_t (*doca_argp_logger_cb_t)(enum doca_log_level level, const char *format,
					      va_list args);

/* Print the usage of the program to standard output. */
DOCA_EXPERIMENTAL void doca_argp_usage(void);

/*
 * Create the parser of the process. program_name: NULL for the name of the executable. The parser
 * passes program_config to all callbacks.
 * Errors:
 *     BAD_STATE  the parser exists already
 *     NO_MEMORY  memory allocation failed
 */
DOCA_EXPERIMENTAL doca_error_t doca_argp_init(const char *program_name, void *program_config);

/*
 * Register a parameter. The parser owns it.
 * Errors:
 *     INITIALIZATION  name, description, callback or type is missing
 *     BAD_STATE       there is no parser, or it runs
 */
DOCA_EXPERIMENTAL doca_error_t doca_argp_register_param(struct doca_argp_param *input_param);

/*
 * Register a command. The parser owns it.
 * Errors:
 *     INITIALIZATION  name or description is missing
 *     BAD_STATE       there is no parser, or it runs
 */
DOCA_EXPERIMENTAL doca_error_t doca_argp_register_cmd(struct doca_argp_cmd *input_cmd);

/*
 * Set the function that --version calls, instead of printing the version of the library.
 * Errors:
 *     BAD_STATE  there is no parser
 */
DOCA_EXPERIMENTAL doca_error_t doca_argp_register_version_callback(doca_argp_param_cb_t callback);

/*
 * Set the function that the parser calls with program_config after all callbacks of options.
 * doca_argp_start() returns its error.
 * Errors:
 *     BAD_STATE  there is no parser
 */
DOCA_EXPERIMENTAL doca_error_t
doca_argp_register_validation_callback(doca_argp_validation_cb_t callback);

/*
 * Set the function that gets the messages of the parser.
 * Errors:
 *     BAD_STATE      there is no parser
 *     ALREADY_EXIST  a function is set already
 */
DOCA_EXPERIMENTAL doca_error_t doca_argp_register_logger_callback(doca_argp_logger_cb_t callback);

/*
 * Send the messages of the parser to standard error again.
 * Errors:
 *     BAD_STATE  there is no parser
 */
DOCA_EXPERIMENTAL doca_error_t doca_argp_disable_logger_callback(void);

/*
 * Parse the arguments. The parser calls the callbacks of options of the JSON file first, then those
 * of the command line, in order. It prints an error and the usage for invalid options. --help and
 * --version end the process. Options are written as -s VALUE, --long VALUE or --long=VALUE. A short
 * name can have several letters. --json FILE reads options by their long names; the file can have
 * comments as in C. An option of the command line has precedence over the same option of the file:
 *     {"doca_general_flags": {"log-level": 60},
 *      "doca_program_flags": {"pci-addr": "03:00.0", "cpu": [1, 2]}}
 * Errors:
 *     BAD_STATE       there is no parser, or it runs
 *     IO_FAILED       the JSON file cannot be read
 *     NOT_SUPPORTED   the JSON file has the key doca_dpdk_flags
 *     NO_MEMORY       memory allocation failed
 *     INITIALIZATION  a callback of the program returned it
 *     INVALID_VALUE   an option is unknown, missing or invalid
 * If a callback of the program returns another error, this function returns that error.
 */
DOCA_EXPERIMENTAL doca_error_t doca_argp_start(int argc, char **argv);

/*
 * Destroy the parser with all its parameters and commands.
 * Errors:
 *     BAD_STATE  there is no parser
 */
DOCA_EXPERIMENTAL doca_error_t doca_argp_destroy(void);

/* Set the function that gets the arguments before "--", for programs that pass them to DPDK. */
DOCA_EXPERIMENTAL void doca_argp_set_dpdk_program(doca_argp_dpdk_cb_t callback);

/*
 * Create a parameter, which is not yet registered.
 * Errors:
 *     BAD_STATE  there is no parser, or it runs
 *     NO_MEMORY  memory allocation failed
 */
DOCA_EXPERIMENTAL doca_error_t doca_argp_param_create(struct doca_argp_param **param);

/*
 * Set the short name, which follows one dash. It can have several letters. The library copies all
 * texts.
 */
DOCA_EXPERIMENTAL void doca_argp_param_set_short_name(struct doca_argp_param *param,
						      const char *name);

/* Set the long name, which follows two dashes. It is also the key in a JSON file. */
DOCA_EXPERIMENTAL void doca_argp_param_set_long_name(struct doca_argp_param *param,
						     const char *name);

/* Set the placeholder of the value in the usage. */
DOCA_EXPERIMENTAL void doca_argp_param_set_arguments(struct doca_argp_param *param,
						     const char *arguments);

/* Set the description in the usage. It is required. */
DOCA_EXPERIMENTAL void doca_argp_param_set_description(struct doca_argp_param *param,
						       const char *description);

/*
 * Set the function that the parser calls as callback(value, program_config). value is a char *, int
 * * or bool *, valid during the call.
 */
DOCA_EXPERIMENTAL void doca_argp_param_set_callback(struct doca_argp_param *param,
						    doca_argp_param_cb_t callback);

/* Set the type. Strings and numbers have a value, booleans need none. */
DOCA_EXPERIMENTAL void doca_argp_param_set_type(struct doca_argp_param *param,
						enum doca_argp_type type);

/* Make the parameter mandatory: parsing fails without it. */
DOCA_EXPERIMENTAL void doca_argp_param_set_mandatory(struct doca_argp_param *param);

/* Accept the parameter only on the command line, not in a JSON file. */
DOCA_EXPERIMENTAL void doca_argp_param_set_cli_only(struct doca_argp_param *param);

/* Permit the parameter several times. The parser calls the callback for each occurrence. */
DOCA_EXPERIMENTAL void doca_argp_param_set_multiplicity(struct doca_argp_param *param);

/*
 * Let the parser reject the parameter together with any other parameter. If the parameter is given,
 * mandatory parameters can be missing.
 */
DOCA_EXPERIMENTAL void doca_argp_param_set_singular(struct doca_argp_param *param);

/* Let the sub-commands of its command accept the parameter, too. */
DOCA_EXPERIMENTAL void doca_argp_param_set_inherited(struct doca_argp_param *param);

/* Omit the parameter from the usage. */
DOCA_EXPERIMENTAL void doca_argp_param_set_hidden(struct doca_argp_param *param);

/*
 * Destroy a parameter that is not registered.
 * Errors:
 *     BAD_STATE  there is no parser, or it runs, or the parameter is registered
 */
DOCA_EXPERIMENTAL doca_error_t doca_argp_param_destroy(struct doca_argp_param *param);

/*
 * Create a command, which is not yet registered.
 * Errors:
 *     BAD_STATE  there is no parser, or it runs
 *     NO_MEMORY  memory allocation failed
 */
DOCA_EXPERIMENTAL doca_error_t doca_argp_cmd_create(struct doca_argp_cmd **cmd);

/* Set the word that selects the command. */
DOCA_EXPERIMENTAL void doca_argp_cmd_set_name(struct doca_argp_cmd *cmd, const char *name);

/* Set the description in the usage. */
DOCA_EXPERIMENTAL void doca_argp_cmd_set_description(struct doca_argp_cmd *cmd,
						     const char *description);

/* Set the function that the parser calls with program_config for the command. */
DOCA_EXPERIMENTAL void doca_argp_cmd_set_callback(struct doca_argp_cmd *cmd,
						  doca_argp_cmd_cb_t callback);

/* Omit the command from the usage. */
DOCA_EXPERIMENTAL void doca_argp_cmd_set_hidden(struct doca_argp_cmd *cmd);

/*
 * Register a parameter of the command. The parser owns it. Errors as for
 * doca_argp_register_param(): BAD_STATE, INITIALIZATION.
 */
DOCA_EXPERIMENTAL doca_error_t doca_argp_cmd_register_param(struct doca_argp_cmd *cmd,
							    struct doca_argp_param *input_param);

/*
 * Register a sub-command of the command. The parser owns it. Errors as for
 * doca_argp_register_cmd(): BAD_STATE, INITIALIZATION.
 */
DOCA_EXPERIMENTAL doca_error_t doca_argp_cmd_register_cmd(struct doca_argp_cmd *cmd,
							  struct doca_argp_cmd *input_cmd);

/*
 * Destroy a command that is not registered.
 * Errors:
 *     BAD_STATE  there is no parser, or it runs, or the command is registered
 */
DOCA_EXPERIMENTAL doca_error_t doca_argp_cmd_destroy(struct doca_argp_cmd *cmd);

/* Get the log level that option -l (second function: --sdk-log-level) has set, or the default. */
DOCA_EXPERIMENTAL doca_error_t doca_argp_get_log_level(int *log_level);
DOCA_EXPERIMENTAL doca_error_t doca_argp_get_sdk_log_level(int *log_level);

#ifdef __cplusplus
}
#endif

#endif
