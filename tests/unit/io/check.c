/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The check of a descriptor, compared with a reference that computes in 128 bits, with values at
 * and near every limit.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "io/io_check.h"
#include "io/status.h"
#include "gantry/random.h"
#include "unit/io/reference.h"
#include "unity.h"

#define ROUNDS 200000

typedef enum gantry_status check_fn(const struct gn_io_rules *rules, struct gantry_io *io);

/* Returns a value at or near one of a few limits, or any value. */
static uint64_t near(struct gantry_random *r, uint64_t a, uint64_t b)
{
	const uint64_t borders[] = {0, a, b, b - a, UINT32_MAX, UINT64_MAX, 512, 1ull << 63};
	uint64_t v = borders[gantry_random_below(r, 8)];

	switch (gantry_random_below(r, 4)) {
	case 0:
		return v + gantry_random_below(r, 3) - 1;
	case 1:
		return v / 512 * 512;
	case 2:
		return v;
	default:
		return gantry_random_next(r) >> gantry_random_below(r, 64);
	}
}

static void draw(struct gantry_random *r, struct gn_io_rules *rules,
		 struct gantry_region regions[4], struct gantry_io *io)
{
	uint32_t block = 512u << gantry_random_below(r, 8);

	rules->volume = (struct gantry_volume_info){
		.size = block * (1 + gantry_random_below(r, gantry_random_below(r, 2)
								    ? 8
								    : UINT64_MAX / block - 1)),
		.block_size = block,
		.ops = (uint32_t)gantry_random_next(r) | 0x6,
		.flags = (uint32_t)gantry_random_below(r, 2) | GANTRY_VOLUME_LISTS,
		.max_io = block * (uint32_t)(1 + gantry_random_below(r, 64)),
	};
	rules->n_regions = (uint32_t)gantry_random_below(r, 5);
	for (int i = 0; i < 4; i++) {
		regions[i] = (struct gantry_region){
			.length = near(r, block, rules->volume.max_io),
			.rights = (uint32_t)gantry_random_below(r, 4),
		};
		if (regions[i].length < 1ull << 46 && gantry_random_below(r, 2))
			regions[i].addr = (void *)(uintptr_t)0x1000; /* never dereferenced */
		rules->regions[i] = gantry_random_below(r, 4) ? &regions[i] : NULL;
	}
	memset(io, 0, sizeof(*io));
	io->opcode = (uint8_t)gantry_random_below(r, gantry_random_below(r, 8) ? GANTRY_OP_COUNT
									       : 256);
	io->flags = (uint8_t)gantry_random_below(r, gantry_random_below(r, 8) ? 4 : 256);
	if (gantry_random_below(r, 8) == 0)
		io->flags |= GANTRY_IO_LIST;
	io->length = (uint32_t)near(r, block, rules->volume.max_io);
	if (gantry_random_below(r, 2))
		io->length = (io->length % 8 + 1) * block;
	io->offset = near(r, io->length, rules->volume.size);
	if (gantry_random_below(r, 2))
		io->offset = io->offset / block * block;
	io->region = (uint32_t)near(r, 1, rules->n_regions);
	if (gantry_random_below(r, 4))
		io->region = (uint32_t)gantry_random_below(r, 4);
	io->region_offset = near(r, io->length, regions[io->region % 4].length);
	io->deadline_us = (uint32_t)gantry_random_below(r, 2);
	rules->io_timeout_ns = near(r, GN_NS_PER_US, GN_NS_PER_S);
	rules->refused_flags = gantry_random_below(r, 2) ? GANTRY_IO_CRC : 0;
	rules->relays = (uint8_t)gantry_random_below(r, 2);
	gn_io_rules_ready(rules);
}

/* Returns in how many of `rounds` random cases the check differs from the reference. */
static unsigned differences(check_fn *check, unsigned rounds, unsigned seen[GANTRY_S_COUNT + 1])
{
	struct gantry_region regions[4], *table[4];
	struct gn_io_rules rules = {.regions = table};
	struct gantry_random r;
	unsigned n = 0;

	gantry_random_seed(&r, 7);
	for (unsigned i = 0; i < rounds; i++) {
		struct gantry_io io, copy;
		enum gantry_status expected, status;

		draw(&r, &rules, regions, &io);
		copy = io;
		expected = reference_check(&rules, &copy);
		status = check(&rules, &io);
		if (seen)
			seen[expected]++;
		n += status != expected || io.data != copy.data ||
		     io.deadline_us != copy.deadline_us;
	}
	return n;
}

static void check_agrees_with_the_128_bit_reference(void)
{
	unsigned seen[GANTRY_S_COUNT + 1] = {0};

	TEST_ASSERT_EQUAL_UINT(0, differences(gn_check_io, ROUNDS, seen));
	TEST_ASSERT_GREATER_THAN(1000, seen[GANTRY_S_OK]);
	TEST_ASSERT_GREATER_THAN(1000, seen[GANTRY_S_RANGE]);
	TEST_ASSERT_GREATER_THAN(1000, seen[GANTRY_S_INVALID]);
	TEST_ASSERT_GREATER_THAN(1000, seen[GANTRY_S_ACCESS]);
	TEST_ASSERT_GREATER_THAN(1000, seen[GANTRY_S_UNSUPPORTED]);
	TEST_ASSERT_GREATER_THAN(1000, seen[GANTRY_S_READ_ONLY]);
	TEST_ASSERT_GREATER_THAN(10, seen[GN_CHECK_LIST]);
}

/* -- wrong checks: the comparison with the reference must detect the mistake of each -- */

static enum gantry_status sum_that_overflows(const struct gn_io_rules *rules, struct gantry_io *io)
{
	enum gantry_status status = gn_check_io(rules, io);

	return status == GANTRY_S_RANGE && io->offset + io->length <= rules->volume.size
		       ? GANTRY_S_OK
		       : status;
}

static enum gantry_status one_block_too_far(const struct gn_io_rules *rules, struct gantry_io *io)
{
	struct gn_io_rules longer = *rules;

	if (longer.volume.size <= UINT64_MAX - longer.volume.block_size)
		longer.volume.size += longer.volume.block_size;
	gn_io_rules_ready(&longer);
	return gn_check_io(&longer, io);
}

static enum gantry_status no_rights(const struct gn_io_rules *rules, struct gantry_io *io)
{
	enum gantry_status status = gn_check_io(rules, io);

	return status == GANTRY_S_ACCESS && io->region < rules->n_regions &&
			       rules->regions[io->region]
		       ? GANTRY_S_OK
		       : status;
}

static enum gantry_status one_byte_behind_the_region(const struct gn_io_rules *rules,
						     struct gantry_io *io)
{
	struct gantry_io shorter = *io;
	enum gantry_status status = gn_check_io(rules, io);

	if (status != GANTRY_S_RANGE || shorter.region_offset == 0)
		return status;
	shorter.region_offset--;
	return gn_check_io(rules, &shorter);
}

static enum gantry_status no_read_only(const struct gn_io_rules *rules, struct gantry_io *io)
{
	struct gn_io_rules writable = *rules;

	writable.volume.flags = 0;
	gn_io_rules_ready(&writable);
	return gn_check_io(&writable, io);
}

static enum gantry_status takes_every_flag(const struct gn_io_rules *rules, struct gantry_io *io)
{
	struct gn_io_rules lax = *rules;

	lax.refused_flags = 0;
	gn_io_rules_ready(&lax);
	return gn_check_io(&lax, io);
}

static enum gantry_status forgets_the_deadline(const struct gn_io_rules *rules,
					       struct gantry_io *io)
{
	uint32_t deadline_us = io->deadline_us;
	enum gantry_status status = gn_check_io(rules, io);

	io->deadline_us = deadline_us;
	return status;
}

static void reference_detects_each_mutant(void)
{
	static check_fn *const mutants[] = {sum_that_overflows,  one_block_too_far,
					    no_rights,           one_byte_behind_the_region,
					    no_read_only,        takes_every_flag,
					    forgets_the_deadline};

	for (unsigned i = 0; i < sizeof(mutants) / sizeof(mutants[0]); i++)
		TEST_ASSERT_GREATER_THAN(0, differences(mutants[i], ROUNDS / 4, NULL));
}

static void each_status_maps_to_an_errno_and_back(void)
{
	for (unsigned i = 0; i < GANTRY_S_COUNT; i++) {
		TEST_ASSERT_TRUE(gn_errno_of_status(i) <= 0);
		TEST_ASSERT_EQUAL_INT(i, gantry_status_of_errno(gn_errno_of_status(i)));
		TEST_ASSERT_EQUAL_INT(i, gantry_status_of_errno(-gn_errno_of_status(i)));
	}
	TEST_ASSERT_EQUAL_INT(0, gn_errno_of_status(GANTRY_S_OK));
	TEST_ASSERT_EQUAL_INT(-EIO, gn_errno_of_status(GANTRY_S_COUNT));
	TEST_ASSERT_EQUAL_INT(-EIO, gn_errno_of_status(UINT32_MAX));
	TEST_ASSERT_EQUAL_INT(GANTRY_S_IO, gantry_status_of_errno(-ENODEV));
}

static void volumes(void)
{
	const struct gantry_volume_info good = {
		.size = 1 << 20, .block_size = 4096, .max_io = 4096, .ops = 1u << GANTRY_OP_READ};
	struct gantry_volume_info v;

	TEST_ASSERT_NULL(gn_volume_fault(&good));
#define BAD(field, value) \
	v = good; \
	v.field = value; \
	TEST_ASSERT_NOT_NULL(gn_volume_fault(&v)); \
	TEST_ASSERT_NOT_NULL(strstr(gn_volume_fault(&v), "its " #field));
	BAD(size, 0)
	BAD(size, (1 << 20) + 512)
	BAD(block_size, 0)
	BAD(block_size, 256)
	BAD(block_size, 1536)
	BAD(block_size, 131072)
	BAD(max_io, 0)
	BAD(max_io, 4095)
	BAD(ops, 0)
	BAD(ops, 1u << GANTRY_OP_COUNT)
#undef BAD
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(check_agrees_with_the_128_bit_reference);
	RUN_TEST(reference_detects_each_mutant);
	RUN_TEST(each_status_maps_to_an_errno_and_back);
	RUN_TEST(volumes);
	return UNITY_END();
}
