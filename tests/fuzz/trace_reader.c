/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trace_reader.c - traces of any bytes, as gantry trace reads them: in each format and as a
 * summary. The first byte selects filters; the input is read as one trace and as two.
 */
#include "trace/trace_format.h"
#include "trace/trace_stream.h"
#include "trace/trace_summary.h"
#include "fuzz/require.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const roles[] = {"one", "two"};
static FILE *null;

static void print_all(struct gn_trace_stream *stream, uint32_t n)
{
	static const char *const names[] = {"text", "json", "fio", "blkparse", "chrome"};
	struct gn_trace_output output[5];
	struct gn_trace_summary *summary = gn_trace_summary_new(n);
	struct gn_trace_event event;
	uint64_t n_events = 0, n_records = 0;

	require(summary != NULL);
	for (unsigned i = 0; i < 5; i++) {
		output[i] = (struct gn_trace_output){.out = null, .roles = roles, .n_roles = n};
		gn_trace_format_find(names[i])->begin(&output[i]);
	}
	while (gn_trace_stream_next(stream, &event) > 0) {
		n_events++;
		require(event.role < n);
		require(event.is_complete || event.is_paired);
		for (unsigned i = 0; event.is_accepted && i < 5; i++)
			gn_trace_format_find(names[i])->print(&output[i], &event);
		if (event.is_accepted)
			require(gn_trace_summary_add(summary, &event) == 0);
	}
	for (unsigned i = 0; i < 5; i++)
		gn_trace_format_find(names[i])->end(&output[i]);
	for (uint32_t i = 0; i < n; i++)
		n_records += gn_trace_stream_source(stream, i)->reader.n_records;
	require(n_events <= n_records);
	gn_trace_summary_print(summary, null, roles);
	json_decref(gn_trace_summary_json(summary, roles));
	gn_trace_summary_free(summary);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t select = size ? data[0] : 0;
	const struct gn_trace_filter_args args = {
		.operation = select & 1 ? "read,write" : NULL,
		.time = select & 2 ? "0-5s" : NULL,
		.offset = select & 4 ? "4KiB-1GiB" : NULL,
		.lane = select & 8 ? "0" : NULL,
		.status = select & 16 ? "error" : NULL,
		.min_latency = select & 32 ? "1ns" : NULL,
	};
	const uint32_t n = select & 64 ? 2 : 1;
	struct gn_trace_stream *stream;
	struct gn_trace_filter filter;
	FILE *files[2] = {NULL};
	char error[256];
	uint32_t added = 0;

	if (size < 2)
		return 0;
	if (!null)
		null = fopen("/dev/null", "we");
	require(null && gn_trace_filter_parse(&filter, &args, error, sizeof(error)) == 0);
	stream = gn_trace_stream_new(&filter);
	require(stream != NULL);
	for (uint32_t i = 0; i < n; i++) {
		files[i] = fmemopen((void *)(data + 1), size - 1, "re");
		require(files[i] != NULL);
		added += gn_trace_stream_add(stream, files[i]) == 0;
	}
	if (added)
		print_all(stream, added);
	gn_trace_stream_free(stream);
	for (uint32_t i = 0; i < n; i++)
		fclose(files[i]);
	return 0;
}
