/* SPDX-License-Identifier: BSD-3-Clause */
#include <gantry/crc32c.h>
#include <gantry/random.h>

#include "unity.h"

void setUp(void)
{
}

void tearDown(void)
{
}

/* The vectors of RFC 3720, B.4, and the check value of the published CRC-32C parameters. */
static void known_vectors(void)
{
	uint8_t buf[32];

	memset(buf, 0, sizeof(buf));
	TEST_ASSERT_EQUAL_HEX32(0x8a9136aa, gantry_crc32c(0, buf, sizeof(buf)));
	memset(buf, 0xff, sizeof(buf));
	TEST_ASSERT_EQUAL_HEX32(0x62a8ab43, gantry_crc32c(0, buf, sizeof(buf)));
	for (unsigned int i = 0; i < sizeof(buf); i++)
		buf[i] = (uint8_t)i;
	TEST_ASSERT_EQUAL_HEX32(0x46dd794e, gantry_crc32c(0, buf, sizeof(buf)));
	for (unsigned int i = 0; i < sizeof(buf); i++)
		buf[i] = (uint8_t)(31 - i);
	TEST_ASSERT_EQUAL_HEX32(0x113fdb5c, gantry_crc32c(0, buf, sizeof(buf)));
	TEST_ASSERT_EQUAL_HEX32(0xe3069283, gantry_crc32c(0, "123456789", 9));
	TEST_ASSERT_EQUAL_HEX32(0, gantry_crc32c(0, NULL, 0));
}

static void tables_and_instruction_agree(void)
{
	struct gantry_random r;
	uint8_t buf[300];

	gantry_random_seed(&r, 1);
	for (unsigned int i = 0; i < sizeof(buf); i++)
		buf[i] = (uint8_t)gantry_random_next(&r);
	for (int i = 0; i < 2000; i++) {
		size_t from = gantry_random_below(&r, sizeof(buf)),
		       n = gantry_random_below(&r, sizeof(buf) - from);
		uint32_t seed = (uint32_t)gantry_random_next(&r);

		TEST_ASSERT_EQUAL_HEX32(~gantry_crc32c_soft(~seed, buf + from, n),
					gantry_crc32c(seed, buf + from, n));
	}
}

static void pieces_give_the_same_as_the_whole(void)
{
	const char *text = "a volume is a row of containers";
	size_t all = strlen(text);
	uint32_t whole = gantry_crc32c(0, text, all);

	for (size_t cut = 0; cut <= all; cut++)
		TEST_ASSERT_EQUAL_HEX32(
			whole, gantry_crc32c(gantry_crc32c(0, text, cut), text + cut, all - cut));
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(known_vectors);
	RUN_TEST(tables_and_instruction_agree);
	RUN_TEST(pieces_give_the_same_as_the_whole);
	return UNITY_END();
}
