/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/errs.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

void gn_errs_add(struct gn_errs *errs, const char *fmt, ...)
{
	char *text = NULL;
	va_list ap;
	int length;

	if (errs->n++ >= GN_ERRS_MAX)
		return;
	va_start(ap, fmt);
	length = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (length >= 0)
		text = gn_arena_alloc(&errs->arena, (size_t)length + 1);
	if (text) {
		va_start(ap, fmt);
		vsnprintf(text, (size_t)length + 1, fmt, ap);
		va_end(ap);
	}
	errs->text[errs->n - 1] = text ? text : "out of memory";
}

void gn_errs_because(struct gn_errs *errs, int rc)
{
	if (errs->n == 0)
		errs->cause = rc;
}

void gn_errs_no_memory(struct gn_errs *errs)
{
	gn_errs_because(errs, -ENOMEM);
	gn_errs_add(errs, "out of memory");
}

int gn_errs_rc(const struct gn_errs *errs)
{
	if (errs->n == 0)
		return 0;
	return errs->cause != 0 ? errs->cause : -EINVAL;
}

size_t gn_errs_kept(const struct gn_errs *errs)
{
	return errs->n < GN_ERRS_MAX ? errs->n : GN_ERRS_MAX;
}

void gn_errs_fini(struct gn_errs *errs)
{
	gn_arena_fini(&errs->arena);
	errs->n = 0;
	errs->cause = 0;
}
