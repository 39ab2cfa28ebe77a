/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * conf.c - options of a plugin under test: reads the same table as the real parser, with simpler
 * error messages.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host.h"

struct unit {
	const char *name;
	uint64_t factor;
};

static const struct unit sizes[] = {{"B", 1},          {"KiB", 1u << 10},   {"MiB", 1u << 20},
				    {"GiB", 1u << 30}, {"TiB", 1ull << 40}, {"", 1},
				    {NULL, 0}};
static const struct unit times[] = {
	{"ns", 1}, {"us", 1000}, {"ms", 1000000}, {"s", 1000000000}, {NULL, 0}};

static uint64_t with_unit(const struct gantry_option *row, const char *value,
			  const struct unit *units)
{
	char *end;
	unsigned long long n = strtoull(value, &end, 10);

	for (; units->name; units++)
		if (end != value && !strcmp(end, units->name))
			return n * units->factor;
	fake_fail("option %s: \"%s\"", row->name, value);
}

static void check_range(const struct gantry_option *row, int64_t value)
{
	if ((row->min || row->max) && (value < row->min || value > row->max))
		fake_fail("option %s: %lld is out of range", row->name, (long long)value);
}

static uint32_t choice(const struct gantry_option *row, const char *value)
{
	for (uint32_t i = 0; row->choices[i]; i++)
		if (!strcmp(row->choices[i], value))
			return i;
	fake_fail("option %s: no choice \"%s\"", row->name, value);
}

static void set(const struct gantry_option *row, char *conf, const char *value)
{
	void *to = conf + row->offset;
	uint64_t number;

	switch (gantry_option_type(row)) {
	case GANTRY_OPT_STRING:
		*(const char **)to = value;
		break;
	case GANTRY_OPT_BOOL:
		*(uint8_t *)to = !strcmp(value, "true");
		break;
	case GANTRY_OPT_INT:
		*(int64_t *)to = strtoll(value, NULL, 10);
		check_range(row, *(int64_t *)to);
		break;
	case GANTRY_OPT_SIZE:
	case GANTRY_OPT_TIME:
		number = with_unit(row, value,
				   gantry_option_type(row) == GANTRY_OPT_SIZE ? sizes : times);
		check_range(row, (int64_t)number);
		*(uint64_t *)to = number;
		break;
	case GANTRY_OPT_CHOICE:
		*(uint32_t *)to = choice(row, value);
		break;
	default:
		fake_fail("option %s: type %u", row->name, gantry_option_type(row));
	}
}

static void set_defaults(const struct gantry_option *row, char *conf)
{
	for (; row->name; row++) {
		if (gantry_option_type(row) == GANTRY_OPT_GROUP)
			set_defaults(row->group, conf);
		else if (row->dflt)
			set(row, conf, row->dflt);
	}
}

static void set_named(const struct gantry_option *row, char *conf, const char *setting)
{
	size_t n = strcspn(setting, "=.");

	for (; row->name; row++) {
		if (strlen(row->name) != n || strncmp(row->name, setting, n) != 0)
			continue;
		if (setting[n] == '.')
			set_named(row->group, conf, setting + n + 1);
		else
			set(row, conf, setting + n + 1);
		return;
	}
	fake_fail("no option \"%s\"", setting);
}

void *fake_conf(const struct gantry_plugin *plugin, ...)
{
	const char *setting;
	char *conf;
	va_list ap;

	if (!plugin->options)
		return NULL;
	conf = calloc(1, plugin->conf_size);
	if (!conf)
		fake_fail("out of memory");
	set_defaults(plugin->options, conf);
	va_start(ap, plugin);
	while ((setting = va_arg(ap, const char *)))
		set_named(plugin->options, conf, setting);
	va_end(ap);
	return conf;
}

__attribute__((format(printf, 3, 4))) static void object(const struct gantry_check *check,
							 const char *option, const char *fmt, ...)
{
	struct fake_host *host = check->core;
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	gantry_log_error(&host->pub, "%s: %s", option, text);
}

int fake_check(struct fake_host *host, const struct gantry_plugin *plugin, const void *conf)
{
	struct gantry_check check = {.core = host, .fault = object};
	unsigned before = host->n_logged[GANTRY_LOG_ERROR];

	if (plugin->check)
		plugin->check(conf, &check);
	return host->n_logged[GANTRY_LOG_ERROR] == before ? 0 : -EINVAL;
}

__attribute__((format(printf, 3, 4))) static void count(const struct gantry_check *check,
							const char *option, const char *fmt, ...)
{
	(void)option;
	(void)fmt;
	++*(int *)check->core;
}

int fake_serves(const struct gantry_plugin *plugin, const void *conf, const char *service)
{
	int n = 0;
	struct gantry_check check = {.core = &n, .fault = count, .service = service};

	if (plugin->check)
		plugin->check(conf, &check);
	return n == 0;
}
