/* SPDX-License-Identifier: BSD-3-Clause */
/* The check for the oldest supported kernel, with different release texts. */
#include <string.h>
#include <sys/utsname.h>

static const char *release; /* NULL: uname(2) fails */

static int say_release(struct utsname *name)
{
	if (!release)
		return -1;
	strcpy(name->release, release);
	return 0;
}

#define uname(name) say_release(name)
#include "../core/base/kernel.c"
#undef uname
#include "unity.h"

static void kernels_from_5_14_on_are_accepted(void)
{
	static const char *const accepted[] = {"5.14.0",
					       "5.14.0-427.13.1.el9_4.x86_64",
					       "5.15.0-91-generic",
					       "6.1.0-28-amd64",
					       "10.0-rc1",
					       "nonsense",
					       "",
					       NULL};
	char why[GN_KERNEL_WHY];

	for (unsigned i = 0; i < sizeof(accepted) / sizeof(accepted[0]); i++) {
		release = accepted[i];
		TEST_ASSERT_EQUAL_INT(0, gn_kernel_check(why));
		TEST_ASSERT_EQUAL_STRING("", why);
	}
}

static void older_kernels_are_rejected(void)
{
	static const char *const rejected[] = {"5.13.19", "5.10.0-28-amd64",
					       "4.18.0-513.el8.x86_64", "2.6.78", "5.9-rc1"};
	char why[GN_KERNEL_WHY];

	for (unsigned i = 0; i < sizeof(rejected) / sizeof(rejected[0]); i++) {
		release = rejected[i];
		TEST_ASSERT_EQUAL_INT(-ENOSYS, gn_kernel_check(why));
		TEST_ASSERT_NOT_NULL_MESSAGE(strstr(why, rejected[i]), why);
	}
	TEST_ASSERT_EQUAL_STRING("Linux 5.9-rc1 is too old (minimum=5.14): run a newer kernel; see "
				 "REQUIREMENTS in gantry(1)",
				 why);
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(kernels_from_5_14_on_are_accepted);
	RUN_TEST(older_kernels_are_rejected);
	return UNITY_END();
}
