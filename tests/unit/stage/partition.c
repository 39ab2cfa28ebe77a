/* SPDX-License-Identifier: BSD-3-Clause */
/* The stages partition and readonly. */
#include <errno.h>
#include <string.h>

#include "fake/chain.h"
#include "unity.h"

#include <gantry/uuid.h>

static struct fake_host host;
static struct fake_chain chain;

void setUp(void)
{
	fake_host_init(&host, "test");
	fake_chain_init(&chain, &host);
}

void tearDown(void)
{
	fake_chain_fini(&chain);
}

/* Put a partition between the test and a scripted terminal. The arguments are settings. */
static void begin(const char *offset, const char *length)
{
	const struct gantry_plugin *plugin = fake_plugin("partition");

	TEST_ASSERT_EQUAL_INT(
		0, fake_chain_stage(&chain, plugin, fake_conf(plugin, offset, length, NULL)));
	fake_chain_terminal(&chain);
}

static struct gantry_volume_info whole(void)
{
	return (struct gantry_volume_info){
		.size = 1 << 20, .block_size = 512, .max_io = 65536, .uuid = {1, 2, 3}};
}

static int volume(struct gantry_volume_info *info)
{
	return chain.stages[0].ops->volume(chain.stages[0].stage, info);
}

static void offset_moves_on_the_way_down_and_back(void)
{
	struct gantry_io *io;

	begin("offset=64KiB", "length=0");
	io = fake_io(&chain, GANTRY_OP_WRITE, 4096, 4096, NULL);
	chain.terminal.hold = 1;
	TEST_ASSERT_EQUAL_INT(0, fake_submit(io));
	TEST_ASSERT_EQUAL_UINT64(65536 + 4096, io->offset);
	fake_finish(&chain, GANTRY_S_OK);
	TEST_ASSERT_EQUAL_UINT(1, chain.n_done);
	TEST_ASSERT_EQUAL_UINT64(4096, io->offset);
}

static void rejected_descriptor_has_its_offset_again(void)
{
	struct gantry_io *io;

	begin("offset=64KiB", "length=0");
	io = fake_io(&chain, GANTRY_OP_READ, 4096, 4096, NULL);
	chain.terminal.refuse = -EAGAIN;
	chain.terminal.n_refuse = 1;
	TEST_ASSERT_EQUAL_INT(-EAGAIN, fake_submit(io));
	TEST_ASSERT_EQUAL_UINT64(4096, io->offset);
}

static void flush_has_no_range(void)
{
	struct gantry_io *io;

	begin("offset=64KiB", "length=0");
	io = fake_io(&chain, GANTRY_OP_FLUSH, 0, 0, NULL);
	chain.terminal.hold = 1;
	TEST_ASSERT_EQUAL_INT(0, fake_submit(io));
	TEST_ASSERT_EQUAL_UINT64(0, io->offset);
	fake_finish(&chain, GANTRY_S_OK);
	TEST_ASSERT_EQUAL_UINT64(0, io->offset);
}

static void clients_see_the_range_as_another_volume(void)
{
	struct gantry_volume_info info = whole(), before = info;

	begin("offset=64KiB", "length=128KiB");
	TEST_ASSERT_EQUAL_INT(0, volume(&info));
	TEST_ASSERT_EQUAL_UINT64(128 << 10, info.size);
	TEST_ASSERT_TRUE(memcmp(before.uuid, info.uuid, 16) != 0);
	TEST_ASSERT_EQUAL_UINT32(before.max_io, info.max_io);
	before = whole();
	TEST_ASSERT_EQUAL_INT(0, volume(&before));
	TEST_ASSERT_EQUAL_MEMORY(before.uuid, info.uuid, 16);
	before = whole();
	memset(before.uuid, 0, 16);
	TEST_ASSERT_EQUAL_INT(0, volume(&before));
	TEST_ASSERT_FALSE(gantry_uuid_is_known(before.uuid));
}

static void partition_without_length_ends_with_the_volume(void)
{
	struct gantry_volume_info info = whole();

	begin("offset=64KiB", "length=0");
	TEST_ASSERT_EQUAL_INT(0, volume(&info));
	TEST_ASSERT_EQUAL_UINT64((1 << 20) - 65536, info.size);
}

static void expect_error(int rc, const char *offset, const char *length, const char *text)
{
	struct gantry_volume_info info = whole();

	tearDown();
	setUp();
	begin(offset, length);
	TEST_ASSERT_EQUAL_INT(rc, volume(&info));
	TEST_ASSERT_TRUE_MESSAGE(fake_logged(&host, text), host.log);
}

static void range_that_does_not_fit_is_rejected(void)
{
	begin("offset=0", "length=0");
	expect_error(-ERANGE, "offset=1MiB", "length=0", "outside the volume");
	expect_error(-ERANGE, "offset=64KiB", "length=1MiB",
		     "outside the volume (offset=65536, length=1048576");
	expect_error(-ERANGE, "offset=1024TiB", "length=512", "outside the volume");
	expect_error(-EINVAL, "offset=256", "length=0", "not a multiple of the block size");
	expect_error(-EINVAL, "offset=0", "length=700", "not a multiple of the block size");
}

static void unknown_volume_is_accepted(void)
{
	struct gantry_volume_info info = {.size = 0};

	begin("offset=64KiB", "length=128KiB");
	TEST_ASSERT_EQUAL_INT(0, volume(&info));
	TEST_ASSERT_EQUAL_UINT64(0, info.size);
}

static void readonly_sets_the_flag(void)
{
	struct gantry_volume_info info = whole();

	TEST_ASSERT_EQUAL_INT(0, fake_chain_stage(&chain, fake_plugin("readonly"), NULL));
	fake_chain_terminal(&chain);
	TEST_ASSERT_EQUAL_INT(0, volume(&info));
	TEST_ASSERT_EQUAL_HEX32(GANTRY_VOLUME_READ_ONLY, info.flags);
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(offset_moves_on_the_way_down_and_back);
	RUN_TEST(rejected_descriptor_has_its_offset_again);
	RUN_TEST(flush_has_no_range);
	RUN_TEST(clients_see_the_range_as_another_volume);
	RUN_TEST(partition_without_length_ends_with_the_volume);
	RUN_TEST(range_that_does_not_fit_is_rejected);
	RUN_TEST(unknown_volume_is_accepted);
	RUN_TEST(readonly_sets_the_flag);
	return UNITY_END();
}
