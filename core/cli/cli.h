/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cli.h - the command line: one table row for each subcommand and each option. The help text is
 * generated from the rows.
 */
#ifndef GN_CLI_CLI_H
#define GN_CLI_CLI_H

#include <jansson.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "trace/trace_filter.h"
#include "topology/topology.h"

/* Exit codes; `gantry --help` explains them. */
enum gn_exit {
	GN_EXIT_OK = 0,
	GN_EXIT_FAILED = 1,      /* an IO, a session or a device failed */
	GN_EXIT_USAGE = 2,       /* the command line or the configuration is invalid */
	GN_EXIT_INTERRUPTED = 3, /* a signal ended the process before its work was done */
};

/* Options, as bits of gn_command.accepts. */
enum gn_cli_option {
	GN_CLI_PLUGIN_DIR = 0x01,
	GN_CLI_VERBOSE = 0x02,
	GN_CLI_JSON = 0x04,
	GN_CLI_ROLE = 0x08,
	GN_CLI_SET = 0x10,
	GN_CLI_CONFIG = 0x20,
	GN_CLI_DIR = 0x40,
	GN_CLI_OPTIONS = 0x80,
	GN_CLI_HELP = 0x100,
	GN_CLI_VERSION = 0x200,
	GN_CLI_MDOC = 0x400,
	GN_CLI_WATCH = 0x1000,
	GN_CLI_OPENMETRICS = 0x2000,
	GN_CLI_PID = 0x4000,
	GN_CLI_REPORT = 0x8000,
	GN_CLI_LISTEN = 0x10000,
	GN_CLI_BATCH = 0x20000,
	GN_CLI_COUNT = 0x40000,
	GN_CLI_INTERVAL = 0x80000,
	GN_CLI_TRACE = 0x100000, /* the options of gantry trace */
	GN_CLI_COPY = 0x200000,  /* the options of gantry copy */
	GN_CLI_RAW = 0x800,      /* no option: the command parses its words itself */
};

/* The parsed command line. */
struct gn_cli {
	const char *command;
	struct gn_topology_args topology; /* --plugin-dir, --role, --set, -v; words of argv */
	struct gn_strlist args;
	const char *config; /* -c; NULL: not given */
	const char *dir;    /* --dir; NULL: not given */
	const char *report; /* --report; NULL: not given */
	const char *listen; /* --listen; NULL: not given */
	const char *format; /* --format; NULL: not given */
	const char *state;  /* --state; NULL: not given */
	struct gn_trace_filter_args trace_filter;
	bool json;
	bool options, mdoc, openmetrics, batch, summary, verify;
	unsigned watch_s;    /* --watch: seconds; 0: not given */
	unsigned interval_s; /* --interval: seconds; 0: not given */
	unsigned count;      /* --count; 0: not given */
	int pid;             /* --pid; 0: not given */
};

struct gn_command {
	const char *name;
	const char *args; /* arguments in the usage line */
	const char *help; /* description in one sentence */
	unsigned accepts; /* enum gn_cli_option */
	size_t min_args, max_args;
	int (*run)(const struct gn_cli *cli); /* returns enum gn_exit */
};

int gn_cli_run(const struct gn_cli *cli);
int gn_cli_check(const struct gn_cli *cli);
int gn_cli_conform(const struct gn_cli *cli);
int gn_cli_plugins(const struct gn_cli *cli);
int gn_cli_devices(const struct gn_cli *cli);
int gn_cli_doca(const struct gn_cli *cli);
int gn_cli_env(const struct gn_cli *cli);
int gn_cli_key(const struct gn_cli *cli);
int gn_cli_new_plugin(const struct gn_cli *cli);
int gn_cli_options(const struct gn_cli *cli);
int gn_cli_copy(const struct gn_cli *cli);
int gn_cli_stat(const struct gn_cli *cli);
int gn_cli_ctl(const struct gn_cli *cli);
int gn_cli_metrics(const struct gn_cli *cli);
int gn_cli_top(const struct gn_cli *cli);
int gn_cli_trace(const struct gn_cli *cli);
int gn_cli_version(const struct gn_cli *cli);
int gn_cli_vm(const struct gn_cli *cli);

/* Concatenate the parts of a path. Returns false if it is too long. */
bool gn_cli_path(char out[PATH_MAX], const char *a, const char *b, const char *c, const char *d);

/* True if this program is in a build tree; then `top` is set to that tree. */
bool gn_cli_build_tree(char top[PATH_MAX]);

/* Print "gantry: ..." and a newline to stderr. Returns `code`, for `return gn_cli_fail(...)`. */
int gn_cli_fail(int code, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/*
 * Check that a plugin is usable. Returns GN_EXIT_OK; or GN_EXIT_USAGE, after printing the reason
 * and a similar name.
 */
int gn_cli_need_plugin(struct gn_loader *loader, const char *name);

/*
 * Flush stdout, so that later messages on stderr follow it. main() reports a write error at the
 * end.
 */
void gn_cli_flush(void);

/* Print text to stdout, in quotes of a shell. */
void gn_cli_print_quoted(const char *text);

/*
 * Print a tree as JSON. tree NULL: out of memory. Returns GN_EXIT_OK; or GN_EXIT_FAILED: the cause
 * was printed, or main() prints it at the end.
 */
int gn_cli_print_json(const json_t *tree);

/* Print "gantry: " and each message. Returns GN_EXIT_USAGE. */
int gn_cli_complain(struct gn_errs *errs);

/* Append a word. Exits the process when out of memory: at this point no work has started. */
void gn_cli_add_word(struct gn_strlist *words, const char *word);

#endif
