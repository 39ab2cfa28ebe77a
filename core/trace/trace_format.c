/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trace_format.c - prints records as text, as lines of JSON, as an iolog of fio, as blkparse does,
 * and as a trace for Chrome and Perfetto
 */
#include "trace/trace_format.h"

#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "base/units.h"
#include "io/status.h"

#define SECTOR 512u

static void nothing(struct gn_trace_output *output)
{
	(void)output;
}

/* Returns the name of an operation, or its number in `text`. */
static const char *op_text(unsigned opcode, char text[16])
{
	const char *name = gn_trace_op_name(opcode);

	snprintf(text, 16, "%u", opcode);
	return name ? name : text;
}

static const char *status_text(unsigned status, char text[16])
{
	const char *name = gn_trace_status_name(status);

	snprintf(text, 16, "%u", status);
	return name ? name : text;
}

/* -- text -- */

static void text_begin(struct gn_trace_output *output)
{
	fprintf(output->out, "%-15s %-12s %4s %-8s %-12s %14s %10s %-12s %s\n", "time", "role",
		"lane", "record", "operation", "offset", "length", "status", "latency");
}

static void text_print(struct gn_trace_output *output, const struct gn_trace_event *event)
{
	char op[16], status[16], latency[GN_UNITS_BYTES] = "-";

	if (event->is_complete && event->is_paired)
		gn_time_format(latency, sizeof(latency), gn_trace_latency(event));
	fprintf(output->out,
		"%5" PRIu64 ".%09" PRIu64 " %-12s %4u %-8s %-12s %14" PRIu64 " %10u %-12s %s\n",
		(uint64_t)(event->ns / GN_NS_PER_S), (uint64_t)(event->ns % GN_NS_PER_S),
		output->roles[event->role], event->lane, event->is_complete ? "complete" : "submit",
		op_text(event->io.opcode, op), event->io.offset, event->io.length,
		event->is_complete ? status_text(event->io.status, status) : "-", latency);
}

/* -- JSON -- */

static void json_print(struct gn_trace_output *output, const struct gn_trace_event *event)
{
	static const char *const hops[GANTRY_HOP_COUNT] = {
		[GANTRY_HOP_GATEWAY] = "gateway", /* lint: a word */
		[GANTRY_HOP_TARGET] = "target",   /* lint: a word */
		[GANTRY_HOP_BACKEND] = "backend",
		[GANTRY_HOP_DATA] = "data",
	};
	FILE *out = output->out;
	char text[16];

	fprintf(out,
		"{\"time_ns\":%" PRIu64
		",\"role\":\"%s\",\"lane\":%u,\"record\":\"%s\",\"operation\":\"%s\",\"offset\":%" PRIu64
		",\"length\":%u,\"fua\":%s",
		event->ns, output->roles[event->role], event->lane,
		event->is_complete ? "complete" : "submit", op_text(event->io.opcode, text),
		event->io.offset, event->io.length,
		event->io.flags & GANTRY_IO_FUA ? "true" : "false");
	if (event->is_complete) {
		fprintf(out, ",\"status\":\"%s\"", status_text(event->io.status, text));
		if (event->is_paired)
			fprintf(out, ",\"latency_ns\":%" PRIu64, gn_trace_latency(event));
		fputs(",\"hop_ns\":{", out);
		for (unsigned i = 0; i < GANTRY_HOP_COUNT; i++)
			fprintf(out, "%s\"%s\":%u", i ? "," : "", hops[i], event->io.hop_ns[i]);
		fputc('}', out);
	}
	fputs("}\n", out);
}

/* -- fio: version 3 of its iolog; the times are microseconds -- */

static void fio_file(struct gn_trace_output *output, uint32_t role, const char *action)
{
	fprintf(output->out, "%" PRIu64 " %s %s\n", (uint64_t)(output->last_ns / GN_NS_PER_US),
		output->roles[role], action);
}

static void fio_begin(struct gn_trace_output *output)
{
	fputs("fio version 3 iolog\n", output->out);
	for (uint32_t i = 0; i < output->n_roles; i++)
		fio_file(output, i, "add");
	for (uint32_t i = 0; i < output->n_roles; i++)
		fio_file(output, i, "open");
}

static void fio_print(struct gn_trace_output *output, const struct gn_trace_event *event)
{
	static const char *const actions[GANTRY_OP_COUNT] = {
		[GANTRY_OP_READ] = "read",
		[GANTRY_OP_WRITE] = "write",
		[GANTRY_OP_FLUSH] = "sync",
		[GANTRY_OP_DISCARD] = "trim",
	};
	const unsigned opcode = event->io.opcode < GANTRY_OP_COUNT ? event->io.opcode
								   : GANTRY_OP_COUNT;

	if (opcode == GANTRY_OP_COUNT || !actions[opcode]) {
		output->left_out[opcode]++;
		return;
	}
	fprintf(output->out, "%" PRIu64 " %s %s %" PRIu64 " %u\n",
		(uint64_t)(event->ns / GN_NS_PER_US), output->roles[event->role], actions[opcode],
		event->io.offset, event->io.length);
}

static void fio_end(struct gn_trace_output *output)
{
	for (uint32_t i = 0; i < output->n_roles; i++)
		fio_file(output, i, "close");
}

/* -- blkparse: the default format of its lines -- */

/* The letters of an operation. A flush has no range. */
static const char *blk_letters(const struct gantry_io *io)
{
	static const char *const letters[GANTRY_OP_COUNT] = {
		[GANTRY_OP_NOP] = "N",          [GANTRY_OP_READ] = "R",
		[GANTRY_OP_WRITE] = "W",        [GANTRY_OP_FLUSH] = "FN",
		[GANTRY_OP_WRITE_ZEROES] = "W", [GANTRY_OP_DISCARD] = "D",
		[GANTRY_OP_EXTENTS] = "N",
	};

	if (io->opcode >= GANTRY_OP_COUNT)
		return "N";
	return gantry_op_writes(io->opcode) && io->flags & GANTRY_IO_FUA &&
			       *letters[io->opcode] == 'W'
		       ? "WF"
		       : letters[io->opcode];
}

static void blk_print(struct gn_trace_output *output, const struct gn_trace_event *event)
{
	FILE *out = output->out;
	const uint32_t n = event->io.length / SECTOR + (event->io.length % SECTOR != 0);

	/* device, CPU, number, time, process, action, letters */
	fprintf(out, "%3u,%-3u %2u %8" PRIu64 " %5" PRIu64 ".%09" PRIu64 " %5u %2s %3s ", 0,
		event->role, event->lane, ++output->n_events, (uint64_t)(event->ns / GN_NS_PER_S),
		(uint64_t)(event->ns % GN_NS_PER_S), 0, event->is_complete ? "C" : "D",
		blk_letters(&event->io));
	if (gantry_op_has_range(event->io.opcode))
		fprintf(out, "%" PRIu64 " + %u ", (uint64_t)(event->io.offset / SECTOR), n);
	if (event->is_complete)
		fprintf(out, "[%d]\n", -gn_errno_of_status(event->io.status));
	else
		fprintf(out, "[%s]\n", output->roles[event->role]);
}

/* -- Chrome and Perfetto: a track for each role, an asynchronous slice for each IO -- */

static void chrome_name(struct gn_trace_output *output, uint32_t role, const char *what)
{
	fprintf(output->out,
		"%s{\"name\":\"%s\",\"ph\":\"M\",\"pid\":%u,\"tid\":%u,\"args\":{\"name\":\"%s\"}}",
		output->n_events++ ? ",\n" : "", what, role + 1, role + 1, output->roles[role]);
}

static void chrome_begin(struct gn_trace_output *output)
{
	fputs("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n", output->out);
	for (uint32_t i = 0; i < output->n_roles; i++) {
		chrome_name(output, i, "process_name");
		chrome_name(output, i, "thread_name");
	}
}

static void chrome_event(struct gn_trace_output *output, const struct gn_trace_event *event,
			 const char *phase, uint64_t ns)
{
	char text[16];

	fprintf(output->out,
		",\n{\"name\":\"%s\",\"cat\":\"io\",\"ph\":\"%s\",\"pid\":%u,\"tid\":%u,\"ts\":%" PRIu64
		".%03" PRIu64 ",\"id\":\"%u.%" PRIu64 "\",\"args\":{",
		op_text(event->io.opcode, text), phase, event->role + 1, event->role + 1,
		(uint64_t)(ns / GN_NS_PER_US), (uint64_t)(ns % GN_NS_PER_US), event->role + 1,
		event->pair.number);
	if (*phase == 'b')
		fprintf(output->out, "\"lane\":%u,\"offset\":%" PRIu64 ",\"length\":%u}}",
			event->lane, event->io.offset, event->io.length);
	else
		fprintf(output->out, "\"status\":\"%s\"}}", status_text(event->io.status, text));
}

static void chrome_print(struct gn_trace_output *output, const struct gn_trace_event *event)
{
	if (!event->is_paired) {
		output->left_out[event->io.opcode < GANTRY_OP_COUNT ? event->io.opcode
								    : GANTRY_OP_COUNT]++;
		return;
	}
	if (!event->is_complete || !event->pair.accepted)
		chrome_event(output, event, "b", event->pair.ns);
	if (event->is_complete)
		chrome_event(output, event, "e", event->ns);
}

static void chrome_end(struct gn_trace_output *output)
{
	fputs("\n]}\n", output->out);
}

static const struct gn_trace_format formats[] = {
	{"text", false, false, text_begin, text_print, nothing},
	{"json", false, false, nothing, json_print, nothing},
	{"fio", true, false, fio_begin, fio_print, fio_end},
	{"blkparse", false, false, nothing, blk_print, nothing},
	{"chrome", false, true, chrome_begin, chrome_print, chrome_end},
};

const struct gn_trace_format *gn_trace_format_find(const char *name)
{
	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++)
		if (!strcmp(formats[i].name, name))
			return &formats[i];
	return NULL;
}
