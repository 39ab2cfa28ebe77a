/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <gantry/trace.h>

#include "fake/chain.h"
#include "unity.h"

static struct fake_host host;
static struct fake_chain chain;
static char path[256], setting[280];
static uint8_t file[4u << 20];
static size_t file_bytes;

#define OPEN(...) \
	do { \
		TEST_ASSERT_EQUAL_INT(0, fake_chain_stage(&chain, fake_plugin("trace"), \
							  fake_conf(fake_plugin("trace"), setting, \
								    __VA_ARGS__, NULL))); \
		fake_chain_terminal(&chain); \
	} while (0)

void setUp(void)
{
	const char *tmp = getenv("TMPDIR");
	int fd;

	fake_host_init(&host, "roles.load");
	fake_chain_init(&chain, &host);
	snprintf(path, sizeof path, "%s/gantry-test-XXXXXX", tmp ? tmp : "/tmp");
	fd = mkstemp(path);
	if (fd < 0 || write(fd, "old", 3) != 3 || close(fd))
		fake_fail("%s: cannot make it", path);
	snprintf(setting, sizeof setting, "path=%s", path);
}

void tearDown(void)
{
	fake_chain_fini(&chain);
	unlink(path);
}

static void load(void)
{
	FILE *f = fopen(path, "r");

	file_bytes = f ? fread(file, 1, sizeof file, f) : 0;
	if (f)
		fclose(f);
}

static unsigned n_records(void)
{
	load();
	TEST_ASSERT_EQUAL_UINT(0, (file_bytes - 64) % 72);
	return (unsigned)((file_bytes - 64) / 72);
}

static struct gantry_trace_record record(unsigned index)
{
	struct gantry_trace_record r;

	memcpy(&r, file + 64 + index * 72, sizeof r);
	return r;
}

static void file_has_a_head(void)
{
	struct gantry_trace_head head;

	OPEN("limit=1MiB");
	load();
	TEST_ASSERT_EQUAL_UINT(64, file_bytes);
	memcpy(&head, file, sizeof head);
	TEST_ASSERT_EQUAL_MEMORY(GANTRY_TRACE_MAGIC, head.magic, 8);
	TEST_ASSERT_EQUAL_UINT(GANTRY_TRACE_VERSION, head.version);
	TEST_ASSERT_EQUAL_UINT(64, head.head_bytes);
	TEST_ASSERT_EQUAL_UINT(72, head.record_bytes);
	TEST_ASSERT_EQUAL_STRING("roles.load", head.instance);
	TEST_ASSERT_TRUE(head.start_unix_ns > 1500000000ull * 1000000000ull);
}

static void submit_and_completion_are_recorded(void)
{
	struct gantry_trace_record down, up;
	struct gantry_io *io;

	OPEN("limit=1MiB");
	chain.terminal.hold = 1;
	fake_advance(&chain.lane, 5000);
	io = fake_io(&chain, GANTRY_OP_WRITE, 65536, 4096, NULL);
	TEST_ASSERT_EQUAL_INT(0, fake_submit(io));
	fake_advance(&chain.lane, 700);
	fake_finish(&chain, GANTRY_S_NOSPC);
	fake_chain_fini(&chain);

	TEST_ASSERT_EQUAL_UINT(2, n_records());
	down = record(0);
	up = record(1);
	TEST_ASSERT_EQUAL_UINT64(5000, down.time_ns);
	TEST_ASSERT_EQUAL_UINT(GANTRY_TRACE_SUBMIT, down.direction);
	TEST_ASSERT_EQUAL_UINT(0, down.lane);
	TEST_ASSERT_EQUAL_UINT64(5700, up.time_ns);
	TEST_ASSERT_EQUAL_UINT(GANTRY_TRACE_COMPLETE, up.direction);
	TEST_ASSERT_EQUAL_MEMORY(io, up.wire, GANTRY_IO_WIRE_BYTES);
	io->status = GANTRY_S_OK;
	TEST_ASSERT_EQUAL_MEMORY(io, down.wire, GANTRY_IO_WIRE_BYTES);
}

static void rejected_io_is_not_recorded(void)
{
	OPEN("limit=1MiB");
	chain.terminal.refuse = -EAGAIN;
	chain.terminal.n_refuse = 1;
	TEST_ASSERT_EQUAL_INT(-EAGAIN, fake_submit(fake_io(&chain, GANTRY_OP_READ, 0, 4096, NULL)));
	fake_chain_fini(&chain);
	TEST_ASSERT_EQUAL_UINT(0, n_records());
}

static void full_buffers_are_written_in_order(void)
{
	OPEN("limit=1GiB");
	for (unsigned i = 0; i < 5000; i++) {
		fake_advance(&chain.lane, 10);
		TEST_ASSERT_EQUAL_UINT(GANTRY_S_OK,
				       fake_do(&chain, GANTRY_OP_READ, i * 4096, 4096, NULL));
	}
	TEST_ASSERT_EQUAL_UINT(0, n_records() % 910);
	TEST_ASSERT_TRUE(n_records() >= 9000);
	fake_chain_fini(&chain);
	TEST_ASSERT_EQUAL_UINT(10000, n_records());
	for (unsigned i = 0; i < 10000; i++) {
		struct gantry_trace_record r = record(i);
		struct gantry_io io;

		memcpy(&io, r.wire, sizeof r.wire);
		TEST_ASSERT_EQUAL_UINT64((i / 2 + 1) * 10, r.time_ns);
		TEST_ASSERT_EQUAL_UINT64(i / 2 * 4096, io.offset);
	}
}

static void waiting_records_are_written_in_time(void)
{
	OPEN("flush=10ms");
	TEST_ASSERT_EQUAL_UINT64(0, fake_wake_ns(&chain));
	fake_do(&chain, GANTRY_OP_READ, 0, 4096, NULL);
	TEST_ASSERT_EQUAL_UINT64(chain.lane.now_ns + 10000000, fake_wake_ns(&chain));
	fake_advance(&chain.lane, 9000000);
	fake_poll(&chain);
	TEST_ASSERT_EQUAL_UINT(0, n_records());
	fake_advance(&chain.lane, 1000000);
	fake_poll(&chain);
	TEST_ASSERT_EQUAL_UINT(2, n_records());
	TEST_ASSERT_EQUAL_UINT64(0, fake_wake_ns(&chain));
}

static void limit_ends_the_trace_and_not_the_io(void)
{
	struct fake_report report;

	OPEN("limit=100KiB");
	for (unsigned i = 0; i < 5000; i++)
		TEST_ASSERT_EQUAL_UINT(GANTRY_S_OK, fake_do(&chain, GANTRY_OP_READ, 0, 4096, NULL));
	load();
	TEST_ASSERT_TRUE(file_bytes <= 100 * 1024);
	TEST_ASSERT_EQUAL_UINT(1, host.n_logged[GANTRY_LOG_WARN]);
	TEST_ASSERT_TRUE(fake_logged(&host, "limit"));
	fake_chain_report(&chain, 0, &report);
	TEST_ASSERT_EQUAL_UINT64(910, fake_reported_u64(&report, "written_records"));
	TEST_ASSERT_TRUE(fake_reported_u64(&report, "lost_records") >= 8190);
}

static void full_disk_ends_the_trace_and_not_the_io(void)
{
	struct rlimit old, small;
	struct fake_report report;

	OPEN("limit=1GiB");
	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &old);
	small = (struct rlimit){4096, old.rlim_max};
	setrlimit(RLIMIT_FSIZE, &small);
	for (unsigned i = 0; i < 2000; i++)
		TEST_ASSERT_EQUAL_UINT(GANTRY_S_OK, fake_do(&chain, GANTRY_OP_READ, 0, 4096, NULL));
	fake_drain(&chain, NULL);
	setrlimit(RLIMIT_FSIZE, &old);
	TEST_ASSERT_EQUAL_UINT(1, host.n_logged[GANTRY_LOG_WARN]);
	TEST_ASSERT_TRUE(fake_logged(&host, "trace ends"));
	fake_chain_report(&chain, 0, &report);
	/* the stage has removed the partly written record */
	TEST_ASSERT_EQUAL_UINT((4096 - 64) / 72, n_records());
	TEST_ASSERT_EQUAL_UINT64(n_records(), fake_reported_u64(&report, "written_records"));
	TEST_ASSERT_EQUAL_UINT64(4000 - n_records(), fake_reported_u64(&report, "lost_records"));
}

/* written_records counts only the whole records in the file, not those in memory. */
static void report_counts_what_is_in_the_file(void)
{
	struct fake_report report;

	OPEN("limit=1GiB");
	for (unsigned i = 0; i < 500; i++)
		fake_do(&chain, GANTRY_OP_READ, 0, 4096, NULL);
	fake_chain_report(&chain, 0, &report);
	TEST_ASSERT_EQUAL_UINT64(n_records(), fake_reported_u64(&report, "written_records"));
	TEST_ASSERT_EQUAL_UINT64(1000 - n_records(),
				 fake_reported_u64(&report, "buffered_records"));
	fake_drain(&chain, &chain); /* a drain of one session writes nothing to the file */
	TEST_ASSERT_EQUAL_UINT(910, n_records());
	fake_drain(&chain, NULL);
	fake_chain_report(&chain, 0, &report);
	TEST_ASSERT_EQUAL_UINT(1000, n_records());
	TEST_ASSERT_EQUAL_UINT64(1000, fake_reported_u64(&report, "written_records"));
	TEST_ASSERT_EQUAL_UINT64(0, fake_reported_u64(&report, "buffered_records"));
	TEST_ASSERT_EQUAL_UINT64(0, fake_reported_u64(&report, "lost_records"));
}

static void path_that_cannot_be_written_is_refused(void)
{
	const struct gantry_plugin *plugin = fake_plugin("trace");

	TEST_ASSERT_EQUAL_INT(
		-ENOENT,
		fake_chain_stage(&chain, plugin, fake_conf(plugin, "path=/nowhere/trace", NULL)));
	TEST_ASSERT_EQUAL_INT(-ENOSPC, fake_chain_stage(&chain, plugin,
							fake_conf(plugin, "path=/dev/full", NULL)));
	TEST_ASSERT_EQUAL_UINT(2, host.n_logged[GANTRY_LOG_ERROR]);
	TEST_ASSERT_TRUE(fake_logged(&host, "/nowhere/trace"));
}

/* Opening a FIFO without a reader would block, and the process could not be stopped. */
static void fifo_without_a_reader_is_refused(void)
{
	const struct gantry_plugin *plugin = fake_plugin("trace");
	int reader;

	unlink(path);
	TEST_ASSERT_EQUAL_INT(0, mkfifo(path, 0600));
	alarm(60);
	TEST_ASSERT_EQUAL_INT(-ENXIO,
			      fake_chain_stage(&chain, plugin, fake_conf(plugin, setting, NULL)));
	alarm(0);
	TEST_ASSERT_TRUE(fake_logged(&host, "this FIFO or socket has no reader"));
	reader = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	OPEN("limit=1MiB");
	TEST_ASSERT_EQUAL_INT(64, read(reader, file, sizeof file));
	close(reader);
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(file_has_a_head);
	RUN_TEST(submit_and_completion_are_recorded);
	RUN_TEST(rejected_io_is_not_recorded);
	RUN_TEST(full_buffers_are_written_in_order);
	RUN_TEST(waiting_records_are_written_in_time);
	RUN_TEST(limit_ends_the_trace_and_not_the_io);
	RUN_TEST(full_disk_ends_the_trace_and_not_the_io);
	RUN_TEST(report_counts_what_is_in_the_file);
	RUN_TEST(path_that_cannot_be_written_is_refused);
	RUN_TEST(fifo_without_a_reader_is_refused);
	return UNITY_END();
}
