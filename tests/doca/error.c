/* SPDX-License-Identifier: BSD-3-Clause */
/* Names and descriptions of errors, which every program prints. */
#include <doca_error.h>
#include <string.h>

#include "unity.h"

static void every_value_has_its_name_and_a_sentence(void)
{
	for (int i = 0; i <= DOCA_ERROR_SKIPPED; i++) {
		const char *name = doca_error_get_name((doca_error_t)i),
			   *text = doca_error_get_descr((doca_error_t)i);

		TEST_ASSERT_NOT_NULL(name);
		TEST_ASSERT_EQUAL_INT(
			0, strncmp(name, i ? "DOCA_ERROR_" : "DOCA_SUCCESS", i ? 11 : 13));
		TEST_ASSERT_TRUE(text && strlen(text) > 3);
		for (int j = 0; j < i; j++) {
			TEST_ASSERT_TRUE(strcmp(name, doca_error_get_name((doca_error_t)j)) != 0);
			TEST_ASSERT_TRUE(strcmp(text, doca_error_get_descr((doca_error_t)j)) != 0);
		}
	}
}

static void names_are_those_of_the_values(void)
{
	TEST_ASSERT_EQUAL_STRING("DOCA_ERROR_AGAIN", doca_error_get_name(DOCA_ERROR_AGAIN));
	TEST_ASSERT_EQUAL_STRING("DOCA_ERROR_UNKNOWN", doca_error_get_name((doca_error_t)1));
	TEST_ASSERT_EQUAL_STRING("DOCA_ERROR_INVALID_VALUE", doca_error_get_name((doca_error_t)6));
	TEST_ASSERT_EQUAL_STRING("DOCA_ERROR_BAD_STATE", doca_error_get_name((doca_error_t)18));
	TEST_ASSERT_EQUAL_STRING("DOCA_ERROR_SKIPPED", doca_error_get_name((doca_error_t)30));
	TEST_ASSERT_EQUAL_STRING("Unknown error", doca_error_get_descr(DOCA_ERROR_UNKNOWN));
	TEST_ASSERT_EQUAL_STRING("DOCA Driver call failure",
				 doca_error_get_descr(DOCA_ERROR_DRIVER));
}

static void invalid_value_has_a_separate_text(void)
{
	static const int wrong[] = {31, 1000, -1, (int)0x80000000};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		TEST_ASSERT_EQUAL_STRING("unrecognized error code",
					 doca_error_get_name((doca_error_t)wrong[i]));
		TEST_ASSERT_EQUAL_STRING("unrecognized error code",
					 doca_error_get_descr((doca_error_t)wrong[i]));
	}
}

static void the_first_error_is_kept(void)
{
	doca_error_t result = DOCA_SUCCESS;

	DOCA_ERROR_PROPAGATE(result, DOCA_ERROR_FULL);
	DOCA_ERROR_PROPAGATE(result, DOCA_ERROR_EMPTY);
	TEST_ASSERT_EQUAL_INT(DOCA_ERROR_FULL, result);
	TEST_ASSERT_TRUE(DOCA_IS_ERROR(result));
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(every_value_has_its_name_and_a_sentence);
	RUN_TEST(names_are_those_of_the_values);
	RUN_TEST(invalid_value_has_a_separate_text);
	RUN_TEST(the_first_error_is_kept);
	return UNITY_END();
}
