/* SPDX-License-Identifier: BSD-3-Clause */
#include "unity.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static struct {
	jmp_buf leave;
	const char *test;
	unsigned n_tests, n_failures, n_ignored;
	char verdict; /* first letter of FAIL or IGNORE, 0 while all is well */
} shim;

/* print the verdict on the test that runs, and jump out of it to the last setjmp() */
__attribute__((noreturn, format(printf, 5, 6))) static void leave(const char *verdict,
								  const char *user,
								  const char *file, int line,
								  const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	printf("%s:%d:%s:%s: %s%s%s\n", file, line, shim.test, verdict, text,
	       *text && user && *user ? ". " : "", user ? user : "");
	shim.verdict = verdict[0];
	longjmp(shim.leave, 1);
}

jmp_buf *shim_frame(void)
{
	return &shim.leave;
}

void shim_begin(void)
{
	memset(&shim, 0, sizeof(shim));
}

int shim_end(void)
{
	printf("\n-----------------------\n%u Tests %u Failures %u Ignored\n%s\n", shim.n_tests,
	       shim.n_failures, shim.n_ignored, shim.n_failures ? "FAIL" : "OK");
	return (int)shim.n_failures;
}

void shim_run(void (*test)(void), const char *name, const char *file, int line)
{
	shim.test = name;
	shim.verdict = 0;
	shim.n_tests++;
	if (setjmp(shim.leave) == 0) {
		setUp();
		test();
	}
	if (setjmp(shim.leave) == 0)
		tearDown();
	shim.n_failures += shim.verdict == 'F';
	shim.n_ignored += shim.verdict == 'I';
	if (!shim.verdict)
		printf("%s:%d:%s:PASS\n", file, line, name);
}

void shim_fail(const char *user, const char *file, int line)
{
	leave("FAIL", user, file, line, "%s", "");
}

void shim_ignore(const char *user, const char *file, int line)
{
	leave("IGNORE", user, file, line, "%s", "");
}

void shim_true(int ok, const char *what, const char *user, const char *file, int line)
{
	if (!ok)
		leave("FAIL", user, file, line, "%s", what);
}

/* order: actual against expected, negative, 0 or positive */
static int holds(enum shim_op op, int order)
{
	switch (op) {
	case SHIM_EQ:
		return order == 0;
	case SHIM_NE:
		return order != 0;
	case SHIM_GT:
		return order > 0;
	case SHIM_GE:
		return order >= 0;
	case SHIM_LT:
		return order < 0;
	case SHIM_LE:
		return order <= 0;
	}
	return 0;
}

static const char *const words[] = {"",
				    "to differ from ",
				    "to be greater than ",
				    "to be at least ",
				    "to be less than ",
				    "to be at most "};

void shim_int(int64_t expected, enum shim_op op, int64_t actual, const char *user, const char *file,
	      int line)
{
	if (!holds(op, (actual > expected) - (actual < expected)))
		leave("FAIL", user, file, line, "Expected %s%" PRId64 " Was %" PRId64, words[op],
		      expected, actual);
}

void shim_uint(uint64_t expected, enum shim_op op, uint64_t actual, const char *user,
	       const char *file, int line)
{
	if (!holds(op, (actual > expected) - (actual < expected)))
		leave("FAIL", user, file, line, "Expected %s%" PRIu64 " Was %" PRIu64, words[op],
		      expected, actual);
}

void shim_hex(uint64_t expected, uint64_t actual, const char *user, const char *file, int line)
{
	if (expected != actual)
		leave("FAIL", user, file, line, "Expected 0x%" PRIX64 " Was 0x%" PRIX64, expected,
		      actual);
}

void shim_string(const char *expected, const char *actual, const char *user, const char *file,
		 int line)
{
	if (expected != actual && (!expected || !actual || strcmp(expected, actual) != 0))
		leave("FAIL", user, file, line, "Expected '%s' Was '%s'",
		      expected ? expected : "NULL", actual ? actual : "NULL");
}

void shim_memory(const void *expected, const void *actual, size_t n, const char *user,
		 const char *file, int line)
{
	const uint8_t *p = expected, *q = actual;

	if (n == 0)
		leave("FAIL", user, file, line, "compares nothing");
	for (size_t i = 0; i < n; i++)
		if (p[i] != q[i])
			leave("FAIL", user, file, line, "Byte %zu Expected 0x%02X Was 0x%02X", i,
			      p[i], q[i]);
}

void shim_each_char(char expected, const char *actual, size_t n, const char *file, int line)
{
	for (size_t i = 0; i < n; i++)
		if (actual[i] != expected)
			leave("FAIL", NULL, file, line, "Element %zu Expected %d Was %d", i,
			      expected, actual[i]);
}
