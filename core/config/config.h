/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * config.h - the configuration: parses a libconfig file to a tree, and fills structs from groups of
 * the tree by option tables.
 *
 *     open      gn_config_open        checks and parses file and includes, applies --set
 *     read      gn_conf_*             the caller walks the tree; tables fill structs; each fault is
 *               added to a list, with its place
 *     close     gn_config_close       frees the tree and all strings that were returned from it
 *
 * A fault has the form "FILE:LINE: key.path: problem; remedy". All faults are collected before the
 * caller fails. Only this module includes libconfig.h. Only one thread at a time may use a
 * configuration.
 */
#ifndef GN_CONFIG_CONFIG_H
#define GN_CONFIG_CONFIG_H

#include <gantry/option.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/errs.h"

struct gn_config;
/* a setting: a value, or a group, list or array of settings; valid as long as the gn_config */
struct gn_conf_node;

/*
 * Read and parse a configuration file. Included files are named relative to the directory of the
 * file and must be inside it.
 *
 * overrides  n strings such as "roles.store.lanes=3". The last name must be a member of a group.
 *            Missing groups on the path are created. A value in double quotes is a string. Without
 *            quotes, "3" becomes a number and "true" a bool, unless the option is a string in the
 *            file; other values become strings
 * errs       receives at least one message if the function fails
 * returns    the configuration, which the caller closes; NULL: failed
 */
struct gn_config *gn_config_open(const char *path, const char *const *overrides, size_t n,
				 struct gn_errs *errs);

/*
 * Read and parse a text, otherwise as gn_config_open(). name: replaces the file name in messages.
 * Includes are relative to the working directory.
 */
struct gn_config *gn_config_open_text(const char *name, const char *text,
				      const char *const *overrides, size_t n, struct gn_errs *errs);

/* Free the configuration and set *config_p to NULL. *config_p may be NULL. */
void gn_config_close(struct gn_config **config_p);

/* Write the effective configuration: with includes and overrides. */
void gn_config_dump(const struct gn_config *config, FILE *out);

/*
 * Write the effective configuration without values that can be secrets: strings become "(left out)",
 * and numbers become 0.
 *
 * returns  0
 *          -ENOMEM
 *          another -errno: the text of the configuration cannot be parsed again
 */
int gn_config_dump_public(const struct gn_config *config, FILE *out);

/* Get the outermost group. */
struct gn_conf_node *gn_config_root(struct gn_config *config);

/*
 * Get the member of a group with this name; NULL: there is none, or `node` is NULL or not a group.
 */
struct gn_conf_node *gn_conf_child(struct gn_conf_node *node, const char *name);

/* Get the number of members of a group, list or array; 0 for a value and for NULL. */
unsigned int gn_conf_length(struct gn_conf_node *node);

/* Get member i, in the order of the file; NULL: i is out of range. */
struct gn_conf_node *gn_conf_index(struct gn_conf_node *node, unsigned int i);

/* Get the name; NULL for a member of a list or array, and for the root. */
const char *gn_conf_name(struct gn_conf_node *node);

/*
 * Get the text of a string; NULL for other types and for NULL. Valid as long as the configuration.
 */
const char *gn_conf_string(struct gn_conf_node *node);

/* True for a group { ... }; false for NULL. */
bool gn_conf_is_group(struct gn_conf_node *node);

/* True for a list ( ... ) or an array [ ... ]; false for NULL. */
bool gn_conf_is_list(struct gn_conf_node *node);

/*
 * Get the place of a setting: "FILE:LINE". For a setting of an override: "--set", or the name of
 * the text. Valid as long as the configuration.
 */
const char *gn_conf_where(struct gn_conf_node *node);

/*
 * Get the path of a setting, such as "roles.bridge.stages[1].type"; "" for the root. Valid as long
 * as the configuration.
 */
const char *gn_conf_path(struct gn_conf_node *node);

/*
 * Add the message "FILE:LINE: key.path: ..." to errs. For faults that only the caller can detect.
 * node must not be NULL.
 */
void gn_conf_fault(struct gn_errs *errs, struct gn_conf_node *node, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/*
 * Add a message about an option of `group`, otherwise as gn_conf_fault(). option: its name,
 * "depth", or "workload.depth" for an option of a nested group. The message names the place of the
 * option, or of its group if the option is omitted.
 */
void gn_conf_fault_option(struct gn_errs *errs, struct gn_conf_node *group, const char *option,
			  const char *text);

/*
 * Fill *conf by an option table. If an optional group is omitted, its rows without a default become
 * 0 or NULL. Strings are valid as long as the configuration.
 *
 * group       the settings; NULL: an empty group
 * table       NULL: a table without rows
 * also_known  NULL-terminated names of other settings of the same group, such as "type", that the
 *             caller reads; may be NULL
 * returns     0
 *             -EINVAL: errs has a message for each fault; *conf must not be used
 */
int gn_conf_options(struct gn_conf_node *group, const struct gantry_option *table, void *conf,
		    const char *const *also_known, struct gn_errs *errs);

/*
 * Call fn for each setting that differs between two configurations: a value, or a list of another
 * length. from, to: the setting in `a` and in `b`; NULL: it has none.
 */
void gn_config_diff(struct gn_config *a, struct gn_config *b,
		    void (*fn)(void *arg, struct gn_conf_node *from, struct gn_conf_node *to),
		    void *arg);

/*
 * Replace a member of `group` by a copy of a setting of another configuration, or add the copy.
 * Nodes and strings of the old member become invalid, those of other settings do not.
 *
 * name     of the member
 * from     the setting; NULL: only remove the member
 * returns  0
 *          -ENOMEM: the member is missing or incomplete
 */
int gn_conf_copy(struct gn_conf_node *group, const char *name, struct gn_conf_node *from);

/*
 * Format a value as an override without quotes has it: true, 3, text; "{...}" for a group, "(...)"
 * for a list. Truncates. Returns dst.
 */
const char *gn_conf_text(struct gn_conf_node *node, char *dst, size_t size);

/*
 * Find the row of an option table for a setting. path: "name", or "group.name" for a nested group.
 * Returns NULL if there is none.
 */
const struct gantry_option *gn_option_find(const struct gantry_option *table, const char *path);

/*
 * True if the default of the row is a value of its type, or if the row has none. The range of the
 * row does not apply to its default.
 */
bool gn_conf_default_ok(const struct gantry_option *row);

/*
 * Test whether `word` could be a misspelling of `known`. Returns the edit distance; -1: the words
 * are too different.
 */
int gn_config_near(const char *word, const char *known);
/*
 * Find the most similar of several words. Call it for each known word. Returns true if `known` is
 * more similar than those before.
 *
 * errors_p   in and out: edit distance of the most similar word so far; GN_NEAR_NONE at first
 */
bool gn_config_nearer(const char *word, const char *known, int *errors_p);
#define GN_NEAR_NONE 1000

enum gn_option_style {
	GN_OPTION_TEXT, /* plain text for a terminal */
	GN_OPTION_MDOC  /* list items for a manual page, for use between .Bl and .El */
};

/*
 * Write a description of the rows of a table: name, type, range, default, help. Options of a group
 * are named "group.option". prefix: if not "", options of the table are named "prefix.option".
 */
void gn_option_print(FILE *out, const struct gantry_option *table, enum gn_option_style style,
		     const char *prefix);

#endif
