/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>
#include <sys/mman.h>

#include <gantry/random.h>

#include "base/crc32c.h"
#include "unity.h"

#define PAGE 4096u

static uint8_t *page; /* of random bytes, between pages that cannot be read */

void setUp(void)
{
	struct gantry_random r;

	page = mmap(NULL, (size_t)3 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	TEST_ASSERT_TRUE(page != MAP_FAILED);
	page += PAGE;
	TEST_ASSERT_EQUAL_INT(0, mprotect(page, PAGE, PROT_READ | PROT_WRITE));
	gantry_random_seed(&r, 1);
	for (unsigned int i = 0; i < PAGE; i++)
		page[i] = (uint8_t)gantry_random_next(&r);
}

void tearDown(void)
{
	munmap(page - PAGE, (size_t)3 * PAGE);
}

/* The vectors of RFC 3720, B.4, and the check value of the published CRC-32C parameters. */
static void known_vectors(void)
{
	static const uint8_t read_pdu[48] = {
		0x01, 0xc0, [16] = 0x14, [22] = 0x04, [27] = 0x14, [31] = 0x18, 0x28, [40] = 0x02,
	};
	uint8_t buf[32];

	memset(buf, 0, sizeof(buf));
	TEST_ASSERT_EQUAL_HEX32(0x8a9136aa, gn_crc32c(0, buf, sizeof(buf)));
	memset(buf, 0xff, sizeof(buf));
	TEST_ASSERT_EQUAL_HEX32(0x62a8ab43, gn_crc32c(0, buf, sizeof(buf)));
	for (unsigned int i = 0; i < sizeof(buf); i++)
		buf[i] = (uint8_t)i;
	TEST_ASSERT_EQUAL_HEX32(0x46dd794e, gn_crc32c(0, buf, sizeof(buf)));
	for (unsigned int i = 0; i < sizeof(buf); i++)
		buf[i] = (uint8_t)(31 - i);
	TEST_ASSERT_EQUAL_HEX32(0x113fdb5c, gn_crc32c(0, buf, sizeof(buf)));
	TEST_ASSERT_EQUAL_HEX32(0xd9963a56, gn_crc32c(0, read_pdu, sizeof(read_pdu)));
	TEST_ASSERT_EQUAL_HEX32(0xe3069283, gn_crc32c(0, "123456789", 9));
	TEST_ASSERT_EQUAL_HEX32(0, gn_crc32c(0, NULL, 0));
}

static void compare(const uint8_t *from, size_t n)
{
	uint32_t seed = (uint32_t)n * 0x9e3779b9u;

	TEST_ASSERT_EQUAL_HEX32(gn_crc32c_tables(seed, from, n), gn_crc32c(seed, from, n));
}

/* No byte before or after the data is read. */
static void tables_agree(void)
{
	for (size_t n = 0; n <= 1024; n++) {
		for (size_t at = 0; at < 64; at++)
			compare(page + at, n);
		compare(page + PAGE - n, n);
	}
	compare(page, PAGE);
}

static void pieces_give_the_same_as_the_whole(void)
{
	uint32_t whole = gn_crc32c(0, page, 1024);

	for (size_t cut = 0; cut <= 1024; cut++)
		TEST_ASSERT_EQUAL_HEX32(whole,
					gn_crc32c(gn_crc32c(0, page, cut), page + cut, 1024 - cut));
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(known_vectors);
	RUN_TEST(tables_agree);
	RUN_TEST(pieces_give_the_same_as_the_whole);
	return UNITY_END();
}
