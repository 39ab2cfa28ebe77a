/* SPDX-License-Identifier: BSD-3-Clause */
#include "trace/trace_stream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "unity.h"

#define SECOND 1000000000ull

static FILE *files[2];
static struct gn_trace_filter_args args;
static struct gn_trace_filter filter;
static struct gn_trace_stream *stream;
static struct gn_trace_event event;
static char error[512];

void setUp(void)
{
	memset(&args, 0, sizeof(args));
}

void tearDown(void)
{
	gn_trace_stream_free(stream);
	stream = NULL;
	for (unsigned i = 0; i < 2; i++) {
		if (files[i])
			fclose(files[i]);
		files[i] = NULL;
	}
}

static void begin(unsigned i, uint64_t start_unix_ns)
{
	struct gantry_trace_head head = {.version = GANTRY_TRACE_VERSION,
					 .head_bytes = sizeof(head),
					 .record_bytes = sizeof(struct gantry_trace_record),
					 .start_unix_ns = start_unix_ns};

	memcpy(head.magic, GANTRY_TRACE_MAGIC, sizeof(head.magic));
	files[i] = tmpfile();
	TEST_ASSERT_NOT_NULL(files[i]);
	TEST_ASSERT_EQUAL_UINT(1, fwrite(&head, sizeof(head), 1, files[i]));
}

static void put(unsigned i, uint64_t ns, unsigned direction, unsigned lane, unsigned opcode,
		uint64_t offset)
{
	struct gantry_io io = {.opcode = (uint8_t)opcode, .offset = offset, .length = 4096};
	struct gantry_trace_record record = {
		.time_ns = ns, .direction = (uint8_t)direction, .lane = (uint16_t)lane};

	if (direction == GANTRY_TRACE_COMPLETE)
		io.status = offset == 8192 ? GANTRY_S_NOSPC : GANTRY_S_OK;
	io.tag = (uint32_t)ns; /* differs between submission and completion */
	memcpy(record.wire, &io, sizeof(record.wire));
	TEST_ASSERT_EQUAL_UINT(1, fwrite(&record, sizeof(record), 1, files[i]));
}

static void open_all(void)
{
	TEST_ASSERT_EQUAL_INT(0, gn_trace_filter_parse(&filter, &args, error, sizeof(error)));
	stream = gn_trace_stream_new(&filter);
	TEST_ASSERT_NOT_NULL(stream);
	for (unsigned i = 0; i < 2 && files[i]; i++) {
		rewind(files[i]);
		TEST_ASSERT_EQUAL_INT(0, gn_trace_stream_add(stream, files[i]));
	}
}

static void expect(uint64_t ns, unsigned role, bool is_complete, uint64_t offset)
{
	TEST_ASSERT_EQUAL_INT(1, gn_trace_stream_next(stream, &event));
	TEST_ASSERT_EQUAL_UINT64(ns, event.ns);
	TEST_ASSERT_EQUAL_UINT(role, event.role);
	TEST_ASSERT_EQUAL_INT(is_complete, event.is_complete);
	TEST_ASSERT_EQUAL_UINT64(offset, event.io.offset);
}

static void records_come_in_the_order_of_times(void)
{
	begin(0, 0);
	put(0, 10, GANTRY_TRACE_COMPLETE, 0, GANTRY_OP_READ, 4096);
	put(0, 5, GANTRY_TRACE_SUBMIT, 0, GANTRY_OP_READ, 4096);
	put(0, 30, GANTRY_TRACE_SUBMIT, 0, GANTRY_OP_READ, 8192);
	/* a lane that writes its block later */
	put(0, 7, GANTRY_TRACE_COMPLETE, 1, GANTRY_OP_READ, 4096);
	put(0, 7, GANTRY_TRACE_SUBMIT, 1, GANTRY_OP_READ, 4096);
	open_all();
	expect(5, 0, false, 4096);
	expect(7, 0, false, 4096);
	expect(7, 0, true, 4096);
	TEST_ASSERT_TRUE(event.is_paired);
	TEST_ASSERT_EQUAL_UINT64(0, gn_trace_latency(&event));
	expect(10, 0, true, 4096);
	TEST_ASSERT_TRUE(event.is_paired);
	TEST_ASSERT_EQUAL_UINT64(5, gn_trace_latency(&event));
	TEST_ASSERT_EQUAL_UINT64(1, event.pair.depth);
	expect(30, 0, false, 8192);
	TEST_ASSERT_EQUAL_INT(0, gn_trace_stream_next(stream, &event));
	TEST_ASSERT_EQUAL_UINT64(0, gn_trace_stream_source(stream, 0)->n_late);
}

static void traces_of_a_machine_have_a_common_time(void)
{
	begin(0, 100 * SECOND);
	put(0, 2000, GANTRY_TRACE_SUBMIT, 0, GANTRY_OP_READ, 0);
	put(0, 9000, GANTRY_TRACE_COMPLETE, 0, GANTRY_OP_READ, 0);
	begin(1, 100 * SECOND - 500);
	put(1, 3500, GANTRY_TRACE_SUBMIT, 0, GANTRY_OP_READ, 0);
	put(1, 7500, GANTRY_TRACE_COMPLETE, 0, GANTRY_OP_READ, 0);
	open_all();
	expect(2500, 0, false, 0);
	expect(3500, 1, false, 0);
	expect(7500, 1, true, 0);
	TEST_ASSERT_EQUAL_UINT64(4000, gn_trace_latency(&event));
	expect(9500, 0, true, 0);
	TEST_ASSERT_EQUAL_UINT64(7000, gn_trace_latency(&event));
}

static void completion_belongs_to_its_submission(void)
{
	begin(0, 0);
	put(0, 1, GANTRY_TRACE_SUBMIT, 0, GANTRY_OP_WRITE, 0);
	put(0, 2, GANTRY_TRACE_SUBMIT, 0, GANTRY_OP_READ, 0);
	put(0, 3, GANTRY_TRACE_SUBMIT, 1, GANTRY_OP_WRITE, 0);
	put(0, 4, GANTRY_TRACE_SUBMIT, 0, GANTRY_OP_WRITE, 4096);
	put(0, 5, GANTRY_TRACE_SUBMIT, 0, GANTRY_OP_WRITE, 0);
	put(0, 11, GANTRY_TRACE_COMPLETE, 0, GANTRY_OP_WRITE, 0);
	put(0, 12, GANTRY_TRACE_COMPLETE, 0, GANTRY_OP_WRITE, 0);
	put(0, 13, GANTRY_TRACE_COMPLETE, 0, GANTRY_OP_WRITE, 0);
	open_all();
	for (unsigned i = 0; i < 5; i++)
		expect(i + 1, 0, false, i == 3 ? 4096 : 0);
	TEST_ASSERT_EQUAL_UINT64(5, event.pair.depth);
	TEST_ASSERT_FALSE(event.pair.sequential);
	expect(11, 0, true, 0);
	TEST_ASSERT_EQUAL_UINT64(10, gn_trace_latency(&event));
	expect(12, 0, true, 0);
	TEST_ASSERT_EQUAL_UINT64(7, gn_trace_latency(&event));
	expect(13, 0, true, 0);
	TEST_ASSERT_FALSE(event.is_paired);
}

static void sequential_is_by_lane_and_operation(void)
{
	static const bool sequential[] = {false, true, false, false, true};

	begin(0, 0);
	put(0, 1, GANTRY_TRACE_SUBMIT, 0, GANTRY_OP_WRITE, 0);
	put(0, 2, GANTRY_TRACE_SUBMIT, 0, GANTRY_OP_WRITE, 4096);
	put(0, 3, GANTRY_TRACE_SUBMIT, 0, GANTRY_OP_READ, 8192);
	put(0, 4, GANTRY_TRACE_SUBMIT, 1, GANTRY_OP_WRITE, 8192);
	put(0, 5, GANTRY_TRACE_SUBMIT, 0, GANTRY_OP_WRITE, 8192);
	open_all();
	for (unsigned i = 0; i < 5; i++) {
		TEST_ASSERT_EQUAL_INT(1, gn_trace_stream_next(stream, &event));
		TEST_ASSERT_EQUAL_INT(sequential[i], event.pair.sequential);
	}
}

static void put_mixture(void)
{
	begin(0, 0);
	put(0, 1 * SECOND, GANTRY_TRACE_SUBMIT, 0, GANTRY_OP_WRITE, 0);
	put(0, 2 * SECOND, GANTRY_TRACE_SUBMIT, 1, GANTRY_OP_READ, 4096);
	put(0, 3 * SECOND, GANTRY_TRACE_COMPLETE, 0, GANTRY_OP_WRITE, 0);
	put(0, 4 * SECOND, GANTRY_TRACE_SUBMIT, 0, GANTRY_OP_WRITE, 8192);
	put(0, 5 * SECOND, GANTRY_TRACE_COMPLETE, 0, GANTRY_OP_WRITE, 8192);
	put(0, 9 * SECOND, GANTRY_TRACE_COMPLETE, 1, GANTRY_OP_READ, 4096);
	put(0, 10 * SECOND, GANTRY_TRACE_SUBMIT, 0, GANTRY_OP_FLUSH, 0);
}

/* Returns the seconds of the accepted events of the mixture, in decimal: 13 means 1 and 3. */
static unsigned accepted(void)
{
	unsigned seconds = 0;

	put_mixture();
	open_all();
	while (gn_trace_stream_next(stream, &event) > 0)
		if (event.is_accepted)
			seconds = seconds * (event.ns < 10 * SECOND ? 10 : 100) +
				  (unsigned)(event.ns / SECOND);
	tearDown();
	return seconds;
}

static void filter_selects(void)
{
	TEST_ASSERT_EQUAL_UINT(12345910, accepted());
	args.operation = "write,FLUSH";
	TEST_ASSERT_EQUAL_UINT(134510, accepted());
	args.operation = NULL;
	args.time = "2s-5s";
	TEST_ASSERT_EQUAL_UINT(234, accepted());
	args.time = "9s-";
	TEST_ASSERT_EQUAL_UINT(910, accepted());
	args.time = NULL;
	args.offset = "4097-8193";
	TEST_ASSERT_EQUAL_UINT(2459, accepted());
	args.offset = "-4KiB";
	TEST_ASSERT_EQUAL_UINT(13, accepted());
	args.offset = NULL;
	args.lane = "1";
	TEST_ASSERT_EQUAL_UINT(29, accepted());
	args.lane = NULL;
	args.status = "error";
	TEST_ASSERT_EQUAL_UINT(5, accepted());
	args.status = "OK,nospc";
	TEST_ASSERT_EQUAL_UINT(359, accepted());
	args.status = NULL;
	args.min_latency = "2s";
	TEST_ASSERT_EQUAL_UINT(39, accepted());
}

static void bad_filter_is_refused(void)
{
	static const struct {
		struct gn_trace_filter_args args;
		const char *says;
	} rows[] = {
		{{.operation = "read,writ"}, "--operation: invalid (value=read,writ)"},
		{{.operation = ""}, "--operation"},
		{{.time = "5s"}, "--time"},
		{{.time = "-"}, "--time"},
		{{.time = "5s-4s"}, "--time"},
		{{.offset = "x-y"}, "--offset"},
		{{.lane = "-1"}, "--lane"},
		{{.lane = "65536"}, "--lane"},
		{{.status = "FINE"}, "--status"},
		{{.min_latency = "7"}, "--min-latency"},
	};
	char *longest = malloc(100000);

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		TEST_ASSERT_EQUAL_INT(-EINVAL, gn_trace_filter_parse(&filter, &rows[i].args, error,
								     sizeof(error)));
		TEST_ASSERT_NOT_NULL(strstr(error, rows[i].says));
	}
	TEST_ASSERT_NOT_NULL(longest);
	memset(longest, 'x', 99999);
	longest[99999] = '\0';
	args.operation = longest;
	TEST_ASSERT_EQUAL_INT(-EINVAL, gn_trace_filter_parse(&filter, &args, error, sizeof(error)));
	free(longest);
}

static void damaged_record_is_an_error(void)
{
	begin(0, 0);
	put(0, 1, GANTRY_TRACE_SUBMIT, 0, GANTRY_OP_WRITE, 0);
	begin(1, 0);
	put(1, 2, 77, 0, GANTRY_OP_WRITE, 0);
	open_all();
	expect(1, 0, false, 0);
	TEST_ASSERT_EQUAL_INT(-EBADMSG, gn_trace_stream_next(stream, &event));
	TEST_ASSERT_EQUAL_UINT(1, event.role);
}

static void header_is_checked(void)
{
	struct gantry_trace_reader reader;
	static const struct {
		size_t offset;
		uint32_t value;
		int rc;
	} rows[] = {
		{0, 0, -EINVAL},
		{offsetof(struct gantry_trace_head, version), 2, -EPROTO},
		{offsetof(struct gantry_trace_head, head_bytes), 63, -EPROTO},
		{offsetof(struct gantry_trace_head, head_bytes), 65, -EPROTO}, /* the file ends */
		{offsetof(struct gantry_trace_head, head_bytes), UINT32_MAX, -EPROTO},
		{offsetof(struct gantry_trace_head, record_bytes), 71, -EPROTO},
		{offsetof(struct gantry_trace_head, record_bytes), 4097, -EPROTO},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		begin(0, 0);
		TEST_ASSERT_EQUAL_INT(0, fseek(files[0], (long)rows[i].offset, SEEK_SET));
		TEST_ASSERT_EQUAL_UINT(1, fwrite(&rows[i].value, sizeof(uint32_t), 1, files[0]));
		rewind(files[0]);
		TEST_ASSERT_EQUAL_INT(rows[i].rc, gantry_trace_begin(&reader, files[0]));
		tearDown();
	}
}

/* A later version can append to the header and to each record. */
static void longer_header_and_records_are_read(void)
{
	struct gantry_trace_reader reader;
	struct gantry_trace_record record;
	const uint32_t sizes[] = {80, 100};
	const char zeroes[64] = {0};

	begin(0, 0);
	TEST_ASSERT_EQUAL_UINT(1, fwrite(zeroes, 16, 1, files[0]));
	for (unsigned i = 0; i < 2; i++) {
		put(0, i + 1, GANTRY_TRACE_SUBMIT, 0, GANTRY_OP_WRITE, 0);
		TEST_ASSERT_EQUAL_UINT(1, fwrite(zeroes, 28, 1, files[0]));
	}
	TEST_ASSERT_EQUAL_UINT(1, fwrite(zeroes, 10, 1, files[0]));
	fseek(files[0], offsetof(struct gantry_trace_head, head_bytes), SEEK_SET);
	TEST_ASSERT_EQUAL_UINT(1, fwrite(sizes, sizeof(sizes), 1, files[0]));
	rewind(files[0]);
	TEST_ASSERT_EQUAL_INT(0, gantry_trace_begin(&reader, files[0]));
	for (unsigned i = 0; i < 2; i++) {
		TEST_ASSERT_EQUAL_INT(1, gantry_trace_next(&reader, &record));
		TEST_ASSERT_EQUAL_UINT64(i + 1, record.time_ns);
	}
	TEST_ASSERT_EQUAL_INT(0, gantry_trace_next(&reader, &record));
	TEST_ASSERT_EQUAL_UINT(10, reader.n_partial);
	TEST_ASSERT_EQUAL_UINT64(2, reader.n_records);
}

static void memory_is_limited_by_the_window(void)
{
	uint64_t n = 0, deepest = 0;

	begin(0, 0);
	for (uint64_t i = 0; i < GN_TRACE_WINDOW + 10u; i++)
		put(0, 1000 + i, GANTRY_TRACE_SUBMIT, 0, GANTRY_OP_WRITE, 0);
	put(0, 1, GANTRY_TRACE_SUBMIT, 1, GANTRY_OP_WRITE, 0);
	open_all();
	for (; gn_trace_stream_next(stream, &event) > 0; n++)
		deepest = event.pair.depth;
	TEST_ASSERT_EQUAL_UINT64(GN_TRACE_WINDOW + 11u, n);
	TEST_ASSERT_EQUAL_UINT64(1, gn_trace_stream_source(stream, 0)->n_late);
	TEST_ASSERT_EQUAL_UINT64(GN_TRACE_WINDOW, gn_trace_stream_source(stream, 0)->capacity);
	/* the oldest submissions are forgotten before a new one is added */
	TEST_ASSERT_EQUAL_UINT64(GN_TRACE_MAX_PAIRS + 1, deepest);
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(records_come_in_the_order_of_times);
	RUN_TEST(traces_of_a_machine_have_a_common_time);
	RUN_TEST(completion_belongs_to_its_submission);
	RUN_TEST(sequential_is_by_lane_and_operation);
	RUN_TEST(filter_selects);
	RUN_TEST(bad_filter_is_refused);
	RUN_TEST(damaged_record_is_an_error);
	RUN_TEST(header_is_checked);
	RUN_TEST(longer_header_and_records_are_read);
	RUN_TEST(memory_is_limited_by_the_window);
	return UNITY_END();
}
