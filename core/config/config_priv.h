/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GN_CONFIG_CONFIG_PRIV_H
#define GN_CONFIG_CONFIG_PRIV_H

#include <libconfig.h>

#include "base/arena.h"
#include "config/config.h"

struct gn_config {
	config_t cfg;
	char *path;      /* of the main file, as the user wrote it */
	const char *dir; /* of the main file: where includes are found */
	const char *
		beside; /* where settings come from that no line made: "--set", or the name of the text */
	struct gn_arena arena;
};

/*
 * A node is a setting of libconfig under another name. Its hook: the text that a --set without
 * quotes gave, whatever was made of it; else NULL.
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
 * Looks at the text of a file and at its includes, and says everything that libconfig would swallow
 * or garble: who may write an include, numbers that do not fit, includes that lead away. dir: where
 * includes must lie. 0, or -EINVAL with messages in errs.
 */
int gn_config_scan(const char *path, const char *text, const char *dir, struct gn_errs *errs);

/*
 * Reads one file. `where` stands in front of messages, "FILE: " or "FILE:LINE: ". Returns the text,
 * newline at the end, to be freed by the caller; NULL with messages in errs.
 */
char *gn_config_read_file(const char *path, const char *where, struct gn_errs *errs);

/* Applies one --set. Adds a message and returns -EINVAL if it cannot be done. */
int gn_config_override(struct gn_config *config, const char *text, struct gn_errs *errs);

/*
 * The name of a file as messages write it. file: what libconfig says; may be NULL. Lives as long as
 * config.
 */
const char *gn_config_file_name(struct gn_config *config, const char *file);

/* Filling a struct: where the values go and where the faults go. */
struct gn_config_fill {
	char *conf; /* the struct */
	struct gn_errs *errs;
	bool left_out; /* the rows are those of an optional group that is not there */
};

/* Stores the value of a setting that is no group. Returns 0, or -EINVAL with a message added. */
int gn_config_fill_value(struct gn_config_fill *f, struct gn_conf_node *node,
			 const struct gantry_option *row);

/*
 * Stores a default, given as text; the range is for users, so that a default may mean "none".
 * Returns 0 or -errno.
 */
int gn_config_fill_default(struct gn_config_fill *f, const struct gantry_option *row,
			   const char *text);

/* Stores 0, false or NULL. */
void gn_config_fill_zero(struct gn_config_fill *f, const struct gantry_option *row);

/* A limit of the row's range, as it would be written. dst: GN_UNITS_BYTES. */
void gn_config_limit_text(const struct gantry_option *row, int64_t limit, char *dst);

/* Adds the message that the setting has another type than `wanted`, a text. Returns -EINVAL. */
int gn_config_fault_type(struct gn_config_fill *f, struct gn_conf_node *node, const char *wanted);

#endif
