/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dt.h - gantry-doca, the program behind `gantry doca`: runs programs under the validation layer
 * (doca/check), collects what it reports, and prints it
 */
#ifndef DT_TOOL_H
#define DT_TOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

/* Exit codes. */
enum dt_exit {
	DT_CLEAN = 0,
	DT_FINDINGS = 1,
	DT_USAGE = 2,
	DT_CRASHED = 3, /* a program crashed or hung, or a signal ended the run */
};

enum { DT_MAX_PROGRAMS = 16 };

/* A program to run, and how it ended. */
struct dt_program {
	char **argv; /* ends with NULL */
	pid_t pid;
	bool has_ended;
	bool hung;    /* killed at the time limit */
	bool stopped; /* killed because another program crashed or hung, or of a signal */
	int status;   /* of waitpid() */
};

struct dt_options {
	char **words; /* of the command line after the options */
	struct dt_program programs[DT_MAX_PROGRAMS];
	size_t n_programs;
	bool json, rules, thread_start_shim;
	const char *junit, *sarif; /* files; NULL: none */
	const char *suppressions;
	const char *trace, *svg; /* files of gantry doca trace */
	const char *card;
	bool protect;
	bool has_seed;
	bool has_range;      /* of seeds: run without trouble first */
	const char *trouble; /* kinds, with commas; NULL: all */
	uint64_t first_seed, last_seed;
	unsigned timeout_s, stall_ms;
};

/* A finding; equal findings of several processes or runs are one. */
struct dt_finding {
	struct dt_finding *next;
	const char *rule, *severity, *section, *text, *remedy;
	char *function, *type, *address, *details, *program;
	char *frames[32];
	size_t n_frames;
	char *made_at; /* frame, or NULL */
	unsigned count;
};

/* How often the programs met one kind of trouble. */
struct dt_trouble {
	char *kind;
	uint64_t n;
};

struct dt_findings {
	struct dt_finding *first, **last;
	size_t n, n_suppressed;
	uint64_t n_calls;
	struct dt_trouble trouble[16];
	size_t n_trouble; /* entries of `trouble` */
	char *refused;    /* why the run cannot be judged, or NULL */
};

/* Print "gantry doca: ..." to stderr. Returns `code`. */
int dt_fail(int code, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Get the path of a library beside this program, in a build tree or installed. */
const char *dt_library(const char *name);

/* -- dt_run.c -- */

/*
 * Replace this process with the program argv[0]. thread_start_shim: load the library that delays
 * the start of threads. Returns DT_USAGE if that fails, after printing the reason.
 */
int dt_run(char **argv, bool thread_start_shim);

/* -- dt_launch.c -- */

/*
 * Run all programs once. `records` is the file for their records. seed NULL: cause no trouble.
 * Returns
 * DT_CLEAN; DT_CRASHED; or DT_USAGE after printing why a program cannot be run.
 */
int dt_launch(struct dt_options *options, const char *library, const char *records,
	      const uint64_t *seed);

/* Describe how a program ended, such as "signal 11" or "exit status 1". */
const char *dt_ending(const struct dt_program *program);
/* True if the program has ended by itself, with status 0. */
bool dt_ended_well(const struct dt_program *program);

/* -- dt_findings.c -- */

void dt_findings_init(struct dt_findings *findings);
/* Forget the numbers of calls and of trouble, before another run. */
void dt_findings_reset_counts(struct dt_findings *findings);
void dt_findings_fini(struct dt_findings *findings);
/* Add the records of a file. Returns 0, or a negative errno. */
int dt_findings_read(struct dt_findings *findings, const char *records,
		     const struct dt_options *options);
/*
 * Remove findings that the suppression file lists. Returns 0, or DT_USAGE after printing the error.
 */
int dt_findings_suppress(struct dt_findings *findings, const char *path);
/* The rule with this name as one row of rules.def; false if there is none. */
bool dt_find_rule(const char *name, struct dt_finding *finding);
void dt_print_rules(FILE *out, bool json);

/* -- dt_source.c -- */

/* Where a frame "MODULE+OFFSET" is in the source. Strings live until the process exits. */
struct dt_place {
	const char *function; /* NULL: unknown */
	const char *file;     /* NULL: no debug information */
	int line;
	const char *module;
};

void dt_locate(const char *frame, struct dt_place *place);

/* -- dt_output.c -- */

void dt_print_text(FILE *out, const struct dt_findings *findings, const struct dt_options *options);
int dt_print_json(FILE *out, const struct dt_findings *findings, const struct dt_options *options);
/* Write a file. Returns 0, or DT_USAGE after printing the error. */
int dt_write_junit(const char *path, const struct dt_findings *findings,
		   const struct dt_options *options);
int dt_write_sarif(const char *path, const struct dt_findings *findings);
/* Write text with the characters escaped that XML reserves. */
void dt_print_xml(FILE *out, const char *text);

/* -- dt_trace.c -- */

/* Write the files of options->trace and svg. Returns 0, or DT_USAGE after printing the error. */
int dt_write_trace(const char *records, const struct dt_options *options);

#endif
