/* SPDX-License-Identifier: BSD-3-Clause */
/* config_options.c - fill structs from groups of settings, by the rows of an option table. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "config/config_priv.h"

#define LIST_BYTES 400

static int fill_group(struct gn_config_fill *f, struct gn_conf_node *group,
		      const struct gantry_option *table, const char *const *also_known);

static int fill_node(struct gn_config_fill *f, struct gn_conf_node *node,
		     const struct gantry_option *row)
{
	if (gantry_option_type(row) != GANTRY_OPT_GROUP)
		return gn_config_fill_value(f, node, row);
	if (!gn_conf_is_group(node))
		return gn_config_fault_type(f, node, "a group: { ... }");
	return fill_group(f, node, row->group, NULL);
}

/* Fill an option that the file does not have. group: the group of the option; may be NULL. */
static int fill_absent(struct gn_config_fill *f, struct gn_conf_node *group,
		       const struct gantry_option *row)
{
	bool was_left_out = f->left_out;
	int ret;

	if (gantry_option_type(row) == GANTRY_OPT_GROUP && (row->dflt || f->left_out)) {
		f->left_out = true;
		ret = fill_group(f, NULL, row->group, NULL);
		f->left_out = was_left_out;
		return ret;
	}
	if (row->dflt) {
		ret = gn_config_fill_default(f, row, row->dflt);
		if (ret)
			gn_errs_add(f->errs, "%s: plugin bug: default \"%s\" is invalid", row->name,
				    row->dflt);
		return ret;
	}
	if (f->left_out) {
		gn_config_fill_zero(f, row);
		return 0;
	}
	if (group)
		gn_conf_fault(f->errs, group, "\"%s\" is missing; it must be given (%s)", row->name,
			      row->help ? row->help : "no description");
	else
		gn_errs_add(f->errs, "\"%s\" is missing; it must be given", row->name);
	return -EINVAL;
}

struct hint {
	const char *best;
	int errors; /* edit distance of `best` */
	char list[LIST_BYTES];
	size_t n;
};

/* Compare with one known name, and update the hint. Returns true if they are equal. */
static bool hint_name(struct hint *h, const char *word, const char *name)
{
	if (!strcmp(word, name))
		return true;
	if (gn_config_nearer(word, name, &h->errors))
		h->best = name;
	if (h->n < sizeof(h->list))
		h->n += (size_t)snprintf(h->list + h->n, sizeof(h->list) - h->n, "%s%s",
					 h->n ? ", " : "", name);
	return false;
}

static int check_known(struct gn_config_fill *f, struct gn_conf_node *node,
		       const struct gantry_option *table, const char *const *also_known)
{
	const char *word = gn_conf_name(node);
	struct hint h = {.errors = GN_NEAR_NONE};

	for (; table && table->name; table++)
		if (hint_name(&h, word, table->name))
			return 0;
	for (; also_known && *also_known; also_known++)
		if (hint_name(&h, word, *also_known))
			return 0;
	if (h.best)
		gn_conf_fault(f->errs, node, "unknown key; did you mean \"%s\"?", h.best);
	else
		gn_conf_fault(f->errs, node, "unknown key; known here: %s", h.n ? h.list : "none");
	return -EINVAL;
}

static int fill_group(struct gn_config_fill *f, struct gn_conf_node *group,
		      const struct gantry_option *table, const char *const *also_known)
{
	int ret = 0;

	for (unsigned int i = 0; i < gn_conf_length(group); i++)
		if (check_known(f, gn_conf_index(group, i), table, also_known))
			ret = -EINVAL;
	for (; table && table->name; table++) {
		struct gn_conf_node *node = gn_conf_child(group, table->name);

		if (node ? fill_node(f, node, table) : fill_absent(f, group, table))
			ret = -EINVAL;
	}
	return ret;
}

int gn_conf_options(struct gn_conf_node *group, const struct gantry_option *table, void *conf,
		    const char *const *also_known, struct gn_errs *errs)
{
	struct gn_config_fill f = {.conf = conf, .errs = errs};

	if (group && !gn_conf_is_group(group))
		return gn_config_fault_type(&f, group, "a group: { ... }");
	return fill_group(&f, group, table, also_known);
}

const struct gantry_option *gn_option_find(const struct gantry_option *table, const char *path)
{
	size_t n = strcspn(path, ".");

	for (; table && table->name; table++) {
		if (strncmp(table->name, path, n) != 0 || table->name[n])
			continue;
		if (!path[n])
			return table;
		return gantry_option_type(table) == GANTRY_OPT_GROUP
			       ? gn_option_find(table->group, path + n + 1)
			       : NULL;
	}
	return NULL;
}
