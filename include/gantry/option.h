/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * option.h - the option table of a plugin: one row for each option.
 *
 * The row is the only source of the parser, the error messages, `gantry plugins --options` and the
 * manual page. A table ends with a row whose name is NULL.
 */
#ifndef GANTRY_OPTION_H
#define GANTRY_OPTION_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum gantry_option_type {
	/* const char *; owned by the configuration, valid as long as the instance */
	GANTRY_OPT_STRING = 1,
	GANTRY_OPT_BOOL,   /* uint8_t, 0 or 1 */
	GANTRY_OPT_INT,    /* int64_t in min..max */
	GANTRY_OPT_SIZE,   /* uint64_t bytes; written "4KiB", "1GiB", "512" */
	GANTRY_OPT_TIME,   /* uint64_t nanoseconds; written "10s", "250ms", "5us" */
	GANTRY_OPT_CHOICE, /* uint32_t index into `choices` */
	/* a nested group { ... } with the rows of `group`; their offsets are in the same struct */
	GANTRY_OPT_GROUP
};

/*
 * Flag for the type of a row, except GROUP: the value can change while the instance runs. The
 * host then calls `change` of struct gantry_plugin.
 */
#define GANTRY_OPT_CHANGEABLE 0x100u

/*
 * How a plugin uses the file that a STRING option names. The host rejects a configuration in which
 * one option replaces a file that another option names. `gantry check` reports files and
 * directories that are missing, or that the process has no right to read or write. It reports the
 * file of a volume only if the `check` of the plugin does.
 */
#define GANTRY_PATH_KEEP 1    /* the plugin reads or serves the content */
#define GANTRY_PATH_REPLACE 2 /* the plugin replaces the content */
/*
 * The content is the volume of a backend. The host rejects a configuration in which two backends
 * name the same file, unless both volumes are read-only.
 */
#define GANTRY_PATH_VOLUME 4
/* a directory, which the plugin creates if it is missing */
#define GANTRY_PATH_DIRECTORY 8

struct gantry_option {
	const char *name;
	uint32_t type;   /* enum gantry_option_type; may have GANTRY_OPT_CHANGEABLE added */
	uint32_t offset; /* offsetof() in the plugin's conf struct */
	/*
	 * the default, as text of the configuration; NULL: the option is mandatory. For a GROUP, a
	 * non-NULL value makes the group optional: if it is omitted, its rows take their defaults
	 */
	const char *dflt;
	/*
	 * range of INT, SIZE (bytes) and TIME (nanoseconds); both 0: the whole range of the type.
	 * STRING: min is GANTRY_PATH_*, or 0 if the value is not a path; max is 0
	 */
	int64_t min, max;
	const char *const *choices; /* CHOICE: NULL-terminated list of words */
	const struct gantry_option *group;
	const char *help; /* one sentence for the manual */
};

/*
 * Get the type of a row without GANTRY_OPT_CHANGEABLE.
 *
 * row      the row
 * returns  enum gantry_option_type
 * thread   any thread
 */
static inline uint32_t gantry_option_type(const struct gantry_option *row)
{
	return row->type & ~GANTRY_OPT_CHANGEABLE;
}

/* clang-format off */
#define GANTRY_OPTION_END {NULL, 0, 0, NULL, 0, 0, NULL, NULL, NULL} /* the last row */
/* clang-format on */

#ifdef __cplusplus
}
#endif

#endif
