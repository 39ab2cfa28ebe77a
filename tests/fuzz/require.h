/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_FUZZ_REQUIRE_H
#define TESTS_FUZZ_REQUIRE_H

#include <stdlib.h>

/* A condition that is false is a finding. */
static inline void require(int ok)
{
	if (!ok)
		abort();
}

#endif
