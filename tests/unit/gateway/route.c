/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Several volumes as one volume: the gateway derives its UUID and verifier from those of the
 * targets.
 */
#include "../plugins/role/gateway/route.c"

#include "unity.h"

#define N 64u

static struct gantry_volume_info legs[N];

void setUp(void)
{
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

static struct gantry_volume_info both(unsigned a, unsigned b)
{
	struct gantry_volume_info sum = legs[a];

	TEST_ASSERT_EQUAL_INT(0, route_append(&sum, &legs[b]));
	return sum;
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
	struct gantry_volume_info before = both(1, 2), after;

	after = before;
	route_append(&before, &legs[3]);
	route_append(&after, &legs[4]);
	TEST_ASSERT_TRUE(before.verifier != after.verifier);
	after = both(2, 1);
	route_append(&after, &legs[3]);
	TEST_ASSERT_TRUE(before.verifier != after.verifier &&
			 memcmp(before.uuid, after.uuid, 16) != 0);
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
		route_append(&sum, &legs[3]);
		TEST_ASSERT_EQUAL_MEMORY(unknown, sum.uuid, 16);

		setUp();
		legs[i].verifier = 0;
		sum = both(1, 2);
		route_append(&sum, &legs[3]);
		TEST_ASSERT_EQUAL_HEX64(0, sum.verifier);
		TEST_ASSERT_TRUE(memcmp(sum.uuid, unknown, 16) != 0);
	}
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(different_pairs_have_different_identities);
	RUN_TEST(pair_has_another_identity_than_its_volumes);
	RUN_TEST(identity_depends_on_each_of_three_volumes);
	RUN_TEST(unknown_identity_of_one_volume_makes_the_route_unknown);
	return UNITY_END();
}
