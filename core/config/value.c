/* SPDX-License-Identifier: BSD-3-Clause */
/* value.c - store the value of one setting in one field of a struct, by the type of the option. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/units.h"
#include "config/config_priv.h"

#define LIST_BYTES 400
#define RANGE_BYTES (2 * GN_UNITS_BYTES + 8)
/* largest units in which messages show a limit: TiB in bytes, hours in nanoseconds */
#define LAST_SIZE (1ll << 40)
#define LAST_TIME (3600ll * 1000000000)

static void store(struct gn_config_fill *f, const struct gantry_option *row, const void *value,
		  size_t bytes)
{
	memcpy(f->conf + row->offset, value, bytes);
}

static void store_u64(struct gn_config_fill *f, const struct gantry_option *row, uint64_t value)
{
	store(f, row, &value, sizeof(value));
}

/* True if the value is in the range of the row. A maximum below the minimum means: no maximum. */
static bool in_range(const struct gantry_option *row, int64_t value)
{
	if (row->min == 0 && row->max == 0)
		return true;
	return value >= row->min && (value <= row->max || row->max < row->min);
}

void gn_config_limit_text(const struct gantry_option *row, int64_t limit, char *dst)
{
	if (gantry_option_type(row) == GANTRY_OPT_SIZE)
		gn_size_format(dst, GN_UNITS_BYTES, (uint64_t)limit);
	else if (gantry_option_type(row) == GANTRY_OPT_TIME)
		gn_time_format(dst, GN_UNITS_BYTES, (uint64_t)limit);
	else
		snprintf(dst, GN_UNITS_BYTES, "%" PRId64, limit);
}

/*
 * Format the valid range. all: include an upper limit, in whole units, even if only the type sets
 * that limit.
 */
static void range_text(const struct gantry_option *row, bool all, char dst[RANGE_BYTES])
{
	bool any = row->min == 0 && row->max == 0,
	     open = any || row->max < row->min || row->max == INT64_MAX;
	int64_t last = INT64_MAX,
		first = any && gantry_option_type(row) == GANTRY_OPT_INT ? INT64_MIN : row->min;
	char min[GN_UNITS_BYTES], max[GN_UNITS_BYTES];

	if (gantry_option_type(row) == GANTRY_OPT_SIZE)
		last -= last % LAST_SIZE;
	else if (gantry_option_type(row) == GANTRY_OPT_TIME)
		last -= last % LAST_TIME;
	gn_config_limit_text(row, first, min);
	gn_config_limit_text(row, open ? last : row->max, max);
	if (open && !all)
		snprintf(dst, RANGE_BYTES, "%s or more", min);
	else
		snprintf(dst, RANGE_BYTES, "%s to %s", min, max);
}

static int fault_range(struct gn_config_fill *f, struct gn_conf_node *node,
		       const struct gantry_option *row, const char *value)
{
	char range[RANGE_BYTES];

	range_text(row, false, range);
	gn_conf_fault(f->errs, node, "%s is out of range; write %s", value, range);
	return -EINVAL;
}

/* Report a value that does not fit into the type. */
static int fault_misfit(struct gn_config_fill *f, struct gn_conf_node *node,
			const struct gantry_option *row, const char *text, const char *what)
{
	char range[RANGE_BYTES];

	range_text(row, true, range);
	gn_conf_fault(f->errs, node, "\"%.40s\" is too %s; write %s", text, what, range);
	return -EINVAL;
}

static const char *type_word(struct gn_conf_node *node)
{
	switch (config_setting_type(gn_conf_setting(node))) {
	case CONFIG_TYPE_GROUP:
		return "a group";
	case CONFIG_TYPE_INT:
	case CONFIG_TYPE_INT64:
		return "a number";
	case CONFIG_TYPE_FLOAT:
		return "a number with a point";
	case CONFIG_TYPE_STRING:
		return "a string";
	case CONFIG_TYPE_BOOL:
		return "a bool";
	default:
		return "a list";
	}
}

int gn_config_fault_type(struct gn_config_fill *f, struct gn_conf_node *node, const char *wanted)
{
	gn_conf_fault(f->errs, node, "is %s; write %s", type_word(node), wanted);
	return -EINVAL;
}

static bool number(struct gn_conf_node *node, int64_t *value_p)
{
	int type = config_setting_type(gn_conf_setting(node));

	if (type != CONFIG_TYPE_INT && type != CONFIG_TYPE_INT64)
		return false;
	*value_p = config_setting_get_int64(gn_conf_setting(node));
	return true;
}

/* Get the text of a string, or of a --set that became another type; else NULL. */
static const char *text_of(struct gn_conf_node *node)
{
	const char *text = gn_conf_string(node);

	return text ? text : config_setting_get_hook(gn_conf_setting(node));
}

static int fill_string(struct gn_config_fill *f, struct gn_conf_node *node,
		       const struct gantry_option *row)
{
	const char *text = text_of(node);

	if (!text)
		return gn_config_fault_type(f, node, "a string in double quotes");
	store(f, row, &text, sizeof(text));
	return 0;
}

static int fill_bool(struct gn_config_fill *f, struct gn_conf_node *node,
		     const struct gantry_option *row)
{
	uint8_t value;

	if (config_setting_type(gn_conf_setting(node)) != CONFIG_TYPE_BOOL)
		return gn_config_fault_type(f, node, "true or false, without quotes");
	value = config_setting_get_bool(gn_conf_setting(node)) != 0;
	store(f, row, &value, sizeof(value));
	return 0;
}

/* Report the text of a --set that is not a number. */
static int fault_number(struct gn_config_fill *f, struct gn_conf_node *node,
			const struct gantry_option *row, const char *text)
{
	char range[RANGE_BYTES], *rest;
	long long value;

	errno = 0;
	value = strtoll(text, &rest, strncasecmp(text, "0x", 2) ? 10 : 16);
	if (errno == ERANGE && !*rest)
		return fault_misfit(f, node, row, text, value < 0 ? "small" : "large");
	range_text(row, false, range);
	gn_conf_fault(f->errs, node, "\"%.40s\" is not a whole number; write %s", text, range);
	return -EINVAL;
}

static int fill_int(struct gn_config_fill *f, struct gn_conf_node *node,
		    const struct gantry_option *row)
{
	const char *bare = config_setting_get_hook(gn_conf_setting(node));
	char text[GN_UNITS_BYTES];
	int64_t value;

	if (!number(node, &value))
		return bare ? fault_number(f, node, row, bare)
			    : gn_config_fault_type(f, node, "a whole number, without quotes");
	if (!in_range(row, value)) {
		snprintf(text, sizeof(text), "%" PRId64, value);
		return fault_range(f, node, row, text);
	}
	store(f, row, &value, sizeof(value));
	return 0;
}

/* Store a size or a time from its text. */
static int fill_units(struct gn_config_fill *f, struct gn_conf_node *node,
		      const struct gantry_option *row, const char *text)
{
	bool size = gantry_option_type(row) == GANTRY_OPT_SIZE, negative = *text == '-';
	uint64_t value;
	int ret = size ? gn_size_parse(text + negative, &value)
		       : gn_time_parse(text + negative, &value);

	if (negative && ret != -EINVAL)
		return fault_misfit(f, node, row, text, "small");
	if (ret == -EINVAL) {
		gn_conf_fault(f->errs, node, "\"%.40s\" is not a %s; write %s", text,
			      size ? "size" : "time", size ? GN_SIZE_ACCEPTED : GN_TIME_ACCEPTED);
		return ret;
	}
	if (ret == -ERANGE || value > INT64_MAX)
		return fault_misfit(f, node, row, text, "large");
	if (!in_range(row, (int64_t)value)) {
		char quoted[48];

		snprintf(quoted, sizeof(quoted), "\"%.40s\"", text);
		return fault_range(f, node, row, quoted);
	}
	store_u64(f, row, value);
	return 0;
}

static int fill_size(struct gn_config_fill *f, struct gn_conf_node *node,
		     const struct gantry_option *row)
{
	const char *text = gn_conf_string(node);
	char digits[GN_UNITS_BYTES];
	int64_t value;

	if (text)
		return fill_units(f, node, row, text);
	if (!number(node, &value))
		return gn_config_fault_type(f, node, "a size in double quotes, such as \"4KiB\"");
	snprintf(digits, sizeof(digits), "%" PRId64, value);
	if (value < 0 || !in_range(row, value))
		return fault_range(f, node, row, digits);
	store_u64(f, row, (uint64_t)value);
	return 0;
}

static int fill_time(struct gn_config_fill *f, struct gn_conf_node *node,
		     const struct gantry_option *row)
{
	const char *text = text_of(node);

	if (!text)
		return gn_config_fault_type(f, node, "a time in double quotes, such as \"250ms\"");
	return fill_units(f, node, row, text);
}

static int choice_index(const struct gantry_option *row, const char *word, uint32_t *index_p)
{
	for (uint32_t i = 0; row->choices && row->choices[i]; i++) {
		if (!strcmp(row->choices[i], word)) {
			*index_p = i;
			return 0;
		}
	}
	return -EINVAL;
}

static int fill_choice(struct gn_config_fill *f, struct gn_conf_node *node,
		       const struct gantry_option *row)
{
	const char *word = text_of(node), *best = NULL;
	char list[LIST_BYTES] = "";
	int errors = GN_NEAR_NONE;
	size_t n = 0;
	uint32_t i;

	if (word && !choice_index(row, word, &i)) {
		store(f, row, &i, sizeof(i));
		return 0;
	}
	for (i = 0; row->choices && row->choices[i] && n < sizeof(list); i++) {
		n += (size_t)snprintf(list + n, sizeof(list) - n, "%s\"%s\"", i ? ", " : "",
				      row->choices[i]);
		if (word && gn_config_nearer(word, row->choices[i], &errors))
			best = row->choices[i];
	}
	if (!word)
		gn_conf_fault(f->errs, node, "is %s; write one of %s", type_word(node), list);
	else if (best)
		gn_conf_fault(f->errs, node, "\"%.40s\" is unknown; did you mean \"%s\"?", word,
			      best);
	else
		gn_conf_fault(f->errs, node, "\"%.40s\" is unknown; write one of %s", word, list);
	return -EINVAL;
}

int gn_config_fill_value(struct gn_config_fill *f, struct gn_conf_node *node,
			 const struct gantry_option *row)
{
	static int (*const by_type[])(struct gn_config_fill *, struct gn_conf_node *,
				      const struct gantry_option *) = {
		[GANTRY_OPT_STRING] = fill_string, [GANTRY_OPT_BOOL] = fill_bool,
		[GANTRY_OPT_INT] = fill_int,       [GANTRY_OPT_SIZE] = fill_size,
		[GANTRY_OPT_TIME] = fill_time,     [GANTRY_OPT_CHOICE] = fill_choice,
	};

	if (gantry_option_type(row) < sizeof(by_type) / sizeof(by_type[0]) &&
	    by_type[gantry_option_type(row)])
		return by_type[gantry_option_type(row)](f, node, row);
	gn_conf_fault(f->errs, node, "plugin bug: the option has an unknown type");
	return -EINVAL;
}

/*
 * The range of the row does not apply to its default, so that a default outside the range can mean
 * "none".
 */
int gn_config_fill_default(struct gn_config_fill *f, const struct gantry_option *row,
			   const char *text)
{
	uint64_t value = 0;
	uint8_t flag = !strcmp(text, "true");
	uint32_t index = 0;
	char *rest;
	int ret;

	switch (gantry_option_type(row)) {
	case GANTRY_OPT_STRING:
		store(f, row, &text, sizeof(text));
		return 0;
	case GANTRY_OPT_BOOL:
		store(f, row, &flag, sizeof(flag));
		return flag || !strcmp(text, "false") ? 0 : -EINVAL;
	case GANTRY_OPT_CHOICE:
		ret = choice_index(row, text, &index);
		store(f, row, &index, sizeof(index));
		return ret;
	case GANTRY_OPT_INT:
		errno = 0;
		store_u64(f, row, (uint64_t)strtoll(text, &rest, 0));
		return *rest || rest == text ? -EINVAL : -errno;
	default:
		ret = gantry_option_type(row) == GANTRY_OPT_SIZE ? gn_size_parse(text, &value)
								 : gn_time_parse(text, &value);
		store_u64(f, row, value);
		return ret == 0 && value > INT64_MAX ? -ERANGE : ret;
	}
}

bool gn_conf_default_ok(const struct gantry_option *row)
{
	uint64_t value; /* large enough for every type */
	struct gn_config_fill fill = {.conf = (char *)&value};
	struct gantry_option alone = *row;

	alone.offset = 0;
	return !row->dflt || gantry_option_type(row) == GANTRY_OPT_GROUP ||
	       gn_config_fill_default(&fill, &alone, row->dflt) == 0;
}

void gn_config_fill_zero(struct gn_config_fill *f, const struct gantry_option *row)
{
	static const uint64_t zero;
	size_t bytes = sizeof(uint64_t);

	if (gantry_option_type(row) == GANTRY_OPT_STRING)
		bytes = sizeof(char *);
	else if (gantry_option_type(row) == GANTRY_OPT_CHOICE)
		bytes = sizeof(uint32_t);
	else if (gantry_option_type(row) == GANTRY_OPT_BOOL)
		bytes = sizeof(uint8_t);
	store(f, row, &zero, bytes);
}
