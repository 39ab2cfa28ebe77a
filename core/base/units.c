/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/units.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/checked.h"
#include "base/clock.h"

struct unit {
	const char *name;
	uint64_t factor;
};

#define KI 1024ull
#define KB 1000ull

/* The formatter uses the entries up to the empty name, which are sorted from large to small. */
static const struct unit size_units[] = {
	{"TiB", KI *KI *KI *KI},
	{"GiB", KI *KI *KI},
	{"MiB", KI *KI},
	{"KiB", KI},
	{"", 1},
	{"B", 1},
	{"T", KI *KI *KI *KI},
	{"G", KI *KI *KI},
	{"M", KI *KI},
	{"K", KI},
	{"TB", KB *KB *KB *KB},
	{"GB", KB *KB *KB},
	{"MB", KB *KB},
	{"KB", KB},
	{NULL, 0},
};
static const struct unit time_units[] = {
	{"h", 3600 * GN_NS_PER_S},
	{"m", 60 * GN_NS_PER_S},
	{"s", GN_NS_PER_S},
	{"ms", GN_NS_PER_MS},
	{"us", GN_NS_PER_US},
	{"ns", 1},
	{NULL, 0},
};

static int parse(const char *text, const struct unit *units, uint64_t *value_p)
{
	uint64_t value = 0, digit;
	bool fits = true;

	if (*text < '0' || *text > '9')
		return -EINVAL;
	for (; *text >= '0' && *text <= '9'; text++) {
		digit = (uint64_t)(*text - '0');
		fits = fits && gn_mul_u64(value, 10, &value) && gn_add_u64(value, digit, &value);
	}
	if (*text == ' ' && text[1])
		text++;
	for (; units->name; units++)
		if (!strcasecmp(text, units->name))
			break;
	if (!units->name && (*text || (fits && value)))
		return -EINVAL;
	if (!fits || (units->name && !gn_mul_u64(value, units->factor, &value)))
		return -ERANGE;
	*value_p = value;
	return 0;
}

int gn_size_parse(const char *text, uint64_t *bytes_p)
{
	return parse(text, size_units, bytes_p);
}

int gn_time_parse(const char *text, uint64_t *ns_p)
{
	return parse(text, time_units, ns_p);
}

/*
 * Format the value in the largest unit that is not larger than the value: exact, or with two
 * decimal places.
 */
static char *format(char *dst, size_t size, uint64_t value, const struct unit *u)
{
	uint64_t whole, hundredths;

	while (value < u->factor && u->factor > 1)
		u++;
	whole = value / u->factor;
	if (value % u->factor == 0) {
		snprintf(dst, size, "%" PRIu64 "%s", whole, u->name);
		return dst;
	}
	hundredths = (uint64_t)(((unsigned __int128)(value % u->factor) * 100) / u->factor);
	snprintf(dst, size, "%" PRIu64 ".%02d%s", whole, (int)hundredths, u->name);
	return dst;
}

char *gn_size_format(char *dst, size_t size, uint64_t bytes)
{
	return format(dst, size, bytes, size_units);
}

char *gn_time_format(char *dst, size_t size, uint64_t ns)
{
	const struct unit *u = time_units;

	/* Use hours and minutes only if their number is whole: "90s" is clearer than "1.50m". */
	while (u->factor > GN_NS_PER_S && (ns == 0 || ns % u->factor))
		u++;
	return format(dst, size, ns, u);
}
