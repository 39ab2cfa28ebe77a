/* SPDX-License-Identifier: BSD-3-Clause */
/* trace_stream.c - merges traces by time, and finds the submission of each completion */
#include "trace/trace_stream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Offsets after the last operation of a lane, plus 1; 0: none so far. */
struct lane_ends {
	uint64_t after[GANTRY_OP_COUNT];
};

struct input {
	struct gn_trace_source source;
	struct lane_ends *lanes; /* UINT16_MAX + 1 of them; untouched ones use no memory */
};

struct gn_trace_stream {
	struct gn_trace_filter filter;
	uint32_t n;
	uint64_t n_submissions;
	uint64_t start_unix_ns; /* the earliest of the inputs: time 0 of the events */
	struct gn_trace_pairs *pairs;
	struct input inputs[GN_TRACE_MAX_ROLES];
};

struct gn_trace_stream *gn_trace_stream_new(const struct gn_trace_filter *filter)
{
	struct gn_trace_stream *stream = calloc(1, sizeof(*stream));

	if (!stream)
		return NULL;
	stream->filter = *filter;
	stream->start_unix_ns = UINT64_MAX;
	stream->pairs = gn_trace_pairs_new();
	if (!stream->pairs) {
		free(stream);
		return NULL;
	}
	return stream;
}

void gn_trace_stream_free(struct gn_trace_stream *stream)
{
	if (!stream)
		return;
	for (uint32_t i = 0; i < stream->n; i++) {
		gn_trace_source_close(&stream->inputs[i].source);
		free(stream->inputs[i].lanes);
	}
	gn_trace_pairs_free(stream->pairs);
	free(stream);
}

int gn_trace_stream_add(struct gn_trace_stream *stream, FILE *file)
{
	struct input *input = &stream->inputs[stream->n];
	int rc;

	if (stream->n == GN_TRACE_MAX_ROLES)
		return -E2BIG;
	rc = gn_trace_source_open(&input->source, file);
	if (rc)
		return rc;
	input->lanes = calloc(UINT16_MAX + 1, sizeof(*input->lanes));
	if (!input->lanes) {
		gn_trace_source_close(&input->source);
		return -ENOMEM;
	}
	if (input->source.reader.head.start_unix_ns < stream->start_unix_ns)
		stream->start_unix_ns = input->source.reader.head.start_unix_ns;
	stream->n++;
	return 0;
}

const struct gn_trace_source *gn_trace_stream_source(const struct gn_trace_stream *stream,
						     uint32_t role)
{
	return &stream->inputs[role].source;
}

/* Find the earliest record. Returns as gn_trace_source_peek(); *role_p: its trace. */
static int earliest(struct gn_trace_stream *stream, uint32_t *role_p, uint64_t *ns_p,
		    const struct gantry_trace_record **record_p)
{
	int found = 0;

	for (uint32_t i = 0; i < stream->n; i++) {
		struct gn_trace_source *source = &stream->inputs[i].source;
		const struct gantry_trace_record *record;
		const int rc = gn_trace_source_peek(source, &record);
		uint64_t ns;

		if (rc < 0) {
			*role_p = i;
			return rc;
		}
		if (rc == 0)
			continue;
		ns = record->time_ns + (source->reader.head.start_unix_ns - stream->start_unix_ns);
		if (found && ns >= *ns_p)
			continue;
		found = 1;
		*role_p = i;
		*ns_p = ns;
		*record_p = record;
	}
	return found;
}

static bool is_sequential(struct input *input, const struct gn_trace_event *event)
{
	const struct gantry_io *io = &event->io;
	uint64_t *after;
	bool sequential;

	if (!gantry_op_has_range(io->opcode))
		return false;
	after = &input->lanes[event->lane].after[io->opcode];
	sequential = *after == io->offset + 1;
	*after = io->offset + io->length + 1;
	return sequential;
}

static int add_submission(struct gn_trace_stream *stream, struct gn_trace_event *event)
{
	event->is_paired = true;
	event->pair = (struct gn_trace_pair){
		.ns = event->ns,
		.number = ++stream->n_submissions,
		.depth = gn_trace_pairs_in_flight(stream->pairs, event->role) + 1,
		.sequential = is_sequential(&stream->inputs[event->role], event),
	};
	event->is_accepted = gn_trace_filter_accepts(&stream->filter, event);
	event->pair.accepted = event->is_accepted;
	return gn_trace_pairs_add(stream->pairs, event->role, event->lane, &event->io,
				  &event->pair);
}

int gn_trace_stream_next(struct gn_trace_stream *stream, struct gn_trace_event *event)
{
	const struct gantry_trace_record *record = NULL;
	int rc, damaged;

	memset(event, 0, sizeof(*event));
	rc = earliest(stream, &event->role, &event->ns, &record);
	if (rc <= 0)
		return rc;
	event->lane = record->lane;
	event->is_complete = record->direction == GANTRY_TRACE_COMPLETE;
	memcpy(&event->io, record->wire, sizeof(record->wire));
	damaged = record->direction > GANTRY_TRACE_COMPLETE;
	gn_trace_source_take(&stream->inputs[event->role].source);
	if (damaged)
		return -EBADMSG;
	if (!event->is_complete)
		return add_submission(stream, event) ? -ENOMEM : 1;
	event->is_paired = gn_trace_pairs_take(stream->pairs, event->role, event->lane, &event->io,
					       &event->pair);
	event->is_accepted = gn_trace_filter_accepts(&stream->filter, event);
	return 1;
}
