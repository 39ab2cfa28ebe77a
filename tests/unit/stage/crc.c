/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The crc stage, in a chain that is one end of a path: of an initiator, a gateway or a target. The
 * test plays the other end.
 */
#include <errno.h>

#include "base/crc32c.h"

#include "fake/chain.h"
#include "unity.h"

static struct fake_host host;
static struct fake_chain chain;
static uint8_t data[8192];
static uint8_t sent_flags;
static uint32_t sent_crc, answer_crc;
static uint8_t answer_flags;

/* The other end: record what arrived, and answer as the test has set. */
static void other_end(struct gantry_io *io, void *arg)
{
	(void)arg;
	sent_flags = io->flags;
	sent_crc = io->crc32c;
	if (io->opcode == GANTRY_OP_READ) {
		io->flags = answer_flags;
		io->crc32c = answer_crc;
	}
}

static int open_with(const char *mode, const char *strict)
{
	const struct gantry_plugin *plugin = fake_plugin("crc");
	int rc = fake_chain_stage(&chain, plugin, fake_conf(plugin, mode, strict, NULL));

	fake_chain_terminal(&chain);
	chain.terminal.seen = other_end;
	return rc;
}

void setUp(void)
{
	fake_host_init(&host, "test");
	fake_chain_init(&chain, &host);
	for (size_t i = 0; i < sizeof data; i++)
		data[i] = (uint8_t)(i * 3 + 1);
	sent_flags = answer_flags = 0;
	sent_crc = answer_crc = 0;
}

void tearDown(void)
{
	fake_chain_fini(&chain);
}

static unsigned run(unsigned opcode, void *memory, uint8_t flags, uint32_t crc,
		    struct gantry_io **io_p)
{
	struct gantry_io *io = fake_io(&chain, opcode, 0, sizeof data, memory);

	io->flags = flags;
	io->crc32c = crc;
	TEST_ASSERT_EQUAL_INT(0, fake_submit(io));
	TEST_ASSERT_FALSE(io->busy);
	if (io_p)
		*io_p = io;
	return io->status;
}

static uint64_t reported(const char *key)
{
	struct fake_report report;

	fake_chain_report(&chain, 0, &report);
	return fake_reported_u64(&report, key);
}

static void initiator(const char *mode)
{
	uint32_t right = gn_crc32c(0, data, sizeof data);

	TEST_ASSERT_EQUAL_INT(0, open_with(mode, "strict=false"));
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_OK, run(GANTRY_OP_WRITE, data, GANTRY_IO_FUA, 0, NULL));
	TEST_ASSERT_EQUAL_UINT(GANTRY_IO_FUA | GANTRY_IO_CRC, sent_flags);
	TEST_ASSERT_EQUAL_HEX32(right, sent_crc);

	answer_flags = GANTRY_IO_CRC;
	answer_crc = right;
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_OK, run(GANTRY_OP_READ, data, 0, 0, NULL));
	answer_crc = right ^ 1;
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_CORRUPT, run(GANTRY_OP_READ, data, 0, 0, NULL));
	TEST_ASSERT_EQUAL_UINT64(1, reported("wrong_ops"));
	TEST_ASSERT_EQUAL_UINT64(2, reported("checked_ops"));
}

static void generate_serves_an_initiator(void)
{
	initiator("mode=generate");
}

static void both_serves_an_initiator(void)
{
	initiator("mode=both");
}

static void target(const char *mode)
{
	uint32_t right = gn_crc32c(0, data, sizeof data);
	struct gantry_io *io;

	TEST_ASSERT_EQUAL_INT(0, open_with(mode, "strict=false"));
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_OK, run(GANTRY_OP_WRITE, data, GANTRY_IO_CRC, right, NULL));
	TEST_ASSERT_EQUAL_UINT(1, chain.terminal.n_accepted);
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_CORRUPT,
			       run(GANTRY_OP_WRITE, data, GANTRY_IO_CRC, right ^ 0x80, NULL));
	TEST_ASSERT_EQUAL_UINT(1, chain.terminal.n_accepted); /* the write was rejected */
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_OK, run(GANTRY_OP_READ, data, 0, 0, &io));
	TEST_ASSERT_EQUAL_UINT(GANTRY_IO_CRC, io->flags);
	TEST_ASSERT_EQUAL_HEX32(right, io->crc32c);
	TEST_ASSERT_EQUAL_UINT64(1, reported("wrong_ops"));
}

static void verify_serves_a_target(void)
{
	target("mode=verify");
}

static void both_serves_a_target(void)
{
	target("mode=both");
}

static void stale_flag_of_a_read_is_not_mistaken(void)
{
	struct gantry_io *io;

	TEST_ASSERT_EQUAL_INT(0, open_with("mode=generate", "strict=false"));
	chain.terminal.seen = NULL;
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_OK, run(GANTRY_OP_READ, data, GANTRY_IO_CRC, 12345, &io));
	TEST_ASSERT_EQUAL_UINT(0, io->flags);
}

static void gateway_passes_everything(void)
{
	struct gantry_io *io;

	TEST_ASSERT_EQUAL_INT(0, open_with("mode=both", "strict=false"));
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_OK, run(GANTRY_OP_WRITE, NULL, GANTRY_IO_CRC, 4711, NULL));
	TEST_ASSERT_EQUAL_UINT(GANTRY_IO_CRC, sent_flags);
	TEST_ASSERT_EQUAL_HEX32(4711, sent_crc);
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_OK, run(GANTRY_OP_WRITE, NULL, 0, 0, NULL));
	TEST_ASSERT_EQUAL_UINT(0, sent_flags);
	answer_flags = GANTRY_IO_CRC;
	answer_crc = 815;
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_OK, run(GANTRY_OP_READ, NULL, 0, 0, &io));
	TEST_ASSERT_EQUAL_UINT(GANTRY_IO_CRC, io->flags);
	TEST_ASSERT_EQUAL_HEX32(815, io->crc32c);
}

static void strict_wants_a_checksum(void)
{
	TEST_ASSERT_EQUAL_INT(0, open_with("mode=verify", "strict=true"));
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_CORRUPT, run(GANTRY_OP_WRITE, data, 0, 0, NULL));
	TEST_ASSERT_EQUAL_UINT(0, chain.terminal.n_accepted);
	TEST_ASSERT_EQUAL_UINT64(1, reported("missing_ops"));
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_OK, run(GANTRY_OP_READ, data, 0, 0, NULL));
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_OK, run(GANTRY_OP_FLUSH, NULL, 0, 0, NULL));
}

static void strict_initiator_requires_a_checksum_of_reads(void)
{
	TEST_ASSERT_EQUAL_INT(0, open_with("mode=generate", "strict=true"));
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_CORRUPT, run(GANTRY_OP_READ, data, 0, 0, NULL));
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_OK, run(GANTRY_OP_WRITE, data, 0, 0, NULL));
}

static void strict_mode_both_is_rejected(void)
{
	TEST_ASSERT_EQUAL_INT(-EINVAL, open_with("mode=both", "strict=true"));
	TEST_ASSERT_TRUE(fake_logged(&host, "strict needs mode"));
}

static void failed_read_keeps_its_status(void)
{
	TEST_ASSERT_EQUAL_INT(0, open_with("mode=generate", "strict=true"));
	chain.terminal.status = GANTRY_S_NOMEM;
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_NOMEM, run(GANTRY_OP_READ, data, 0, 0, NULL));
}

static void refused_write_is_as_it_was(void)
{
	struct gantry_io *io, before;

	TEST_ASSERT_EQUAL_INT(0, open_with("mode=generate", "strict=false"));
	chain.terminal.refuse = -EAGAIN;
	chain.terminal.n_refuse = 1;
	io = fake_io(&chain, GANTRY_OP_WRITE, 0, sizeof data, data);
	before = *io;
	TEST_ASSERT_EQUAL_INT(-EAGAIN, gantry_submit(io));
	TEST_ASSERT_EQUAL_MEMORY(&before, io, GANTRY_CACHE_LINE);
}

static void corruption_is_logged_once(void)
{
	TEST_ASSERT_EQUAL_INT(0, open_with("mode=verify", "strict=false"));
	for (unsigned i = 0; i < 5; i++)
		TEST_ASSERT_EQUAL_UINT(GANTRY_S_CORRUPT,
				       run(GANTRY_OP_WRITE, data, GANTRY_IO_CRC, 1, NULL));
	TEST_ASSERT_EQUAL_UINT(1, host.n_logged[GANTRY_LOG_ERROR]);
	TEST_ASSERT_EQUAL_UINT64(5, reported("wrong_ops"));
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(generate_serves_an_initiator);
	RUN_TEST(both_serves_an_initiator);
	RUN_TEST(verify_serves_a_target);
	RUN_TEST(both_serves_a_target);
	RUN_TEST(stale_flag_of_a_read_is_not_mistaken);
	RUN_TEST(gateway_passes_everything);
	RUN_TEST(strict_wants_a_checksum);
	RUN_TEST(strict_initiator_requires_a_checksum_of_reads);
	RUN_TEST(strict_mode_both_is_rejected);
	RUN_TEST(failed_read_keeps_its_status);
	RUN_TEST(refused_write_is_as_it_was);
	RUN_TEST(corruption_is_logged_once);
	return UNITY_END();
}
