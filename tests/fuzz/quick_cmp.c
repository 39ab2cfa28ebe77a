/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * quick_cmp.c - hides comparisons without information from libFuzzer, for targets with many
 * comparisons
 *
 * A target links it with $(QUICK_CMP_LDFLAGS). The instrumented code calls libFuzzer for each
 * comparison. If operands have 4 or 8 bytes, libFuzzer keeps them, to try them in inputs.
 * Most comparisons are with zero, in checks of pointers that UBSan adds. They have no operand to
 * try, and take a quarter of the time of an input. libFuzzer uses comparisons of 1 and 2 bytes
 * with -use_value_profile=1 only.
 */
#include <stdint.h>

#define UNSEEN __attribute__((no_sanitize("address", "undefined", "coverage")))

void __real___sanitizer_cov_trace_const_cmp4(uint32_t constant, uint32_t value);
void __real___sanitizer_cov_trace_const_cmp8(uint64_t constant, uint64_t value);
void __wrap___sanitizer_cov_trace_const_cmp1(uint8_t constant, uint8_t value);
void __wrap___sanitizer_cov_trace_const_cmp2(uint16_t constant, uint16_t value);
void __wrap___sanitizer_cov_trace_const_cmp4(uint32_t constant, uint32_t value);
void __wrap___sanitizer_cov_trace_const_cmp8(uint64_t constant, uint64_t value);
void __wrap___sanitizer_cov_trace_cmp1(uint8_t a, uint8_t b);
void __wrap___sanitizer_cov_trace_cmp2(uint16_t a, uint16_t b);

UNSEEN void __wrap___sanitizer_cov_trace_const_cmp1(uint8_t constant, uint8_t value)
{
	(void)constant;
	(void)value;
}

UNSEEN void __wrap___sanitizer_cov_trace_const_cmp2(uint16_t constant, uint16_t value)
{
	(void)constant;
	(void)value;
}

/* Tail calls: libFuzzer uses its return address as the place of the comparison. */
UNSEEN void __wrap___sanitizer_cov_trace_const_cmp4(uint32_t constant, uint32_t value)
{
	if (constant != 0)
		__attribute__((musttail)) return __real___sanitizer_cov_trace_const_cmp4(constant,
											 value);
}

UNSEEN void __wrap___sanitizer_cov_trace_const_cmp8(uint64_t constant, uint64_t value)
{
	if (constant != 0)
		__attribute__((musttail)) return __real___sanitizer_cov_trace_const_cmp8(constant,
											 value);
}

UNSEEN void __wrap___sanitizer_cov_trace_cmp1(uint8_t a, uint8_t b)
{
	(void)a;
	(void)b;
}

UNSEEN void __wrap___sanitizer_cov_trace_cmp2(uint16_t a, uint16_t b)
{
	(void)a;
	(void)b;
}
