/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unity.h - the part of the Unity test framework (throwtheswitch.org) that the tests of gantry use
 *
 * It replaces Unity where Unity is not available, and in sanitizer builds. It prints the same
 * lines, file:line:test:PASS|FAIL|IGNORE[: text], and includes the same system headers.
 */
#ifndef UNITY_FRAMEWORK_H
#define UNITY_FRAMEWORK_H

#include <limits.h>
#include <math.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>

enum shim_op { SHIM_EQ, SHIM_NE, SHIM_GT, SHIM_GE, SHIM_LT, SHIM_LE };

void setUp(void);
void tearDown(void);

void shim_begin(void);
int shim_end(void);
void shim_run(void (*test)(void), const char *name, const char *file, int line);
void shim_true(int ok, const char *what, const char *user, const char *file, int line);
void shim_int(int64_t expected, enum shim_op op, int64_t actual, const char *user, const char *file,
	      int line);
void shim_uint(uint64_t expected, enum shim_op op, uint64_t actual, const char *user,
	       const char *file, int line);
void shim_hex(uint64_t expected, uint64_t actual, const char *user, const char *file, int line);
void shim_string(const char *expected, const char *actual, const char *user, const char *file,
		 int line);
void shim_memory(const void *expected, const void *actual, size_t n, const char *user,
		 const char *file, int line);
void shim_each_char(char expected, const char *actual, size_t n, const char *file, int line);
jmp_buf *shim_frame(void);
__attribute__((noreturn)) void shim_fail(const char *user, const char *file, int line);
__attribute__((noreturn)) void shim_ignore(const char *user, const char *file, int line);

#define SHIM_AT __FILE__, __LINE__
#define UNITY_BEGIN() shim_begin()
#define UNITY_END() shim_end()
#define RUN_TEST(f) shim_run(f, #f, SHIM_AT)
#define UnityDefaultTestRun(f, name, line) shim_run(f, name, __FILE__, line)
typedef void (*UnityTestFunction)(void);

/*
 * For a process that a test has forked. A failed assertion jumps to the last TEST_PROTECT(), which
 * then is false. Without it the child would go on in the functions of its parent. In the child:
 * if (TEST_PROTECT()) { what it does; _exit(0); } _exit(1);
 */
#define TEST_PROTECT() (setjmp(*shim_frame()) == 0)
#define TEST_FAIL_MESSAGE(m) shim_fail(m, SHIM_AT)
#define TEST_FAIL() shim_fail("", SHIM_AT)
#define TEST_IGNORE_MESSAGE(m) shim_ignore(m, SHIM_AT)
#define TEST_IGNORE() shim_ignore("", SHIM_AT)

#define TEST_ASSERT_TRUE_MESSAGE(c, m) shim_true(!!(c), "Expected TRUE Was FALSE: " #c, m, SHIM_AT)
#define TEST_ASSERT_FALSE_MESSAGE(c, m) shim_true(!(c), "Expected FALSE Was TRUE: " #c, m, SHIM_AT)
#define TEST_ASSERT_NULL_MESSAGE(p, m) shim_true((p) == NULL, "Expected NULL: " #p, m, SHIM_AT)
#define TEST_ASSERT_NOT_NULL_MESSAGE(p, m) \
	shim_true((p) != NULL, "Expected Non-NULL: " #p, m, SHIM_AT)
#define TEST_ASSERT_MESSAGE(c, m) TEST_ASSERT_TRUE_MESSAGE(c, m)
#define TEST_ASSERT_TRUE(c) TEST_ASSERT_TRUE_MESSAGE(c, NULL)
#define TEST_ASSERT_FALSE(c) TEST_ASSERT_FALSE_MESSAGE(c, NULL)
#define TEST_ASSERT_NULL(p) TEST_ASSERT_NULL_MESSAGE(p, NULL)
#define TEST_ASSERT_NOT_NULL(p) TEST_ASSERT_NOT_NULL_MESSAGE(p, NULL)
#define TEST_ASSERT(c) TEST_ASSERT_TRUE_MESSAGE(c, NULL)

#define TEST_ASSERT_EQUAL_INT_MESSAGE(e, a, m) \
	shim_int((int64_t)(e), SHIM_EQ, (int64_t)(a), m, SHIM_AT)
#define TEST_ASSERT_EQUAL_UINT_MESSAGE(e, a, m) \
	shim_uint((uint64_t)(e), SHIM_EQ, (uint64_t)(a), m, SHIM_AT)
#define TEST_ASSERT_EQUAL_UINT32_MESSAGE(e, a, m) \
	TEST_ASSERT_EQUAL_UINT_MESSAGE((uint32_t)(e), (uint32_t)(a), m)
#define TEST_ASSERT_EQUAL_HEX_MESSAGE(e, a, m) shim_hex((uint64_t)(e), (uint64_t)(a), m, SHIM_AT)
#define TEST_ASSERT_EQUAL_HEX32_MESSAGE(e, a, m) \
	TEST_ASSERT_EQUAL_HEX_MESSAGE((uint32_t)(e), (uint32_t)(a), m)
#define TEST_ASSERT_EQUAL_PTR_MESSAGE(e, a, m) \
	TEST_ASSERT_EQUAL_HEX_MESSAGE((uintptr_t)(e), (uintptr_t)(a), m)
#define TEST_ASSERT_EQUAL_STRING_MESSAGE(e, a, m) shim_string(e, a, m, SHIM_AT)
#define TEST_ASSERT_EQUAL_MEMORY_MESSAGE(e, a, n, m) shim_memory(e, a, n, m, SHIM_AT)
#define TEST_ASSERT_EQUAL_MESSAGE TEST_ASSERT_EQUAL_INT_MESSAGE
#define TEST_ASSERT_EQUAL_INT64_MESSAGE TEST_ASSERT_EQUAL_INT_MESSAGE
#define TEST_ASSERT_EQUAL_UINT64_MESSAGE TEST_ASSERT_EQUAL_UINT_MESSAGE
#define TEST_ASSERT_EQUAL_HEX64_MESSAGE TEST_ASSERT_EQUAL_HEX_MESSAGE

#define TEST_ASSERT_EQUAL(e, a) TEST_ASSERT_EQUAL_INT_MESSAGE(e, a, NULL)
#define TEST_ASSERT_EQUAL_INT(e, a) TEST_ASSERT_EQUAL_INT_MESSAGE(e, a, NULL)
#define TEST_ASSERT_EQUAL_INT32(e, a) \
	TEST_ASSERT_EQUAL_INT_MESSAGE((int32_t)(e), (int32_t)(a), NULL)
#define TEST_ASSERT_EQUAL_INT64(e, a) TEST_ASSERT_EQUAL_INT_MESSAGE(e, a, NULL)
#define TEST_ASSERT_EQUAL_UINT(e, a) TEST_ASSERT_EQUAL_UINT_MESSAGE(e, a, NULL)
#define TEST_ASSERT_EQUAL_UINT8(e, a) \
	TEST_ASSERT_EQUAL_UINT_MESSAGE((uint8_t)(e), (uint8_t)(a), NULL)
#define TEST_ASSERT_EQUAL_UINT16(e, a) \
	TEST_ASSERT_EQUAL_UINT_MESSAGE((uint16_t)(e), (uint16_t)(a), NULL)
#define TEST_ASSERT_EQUAL_UINT32(e, a) TEST_ASSERT_EQUAL_UINT32_MESSAGE(e, a, NULL)
#define TEST_ASSERT_EQUAL_UINT64(e, a) TEST_ASSERT_EQUAL_UINT_MESSAGE(e, a, NULL)
#define TEST_ASSERT_EQUAL_size_t(e, a) TEST_ASSERT_EQUAL_UINT_MESSAGE(e, a, NULL)
#define TEST_ASSERT_EQUAL_HEX(e, a) TEST_ASSERT_EQUAL_HEX_MESSAGE(e, a, NULL)
#define TEST_ASSERT_EQUAL_HEX8(e, a) TEST_ASSERT_EQUAL_HEX_MESSAGE((uint8_t)(e), (uint8_t)(a), NULL)
#define TEST_ASSERT_EQUAL_HEX16(e, a) \
	TEST_ASSERT_EQUAL_HEX_MESSAGE((uint16_t)(e), (uint16_t)(a), NULL)
#define TEST_ASSERT_EQUAL_HEX32(e, a) TEST_ASSERT_EQUAL_HEX32_MESSAGE(e, a, NULL)
#define TEST_ASSERT_EQUAL_HEX64(e, a) TEST_ASSERT_EQUAL_HEX_MESSAGE(e, a, NULL)
#define TEST_ASSERT_EQUAL_PTR(e, a) TEST_ASSERT_EQUAL_PTR_MESSAGE(e, a, NULL)
#define TEST_ASSERT_EQUAL_STRING(e, a) TEST_ASSERT_EQUAL_STRING_MESSAGE(e, a, NULL)
#define TEST_ASSERT_EQUAL_MEMORY(e, a, n) TEST_ASSERT_EQUAL_MEMORY_MESSAGE(e, a, n, NULL)
#define TEST_ASSERT_EQUAL_UINT64_ARRAY(e, a, n) \
	TEST_ASSERT_EQUAL_MEMORY(e, a, (n) * sizeof(uint64_t))
#define TEST_ASSERT_EACH_EQUAL_CHAR(e, a, n) shim_each_char(e, a, n, SHIM_AT)
#define TEST_ASSERT_NOT_EQUAL(e, a) shim_int((int64_t)(e), SHIM_NE, (int64_t)(a), NULL, SHIM_AT)

#define TEST_ASSERT_GREATER_THAN(t, a) shim_int((int64_t)(t), SHIM_GT, (int64_t)(a), NULL, SHIM_AT)
#define TEST_ASSERT_GREATER_OR_EQUAL(t, a) \
	shim_int((int64_t)(t), SHIM_GE, (int64_t)(a), NULL, SHIM_AT)
#define TEST_ASSERT_LESS_THAN(t, a) shim_int((int64_t)(t), SHIM_LT, (int64_t)(a), NULL, SHIM_AT)
#define TEST_ASSERT_LESS_OR_EQUAL(t, a) shim_int((int64_t)(t), SHIM_LE, (int64_t)(a), NULL, SHIM_AT)
#define TEST_ASSERT_GREATER_THAN_INT TEST_ASSERT_GREATER_THAN
#define TEST_ASSERT_GREATER_OR_EQUAL_INT TEST_ASSERT_GREATER_OR_EQUAL
#define TEST_ASSERT_LESS_THAN_INT TEST_ASSERT_LESS_THAN
#define TEST_ASSERT_LESS_OR_EQUAL_INT TEST_ASSERT_LESS_OR_EQUAL
#define TEST_ASSERT_LESS_THAN_INT64 TEST_ASSERT_LESS_THAN
#define TEST_ASSERT_GREATER_THAN_UINT64(t, a) \
	shim_uint((uint64_t)(t), SHIM_GT, (uint64_t)(a), NULL, SHIM_AT)
#define TEST_ASSERT_GREATER_OR_EQUAL_UINT64(t, a) \
	shim_uint((uint64_t)(t), SHIM_GE, (uint64_t)(a), NULL, SHIM_AT)
#define TEST_ASSERT_LESS_THAN_UINT64(t, a) \
	shim_uint((uint64_t)(t), SHIM_LT, (uint64_t)(a), NULL, SHIM_AT)
#define TEST_ASSERT_LESS_OR_EQUAL_UINT64(t, a) \
	shim_uint((uint64_t)(t), SHIM_LE, (uint64_t)(a), NULL, SHIM_AT)
#define TEST_ASSERT_GREATER_OR_EQUAL_UINT32(t, a) \
	TEST_ASSERT_GREATER_OR_EQUAL_UINT64((uint32_t)(t), (uint32_t)(a))
#define TEST_ASSERT_GREATER_THAN_UINT TEST_ASSERT_GREATER_THAN_UINT64
#define TEST_ASSERT_GREATER_OR_EQUAL_UINT TEST_ASSERT_GREATER_OR_EQUAL_UINT64
#define TEST_ASSERT_LESS_THAN_UINT TEST_ASSERT_LESS_THAN_UINT64
#define TEST_ASSERT_LESS_OR_EQUAL_UINT TEST_ASSERT_LESS_OR_EQUAL_UINT64

#endif
