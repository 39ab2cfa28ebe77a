/* SPDX-License-Identifier: BSD-3-Clause */
/* cmd_trace.c - gantry trace: print, sum up or convert the files of stage trace */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "cli/cli.h"
#include "trace/trace_format.h"
#include "trace/trace_stream.h"
#include "trace/trace_summary.h"

struct input {
	const char *path;
	FILE *file;
	char name[64];
};

struct run {
	const struct gn_trace_format *format;
	bool is_summary, is_json;
	uint32_t n_inputs;
	struct input inputs[GN_TRACE_MAX_ROLES];
	const char *names[GN_TRACE_MAX_ROLES];
	struct gn_trace_stream *stream;
	struct gn_trace_summary *summary;
	struct gn_trace_output output;
};

/* Copy a name; replace what some format cannot express. */
static void set_name(struct input *input, const char *name, size_t n)
{
	if (n >= sizeof(input->name))
		n = sizeof(input->name) - 1;
	memcpy(input->name, name, n);
	input->name[n] = '\0';
	for (char *c = input->name; *c; c++)
		if (*c <= ' ' || *c > '~' || *c == '"' || *c == '\\')
			*c = '_';
}

/* The name of a role in a trace is that of its instance, "roles.NAME". */
static void set_name_of_head(struct input *input, const struct gantry_trace_head *head)
{
	const char *name = head->instance;
	const char *slash = strrchr(input->path, '/');

	if (!strncmp(name, "roles.", 6))
		name += 6;
	if (!*name)
		name = slash && slash[1] ? slash + 1 : input->path;
	set_name(input, name, strcspn(name, "."));
	if (!*input->name)
		set_name(input, "role", 4);
}

static int fail_read(const char *path)
{
	return gn_cli_fail(GN_EXIT_FAILED, "%s: cannot read the file: %s", path, strerror(errno));
}

static int fail_head(const char *path, int rc)
{
	if (rc == -ENOMEM)
		return gn_cli_fail(GN_EXIT_FAILED, "out of memory");
	if (rc == -E2BIG)
		return gn_cli_fail(GN_EXIT_USAGE, "too many files (limit %u)", GN_TRACE_MAX_ROLES);
	if (rc == -EIO)
		return fail_read(path);
	return gn_cli_fail(GN_EXIT_FAILED, "%s: %s: give a file that the stage trace has written",
			   path,
			   rc == -EPROTO ? "trace of another version, or its header is damaged"
					 : "not a trace");
}

/* Open one argument: FILE or NAME=FILE. Returns GN_EXIT_OK, or another code after a message. */
static int open_input(struct run *run, const char *word)
{
	struct input *input = &run->inputs[run->n_inputs];
	const size_t name = strcspn(word, "=/");
	int rc;

	if (run->n_inputs == GN_TRACE_MAX_ROLES)
		return fail_head(word, -E2BIG);
	input->path = word[name] == '=' && name ? word + name + 1 : word;
	input->file = fopen(input->path, "re");
	if (!input->file)
		return gn_cli_fail(GN_EXIT_USAGE, "%s: cannot open the file: %s", input->path,
				   strerror(errno));
	run->n_inputs++;
	rc = gn_trace_stream_add(run->stream, input->file);
	if (rc)
		return fail_head(input->path, rc);
	if (input->path != word)
		set_name(input, word, name);
	else
		set_name_of_head(
			input,
			&gn_trace_stream_source(run->stream, run->n_inputs - 1)->reader.head);
	run->names[run->n_inputs - 1] = input->name;
	return GN_EXIT_OK;
}

static int fail_event(const struct run *run, const struct gn_trace_event *event, int rc)
{
	const char *path = run->inputs[event->role].path;

	if (rc == -ENOMEM)
		return gn_cli_fail(GN_EXIT_FAILED, "out of memory");
	if (rc == -EBADMSG)
		return gn_cli_fail(GN_EXIT_FAILED,
				   "%s: damaged record (time_ns=%" PRIu64
				   "): the output ends before it",
				   path, event->ns);
	return fail_read(path);
}

static void print(struct run *run, const struct gn_trace_event *event)
{
	const struct gn_trace_format *format = run->format;

	if (!event->is_accepted &&
	    !(format->wants_ends && event->is_complete && event->pair.accepted))
		return;
	if (event->is_complete && format->only_submissions)
		return;
	run->output.last_ns = event->ns;
	format->print(&run->output, event);
}

/* Read the traces to their end. Returns GN_EXIT_OK, or another code after a message. */
static int read_all(struct run *run)
{
	struct gn_trace_event event;
	int rc;

	while ((rc = gn_trace_stream_next(run->stream, &event)) > 0) {
		if (!run->is_summary)
			print(run, &event);
		else if (event.is_accepted && gn_trace_summary_add(run->summary, &event))
			return fail_event(run, &event, -ENOMEM);
		if (ferror(stdout)) /* main() reports it */
			return GN_EXIT_FAILED;
	}
	return rc ? fail_event(run, &event, rc) : GN_EXIT_OK;
}

/*
 * Report what the output lacks. code: result of read_all(). Returns `code`, or GN_EXIT_FAILED if a
 * trace is not whole.
 */
static int report_gaps(const struct run *run, int code)
{
	const bool at_end = code == GN_EXIT_OK; /* otherwise no trace was read to its end */

	for (unsigned op = 0; op <= GANTRY_OP_COUNT; op++)
		if (run->output.left_out[op])
			gn_cli_fail(0,
				    "format %s: records left out that it cannot express "
				    "(operation=%s, records=%" PRIu64 ")",
				    run->format->name,
				    op < GANTRY_OP_COUNT ? gn_trace_op_name(op) : "unknown",
				    run->output.left_out[op]);
	for (uint32_t i = 0; i < run->n_inputs; i++) {
		const struct gn_trace_source *source = gn_trace_stream_source(run->stream, i);

		if (source->n_late)
			gn_cli_fail(0,
				    "%s: records not in the order of their times (records=%" PRIu64
				    "): record with a smaller value of the option flush",
				    run->inputs[i].path, source->n_late);
		if (at_end && source->reader.n_partial)
			code = gn_cli_fail(GN_EXIT_FAILED,
					   "%s: ends inside a record (bytes=%u): the process that "
					   "wrote it was ended; this record is left out",
					   run->inputs[i].path, source->reader.n_partial);
	}
	return code;
}

/* Returns `code`, or another code after a message. */
static int print_summary(const struct run *run, int code)
{
	json_t *tree;
	int rc;

	if (!run->is_json) {
		gn_trace_summary_print(run->summary, stdout, run->names);
		return code;
	}
	tree = gn_trace_summary_json(run->summary, run->names);
	rc = gn_cli_print_json(tree);
	json_decref(tree);
	return rc == GN_EXIT_OK ? code : rc;
}

static int convert(struct run *run)
{
	int code;

	if (run->is_summary) {
		run->summary = gn_trace_summary_new(run->n_inputs);
		if (!run->summary)
			return gn_cli_fail(GN_EXIT_FAILED, "out of memory");
		code = print_summary(run, read_all(run));
	} else {
		run->output = (struct gn_trace_output){
			.out = stdout, .roles = run->names, .n_roles = run->n_inputs};
		run->format->begin(&run->output);
		code = read_all(run);
		run->format->end(&run->output);
	}
	gn_cli_flush();
	return report_gaps(run, code);
}

/* Check the options. Returns GN_EXIT_OK, or GN_EXIT_USAGE after a message. */
static int parse(const struct gn_cli *cli, struct run *run, struct gn_trace_filter *filter)
{
	const char *format = cli->format ? cli->format : cli->json ? "json" : "text";
	char error[512];

	if (gn_trace_filter_parse(filter, &cli->trace_filter, error, sizeof(error)))
		return gn_cli_fail(GN_EXIT_USAGE, "%s", error);
	run->format = gn_trace_format_find(format);
	if (!run->format)
		return gn_cli_fail(GN_EXIT_USAGE,
				   "--format: unknown (value=%s): give one of " GN_TRACE_FORMATS,
				   format);
	if (cli->json && strcmp(format, "json"))
		return gn_cli_fail(GN_EXIT_USAGE, "only one of --json and --format can be used");
	run->is_summary = cli->summary;
	run->is_json = !strcmp(format, "json");
	if (run->is_summary && !run->is_json && strcmp(format, "text"))
		return gn_cli_fail(GN_EXIT_USAGE,
				   "--summary: not in this format (format=%s): give text or json",
				   format);
	if (run->format->only_submissions && gn_trace_filter_needs_completion(filter))
		return gn_cli_fail(GN_EXIT_USAGE,
				   "format %s has only submissions, which have no status and no "
				   "latency: leave out --status and --min-latency",
				   format);
	return GN_EXIT_OK;
}

int gn_cli_trace(const struct gn_cli *cli)
{
	struct run *run = calloc(1, sizeof(*run));
	struct gn_trace_filter filter;
	int code;

	if (!run)
		return gn_cli_fail(GN_EXIT_FAILED, "out of memory");
	code = parse(cli, run, &filter);
	if (code == GN_EXIT_OK) {
		run->stream = gn_trace_stream_new(&filter);
		if (!run->stream)
			code = gn_cli_fail(GN_EXIT_FAILED, "out of memory");
	}
	for (size_t i = 0; code == GN_EXIT_OK && i < cli->args.n; i++)
		code = open_input(run, cli->args.word[i]);
	if (code == GN_EXIT_OK)
		code = convert(run);
	gn_trace_summary_free(run->summary);
	gn_trace_stream_free(run->stream);
	for (uint32_t i = 0; i < run->n_inputs; i++)
		fclose(run->inputs[i].file);
	free(run);
	return code;
}
