/* SPDX-License-Identifier: BSD-3-Clause */
/* plugin_check.c - check that this host can use the description of a plugin. */
#include "config/config.h"
#include "loader/loader_priv.h"
#include "secure/auth.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* limit of rows of one table; a longer table counts as one without GANTRY_OPTION_END */
#define OPTIONS_MAX 128
#define GROUP_DEPTH_MAX 4        /* limit of nested groups */
#define CONF_MAX (1024u * 1024u) /* limit of the bytes of a conf struct */

static int reject(char *why, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static int reject(char *why, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(why, GN_WHY, fmt, args);
	va_end(args);
	return -ENOEXEC;
}

const char *gn_kind_phrase(unsigned kind)
{
	static const char *const phrases[] = {
		[GANTRY_KIND_TRANSPORT] = "a transport", [GANTRY_KIND_ROLE] = "a role",
		[GANTRY_KIND_BACKEND] = "a backend",     [GANTRY_KIND_STAGE] = "a stage",
		[GANTRY_KIND_OBSERVER] = "an observer",
	};

	return kind >= GANTRY_KIND_TRANSPORT && kind <= GANTRY_KIND_OBSERVER ? phrases[kind]
									     : "an unknown kind";
}

const char *gn_kind_name(unsigned kind)
{
	return strchr(gn_kind_phrase(kind), ' ') + 1;
}

/* Bytes of the field of an option; 0: unknown type, or a group. */
static size_t option_bytes(uint32_t type)
{
	switch (type) {
	case GANTRY_OPT_STRING:
		return sizeof(const char *);
	case GANTRY_OPT_BOOL:
		return sizeof(uint8_t);
	case GANTRY_OPT_INT:
		return sizeof(int64_t);
	case GANTRY_OPT_SIZE:
	case GANTRY_OPT_TIME:
		return sizeof(uint64_t);
	case GANTRY_OPT_CHOICE:
		return sizeof(uint32_t);
	default:
		return 0;
	}
}

static bool is_key(const char *name)
{
	size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_");

	return n > 0 && n < GN_PLUGIN_NAME_MAX && !name[n] && name[0] >= 'a';
}

/*
 * Check that the default is a value of its type: the host parses it when a configuration omits the
 * option.
 */
static int check_default(const struct gantry_option *o, const char *group, char *why)
{
	static const char *const types[] = {
		[GANTRY_OPT_BOOL] = "bool",     [GANTRY_OPT_INT] = "number",
		[GANTRY_OPT_SIZE] = "size",     [GANTRY_OPT_TIME] = "time",
		[GANTRY_OPT_CHOICE] = "choice",
	};

	if (gn_conf_default_ok(o))
		return 0;
	return reject(
		why,
		"option %s%s: its default \"%.40s\" is not a %s: correct the option table of the plugin",
		group, o->name, o->dflt, types[gantry_option_type(o)]);
}

static int check_options(const struct gantry_option *options, uint32_t conf_size, const char *group,
			 int depth, char *why);

/* Check the rows of a nested group. */
static int check_group(const struct gantry_option *o, uint32_t conf_size, const char *group,
		       int depth, char *why)
{
	char name[(GROUP_DEPTH_MAX + 1) * (GN_PLUGIN_NAME_MAX + 1)];

	snprintf(name, sizeof(name), "%s%s.", group, o->name);
	return check_options(o->group, conf_size, name, depth + 1, why);
}

/* Check one row. group: "", or the names of the outer groups of the row: "a.b.". */
static int check_option(const struct gantry_option *o, uint32_t conf_size, const char *group,
			int depth, char *why)
{
	size_t bytes = option_bytes(gantry_option_type(o));

	if (!is_key(o->name))
		return reject(why,
			      "its option table has an invalid option name, \"%.40s\"; "
			      "names are a-z, 0-9 and _",
			      o->name);
	if (gantry_option_type(o) == GANTRY_OPT_GROUP) {
		if (!o->group)
			return reject(why, "its option \"%s\" is a group without rows", o->name);
		return check_group(o, conf_size, group, depth, why);
	}
	if (!bytes)
		return reject(why, "its option \"%s\" has the unknown type %u", o->name,
			      gantry_option_type(o));
	if (o->offset % bytes)
		return reject(why,
			      "the field of its option \"%s\" in the conf struct is not aligned",
			      o->name);
	if (o->offset > conf_size || bytes > conf_size - o->offset)
		return reject(why, "its option \"%s\" lies outside its conf struct of %u bytes",
			      o->name, conf_size);
	if (gantry_option_type(o) == GANTRY_OPT_CHOICE && (!o->choices || !o->choices[0]))
		return reject(why, "its option \"%s\" is a choice without words", o->name);
	return check_default(o, group, why);
}

static int check_options(const struct gantry_option *options, uint32_t conf_size, const char *group,
			 int depth, char *why)
{
	if (depth > GROUP_DEPTH_MAX)
		return reject(why, "its option groups are nested too deeply");
	for (size_t i = 0; options[i].name; i++) {
		int rc = i < OPTIONS_MAX
				 ? check_option(&options[i], conf_size, group, depth, why)
				 : reject(why,
					  "an option table is too long, or its end is missing");

		if (rc)
			return rc;
		for (size_t j = 0; j < i; j++)
			if (!strcmp(options[i].name, options[j].name))
				return reject(why, "its option table has the option \"%s\" twice",
					      options[i].name);
	}
	return 0;
}

/* The minor number matters only before version 1.0. */
static bool abi_fits(const struct gantry_plugin *desc)
{
	return desc->abi_major == GANTRY_ABI_MAJOR &&
	       (GANTRY_ABI_MAJOR > 0 || desc->abi_minor == GANTRY_ABI_MINOR);
}

/* The host gives these options to each device: a plugin would never get its own. */
static int check_reserved(const struct gantry_plugin *desc, char *why)
{
	for (const struct gantry_option *o = desc->options; o && o->name; o++)
		for (size_t i = 0; desc->kind == GANTRY_KIND_TRANSPORT && gn_device_keys[i]; i++)
			if (strcmp(o->name, gn_device_keys[i]) == 0)
				return reject(
					why,
					"its option \"%s\" has a name that gantry reserves for its own option of "
					"each device: rename the option",
					o->name);
	return 0;
}

static const char *find_changeable(const struct gantry_option *o)
{
	const char *name = NULL;

	for (; o && o->name && !name; o++)
		name = o->type & GANTRY_OPT_CHANGEABLE ? o->name : find_changeable(o->group);
	return name;
}

/* Check that a plugin with changeable options can change them. */
static int check_change(const struct gantry_plugin *desc, char *why)
{
	const char *name = desc->change ? NULL : find_changeable(desc->options);

	return name ? reject(why, "its option \"%s\" is changeable, but `change` is NULL", name)
		    : 0;
}

int gn_loader_check(const struct gantry_plugin *desc, const char *name, char *why)
{
	if (desc->magic != GANTRY_PLUGIN_MAGIC)
		return reject(why, "not a gantry plugin: its magic number is 0x%08x", desc->magic);
	if (!abi_fits(desc))
		return reject(why,
			      "wrong plugin ABI (plugin=%u.%u, gantry=%u.%u): rebuild the plugin",
			      desc->abi_major, desc->abi_minor, GANTRY_ABI_MAJOR, GANTRY_ABI_MINOR);
	if (desc->struct_size < sizeof(*desc))
		return reject(why, "its description has %u bytes, ABI %u.%u needs %zu",
			      desc->struct_size, GANTRY_ABI_MAJOR, GANTRY_ABI_MINOR, sizeof(*desc));
	if (desc->api_version == 0 || desc->api_version > GANTRY_API_NEWEST)
		return reject(why, "its API version is unknown (plugin=%u, newest=%u): %s",
			      desc->api_version, GANTRY_API_NEWEST,
			      desc->api_version ? "install a newer gantry"
						: "define GANTRY_API_VERSION");
	if (!desc->name || !desc->version || !desc->summary)
		return reject(why, "its description lacks %s",
			      !desc->name      ? "a name"
			      : !desc->version ? "a version"
					       : "a summary");
	if (strcmp(desc->name, name))
		return reject(
			why,
			"the plugin name \"%.48s\" differs from the file name: rename the file",
			desc->name);
	if (desc->kind < GANTRY_KIND_TRANSPORT || desc->kind > GANTRY_KIND_OBSERVER)
		return reject(why, "unknown plugin kind %u", desc->kind);
	if (!desc->ops || !desc->ops_size)
		return reject(why, "has no functions (ops)");
	if (desc->conf_size > CONF_MAX)
		return reject(why, "the conf struct is too large (conf_size=%u, limit %u)",
			      desc->conf_size, CONF_MAX);
	if (desc->options && check_options(desc->options, desc->conf_size, "", 0, why))
		return -ENOEXEC;
	return check_change(desc, why) ? -ENOEXEC : check_reserved(desc, why);
}

bool gn_plugin_name_ok(const char *name)
{
	size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-");

	return n > 0 && n < GN_PLUGIN_NAME_MAX && !name[n] && name[0] >= 'a';
}

static volatile size_t n_read; /* prevents the compiler from removing the reads */

static void read_options(const struct gantry_option *o)
{
	for (; o && o->name; o++) {
		n_read += strlen(o->name) + (o->dflt ? strlen(o->dflt) : 0) +
			  (o->help ? strlen(o->help) : 0);
		for (size_t i = 0; gantry_option_type(o) == GANTRY_OPT_CHOICE && o->choices[i]; i++)
			n_read += strlen(o->choices[i]);
		if (gantry_option_type(o) == GANTRY_OPT_GROUP)
			read_options(o->group);
	}
}

void gn_loader_read_all(const struct gantry_plugin *desc)
{
	n_read += strlen(desc->name) + strlen(desc->version) + strlen(desc->summary);
	read_options(desc->options);
}
