/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nothing.h - C++ helpers for the program that errors.sh generates: they call any function without
 * naming the types of its arguments
 */
#include <cstdio>

template <class... A> static int with_nothing(doca_error_t (*f)(A...))
{
	return f(A{}...);
}

template <class... A> static int with_nothing(doca_error_t (*f)(A..., ...))
{
	return f(A{}...);
}

/* Print the name before the call, so that a crash shows it. */
template <class F> static void refused(const char *name, F f)
{
	fprintf(stderr, "%s\n", name);
	const int error = with_nothing(f);

	if (error != DOCA_ERROR_INVALID_VALUE)
		printf("%s: error %d for nothing but NULL and 0\n", name, error);
}
