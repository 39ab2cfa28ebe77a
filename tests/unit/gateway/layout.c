/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Several volumes as one volume: the gateway derives its UUID and verifier from those of the
 * targets, and each byte of the volume has one place on one target.
 */
#include "../plugins/role/gateway/layout.c"

#include "unity.h"

#define N 64u

static struct gantry_volume_info legs[N];
static struct gateway_conf conf;
static char why[LAYOUT_WHY];

void setUp(void)
{
	conf = (struct gateway_conf){.mode = GATEWAY_CONCAT, .chunk = 4096, .uuid = ""};
	/* the volumes differ only in the last byte of the UUID and in low bits of the verifier */
	for (unsigned i = 0; i < N; i++) {
		legs[i] = (struct gantry_volume_info){.size = 1 << 20,
						      .block_size = 512,
						      .ops = 0x3f,
						      .max_io = 65536,
						      .uuid = {0x0e, 0x7a},
						      .verifier = 1 + i};
		legs[i].uuid[15] = (uint8_t)i;
	}
}

static struct gantry_volume_info compose(const struct gantry_volume_info *volumes, uint32_t n)
{
	struct gantry_volume_info sum;
	int rc = layout_compose(&conf, volumes, n, &sum, why);

	TEST_ASSERT_EQUAL_INT_MESSAGE(0, rc, why);
	return sum;
}

static struct gantry_volume_info both(unsigned a, unsigned b)
{
	const struct gantry_volume_info volumes[] = {legs[a], legs[b]};

	return compose(volumes, 2);
}

static struct gantry_volume_info three(unsigned a, unsigned b, unsigned c)
{
	const struct gantry_volume_info volumes[] = {legs[a], legs[b], legs[c]};

	return compose(volumes, 3);
}

static void different_pairs_have_different_identities(void)
{
	static struct gantry_volume_info pairs[N * N];
	unsigned n_uuids = 0, n_verifiers = 0;

	for (unsigned i = 0; i < N * N; i++)
		pairs[i] = both(i / N, i % N);
	for (unsigned i = 0; i < N * N; i++)
		for (unsigned k = 0; k < i; k++) {
			n_uuids += memcmp(pairs[i].uuid, pairs[k].uuid, 16) == 0;
			n_verifiers += pairs[i].verifier == pairs[k].verifier;
		}
	TEST_ASSERT_EQUAL_UINT(0, n_uuids);
	TEST_ASSERT_EQUAL_UINT(0, n_verifiers);
}

static void pair_has_another_identity_than_its_volumes(void)
{
	struct gantry_volume_info same = both(1, 1);

	TEST_ASSERT_TRUE(memcmp(same.uuid, legs[1].uuid, 16) != 0);
	TEST_ASSERT_TRUE(same.verifier != 0 && same.verifier != legs[1].verifier);
	TEST_ASSERT_EQUAL_HEX8(0x80, same.uuid[6] & 0xf0);
	TEST_ASSERT_EQUAL_HEX8(0x80, same.uuid[8] & 0xc0);
}

static void identity_depends_on_each_of_three_volumes(void)
{
	struct gantry_volume_info all = three(1, 2, 3), last = three(1, 2, 4);
	struct gantry_volume_info swapped = three(2, 1, 3);

	TEST_ASSERT_TRUE(all.verifier != last.verifier);
	TEST_ASSERT_TRUE(all.verifier != swapped.verifier &&
			 memcmp(all.uuid, swapped.uuid, 16) != 0);
}

static void unknown_identity_of_one_volume_makes_the_route_unknown(void)
{
	static const uint8_t unknown[16];

	for (unsigned i = 1; i < 3; i++) {
		struct gantry_volume_info sum;

		setUp();
		memset(legs[i].uuid, 0, 16);
		sum = both(1, 2);
		TEST_ASSERT_EQUAL_MEMORY(unknown, sum.uuid, 16);
		TEST_ASSERT_TRUE(sum.verifier != 0);
		sum = three(1, 2, 3);
		TEST_ASSERT_EQUAL_MEMORY(unknown, sum.uuid, 16);

		setUp();
		legs[i].verifier = 0;
		sum = three(1, 2, 3);
		TEST_ASSERT_EQUAL_HEX64(0, sum.verifier);
		TEST_ASSERT_TRUE(memcmp(sum.uuid, unknown, 16) != 0);
	}
}

static void stripes_are_another_volume_for_each_order_and_chunk(void)
{
	struct gantry_volume_info concat_sum = both(1, 2), sum, swapped, larger;

	conf.mode = GATEWAY_STRIPE;
	sum = both(1, 2);
	swapped = both(2, 1);
	conf.chunk = 8192;
	larger = both(1, 2);
	TEST_ASSERT_TRUE(memcmp(sum.uuid, concat_sum.uuid, 16) != 0);
	TEST_ASSERT_TRUE(memcmp(sum.uuid, swapped.uuid, 16) != 0);
	TEST_ASSERT_TRUE(memcmp(sum.uuid, larger.uuid, 16) != 0);
}

/* A new size of a target moves the offsets of all targets after it. */
static void size_of_each_target_but_the_last_is_part_of_the_identity(void)
{
	struct gantry_volume_info before = three(1, 2, 3), larger[3];

	for (unsigned i = 0; i < 3; i++) {
		legs[i + 1].size *= 2;
		larger[i] = three(1, 2, 3);
		legs[i + 1].size /= 2;
	}
	TEST_ASSERT_TRUE(memcmp(before.uuid, larger[0].uuid, 16) != 0);
	TEST_ASSERT_TRUE(memcmp(before.uuid, larger[1].uuid, 16) != 0);
	TEST_ASSERT_TRUE(memcmp(larger[0].uuid, larger[1].uuid, 16) != 0);
	TEST_ASSERT_EQUAL_MEMORY(before.uuid, larger[2].uuid, 16);
}

/* `gantry check` does not know the size of a file: the UUID must not look like another one. */
static void targets_of_unknown_size_have_no_identity(void)
{
	static const uint8_t unknown[16];

	for (unsigned mode = GATEWAY_CONCAT; mode <= GATEWAY_STRIPE; mode++) {
		conf.mode = mode;
		legs[2].size = 0;
		TEST_ASSERT_EQUAL_MEMORY(unknown, both(1, 2).uuid, 16);
		legs[2].size = 1 << 20;
		TEST_ASSERT_TRUE(memcmp(unknown, both(1, 2).uuid, 16) != 0);
	}
}

static void volume_that_the_option_does_not_name_is_rejected(void)
{
	struct gantry_volume_info sum = both(1, 2), swapped = both(2, 1);
	char text[GANTRY_UUID_TEXT];

	conf.uuid = gantry_uuid_text(sum.uuid, text);
	TEST_ASSERT_EQUAL_INT(0, layout_check_uuid(&conf, &sum, why));
	TEST_ASSERT_EQUAL_INT(-ESTALE, layout_check_uuid(&conf, &swapped, why));
	TEST_ASSERT_NOT_NULL_MESSAGE(strstr(why, text), why);
	memset(sum.uuid, 0, 16);
	TEST_ASSERT_EQUAL_INT(-ESTALE, layout_check_uuid(&conf, &sum, why));
	TEST_ASSERT_NOT_NULL_MESSAGE(strstr(why, "uuid=unknown"), why);
}

static void expect_error(int rc, const char *text)
{
	struct gantry_volume_info sum;

	TEST_ASSERT_EQUAL_INT(rc, layout_compose(&conf, legs, 2, &sum, why));
	TEST_ASSERT_NOT_NULL_MESSAGE(strstr(why, text), why);
}

static void volumes_that_do_not_fit_together_are_rejected(void)
{
	legs[1].block_size = 4096;
	legs[0].size += 512;
	expect_error(-EINVAL, "target 1 begins at byte 1049088");
	legs[0].size = UINT64_MAX & ~4095ull;
	expect_error(-ERANGE, "larger than 2^64");
	conf.mode = GATEWAY_STRIPE;
	legs[1].size = legs[0].size;
	expect_error(-ERANGE, "larger than 2^64");
	legs[1].size = 2048;
	expect_error(-EINVAL, "smaller than one chunk (bytes=2048)");
	conf.chunk = 2048;
	expect_error(-EINVAL, "chunk is not a multiple of the block size 4096");
}

static void stripe_uses_the_whole_chunks_of_the_smallest_target(void)
{
	conf.mode = GATEWAY_STRIPE;
	legs[1].size = 3 * 4096 + 512;
	TEST_ASSERT_EQUAL_UINT64(2 * 3 * 4096, both(0, 1).size);
	legs[0].max_io = legs[1].max_io = 1 << 30;
	TEST_ASSERT_EQUAL_UINT32(63 * 4096, both(0, 1).max_io);
}

/* The place of a byte, computed byte by byte. */
struct place {
	uint32_t target;
	uint64_t offset;
};

static struct place place_of(uint64_t at, uint32_t n)
{
	uint64_t k = at / conf.chunk;

	if (conf.mode == GATEWAY_STRIPE)
		return (struct place){(uint32_t)(k % n), k / n * conf.chunk + at % conf.chunk};
	for (uint32_t i = 0; i < n; i++) {
		if (at < legs[i].size)
			return (struct place){i, at};
		at -= legs[i].size;
	}
	return (struct place){n, 0};
}

#define UNIT 512u /* each IO and chunk consists of units */

static void check_split(uint32_t n, const struct gantry_volume_info *sum, uint8_t opcode,
			uint64_t offset, uint32_t length)
{
	const struct layout layout = {.conf = &conf, .volumes = legs, .n = n};
	const struct gantry_io io = {.opcode = opcode, .offset = offset, .length = length};
	static struct gantry_piece pieces[256];
	static uint8_t used[4][1 << 12];
	uint32_t count = layout_split(&layout, &io, pieces), units = 0;

	memset(used, 0, sizeof(used));
	TEST_ASSERT_TRUE(count > 0 && count <= layout_max_pieces(&conf, sum, n));
	for (uint32_t i = 0; i < count; i++) {
		const struct gantry_piece *piece = &pieces[i];

		TEST_ASSERT_TRUE(piece->offset + piece->length <= legs[piece->terminal].size);
		for (uint32_t u = 0; u < piece->length / UNIT; u++, units++) {
			TEST_ASSERT_EQUAL_UINT(0,
					       used[piece->terminal][piece->offset / UNIT + u]++);
			if (gantry_op_has_data(opcode)) {
				struct place place = place_of(offset + piece->skip + u * UNIT, n);

				TEST_ASSERT_EQUAL_UINT32(place.target, piece->terminal);
				TEST_ASSERT_EQUAL_UINT64(place.offset, piece->offset + u * UNIT);
			}
		}
	}
	TEST_ASSERT_EQUAL_UINT32(length / UNIT, units);
	for (uint32_t u = 0; u < length / UNIT; u++) {
		struct place place = place_of(offset + u * UNIT, n);

		TEST_ASSERT_EQUAL_UINT(1, used[place.target][place.offset / UNIT]);
	}
}

static void each_unit_of_an_io_goes_to_its_place(void)
{
	static const uint8_t ops[] = {GANTRY_OP_READ, GANTRY_OP_WRITE, GANTRY_OP_DISCARD};
	uint32_t random = 1;

	for (unsigned round = 0; round < 30000; round++) {
		struct gantry_volume_info sum;
		uint32_t n = 2 + round % 3, most, length;
		uint64_t offset;

		conf.mode = round / 3 % 2 ? GATEWAY_STRIPE : GATEWAY_CONCAT;
		conf.chunk = UNIT * (1 + round / 6 % 8);
		for (uint32_t i = 0; i < n; i++) {
			random = random * 1664525 + 1013904223;
			legs[i].size = (1 + (random >> 16) % 200) * (16 * UNIT);
		}
		sum = compose(legs, n);
		random = random * 1664525 + 1013904223;
		offset = random / UNIT % (sum.size / UNIT) * UNIT;
		most = (uint32_t)(sum.size - offset);
		if (gantry_op_has_data(ops[round % 3]) && most > sum.max_io)
			most = sum.max_io;
		random = random * 1664525 + 1013904223;
		length = round % 7 == 0 ? most : UNIT + random / UNIT % (most / UNIT) * UNIT;
		check_split(n, &sum, ops[round % 3], offset, length);
	}
}

static void flush_goes_to_each_target(void)
{
	const struct layout layout = {.conf = &conf, .volumes = legs, .n = 3};
	const struct gantry_io io = {.opcode = GANTRY_OP_FLUSH};
	struct gantry_piece pieces[3];

	for (conf.mode = GATEWAY_CONCAT; conf.mode <= GATEWAY_STRIPE; conf.mode++) {
		TEST_ASSERT_EQUAL_UINT32(3, layout_split(&layout, &io, pieces));
		for (uint32_t i = 0; i < 3; i++)
			TEST_ASSERT_EQUAL_UINT32(i, pieces[i].terminal);
	}
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(different_pairs_have_different_identities);
	RUN_TEST(pair_has_another_identity_than_its_volumes);
	RUN_TEST(identity_depends_on_each_of_three_volumes);
	RUN_TEST(unknown_identity_of_one_volume_makes_the_route_unknown);
	RUN_TEST(stripes_are_another_volume_for_each_order_and_chunk);
	RUN_TEST(size_of_each_target_but_the_last_is_part_of_the_identity);
	RUN_TEST(targets_of_unknown_size_have_no_identity);
	RUN_TEST(volume_that_the_option_does_not_name_is_rejected);
	RUN_TEST(volumes_that_do_not_fit_together_are_rejected);
	RUN_TEST(stripe_uses_the_whole_chunks_of_the_smallest_target);
	RUN_TEST(each_unit_of_an_io_goes_to_its_place);
	RUN_TEST(flush_goes_to_each_target);
	return UNITY_END();
}
