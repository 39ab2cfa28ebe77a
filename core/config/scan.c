/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * scan.c - check the tokens of a file before libconfig parses it.
 *
 * libconfig 1.5 truncates numbers to 32 bits without an error. It opens any file that an include
 * names. If it cannot open a file, it does not report which file. This file recognises the same
 * tokens as the scanner of libconfig.
 */
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "config/config_priv.h"

#define INCLUDE_DEPTH_MAX 8 /* the limit of libconfig is 10 */
#define INCLUDE_MAX 64      /* limit of the included files of a configuration */
#define NESTING_MAX 32      /* limit of nested groups and lists */

struct scan {
	struct gn_errs *errs;
	const char *dir; /* directory of includes, as the prefix of their names */
	char *real_dir;  /* canonical path of `dir` */
	unsigned int n_files;
};

struct text {
	const char *path;
	const char *start, *p;
	unsigned int line;
	unsigned int depth;   /* nesting level of includes */
	unsigned int nesting; /* brackets that are open at p, including those around the include */
	unsigned int opened[NESTING_MAX + 1]; /* line of each open bracket */
};

static void scan_text(struct scan *scan, struct text *t);

static void fault(struct scan *scan, const struct text *t, unsigned int line, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

static void fault(struct scan *scan, const struct text *t, unsigned int line, const char *fmt, ...)
{
	const struct gn_err_place place = {t->path, line, NULL};
	char text[PATH_MAX + 128];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	gn_errs_add_at(scan->errs, &place, "%s", text);
}

/* Advance by n characters and count lines. */
static void skip(struct text *t, size_t n)
{
	for (; n && *t->p; n--)
		if (*t->p++ == '\n')
			t->line++;
}

/* Skip the rest of a string, or of the name of an include, after its opening quote. */
static void skip_quoted(struct scan *scan, struct text *t)
{
	unsigned int line = t->line;

	while (*t->p && *t->p != '"')
		skip(t, *t->p == '\\' && (t->p[1] == '"' || t->p[1] == '\\') ? 2 : 1);
	if (!*t->p)
		fault(scan, t, line, "unterminated string; add \" at its end");
	skip(t, 1);
}

static void skip_comment(struct scan *scan, struct text *t)
{
	bool block = t->p[0] == '/' && t->p[1] == '*';
	const char *end = block ? strstr(t->p + 2, "*/") : strchr(t->p, '\n');

	if (!end && block)
		fault(scan, t, t->line, "unterminated comment; add */ at its end");
	if (!end)
		skip(t, strlen(t->p));
	else
		skip(t, (size_t)(end - t->p) + (block ? 2 : 0));
}

/* True if libconfig stores a number with these digits unchanged. */
static bool fits(const char *digits, size_t n, bool hex, bool negative, bool wide)
{
	uint64_t limit = wide ? INT64_MAX : INT32_MAX, value = 0;

	for (; n; n--, digits++) {
		unsigned int digit = isdigit((unsigned char)*digits)
					     ? (unsigned int)(*digits - '0')
					     : (unsigned int)(tolower(*digits) - 'a' + 10);

		if (!gn_mul_u64(value, hex ? 16 : 10, &value) || !gn_add_u64(value, digit, &value))
			return false;
	}
	return value <= limit + (negative ? 1 : 0);
}

static bool is_float(const char *p)
{
	if (*p == '.')
		return true;
	if (*p != 'e' && *p != 'E')
		return false;
	p += p[1] == '+' || p[1] == '-';
	return isdigit((unsigned char)p[1]);
}

static void skip_float(struct text *t)
{
	while (isdigit((unsigned char)*t->p) || *t->p == '.')
		t->p++;
	if (is_float(t->p))
		t->p += 2;
	while (isdigit((unsigned char)*t->p))
		t->p++;
}

static void scan_number(struct scan *scan, struct text *t)
{
	const char *start = t->p, *digits;
	bool negative = *t->p == '-', hex, wide;
	int length;
	size_t n;

	t->p += *t->p == '-' || *t->p == '+';
	hex = t->p == start && t->p[0] == '0' && (t->p[1] == 'x' || t->p[1] == 'X') &&
	      isxdigit((unsigned char)t->p[2]);
	t->p += hex ? 2 : 0;
	digits = t->p;
	while (hex ? isxdigit((unsigned char)*t->p) : isdigit((unsigned char)*t->p))
		t->p++;
	if (!hex && is_float(t->p)) {
		skip_float(t);
		return;
	}
	wide = *t->p == 'L';
	length = (int)(t->p - start);
	n = (size_t)(t->p - digits);
	if (!fits(digits, n, hex, negative, true))
		fault(scan, t, t->line, "%.*s%s does not fit into 64 bits; write a %s number",
		      length > 40 ? 40 : length, start, wide ? "L" : "",
		      negative ? "larger" : "smaller");
	else if (!wide && !fits(digits, n, hex, negative, false))
		fault(scan, t, t->line,
		      "%.*s does not fit into 32 bits and would be truncated; "
		      "append L, or write a size in quotes",
		      length > 40 ? 40 : length, start);
	t->p += wide ? (t->p[1] == 'L' ? 2 : 1) : 0;
}

/*
 * True if the name is absolute or has a component "..". libconfig would prepend the directory even
 * to an absolute name.
 */
static bool leads_away(const char *name)
{
	const char *p = name;

	if (*name == '/')
		return true;
	for (; p; p = strchr(p, '/')) {
		p += *p == '/';
		if (p[0] == '.' && p[1] == '.' && (p[2] == '/' || p[2] == '\0'))
			return true;
	}
	return false;
}

/* True if the canonical path of the file is inside the directory. */
static bool inside(const struct scan *scan, const char *path)
{
	char *real = realpath(path, NULL);
	size_t n = strlen(scan->real_dir);
	bool yes;

	if (!real)
		return false;
	yes = !strncmp(real, scan->real_dir, n) && (real[n] == '/' || n == 1);
	free(real);
	return yes;
}

static void scan_included(struct scan *scan, struct text *t, const char *name)
{
	struct text in = {.line = 1, .depth = t->depth + 1, .nesting = t->nesting};
	char path[PATH_MAX], where[PATH_MAX + 16], *text;
	bool here = !strcmp(scan->dir, ".");
	size_t before = scan->errs->n, n;

	if (leads_away(name)) {
		fault(scan, t, t->line,
		      "include \"%s\" is outside of directory %s; name a file in it", name,
		      scan->dir);
		return;
	}
	if (strchr(name, '\\')) {
		fault(scan, t, t->line, "include name with a backslash; rename the file");
		return;
	}
	if (in.depth > INCLUDE_DEPTH_MAX || ++scan->n_files > INCLUDE_MAX) {
		fault(scan, t, t->line, "too many includes; does \"%s\" include itself?", name);
		scan->n_files = INCLUDE_MAX;
		return;
	}
	if ((size_t)snprintf(path, sizeof(path), "%s%s%s", here ? "" : scan->dir, here ? "" : "/",
			     name) >= sizeof(path)) {
		fault(scan, t, t->line, "name of the include is too long");
		return;
	}
	n = (size_t)snprintf(where, sizeof(where), "%s:%u: ", t->path, t->line);
	text = gn_config_read_file(path, where, scan->errs);
	gn_errs_locate(scan->errs, before, &(struct gn_err_place){t->path, t->line, NULL}, n);
	if (!text)
		return;
	if (!inside(scan, path)) {
		fault(scan, t, t->line,
		      "include \"%s\" is outside of directory %s; name a file in it", name,
		      scan->dir);
	} else {
		in.path = path;
		in.start = in.p = text;
		scan_text(scan, &in);
	}
	free(text);
}

/* At the start of a line: if there is an include, skip it, scan its file and return true. */
static bool scan_include(struct scan *scan, struct text *t)
{
	const char *p = t->p + strspn(t->p, " \t"), *after_word;
	char name[PATH_MAX];
	size_t n = 0;

	if (strncmp(p, "@include", 8))
		return false;
	after_word = p + 8;
	p = after_word + strspn(after_word, " \t");
	if (p == after_word || *p != '"')
		return false;
	t->p = ++p;
	skip_quoted(scan, t);
	for (; *p && *p != '"' && n + 1 < sizeof(name); p++) {
		p += p[0] == '\\' && (p[1] == '"' || p[1] == '\\');
		name[n++] = *p;
	}
	name[n] = '\0';
	scan_included(scan, t, name);
	return true;
}

static void count_bracket(struct scan *scan, struct text *t)
{
	if (strchr("({[", *t->p)) {
		if (t->nesting < NESTING_MAX)
			t->opened[t->nesting] = t->line;
		if (++t->nesting == NESTING_MAX + 1)
			fault(scan, t, t->line, "groups and lists are nested deeper than %d",
			      NESTING_MAX);
	} else if (strchr(")}]", *t->p) && t->nesting) {
		t->nesting--;
	}
	skip(t, 1);
}

/*
 * Report non-ASCII characters, such as typographic quotes. libconfig would only report "syntax
 * error".
 */
static void scan_foreign(struct scan *scan, struct text *t, unsigned int *reported_line)
{
	const char *p = t->p;
	size_t n = 0;

	while ((unsigned char)p[n] >= 0x80)
		n++;
	if (p == t->start && !strncmp(p, "\xef\xbb\xbf", 3))
		fault(scan, t, 1, "begins with a byte order mark; save it as UTF-8 without one");
	else if (*reported_line != t->line)
		fault(scan, t, t->line,
		      "%.*s: non-ASCII text outside of strings and comments; quotes are \"",
		      n < 16 ? (int)n : 0, p);
	*reported_line = t->line;
	skip(t, n);
}

static void scan_text(struct scan *scan, struct text *t)
{
	unsigned int around = t->nesting, reported_line = 0;

	while (*t->p) {
		unsigned char c = (unsigned char)t->p[0], next = (unsigned char)t->p[1];

		if ((t->p == t->start || t->p[-1] == '\n') && scan_include(scan, t))
			continue;
		if (c == '"') {
			skip(t, 1);
			skip_quoted(scan, t);
		} else if (c == '#' || (c == '/' && (next == '/' || next == '*'))) {
			skip_comment(scan, t);
		} else if (isalpha(c) || c == '*') {
			while (isalnum((unsigned char)*t->p) || (*t->p && strchr("-_*", *t->p)))
				t->p++;
		} else if (isdigit(c) || ((c == '-' || c == '+') && isdigit(next))) {
			scan_number(scan, t);
		} else if (c == '.') {
			skip_float(t);
		} else if (c >= 0x80) {
			scan_foreign(scan, t, &reported_line);
		} else {
			count_bracket(scan, t);
		}
	}
	if (t->nesting > around && t->nesting <= NESTING_MAX)
		fault(scan, t, t->opened[t->nesting - 1], "unterminated bracket");
}

int gn_config_scan(const char *path, const char *text, const char *dir, struct gn_errs *errs)
{
	struct scan scan = {.errs = errs, .dir = dir};
	struct text t = {.path = path, .start = text, .p = text, .line = 1};
	size_t before = errs->n;

	scan.real_dir = realpath(dir, NULL);
	if (scan.real_dir) {
		scan_text(&scan, &t);
	} else {
		gn_errs_because(errs, -errno);
		gn_errs_add_at(errs, &(struct gn_err_place){.file = path},
			       "cannot find its directory: %s", strerror(errno));
	}
	free(scan.real_dir);
	return errs->n == before ? 0 : -EINVAL;
}
