/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The backends null and memory. null completes each IO inside submit. memory completes a read or
 * write inside the next submit of one, or in poll.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "fake/chain.h"
#include "unity.h"

#define KIB 1024u
#define MIB (1024u * KIB)

static struct fake_host host;
static struct fake_chain chain;
static uint8_t out[4 * MIB], in[4 * MIB];

void setUp(void)
{
	fake_host_init(&host, "test");
	fake_chain_init(&chain, &host);
	memset(in, 0xee, sizeof in);
	for (size_t i = 0; i < sizeof out; i++)
		out[i] = (uint8_t)(i * 7 + i / 4096 + 1);
}

void tearDown(void)
{
	fake_chain_fini(&chain);
}

#define OPEN(name, ...) \
	TEST_ASSERT_EQUAL_INT(0, \
			      fake_chain_backend(&chain, fake_plugin(name), \
						 fake_conf(fake_plugin(name), __VA_ARGS__, NULL)))
#define REFUSED(rc, name, ...) \
	TEST_ASSERT_EQUAL_INT(rc, \
			      fake_chain_backend(&chain, fake_plugin(name), \
						 fake_conf(fake_plugin(name), __VA_ARGS__, NULL)))

static void ok(unsigned opcode, uint64_t offset, uint32_t length, void *data)
{
	TEST_ASSERT_EQUAL_UINT(GANTRY_S_OK, fake_do(&chain, opcode, offset, length, data));
}

static int all_zero(const uint8_t *p, size_t n)
{
	while (n--)
		if (*p++)
			return 0;
	return 1;
}

/*
 * With populate=true the pages of the volume can be registered with a device. So they stay
 * allocated after a discard, and IO whose buffer is the volume itself copies nothing.
 */
static void a_populated_volume_stays_where_it_is(void)
{
	void *addr = NULL;
	unsigned char there = 0;
	uint8_t *volume;

	OPEN("memory", "size=4MiB", "populate=true");
	TEST_ASSERT_EQUAL_INT(0, chain.backend_ops->memory(chain.backend, &addr));
	volume = addr;
	ok(GANTRY_OP_WRITE, 1 * MIB, 1 * MIB, out);
	TEST_ASSERT_EQUAL_MEMORY(out, volume + 1 * MIB, 1 * MIB);
	memset(volume + 2 * MIB, 0x77, 4 * KIB);
	ok(GANTRY_OP_WRITE, 2 * MIB, 4 * KIB, volume + 2 * MIB);
	ok(GANTRY_OP_READ, 2 * MIB, 4 * KIB, volume + 2 * MIB);
	TEST_ASSERT_EQUAL_HEX8(0x77, volume[2 * MIB + 4095]);
	ok(GANTRY_OP_DISCARD, 1 * MIB, 1 * MIB, NULL);
	TEST_ASSERT_EQUAL_INT(0, mincore(volume + 1 * MIB, 4 * KIB, &there));
	TEST_ASSERT_EQUAL_UINT(1, there & 1);
	TEST_ASSERT_TRUE(all_zero(volume + 1 * MIB, 1 * MIB));
}

static void unpopulated_volume_cannot_be_mapped(void)
{
	void *addr;

	OPEN("memory", "size=4MiB");
	TEST_ASSERT_EQUAL_INT(-ENOTSUP, chain.backend_ops->memory(chain.backend, &addr));
}

static void null_leaves_memory_untouched(void)
{
	OPEN("null", "size=1MiB");
	ok(GANTRY_OP_WRITE, 0, 4 * KIB, out);
	ok(GANTRY_OP_READ, 0, 4 * KIB, in);
	TEST_ASSERT_EQUAL_HEX8(0xee, in[0]);
	TEST_ASSERT_EQUAL_HEX8(0xee, in[4 * KIB - 1]);
	ok(GANTRY_OP_FLUSH, 0, 0, NULL);
	ok(GANTRY_OP_DISCARD, 0, 4 * KIB, NULL);
	TEST_ASSERT_EQUAL_UINT(4, chain.n_done);
}

static void null_gives_zeroes_when_asked(void)
{
	OPEN("null", "size=1MiB", "zero_reads=true");
	ok(GANTRY_OP_READ, 0, 4 * KIB, in);
	TEST_ASSERT_TRUE(all_zero(in, 4 * KIB));
	TEST_ASSERT_EQUAL_HEX8(0xee, in[4 * KIB]);
}

static void both_refuse_odd_geometry(void)
{
	REFUSED(-EINVAL, "null", "size=1MiB", "block=1000B");
	REFUSED(-EINVAL, "null", "size=1000B", "block=512B");
	REFUSED(-EINVAL, "memory", "size=1MiB", "block=3000B");
	REFUSED(-EINVAL, "memory", "size=1025KiB", "block=4KiB");
	TEST_ASSERT_EQUAL_UINT(4, host.n_logged[GANTRY_LOG_ERROR]);
}

static void memory_backend_logs_that_it_cannot_map_its_size(void)
{
	TEST_ASSERT_TRUE(
		fake_chain_backend(&chain, fake_plugin("memory"),
				   fake_conf(fake_plugin("memory"), "size=4194304TiB", NULL)) < 0);
	TEST_ASSERT_TRUE(fake_logged(&host, "cannot map"));
}

static void volume_has_the_configured_geometry(void)
{
	struct gantry_volume_info v;

	OPEN("memory", "size=3MiB", "block=512");
	chain.backend_ops->volume(chain.backend, &v);
	TEST_ASSERT_EQUAL_UINT64(3 * MIB, v.size);
	TEST_ASSERT_EQUAL_UINT(512, v.block_size);
	TEST_ASSERT_EQUAL_UINT(GANTRY_VOLUME_VOLATILE | GANTRY_VOLUME_LISTS, v.flags);
	for (unsigned op = 0; op < GANTRY_OP_COUNT; op++)
		TEST_ASSERT_TRUE(v.ops & 1u << op);
	TEST_ASSERT_TRUE(v.max_io % v.block_size == 0);
}

static void memory_backend_returns_written_data(void)
{
	OPEN("memory", "size=4MiB");
	ok(GANTRY_OP_READ, 0, 4 * MIB, in);
	TEST_ASSERT_TRUE(all_zero(in, 4 * MIB));
	ok(GANTRY_OP_WRITE, 0, 4 * MIB, out);
	ok(GANTRY_OP_FLUSH, 0, 0, NULL);
	ok(GANTRY_OP_READ, 4 * MIB - 4 * KIB, 4 * KIB, in);
	TEST_ASSERT_EQUAL_MEMORY(out + 4 * MIB - 4 * KIB, in, 4 * KIB);
}

/*
 * Long reads of a large volume are copied in strides of 4 KiB, and each stride prefetches the next.
 * The test reads lengths near multiples of 4 KiB, up to the last byte of the volume.
 */
static void a_large_volume_is_read_as_it_was_written(void)
{
	static const uint32_t lengths[] = {512, 3584, 4096, 4608, 7680, 8192, 8704, 128 * KIB - 512,
					   MIB};

	OPEN("memory", "size=64MiB", "block=512");
	ok(GANTRY_OP_WRITE, 60 * MIB, 4 * MIB, out);
	for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
		memset(in, 0xee, sizeof in);
		ok(GANTRY_OP_READ, 64 * MIB - lengths[i], lengths[i], in);
		TEST_ASSERT_EQUAL_MEMORY(out + sizeof out - lengths[i], in, lengths[i]);
		TEST_ASSERT_EQUAL_HEX8(0xee, in[lengths[i]]);
	}
}

static void wipe_check(uint64_t offset, uint32_t length, unsigned opcode)
{
	ok(GANTRY_OP_WRITE, 0, 4 * MIB, out);
	ok(opcode, offset, length, NULL);
	ok(GANTRY_OP_READ, 0, 4 * MIB, in);
	TEST_ASSERT_TRUE(memcmp(out, in, offset) == 0);
	TEST_ASSERT_TRUE(all_zero(in + offset, length));
	TEST_ASSERT_TRUE(memcmp(out + offset + length, in + offset + length,
				4 * MIB - offset - length) == 0);
}

static void wiped_ranges_read_as_zero_and_no_more_than_them(void)
{
	OPEN("memory", "size=4MiB", "block=512");
	wipe_check(512, 1024, GANTRY_OP_WRITE_ZEROES); /* inside a page */
	wipe_check(4096, 4096, GANTRY_OP_DISCARD);     /* one page */
	wipe_check(512, 256 * KIB, GANTRY_OP_DISCARD); /* pages and both edges */
	wipe_check(MIB, MIB, GANTRY_OP_WRITE_ZEROES);  /* pages only */
	wipe_check(0, 4 * MIB, GANTRY_OP_DISCARD);
}

static struct gantry_extents extents_of(uint64_t offset, uint32_t length)
{
	struct gantry_extents extents;

	memset(&extents, 0xee, sizeof extents);
	ok(GANTRY_OP_EXTENTS, offset, length, &extents);
	TEST_ASSERT_TRUE(gantry_extents_are_valid(&extents, length, 512));
	TEST_ASSERT_EQUAL_UINT64(length, extents.bytes);
	return extents;
}

static void memory_backend_reports_what_was_never_written_as_holes(void)
{
	struct gantry_extents e;

	OPEN("memory", "size=4MiB", "block=512");
	e = extents_of(512, 4 * MIB - 512);
	TEST_ASSERT_EQUAL_UINT(1, e.count);
	TEST_ASSERT_EQUAL_UINT(GANTRY_EXTENT_HOLE | GANTRY_EXTENT_ZERO, e.extent[0].flags);
	ok(GANTRY_OP_WRITE, 2 * MIB - 512, 1024, out);
	ok(GANTRY_OP_READ, 0, MIB, in);
	e = extents_of(0, 4 * MIB);
	TEST_ASSERT_EQUAL_UINT(3, e.count);
	TEST_ASSERT_EQUAL_UINT(2 * MIB - 64 * KIB, e.extent[0].length);
	TEST_ASSERT_EQUAL_UINT(128 * KIB, e.extent[1].length);
	TEST_ASSERT_EQUAL_UINT(0, e.extent[1].flags);
	e = extents_of(2 * MIB, 512);
	TEST_ASSERT_EQUAL_UINT(0, e.extent[0].flags);
}

static void a_populated_volume_has_no_extents(void)
{
	struct gantry_volume_info v;

	OPEN("memory", "size=1MiB", "populate=true");
	chain.backend_ops->volume(chain.backend, &v);
	TEST_ASSERT_FALSE(gantry_op_in(GANTRY_OP_EXTENTS, v.ops));
}

static void null_is_a_hole_and_zero_only_if_it_reads_as_zeroes(void)
{
	OPEN("null", "size=1MiB", "zero_reads=true");
	TEST_ASSERT_EQUAL_UINT(GANTRY_EXTENT_HOLE | GANTRY_EXTENT_ZERO,
			       extents_of(0, MIB).extent[0].flags);
	fake_chain_fini(&chain);
	fake_chain_init(&chain, &host);
	OPEN("null", "size=1MiB", "zero_reads=false");
	TEST_ASSERT_EQUAL_UINT(GANTRY_EXTENT_HOLE, extents_of(0, MIB).extent[0].flags);
}

static void memory_with_huge_pages_is_the_same_volume(void)
{
	struct fake_report report;

	OPEN("memory", "size=4MiB", "huge_pages=true", "populate=true");
	wipe_check(MIB, 3 * MIB, GANTRY_OP_DISCARD);
	fake_chain_report(&chain, -1, &report);
	TEST_ASSERT_EQUAL_UINT64(4 * MIB, fake_reported_u64(&report, "mapped_bytes"));
}

static void copy_is_measured_when_asked(void)
{
	struct gantry_io *io;

	host.real_clock = 1;
	OPEN("memory", "size=4MiB", "timing=true");
	io = fake_io(&chain, GANTRY_OP_WRITE, 0, 4 * MIB, out);
	TEST_ASSERT_EQUAL_INT(0, fake_submit(io));
	TEST_ASSERT_EQUAL_INT(1, fake_poll(&chain));
	TEST_ASSERT_NOT_EQUAL(0, io->hop_ns[GANTRY_HOP_BACKEND]);
}

static void a_copy_waits_for_the_next_one_or_the_end_of_the_turn(void)
{
	struct gantry_io *first, *second, *flush;

	OPEN("memory", "size=4MiB");
	first = fake_io(&chain, GANTRY_OP_WRITE, 0, 4096, out);
	second = fake_io(&chain, GANTRY_OP_READ, 8192, 4096, out + 4096);
	flush = fake_io(&chain, GANTRY_OP_FLUSH, 0, 0, NULL);
	TEST_ASSERT_EQUAL_INT(0, fake_submit(first));
	TEST_ASSERT_TRUE(first->busy);
	TEST_ASSERT_EQUAL_INT(0, fake_submit(second));
	TEST_ASSERT_FALSE(first->busy);
	TEST_ASSERT_TRUE(second->busy);
	TEST_ASSERT_EQUAL_INT(0, fake_submit(flush));
	TEST_ASSERT_FALSE(flush->busy);
	TEST_ASSERT_TRUE(chain.backend_ops->arm(chain.backend_self));
	TEST_ASSERT_EQUAL_INT(1, fake_poll(&chain));
	TEST_ASSERT_FALSE(second->busy);
	TEST_ASSERT_FALSE(chain.backend_ops->arm(chain.backend_self));
	TEST_ASSERT_EQUAL_INT(0, fake_poll(&chain));
}

static struct gantry_volume_info volume_of(const char *name, const char *setting)
{
	struct gantry_volume_info v = {0};

	OPEN(name, "size=4MiB", setting);
	chain.backend_ops->volume(chain.backend, &v);
	fake_chain_fini(&chain);
	fake_chain_init(&chain, &host);
	return v;
}

/*
 * A memory volume is lost with the process, so each open has a new verifier. null has no data to
 * lose.
 */
static void uuid_stays_and_the_verifier_is_that_of_the_data(void)
{
	struct gantry_volume_info memory = volume_of("memory", "block=4KiB"),
				  again = volume_of("memory", "block=4KiB");
	struct gantry_volume_info null = volume_of("null", "block=4KiB"),
				  null_again = volume_of("null", "block=4KiB");
	static const uint8_t none[16];

	TEST_ASSERT_TRUE(memcmp(memory.uuid, none, 16) != 0);
	TEST_ASSERT_EQUAL_MEMORY(memory.uuid, again.uuid, 16);
	TEST_ASSERT_TRUE(memory.verifier && again.verifier && memory.verifier != again.verifier);
	TEST_ASSERT_EQUAL_MEMORY(null.uuid, null_again.uuid, 16);
	TEST_ASSERT_TRUE(null.verifier && null.verifier == null_again.verifier);
}

static void uuid_of_the_option_is_taken_and_reported(void)
{
	static const char *const names[] = {"memory", "null"};
	struct gantry_volume_info v = {0};
	struct fake_report report;

	for (unsigned i = 0; i < 2; i++) {
		OPEN(names[i], "size=4MiB", "uuid=0e7a1ed7-5c2c-4f5e-9a53-6d6f1c0f8b11");
		chain.backend_ops->volume(chain.backend, &v);
		TEST_ASSERT_EQUAL_HEX8(0x0e, v.uuid[0]);
		TEST_ASSERT_EQUAL_HEX8(0x11, v.uuid[15]);
		fake_chain_report(&chain, -1, &report);
		TEST_ASSERT_EQUAL_MEMORY("0e7a1ed7-5c2c-4f5e-9a53-6d6f1c0f8b11\n",
					 fake_reported(&report, "uuid"), 37);
		TEST_ASSERT_NOT_NULL(fake_reported(&report, "verifier"));
		fake_chain_fini(&chain);
		fake_chain_init(&chain, &host);
		REFUSED(-EINVAL, names[i], "size=4MiB", "uuid=x");
	}
	TEST_ASSERT_TRUE(fake_logged(&host, "is not a UUID"));
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(a_populated_volume_stays_where_it_is);
	RUN_TEST(unpopulated_volume_cannot_be_mapped);
	RUN_TEST(null_leaves_memory_untouched);
	RUN_TEST(null_gives_zeroes_when_asked);
	RUN_TEST(both_refuse_odd_geometry);
	RUN_TEST(memory_backend_logs_that_it_cannot_map_its_size);
	RUN_TEST(volume_has_the_configured_geometry);
	RUN_TEST(memory_backend_returns_written_data);
	RUN_TEST(a_large_volume_is_read_as_it_was_written);
	RUN_TEST(wiped_ranges_read_as_zero_and_no_more_than_them);
	RUN_TEST(memory_backend_reports_what_was_never_written_as_holes);
	RUN_TEST(a_populated_volume_has_no_extents);
	RUN_TEST(null_is_a_hole_and_zero_only_if_it_reads_as_zeroes);
	RUN_TEST(memory_with_huge_pages_is_the_same_volume);
	RUN_TEST(copy_is_measured_when_asked);
	RUN_TEST(a_copy_waits_for_the_next_one_or_the_end_of_the_turn);
	RUN_TEST(uuid_stays_and_the_verifier_is_that_of_the_data);
	RUN_TEST(uuid_of_the_option_is_taken_and_reported);
	return UNITY_END();
}
