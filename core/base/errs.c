/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/errs.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define FIRST_CAPACITY 16

/* The only message of a list whose first allocation failed. */
static const char *no_memory_text[] = {"out of memory"};
static struct gn_err no_memory_parts[] = {{.message = "out of memory"}};

/* Double the capacity. The arena keeps the old arrays. */
static bool grow(struct gn_errs *errs)
{
	size_t capacity = errs->capacity ? 2 * errs->capacity : FIRST_CAPACITY;
	const char **text = gn_arena_alloc(&errs->arena, capacity * sizeof(*text));
	struct gn_err *parts = gn_arena_alloc(&errs->arena, capacity * sizeof(*parts));

	if (!text || !parts)
		return false;
	if (errs->n_kept) {
		memcpy(text, errs->text, errs->n_kept * sizeof(*text));
		memcpy(parts, errs->parts, errs->n_kept * sizeof(*parts));
	}
	errs->text = text;
	errs->parts = parts;
	errs->capacity = capacity;
	return true;
}

/* Count a message. Returns its index; -1: it is not kept. */
static int append(struct gn_errs *errs)
{
	errs->n++;
	if (errs->n_kept == GN_ERRS_MAX)
		return -1;
	if (errs->n_kept == errs->capacity && !grow(errs)) {
		if (!errs->n_kept) {
			errs->text = no_memory_text;
			errs->parts = no_memory_parts;
			errs->n_kept = errs->capacity = 1;
		}
		return -1;
	}
	errs->text[errs->n_kept] = "out of memory";
	errs->parts[errs->n_kept] = (struct gn_err){.message = "out of memory"};
	return (int)errs->n_kept++;
}

static const char *copy(struct gn_errs *errs, const char *text)
{
	return text ? gn_arena_strdup(&errs->arena, text) : NULL;
}

/*
 * Write "FILE:LINE: KEY: ". Returns the length without the terminator, also if dst is too small or
 * NULL.
 */
static size_t write_place(char *dst, size_t size, const struct gn_err_place *place)
{
	char line[16] = "";

	if (place->line)
		snprintf(line, sizeof(line), ":%u", place->line);
	return (size_t)snprintf(dst, size, "%s%s%s%s%s", place->file ? place->file : "", line,
				place->file ? ": " : "", place->key ? place->key : "",
				place->key ? ": " : "");
}

static void add(struct gn_errs *errs, const struct gn_err_place *place, const char *fmt, va_list ap)
{
	size_t skip = write_place(NULL, 0, place), bytes;
	int index = append(errs), length;
	va_list again;
	char *text;

	if (index < 0)
		return;
	va_copy(again, ap);
	length = vsnprintf(NULL, 0, fmt, again);
	va_end(again);
	bytes = skip + (size_t)length + 1;
	text = length < 0 ? NULL : gn_arena_alloc(&errs->arena, bytes);
	if (!text)
		return;
	write_place(text, bytes, place);
	vsnprintf(text + skip, bytes - skip, fmt, ap);
	errs->text[index] = text;
	errs->parts[index] = (struct gn_err){
		.place = {copy(errs, place->file), place->line, copy(errs, place->key)},
		.message = text + skip};
}

void gn_errs_add(struct gn_errs *errs, const char *fmt, ...)
{
	static const struct gn_err_place nowhere;
	va_list ap;

	va_start(ap, fmt);
	add(errs, &nowhere, fmt, ap);
	va_end(ap);
}

void gn_errs_add_at(struct gn_errs *errs, const struct gn_err_place *place, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	add(errs, place, fmt, ap);
	va_end(ap);
}

void gn_errs_locate(struct gn_errs *errs, size_t before, const struct gn_err_place *place,
		    size_t skip)
{
	for (size_t i = before; i < errs->n_kept; i++) {
		size_t length = strlen(errs->text[i]);

		if (errs->parts == no_memory_parts)
			return;
		errs->parts[i].place = (struct gn_err_place){copy(errs, place->file), place->line,
							     copy(errs, place->key)};
		errs->parts[i].message = errs->text[i] + (skip < length ? skip : 0);
	}
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
	return errs->n_kept;
}

void gn_errs_fini(struct gn_errs *errs)
{
	gn_arena_fini(&errs->arena);
	*errs = (struct gn_errs){.n = 0};
}
