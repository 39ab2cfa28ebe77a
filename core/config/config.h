/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * config.h - the configuration: a libconfig file becomes a tree, and groups of the tree become
 * structs by option tables.
 *
 *     open      gn_config_open        file and includes are checked and parsed, --set is applied
 *     look      gn_conf_* sections are walked; tables fill structs; every fault goes to a list,
 *               with its place
 *     close     gn_config_close       strings that were handed out die here
 *
 * A fault reads "FILE:LINE: key.path: what is wrong; what to write instead". All faults are
 * collected before anyone gives up. Nothing else includes libconfig.h. Thread: one at a time.
 */
#ifndef GN_CONFIG_CONFIG_H
#define GN_CONFIG_CONFIG_H

#include <gantry/option.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/errs.h"

struct gn_config;
/* a setting: a value, or a group, list or array of settings; lives as long as the gn_config */
struct gn_conf_node;

/*
 * Reads the file at `path`. overrides: n strings "roles.store.lanes=3"; the last name must be a
 * member of a group, groups on the way are made, "3" and "true" are a number and a bool unless the
 * file has a string there, and anything else is a string, with or without double quotes. Included
 * files are named relative to the folder of the file and must lie in it. Returns the configuration,
 * which the caller closes, or NULL with at least one message in errs.
 */
struct gn_config *gn_config_open(const char *path, const char *const *overrides, size_t n,
				 struct gn_errs *errs);

/*
 * The same from a text; `name` stands for the file in messages, and includes are named relative to
 * the current folder.
 */
struct gn_config *gn_config_open_text(const char *name, const char *text,
				      const char *const *overrides, size_t n, struct gn_errs *errs);

/* Frees everything and sets *config_p to NULL; *config_p may be NULL. */
void gn_config_close(struct gn_config **config_p);

/* Writes the configuration as it is in force: includes resolved, overrides applied. */
void gn_config_dump(const struct gn_config *config, FILE *out);

/* The outermost group. */
struct gn_conf_node *gn_config_root(struct gn_config *config);

/* The member of a group with this name; NULL if there is none, or `node` is NULL or no group. */
struct gn_conf_node *gn_conf_child(struct gn_conf_node *node, const char *name);

/* Number of members of a group, list or array; 0 for a value and for NULL. */
unsigned int gn_conf_length(struct gn_conf_node *node);

/* Member i, in the order of the file; NULL behind the last. */
struct gn_conf_node *gn_conf_index(struct gn_conf_node *node, unsigned int i);

/* The name; NULL for a member of a list or array and for the root. */
const char *gn_conf_name(struct gn_conf_node *node);

/* The text of a string; NULL for anything else and for NULL. Lives as long as the configuration. */
const char *gn_conf_string(struct gn_conf_node *node);

/* { ... }; false for NULL. */
bool gn_conf_is_group(struct gn_conf_node *node);

/* ( ... ) or [ ... ]; false for NULL. */
bool gn_conf_is_list(struct gn_conf_node *node);

/*
 * "FILE:LINE"; for what an override made "--set", or the name of the text. Lives as long as the
 * configuration.
 */
const char *gn_conf_where(struct gn_conf_node *node);

/* "roles.bridge.stages[1].type"; "" for the root. Lives as long as the configuration. */
const char *gn_conf_path(struct gn_conf_node *node);

/*
 * Adds the message "FILE:LINE: key.path: ..." to errs: for faults that only the caller can see.
 * node is not NULL.
 */
void gn_conf_fault(struct gn_errs *errs, struct gn_conf_node *node, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/*
 * The same about an option of `group`, by its name: "depth", or "workload.depth" for one of a group
 * in it. The place is that of the option, or, when it was left out, of the group that it would
 * stand in.
 */
void gn_conf_fault_option(struct gn_errs *errs, struct gn_conf_node *group, const char *option,
			  const char *text);

/*
 * Fills *conf by an option table. group: the settings; NULL: an empty group. table: NULL stands for
 * one with no rows. also_known: NULL-terminated names that others read from the same group, such as
 * "type"; may be NULL. In an optional group that is left out, rows without a default become 0 or
 * NULL. Strings live as long as the configuration.
 * Returns 0, or -EINVAL after adding a message for each fault; then *conf is not to be used.
 */
int gn_conf_options(struct gn_conf_node *group, const struct gantry_option *table, void *conf,
		    const char *const *also_known, struct gn_errs *errs);

/*
 * True if the default of the row is a value of its type, or if it has none. The range does not
 * count: it is for users.
 */
bool gn_conf_default_ok(const struct gantry_option *row);

/*
 * Is `word` so near to `known` that it may be a typing error of it? Returns the number of errors,
 * or -1: not near.
 */
int gn_config_near(const char *word, const char *known);
/*
 * The same for the nearest of many. *errors_p: those of the nearest so far; GN_NEAR_NONE at first.
 * Is `known` nearer?
 */
bool gn_config_nearer(const char *word, const char *known, int *errors_p);
#define GN_NEAR_NONE 1000

enum gn_option_style {
	GN_OPTION_TEXT, /* for a terminal */
	GN_OPTION_MDOC  /* list items for a manual page, to stand between .Bl and .El */
};

/*
 * Writes what a table accepts: name, type, range, default, help. Options of a group are named
 * "group.option", those of the table "prefix.option"; "": just so.
 */
void gn_option_print(FILE *out, const struct gantry_option *table, enum gn_option_style style,
		     const char *prefix);

#endif
