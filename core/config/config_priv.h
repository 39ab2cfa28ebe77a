/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GN_CONFIG_CONFIG_PRIV_H
#define GN_CONFIG_CONFIG_PRIV_H

#include <libconfig.h>

#include "base/arena.h"
#include "config/config.h"

struct gn_config {
	config_t cfg;
	char *path;      /* path of the main file, as the user has written it */
	const char *dir; /* directory of the main file, for includes */
	/* place of settings that are not in a file: "--set", or the name of the text */
	const char *beside;
	struct gn_arena arena;
};

/*
 * A node is a config_setting_t of libconfig. If a --set without quotes has set the value, its hook
 * is the text of that --set, whatever type the value became; else the hook is NULL.
 */
static inline config_setting_t *gn_conf_setting(struct gn_conf_node *node)
{
	return (config_setting_t *)node;
}

static inline struct gn_conf_node *gn_conf_node(config_setting_t *setting)
{
	return (struct gn_conf_node *)setting;
}

/*
 * Check the text of a file and its includes for errors that libconfig ignores or reports poorly:
 * includes that other users can write or that are outside of `dir`, and numbers that do not fit.
 * dir: directory that must contain the includes. Returns 0; -EINVAL: errs has messages.
 */
int gn_config_scan(const char *path, const char *text, const char *dir, struct gn_errs *errs);

/*
 * Read one file. where: prefix of messages, "FILE: " or "FILE:LINE: ". Returns the text with a
 * newline at its end, which the caller frees; NULL: errs has messages.
 */
char *gn_config_read_file(const char *path, const char *where, struct gn_errs *errs);

/* Apply one --set. Returns 0; -EINVAL: errs has a message. */
int gn_config_override(struct gn_config *config, const char *text, struct gn_errs *errs);

/*
 * Get the name of a file for messages. file: the name that libconfig uses; NULL: the main file.
 * Valid as long as config.
 */
const char *gn_config_file_name(struct gn_config *config, const char *file);

/* State of filling a struct: destinations of values and faults. */
struct gn_config_fill {
	char *conf; /* the struct to fill */
	struct gn_errs *errs;
	bool left_out; /* the rows belong to an optional group that is omitted */
};

/* Store the value of a setting that is not a group. Returns 0; -EINVAL: a message was added. */
int gn_config_fill_value(struct gn_config_fill *f, struct gn_conf_node *node,
			 const struct gantry_option *row);

/*
 * Store the default of a row. The range of the row does not apply, so that a default outside the
 * range can mean "none". Returns 0 or -errno.
 */
int gn_config_fill_default(struct gn_config_fill *f, const struct gantry_option *row,
			   const char *text);

/* Store the zero value of the type of the row: 0, false or NULL. */
void gn_config_fill_zero(struct gn_config_fill *f, const struct gantry_option *row);

/* Format a limit of the range of a row, as in a configuration. dst: GN_UNITS_BYTES bytes. */
void gn_config_limit_text(const struct gantry_option *row, int64_t limit, char *dst);

/* Add the message that the setting has another type than `wanted`, a text. Returns -EINVAL. */
int gn_config_fault_type(struct gn_config_fill *f, struct gn_conf_node *node, const char *wanted);

#endif
