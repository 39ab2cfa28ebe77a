/* SPDX-License-Identifier: BSD-3-Clause */
/* The headers of a program and the library that it loads have the same version. */
#include <doca_version.h>
#include <stdio.h>

#include "unity.h"

static void test_header_and_library_agree(void)
{
	char text[32];

	TEST_ASSERT_EQUAL_STRING(doca_version(), doca_version_runtime());
	snprintf(text, sizeof(text), "%d.%d.%04d", DOCA_VERSION_MAJOR, DOCA_VERSION_MINOR,
		 DOCA_VERSION_PATCH);
	TEST_ASSERT_EQUAL_STRING(text, doca_version());
}

static void test_versions_can_be_compared(void)
{
	TEST_ASSERT_TRUE(DOCA_VERSION_EQ_CURRENT(DOCA_VERSION_MAJOR, DOCA_VERSION_MINOR,
						 DOCA_VERSION_PATCH));
	TEST_ASSERT_TRUE(DOCA_VERSION_LTE_CURRENT(DOCA_VERSION_MAJOR - 1, 99, 99));
	TEST_ASSERT_FALSE(DOCA_VERSION_LTE_CURRENT(DOCA_VERSION_MAJOR + 1, 0, 0));
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(test_header_and_library_agree);
	RUN_TEST(test_versions_can_be_compared);
	return UNITY_END();
}
