/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * diff.c - compare two configurations, and copy settings from one to the other, for changes while
 * the process runs
 */
#include <errno.h>
#include <string.h>

#include "config/config_priv.h"

struct diff {
	void (*fn)(void *arg, struct gn_conf_node *from, struct gn_conf_node *to);
	void *arg;
};

const char *gn_conf_text(struct gn_conf_node *node, char *dst, size_t size)
{
	const config_setting_t *setting = gn_conf_setting(node);

	switch (config_setting_type(setting)) {
	case CONFIG_TYPE_GROUP:
		snprintf(dst, size, "{...}");
		break;
	case CONFIG_TYPE_LIST:
	case CONFIG_TYPE_ARRAY:
		snprintf(dst, size, "(...)");
		break;
	case CONFIG_TYPE_STRING:
		snprintf(dst, size, "%s", config_setting_get_string(setting));
		break;
	case CONFIG_TYPE_BOOL:
		snprintf(dst, size, "%s", config_setting_get_bool(setting) ? "true" : "false");
		break;
	case CONFIG_TYPE_FLOAT:
		snprintf(dst, size, "%g", config_setting_get_float(setting));
		break;
	default:
		snprintf(dst, size, "%lld", config_setting_get_int64(setting));
	}
	return dst;
}

/* Compare two values. A number can be stored in 32 or 64 bits. */
static bool is_equal(struct gn_conf_node *a, struct gn_conf_node *b)
{
	const char *x = gn_conf_string(a), *y = gn_conf_string(b);
	char from[64], to[64];

	if (x || y)
		return x && y && strcmp(x, y) == 0;
	return strcmp(gn_conf_text(a, from, sizeof(from)), gn_conf_text(b, to, sizeof(to))) == 0;
}

static void compare(const struct diff *diff, struct gn_conf_node *a, struct gn_conf_node *b);

/* One of the groups can be NULL: each setting of the other one differs. */
static void compare_groups(const struct diff *diff, struct gn_conf_node *a, struct gn_conf_node *b)
{
	for (unsigned i = 0; i < gn_conf_length(a); i++) {
		struct gn_conf_node *from = gn_conf_index(a, i);

		compare(diff, from, gn_conf_child(b, gn_conf_name(from)));
	}
	for (unsigned i = 0; i < gn_conf_length(b); i++) {
		struct gn_conf_node *to = gn_conf_index(b, i);

		if (!gn_conf_child(a, gn_conf_name(to)))
			compare(diff, NULL, to);
	}
}

static void compare(const struct diff *diff, struct gn_conf_node *a, struct gn_conf_node *b)
{
	bool groups = (!a || gn_conf_is_group(a)) && (!b || gn_conf_is_group(b));
	bool lists = gn_conf_is_list(a) && gn_conf_is_list(b);

	if (groups)
		compare_groups(diff, a, b);
	else if (lists && gn_conf_length(a) == gn_conf_length(b))
		for (unsigned i = 0; i < gn_conf_length(a); i++)
			compare(diff, gn_conf_index(a, i), gn_conf_index(b, i));
	else if (lists || !a || !b || !is_equal(a, b))
		diff->fn(diff->arg, a, b);
}

void gn_config_diff(struct gn_config *a, struct gn_config *b,
		    void (*fn)(void *arg, struct gn_conf_node *from, struct gn_conf_node *to),
		    void *arg)
{
	compare(&(const struct diff){fn, arg}, gn_config_root(a), gn_config_root(b));
}

/* -- copies -- */

static bool copy_value(config_setting_t *to, const config_setting_t *from)
{
	switch (config_setting_type(from)) {
	case CONFIG_TYPE_STRING:
		return config_setting_set_string(to, config_setting_get_string(from));
	case CONFIG_TYPE_BOOL:
		return config_setting_set_bool(to, config_setting_get_bool(from));
	case CONFIG_TYPE_FLOAT:
		return config_setting_set_float(to, config_setting_get_float(from));
	case CONFIG_TYPE_INT:
		return config_setting_set_int(to, config_setting_get_int(from));
	default:
		return config_setting_set_int64(to, config_setting_get_int64(from));
	}
}

/* name: NULL in a list. Returns true on success. */
static bool copy(config_setting_t *parent, const char *name, const config_setting_t *from)
{
	config_setting_t *to = config_setting_add(parent, name, config_setting_type(from));
	const unsigned n = config_setting_is_aggregate(from) ? (unsigned)config_setting_length(from)
							     : 0;
	bool done = to && (config_setting_is_aggregate(from) || copy_value(to, from));

	for (unsigned i = 0; i < n && done; i++) {
		const config_setting_t *member = config_setting_get_elem(from, i);

		done = copy(to, config_setting_name(member), member);
	}
	return done;
}

int gn_conf_copy(struct gn_conf_node *group, const char *name, struct gn_conf_node *from)
{
	config_setting_t *parent = gn_conf_setting(group);

	if (config_setting_get_member(parent, name))
		config_setting_remove(parent, name);
	return !from || copy(parent, name, gn_conf_setting(from)) ? 0 : -ENOMEM;
}
