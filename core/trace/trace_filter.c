/* SPDX-License-Identifier: BSD-3-Clause */
/* trace_filter.c - selects records by operation, time, offset, lane, status and latency */
#include "trace/trace_filter.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/units.h"

#define MAX_VALUE 256 /* bytes of the value of an option */
#define ANY_ERROR ((1u << GANTRY_S_COUNT) - 1 - (1u << GANTRY_S_OK))

_Static_assert(GANTRY_S_COUNT < 32 && GANTRY_OP_COUNT < 32, "bits of a filter");

static const char *const op_names[GANTRY_OP_COUNT] = {
	[GANTRY_OP_NOP] = "nop",
	[GANTRY_OP_READ] = "read",
	[GANTRY_OP_WRITE] = "write",
	[GANTRY_OP_FLUSH] = "flush",
	[GANTRY_OP_WRITE_ZEROES] = "write_zeroes",
	[GANTRY_OP_DISCARD] = "discard",
	[GANTRY_OP_EXTENTS] = "extents",
};

static const char *const status_names[GANTRY_S_COUNT] = {
#define STATUS_NAME(num, name, err, text) [num] = #name,
	GANTRY_STATUS_LIST(STATUS_NAME)
#undef STATUS_NAME
};

const char *gn_trace_op_name(unsigned opcode)
{
	return opcode < GANTRY_OP_COUNT ? op_names[opcode] : NULL;
}

const char *gn_trace_status_name(unsigned status)
{
	return status < GANTRY_S_COUNT ? status_names[status] : NULL;
}

/* -- parsing: each parser returns 0 or -EINVAL -- */

static int find_name(const char *const *names, unsigned n, const char *word, uint32_t *bits)
{
	for (unsigned i = 0; i < n; i++) {
		if (!strcasecmp(names[i], word)) {
			*bits |= 1u << i;
			return 0;
		}
	}
	return -EINVAL;
}

static int parse_operations(struct gn_trace_filter *filter, char *text)
{
	int rc = *text ? 0 : -EINVAL;

	for (char *word; !rc && (word = strsep(&text, ","));)
		rc = find_name(op_names, GANTRY_OP_COUNT, word, &filter->ops);
	return rc;
}

static int parse_statuses(struct gn_trace_filter *filter, char *text)
{
	int rc = *text ? 0 : -EINVAL;

	for (char *word; !rc && (word = strsep(&text, ","));) {
		if (!strcasecmp(word, "error"))
			filter->statuses |= ANY_ERROR;
		else
			rc = find_name(status_names, GANTRY_S_COUNT, word, &filter->statuses);
	}
	return rc;
}

/* Parse FROM-TO. Without one of them the range has no limit on this side. */
static int parse_range(char *text, int (*parse)(const char *, uint64_t *), uint64_t *from,
		       uint64_t *until)
{
	char *minus = strchr(text, '-');

	*from = 0;
	*until = UINT64_MAX;
	if (!minus || !text[1])
		return -EINVAL;
	*minus = '\0';
	if ((*text && parse(text, from)) || (minus[1] && parse(minus + 1, until)))
		return -EINVAL;
	return *from < *until ? 0 : -EINVAL;
}

static int parse_times(struct gn_trace_filter *filter, char *text)
{
	return parse_range(text, gn_time_parse, &filter->from_ns, &filter->until_ns);
}

static int parse_offsets(struct gn_trace_filter *filter, char *text)
{
	filter->has_offset = true;
	return parse_range(text, gn_size_parse, &filter->from, &filter->until);
}

static int parse_lane(struct gn_trace_filter *filter, char *text)
{
	char *end;
	const unsigned long lane = strtoul(text, &end, 10);

	if (*text < '0' || *text > '9' || *end || lane > UINT16_MAX)
		return -EINVAL;
	filter->lane = (int)lane;
	return 0;
}

static int parse_min_latency(struct gn_trace_filter *filter, char *text)
{
	return gn_time_parse(text, &filter->min_latency_ns) ? -EINVAL : 0;
}

int gn_trace_filter_parse(struct gn_trace_filter *filter, const struct gn_trace_filter_args *args,
			  char *error, size_t error_bytes)
{
	const struct {
		const char *option, *value;
		int (*parse)(struct gn_trace_filter *filter, char *text);
		const char *what;
	} rows[] = {
		{"operation", args->operation, parse_operations,
		 "give operations with commas between them, such as read,write_zeroes"},
		{"time", args->time, parse_times,
		 "give FROM-TO, such as 500ms-2s; one side can be empty"},
		{"offset", args->offset, parse_offsets,
		 "give FROM-TO, such as 1MiB-2MiB; one side can be empty"},
		{"lane", args->lane, parse_lane, "give a number"},
		{"status", args->status, parse_statuses,
		 "give statuses with commas between them, such as NOSPC,IO, or error"},
		{"min-latency", args->min_latency, parse_min_latency, "give a time, such as 2ms"},
	};
	char text[MAX_VALUE];

	*filter = (struct gn_trace_filter){.until_ns = UINT64_MAX, .lane = -1};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (!rows[i].value)
			continue;
		if (strlen(rows[i].value) < sizeof(text) &&
		    rows[i].parse(filter, strcpy(text, rows[i].value)) == 0)
			continue;
		snprintf(error, error_bytes, "--%s: invalid (value=%.*s): %s", rows[i].option,
			 MAX_VALUE, rows[i].value, rows[i].what);
		return -EINVAL;
	}
	return 0;
}

bool gn_trace_filter_needs_completion(const struct gn_trace_filter *filter)
{
	return filter->statuses || filter->min_latency_ns;
}

static bool overlaps(const struct gn_trace_filter *filter, const struct gantry_io *io)
{
	return gantry_op_has_range(io->opcode) && io->offset < filter->until &&
	       (io->offset >= filter->from || filter->from - io->offset < io->length);
}

bool gn_trace_filter_accepts(const struct gn_trace_filter *filter,
			     const struct gn_trace_event *event)
{
	const struct gantry_io *io = &event->io;

	if (filter->ops && !gantry_op_in(io->opcode, filter->ops))
		return false;
	if (event->ns < filter->from_ns || event->ns >= filter->until_ns)
		return false;
	if (filter->lane >= 0 && event->lane != filter->lane)
		return false;
	if (filter->has_offset && !overlaps(filter, io))
		return false;
	if (!gn_trace_filter_needs_completion(filter))
		return true;
	if (!event->is_complete)
		return false;
	if (filter->statuses &&
	    (io->status >= GANTRY_S_COUNT || !(filter->statuses >> io->status & 1)))
		return false;
	return !filter->min_latency_ns ||
	       (event->is_paired && gn_trace_latency(event) >= filter->min_latency_ns);
}
