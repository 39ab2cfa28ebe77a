/* SPDX-License-Identifier: BSD-3-Clause */
/* node.c - access to settings of the tree, and to their places for messages. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/container_of.h"
#include "config/config_priv.h"

#define PATH_BYTES 512

static struct gn_config *owner(struct gn_conf_node *node)
{
	return gn_container_of(gn_conf_setting(node)->config, struct gn_config, cfg);
}

struct gn_conf_node *gn_conf_child(struct gn_conf_node *node, const char *name)
{
	if (!gn_conf_is_group(node))
		return NULL;
	return gn_conf_node(config_setting_get_member(gn_conf_setting(node), name));
}

unsigned int gn_conf_length(struct gn_conf_node *node)
{
	return gn_conf_is_group(node) || gn_conf_is_list(node)
		       ? (unsigned int)config_setting_length(gn_conf_setting(node))
		       : 0;
}

struct gn_conf_node *gn_conf_index(struct gn_conf_node *node, unsigned int i)
{
	return i < gn_conf_length(node)
		       ? gn_conf_node(config_setting_get_elem(gn_conf_setting(node), i))
		       : NULL;
}

const char *gn_conf_name(struct gn_conf_node *node)
{
	return config_setting_name(gn_conf_setting(node));
}

const char *gn_conf_string(struct gn_conf_node *node)
{
	if (!node || config_setting_type(gn_conf_setting(node)) != CONFIG_TYPE_STRING)
		return NULL;
	return config_setting_get_string(gn_conf_setting(node));
}

bool gn_conf_is_group(struct gn_conf_node *node)
{
	return node && config_setting_is_group(gn_conf_setting(node));
}

bool gn_conf_is_list(struct gn_conf_node *node)
{
	return node && (config_setting_is_list(gn_conf_setting(node)) ||
			config_setting_is_array(gn_conf_setting(node)));
}

/*
 * libconfig 1.5 reports an included file as the include names it; later versions add the directory.
 * Both report NULL for the main file.
 */
const char *gn_config_file_name(struct gn_config *config, const char *file)
{
	size_t n = strlen(config->dir), bytes;
	char *text;

	if (!file)
		return config->path;
	if (!strcmp(config->dir, ".") || (!strncmp(file, config->dir, n) && file[n] == '/'))
		return file;
	bytes = n + strlen(file) + 2;
	text = gn_arena_alloc(&config->arena, bytes);
	if (text)
		snprintf(text, bytes, "%s/%s", config->dir, file);
	return text ? text : file;
}

/* Get file and line of a setting; the key stays NULL. */
static struct gn_err_place place_of(struct gn_conf_node *node)
{
	const config_setting_t *setting = gn_conf_setting(node);

	if (!config_setting_is_root(setting) && setting->line == 0)
		return (struct gn_err_place){.file = owner(node)->beside};
	return (struct gn_err_place){.file = gn_config_file_name(owner(node), setting->file),
				     .line = setting->line};
}

const char *gn_conf_where(struct gn_conf_node *node)
{
	struct gn_err_place place = place_of(node);
	size_t bytes = strlen(place.file) + 16;
	char *text;

	if (!place.line)
		return place.file;
	text = gn_arena_alloc(&owner(node)->arena, bytes);
	if (!text)
		return place.file;
	snprintf(text, bytes, "%s:%u", place.file, place.line);
	return text;
}

/* Write the path of a setting to text, truncated to size. Returns its length. */
static size_t write_path(config_setting_t *setting, char *text, size_t size)
{
	size_t n;
	int more;

	if (config_setting_is_root(setting)) {
		text[0] = '\0';
		return 0;
	}
	n = write_path(config_setting_parent(setting), text, size);
	if (config_setting_name(setting))
		more = snprintf(text + n, size - n, "%s%s", n ? "." : "",
				config_setting_name(setting));
	else
		more = snprintf(text + n, size - n, "[%d]", config_setting_index(setting));
	return n + (size_t)more < size ? n + (size_t)more : size - 1;
}

const char *gn_conf_path(struct gn_conf_node *node)
{
	char text[PATH_BYTES];
	const char *copy;

	write_path(gn_conf_setting(node), text, sizeof(text));
	copy = gn_arena_strdup(&owner(node)->arena, text);
	return copy ? copy : "";
}

void gn_conf_fault_option(struct gn_errs *errs, struct gn_conf_node *group, const char *option,
			  const char *text)
{
	struct gn_conf_node *node = group, *child;
	char name[PATH_BYTES], key[2 * PATH_BYTES];
	struct gn_err_place place;
	size_t n;

	n = write_path(gn_conf_setting(group), key, PATH_BYTES);
	snprintf(key + n, sizeof(key) - n, "%s%s", n ? "." : "", option);
	for (const char *at = option; node;
	     at += at[strlen(name)] == '.' ? strlen(name) + 1 : strlen(name)) {
		snprintf(name, sizeof(name), "%.*s", (int)strcspn(at, "."), at);
		child = gn_conf_child(node, name);
		if (!child)
			break;
		node = child;
	}
	place = place_of(node);
	place.key = key;
	gn_errs_add_at(errs, &place, "%s", text);
}

void gn_conf_fault(struct gn_errs *errs, struct gn_conf_node *node, const char *fmt, ...)
{
	struct gn_err_place place = place_of(node);
	char text[1024], path[PATH_BYTES];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (write_path(gn_conf_setting(node), path, sizeof(path)))
		place.key = path;
	gn_errs_add_at(errs, &place, "%s", text);
}
