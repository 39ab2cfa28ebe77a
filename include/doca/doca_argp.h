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
typedef doca_error_t (*doca_argp_logger_cb_t)(enum doca_log_level level, const char *format, va_list args);

/* Prints usage. */
DOCA_EXPERIMENTAL void doca_argp_usage(void);

/*
 * Start the singleton parser; name may be NULL (default = argv[0] base name); config pointer is handed to callbacks.
 * Second init without destroy -> BAD_STATE. Errors: NO_MEMORY.
 */
DOCA_EXPERIMENTAL doca_error_t doca_argp_init(const char *program_name, void *program_config);

/*
 * Registers and takes ownership of param in every case (success or failure); missing mandatory fields (name,
 * description, callback, type) -> INITIALIZATION. Errors: BAD_STATE.
 */
DOCA_EXPERIMENTAL doca_error_t doca_argp_register_param(struct doca_argp_param *input_param);

/* Registers a sub-command. Errors: BAD_STATE, INITIALIZATION. */
DOCA_EXPERIMENTAL doca_error_t doca_argp_register_cmd(struct doca_argp_cmd *input_cmd);

/*
 * Replaces the --version action; the callback prints and usually calls doca_argp_destroy()+exit(0). Errors:
 * BAD_STATE.
 */
DOCA_EXPERIMENTAL doca_error_t doca_argp_register_version_callback(doca_argp_param_cb_t callback);

/*
 * Called once after parsing with the config pointer; its error becomes the result of doca_argp_start. Errors:
 * BAD_STATE.
 */
DOCA_EXPERIMENTAL doca_error_t doca_argp_register_validation_callback(doca_argp_validation_cb_t callback);

/* Routes the parser's own messages to a callback instead of stderr. Errors: BAD_STATE, ALREADY_EXIST. */
DOCA_EXPERIMENTAL doca_error_t doca_argp_register_logger_callback(doca_argp_logger_cb_t callback);

/* Back to stderr. Errors: BAD_STATE. */
DOCA_EXPERIMENTAL doca_error_t doca_argp_disable_logger_callback(void);

/*
 * Parses argv (and --json file); calls param callbacks; on a parse error prints error + usage and returns an error;
 * checks mandatory params. Errors: BAD_STATE, INITIALIZATION, IO_FAILED, NO_MEMORY, NOT_SUPPORTED.
 */
DOCA_EXPERIMENTAL doca_error_t doca_argp_start(int argc, char **argv);

/* Frees parser and params; BAD_STATE if not initialised. */
DOCA_EXPERIMENTAL doca_error_t doca_argp_destroy(void);

/* Before start. */
DOCA_EXPERIMENTAL void doca_argp_set_dpdk_program(doca_argp_dpdk_cb_t callback);

/* Allocates a param; needs prior init (BAD_STATE otherwise). Errors: NO_MEMORY. */
DOCA_EXPERIMENTAL doca_error_t doca_argp_param_create(struct doca_argp_param **param);

/* Option name without dash; multi-character short names are used ("ns","nd","re","tt"). */
DOCA_EXPERIMENTAL void doca_argp_param_set_short_name(struct doca_argp_param *param, const char *name);

/* Option name without dashes; also the JSON key. */
DOCA_EXPERIMENTAL void doca_argp_param_set_long_name(struct doca_argp_param *param, const char *name);

/* Placeholder text shown after the option in usage. */
DOCA_EXPERIMENTAL void doca_argp_param_set_arguments(struct doca_argp_param *param, const char *arguments);

/* Usage text; mandatory field. */
DOCA_EXPERIMENTAL void doca_argp_param_set_description(struct doca_argp_param *param, const char *description);

/*
 * Mandatory. Callback(void *value, void *config): value is char* (STRING), int* (INT), bool* (BOOLEAN). Value
 * storage only valid during the call.
 */
DOCA_EXPERIMENTAL void doca_argp_param_set_callback(struct doca_argp_param *param, doca_argp_param_cb_t callback);

/* STRING / INT take a value; BOOLEAN takes none. */
DOCA_EXPERIMENTAL void doca_argp_param_set_type(struct doca_argp_param *param, enum doca_argp_type type);

/* Parsing fails if the option is absent. */
DOCA_EXPERIMENTAL void doca_argp_param_set_mandatory(struct doca_argp_param *param);

/* Before start. */
DOCA_EXPERIMENTAL void doca_argp_param_set_cli_only(struct doca_argp_param *param);

/*
 * Option may repeat; callback runs once per occurrence (storage --cpu). A second occurrence of a non-multiple option
 * is an error.
 */
DOCA_EXPERIMENTAL void doca_argp_param_set_multiplicity(struct doca_argp_param *param);

/* Before start. */
DOCA_EXPERIMENTAL void doca_argp_param_set_singular(struct doca_argp_param *param);
DOCA_EXPERIMENTAL void doca_argp_param_set_inherited(struct doca_argp_param *param);
DOCA_EXPERIMENTAL void doca_argp_param_set_hidden(struct doca_argp_param *param);

/* The object must be idle. Errors: BAD_STATE. */
DOCA_EXPERIMENTAL doca_error_t doca_argp_param_destroy(struct doca_argp_param *param);

/* Creates the object. Errors: NO_MEMORY, BAD_STATE. */
DOCA_EXPERIMENTAL doca_error_t doca_argp_cmd_create(struct doca_argp_cmd **cmd);

/* Before start. */
DOCA_EXPERIMENTAL void doca_argp_cmd_set_name(struct doca_argp_cmd *cmd, const char *name);
DOCA_EXPERIMENTAL void doca_argp_cmd_set_description(struct doca_argp_cmd *cmd, const char *description);
DOCA_EXPERIMENTAL void doca_argp_cmd_set_callback(struct doca_argp_cmd *cmd, doca_argp_cmd_cb_t callback);
DOCA_EXPERIMENTAL void doca_argp_cmd_set_hidden(struct doca_argp_cmd *cmd);

/* Adds a flag to a sub-command. Errors: BAD_STATE, INITIALIZATION. */
DOCA_EXPERIMENTAL doca_error_t doca_argp_cmd_register_param(struct doca_argp_cmd *cmd,
		struct doca_argp_param *input_param);

/* Nests a sub-command. Errors: BAD_STATE, INITIALIZATION. */
DOCA_EXPERIMENTAL doca_error_t doca_argp_cmd_register_cmd(struct doca_argp_cmd *cmd,
		struct doca_argp_cmd *input_cmd);

/* The object must be idle. Errors: BAD_STATE. */
DOCA_EXPERIMENTAL doca_error_t doca_argp_cmd_destroy(struct doca_argp_cmd *cmd);

/* Tells the log level. */
DOCA_EXPERIMENTAL doca_error_t doca_argp_get_log_level(int *log_level);

/* Tells the sdk log level. */
DOCA_EXPERIMENTAL doca_error_t doca_argp_get_sdk_log_level(int *log_level);

#ifdef __cplusplus
}
#endif

#endif
