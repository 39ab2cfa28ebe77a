/* SPDX-License-Identifier: BSD-3-Clause */
/* cli_messages.c - messages of the command line, on stderr, and text for a shell */
#include <stdarg.h>
#include <stdio.h>

#include "cli/cli.h"

#define ERRORS_SHOWN 64 /* limit of printed messages about a configuration */

int gn_cli_fail(int code, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	fputs("gantry: ", stderr);
	vfprintf(stderr, fmt, args);
	fputc('\n', stderr);
	va_end(args);
	return code;
}

void gn_cli_print_quoted(const char *text)
{
	putchar('\'');
	for (; *text; text++) {
		if (*text == '\'')
			fputs("'\\'", stdout);
		putchar(*text);
	}
	putchar('\'');
}

int gn_cli_complain(struct gn_errs *errs)
{
	size_t shown = gn_errs_kept(errs) < ERRORS_SHOWN ? gn_errs_kept(errs) : ERRORS_SHOWN;

	for (size_t i = 0; i < shown; i++)
		fprintf(stderr, "gantry: %s\n", errs->text[i]);
	if (errs->n > shown)
		fprintf(stderr, "gantry: and %zu more\n", errs->n - shown);
	gn_errs_fini(errs);
	return GN_EXIT_USAGE;
}
