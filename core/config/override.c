/* SPDX-License-Identifier: BSD-3-Clause */
/* override.c - apply --set a.b.c=value to the tree. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "config/config_priv.h"

#define NAME_BYTES 64

/*
 * Copy the next name of a path to `name`. An element of a list is "list.0", or "list[0]" as in
 * messages. Returns the remaining path; NULL: the name is empty, too long or not followed by a
 * separator.
 */
static const char *next_name(const char *path, const char *end, char *name)
{
	size_t n = strcspn(path, ".[]=");
	const char *rest = path + n;

	if (n == 0 || n >= NAME_BYTES)
		return NULL;
	memcpy(name, path, n);
	name[n] = '\0';
	if (*rest == ']')
		rest++;
	if (rest == end)
		return end;
	return (*rest == '.' || *rest == '[') && rest + 1 != end ? rest + 1 : NULL;
}

/*
 * Get the member with this name, or the element with this number of a list. A missing member is
 * created: a list if `then`, the next name, is a number, else a group. An element can be created
 * only at the end of a list.
 */
static config_setting_t *step(config_setting_t *at, const char *name, const char *then)
{
	config_setting_t *next;
	unsigned long i;
	char *end_of_number;

	if (config_setting_is_group(at)) {
		next = config_setting_get_member(at, name);
		if (next)
			return next;
		return config_setting_add(at, name,
					  isdigit((unsigned char)*then) ? CONFIG_TYPE_LIST
									: CONFIG_TYPE_GROUP);
	}
	if (!config_setting_is_list(at) && !config_setting_is_array(at))
		return NULL;
	i = strtoul(name, &end_of_number, 10);
	if (*end_of_number || i > 1u << 20)
		return NULL;
	if (config_setting_is_list(at) && i == (unsigned long)config_setting_length(at))
		return config_setting_add(at, NULL, CONFIG_TYPE_GROUP);
	return config_setting_get_elem(at, (unsigned int)i);
}

static bool is_number(const char *text, long long *value_p)
{
	char *end_of_number;

	if (!strchr("+-0123456789", *text) || !*text)
		return false;
	errno = 0;
	*value_p = strtoll(text, &end_of_number, strncasecmp(text, "0x", 2) ? 10 : 16);
	while (*end_of_number == 'L')
		end_of_number++;
	return !*end_of_number && !errno;
}

static bool set_string(config_setting_t *group, const char *name, const char *text)
{
	size_t n = strlen(text);
	config_setting_t *made = config_setting_add(group, name, CONFIG_TYPE_STRING);
	char *bare;
	bool done;

	if (n < 2 || text[0] != '"' || text[n - 1] != '"') {
		done = made && config_setting_set_string(made, text);
		if (done)
			config_setting_set_hook(made, (void *)config_setting_get_string(made));
		return done;
	}
	bare = strndup(text + 1, n - 2);
	done = made && bare && config_setting_set_string(made, bare);
	free(bare);
	return done;
}

/* Store a value by its syntax. The hook keeps the text, because the option could be a string. */
static bool set_value(struct gn_config *config, config_setting_t *group, const char *name,
		      const char *text, bool was_string)
{
	config_setting_t *made;
	long long number;

	if (!was_string && (!strcasecmp(text, "true") || !strcasecmp(text, "false"))) {
		made = config_setting_add(group, name, CONFIG_TYPE_BOOL);
		if (!made || !config_setting_set_bool(made, !strcasecmp(text, "true")))
			return false;
	} else if (!was_string && is_number(text, &number)) {
		made = config_setting_add(group, name, CONFIG_TYPE_INT64);
		if (!made || !config_setting_set_int64(made, number))
			return false;
	} else {
		return set_string(group, name, text);
	}
	config_setting_set_hook(made, (void *)gn_arena_strdup(&config->arena, text));
	return true;
}

static int fail(const struct gn_config *config, struct gn_errs *errs, const char *text,
		const char *why)
{
	size_t before = errs->n;

	gn_errs_add(errs, "%s %s: %s", config->beside, text, why);
	gn_errs_locate(errs, before, &(struct gn_err_place){.file = config->beside},
		       strlen(config->beside) + 1);
	return -EINVAL;
}

int gn_config_override(struct gn_config *config, const char *text, struct gn_errs *errs)
{
	config_setting_t *at = config_root_setting(&config->cfg), *old;
	const char *end = strchr(text, '='), *path = text;
	bool was_string = false;
	char name[NAME_BYTES];

	if (!end || end == text)
		return fail(config, errs, text, "write KEY.PATH=VALUE");
	for (;;) {
		path = next_name(path, end, name);
		if (!path)
			return fail(config, errs, text,
				    "the path has an empty or too long name, or a wrong separator");
		if (path == end)
			break;
		at = step(at, name, path);
		if (!at)
			return fail(
				config, errs, text,
				"the path names a list element that does not exist, or continues after a key that is not a group or list");
	}
	if (!config_setting_is_group(at))
		return fail(config, errs, text, "only a member of a group can be set");
	old = config_setting_get_member(at, name);
	if (old && config_setting_is_aggregate(old))
		return fail(config, errs, text,
			    "this is a group or a list; set one of its members");
	if (old) {
		was_string = config_setting_type(old) == CONFIG_TYPE_STRING;
		config_setting_remove(at, name);
	}
	if (!set_value(config, at, name, end + 1, was_string))
		return fail(config, errs, text, "invalid setting name");
	return 0;
}
