/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <gantry/trace.h>

#include "rig.h"

#define SIZE (1u << 20)
#define MAX_SEEN 64

static char path[64], setting[80];
static int fd;
static uint64_t seen_at[MAX_SEEN], seen_offset[MAX_SEEN];
static unsigned n_seen;

static void note(struct fake_role_host *rh, const struct gantry_io *io)
{
	seen_at[n_seen] = rh->host->now_ns;
	seen_offset[n_seen++] = io->offset;
}

static void trace_begin(const char *magic)
{
	struct gantry_trace_head head = {.version = GANTRY_TRACE_VERSION,
					 .head_bytes = sizeof(head),
					 .record_bytes = sizeof(struct gantry_trace_record)};

	memcpy(head.magic, magic, sizeof(head.magic));
	snprintf(path, sizeof(path), "initiator-replay.XXXXXX");
	fd = mkostemp(path, O_CLOEXEC);
	snprintf(setting, sizeof(setting), "replay.path=%s", path);
	TEST_ASSERT_EQUAL_INT64(sizeof(head), write(fd, &head, sizeof(head)));
}

static void trace_add(uint64_t time_ns, unsigned direction, unsigned opcode, uint64_t offset,
		      uint32_t length)
{
	struct gantry_io io = {.opcode = (uint8_t)opcode,
			       .flags = GANTRY_IO_CRC,
			       .offset = offset,
			       .length = length};
	struct gantry_trace_record record = {.time_ns = time_ns, .direction = (uint8_t)direction};

	memcpy(record.wire, &io, sizeof(record.wire));
	TEST_ASSERT_EQUAL_INT64(sizeof(record), write(fd, &record, sizeof(record)));
}

static void trace_end(void)
{
	/* the writer was killed in the middle of a record */
	TEST_ASSERT_EQUAL_INT64(10, write(fd, "0123456789", 10));
	close(fd);
	n_seen = 0;
}

/*
 * Write a trace of four IOs. The records are not in the order of their times. The earliest IO was
 * submitted 5 ms after the start of the trace.
 */
static void trace_of_four(void)
{
	trace_begin(GANTRY_TRACE_MAGIC);
	trace_add(7000000, GANTRY_TRACE_SUBMIT, GANTRY_OP_WRITE, 8192, 8192);
	trace_add(7000100, GANTRY_TRACE_COMPLETE, GANTRY_OP_WRITE, 8192, 8192);
	trace_add(5000000, GANTRY_TRACE_SUBMIT, GANTRY_OP_READ, 4096, 4096);
	trace_add(9000000, GANTRY_TRACE_SUBMIT, GANTRY_OP_DISCARD, 16384, 65536);
	trace_add(8000000, GANTRY_TRACE_SUBMIT, GANTRY_OP_FLUSH, 0, 0);
	trace_end();
}

static void test_at_the_times_of_the_trace(void)
{
	trace_of_four();
	rig_init(1, SIZE, 4096);
	rig.rh.seen = note;
	rig.rh.turn_ns = 10000;
	TEST_ASSERT_EQUAL_INT(0, rig_run(RIG_CONF(setting)));
	TEST_ASSERT_EQUAL_UINT(4, n_seen);
	TEST_ASSERT_EQUAL_UINT64(4096, seen_offset[0]);
	TEST_ASSERT_EQUAL_UINT64(8192, seen_offset[1]);
	TEST_ASSERT_EQUAL_UINT64(16384, seen_offset[3]);
	TEST_ASSERT_TRUE(seen_at[1] + 10000 >= seen_at[0] + 2000000 &&
			 seen_at[1] <= seen_at[0] + 2000000 + 10000);
	TEST_ASSERT_TRUE(seen_at[3] + 10000 >= seen_at[0] + 4000000 &&
			 seen_at[3] <= seen_at[0] + 4000000 + 10000);
	TEST_ASSERT_EQUAL_UINT64(1, reported("reads.ops"));
	TEST_ASSERT_EQUAL_UINT64(8192, reported("writes.bytes"));
	TEST_ASSERT_EQUAL_UINT64(1, reported("others.ops"));
	TEST_ASSERT_EQUAL_UINT64(4, reported("progress.done"));
	unlink(path);
}

static void test_as_fast_as_possible(void)
{
	trace_of_four();
	rig_init(2, SIZE, 4096);
	rig.rh.seen = note;
	TEST_ASSERT_EQUAL_INT(0, rig_run(RIG_CONF(setting, "replay.speed=fast")));
	TEST_ASSERT_EQUAL_UINT(4, n_seen);
	TEST_ASSERT_EQUAL_UINT64(seen_at[0], seen_at[3]);
	unlink(path);
}

static void test_a_trace_that_does_not_fit(void)
{
	trace_of_four();
	rig_init(1, 32768, 4096);
	TEST_ASSERT_EQUAL_INT(1, rig_run(RIG_CONF(setting)));
	TEST_ASSERT_TRUE(fake_logged(
		&rig.host, "the IO at offset 16384 with 65536 bytes is outside the volume"));
	TEST_ASSERT_EQUAL_UINT64(0, rig.rh.n_ops[GANTRY_OP_READ]);
	unlink(path);
}

static void test_files_that_are_no_trace(void)
{
	rig_init(1, SIZE, 4096);
	TEST_ASSERT_EQUAL_INT(-ENOENT, rig_open(RIG_CONF("replay.path=no/such/file")));
	trace_begin("GTRYTRC9");
	trace_end();
	TEST_ASSERT_EQUAL_INT(-EINVAL, rig_open(RIG_CONF(setting)));
	TEST_ASSERT_TRUE(fake_logged(&rig.host, "is not a trace"));
	unlink(path);
	trace_begin(GANTRY_TRACE_MAGIC);
	trace_end();
	TEST_ASSERT_EQUAL_INT(-EINVAL, rig_open(RIG_CONF(setting)));
	TEST_ASSERT_TRUE(fake_logged(&rig.host, "has no IO"));
	unlink(path);
	trace_begin(GANTRY_TRACE_MAGIC);
	trace_add(0, GANTRY_TRACE_SUBMIT, 77, 0, 0);
	trace_end();
	TEST_ASSERT_EQUAL_INT(-EINVAL, rig_open(RIG_CONF(setting)));
	TEST_ASSERT_TRUE(fake_logged(&rig.host, "unknown operation"));
	unlink(path);
}

/* Opening a FIFO without a writer would block, and the process could not be stopped. */
static void test_a_fifo(void)
{
	snprintf(path, sizeof(path), "initiator-fifo.%d", (int)getpid());
	snprintf(setting, sizeof(setting), "replay.path=%s", path);
	TEST_ASSERT_EQUAL_INT(0, mkfifo(path, 0600));
	alarm(60);
	rig_init(1, SIZE, 4096);
	TEST_ASSERT_EQUAL_INT(-EINVAL, rig_open(RIG_CONF(setting)));
	alarm(0);
	unlink(path);
	TEST_ASSERT_TRUE(fake_logged(&rig.host, "is not a trace"));
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(test_at_the_times_of_the_trace);
	RUN_TEST(test_as_fast_as_possible);
	RUN_TEST(test_a_trace_that_does_not_fit);
	RUN_TEST(test_files_that_are_no_trace);
	RUN_TEST(test_a_fifo);
	return UNITY_END();
}
