/* SPDX-License-Identifier: BSD-3-Clause */
/* json.c - options of a JSON file, which may contain comments */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "argp/argp.h"

#define FILE_BYTES_MAX (1 << 20)

/* Returns the end of the string that begins at p with a quote. */
static char *skip_string(char *p, const char *end)
{
	for (p++; p < end && *p != '"'; p++)
		if (*p == '\\' && p + 1 < end)
			p++;
	return p < end ? p + 1 : p;
}

/* Returns the end of the comment that begins at p, or p if there is none. */
static char *skip_comment(char *p, const char *end)
{
	char *from = p;

	if (p + 1 >= end || p[0] != '/')
		return from;
	if (p[1] == '/') {
		while (p < end && *p != '\n')
			p++;
		return p;
	}
	if (p[1] != '*')
		return from;
	for (p += 2; p + 1 < end; p++)
		if (p[0] == '*' && p[1] == '/')
			return p + 2;
	return from; /* unterminated: the JSON parser reports the error */
}

/* Replace comments by spaces, which preserves line numbers. */
static void blank_comments(char *text, size_t length)
{
	char *end = text + length;

	for (char *p = text; p < end;) {
		char *q = *p == '"' ? p : skip_comment(p, end);

		if (*p == '"') {
			p = skip_string(p, end);
		} else if (q == p) {
			p++;
		} else {
			for (; p < q; p++)
				*p = *p == '\n' ? '\n' : ' ';
		}
	}
}

static bool right_type(enum doca_argp_type type, const json_t *value)
{
	switch (type) {
	case DOCA_ARGP_TYPE_STRING:
		return json_is_string(value);
	case DOCA_ARGP_TYPE_INT:
		return json_is_integer(value);
	case DOCA_ARGP_TYPE_BOOLEAN:
		return json_is_boolean(value);
	case DOCA_ARGP_TYPE_JSON_OBJ:
		return json_is_object(value) || json_is_array(value);
	default:
		return false;
	}
}

static doca_error_t note_value(struct argp *argp, const char *file, struct doca_argp_param *param,
			       json_t *value)
{
	doca_error_t result;
	char *text;

	if (!right_type(param->type, value)) {
		gd_argp_error(argp, "%s: option %s: the value has the wrong type", file,
			      gd_argp_name(param));
		return DOCA_ERROR_INVALID_VALUE;
	}
	if (json_is_string(value))
		return gd_argp_note(argp, param, json_string_value(value), true);
	text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
	result = text ? gd_argp_note(argp, param, text, true) : DOCA_ERROR_NO_MEMORY;
	free(text);
	return result;
}

/* An option that may be repeated can have an array of values. */
static doca_error_t note_values(struct argp *argp, const char *file, struct doca_argp_param *param,
				json_t *value)
{
	doca_error_t result = DOCA_SUCCESS;

	if (!param->multiple || !json_is_array(value))
		return note_value(argp, file, param, value);
	for (size_t i = 0; i < json_array_size(value) && result == DOCA_SUCCESS; i++)
		result = note_value(argp, file, param, json_array_get(value, i));
	return result;
}

static doca_error_t read_flags(struct argp *argp, const char *file, json_t *object, bool general)
{
	doca_error_t result = DOCA_SUCCESS;
	struct doca_argp_param *param;
	const char *key;
	json_t *value;

	if (!json_is_object(object)) {
		gd_argp_error(argp, "%s: doca_general_flags and doca_program_flags must be objects",
			      file);
		return DOCA_ERROR_INVALID_VALUE;
	}
	json_object_foreach (object, key, value) {
		param = gd_argp_find(argp, key, strlen(key), true);
		if (!param)
			param = gd_argp_find(argp, key, strlen(key), false);
		if (!param || (param->flag == ARGP_PROGRAM) == general ||
		    param->flag == ARGP_HELP || param->flag == ARGP_VERSION) {
			gd_argp_error(argp, "%s: unknown option %s", file, key);
			return DOCA_ERROR_INVALID_VALUE;
		}
		if (param->cli_only) {
			gd_argp_error(argp, "%s: option %s is permitted only on the command line",
				      file, key);
			return DOCA_ERROR_INVALID_VALUE;
		}
		result = note_values(argp, file, param, value);
		if (result != DOCA_SUCCESS)
			return result;
	}
	return result;
}

static doca_error_t read_root(struct argp *argp, const char *file, json_t *root)
{
	doca_error_t result = DOCA_SUCCESS;
	const char *key;
	json_t *value;

	json_object_foreach (root, key, value) {
		if (strcmp(key, "doca_general_flags") == 0) {
			result = read_flags(argp, file, value, true);
		} else if (strcmp(key, "doca_program_flags") == 0) {
			result = read_flags(argp, file, value, false);
		} else {
			gd_argp_error(
				argp,
				"%s: unknown key %s: use doca_general_flags or doca_program_flags",
				file, key);
			result = strcmp(key, "doca_dpdk_flags") == 0 ? DOCA_ERROR_NOT_SUPPORTED
								     : DOCA_ERROR_INVALID_VALUE;
		}
		if (result != DOCA_SUCCESS)
			return result;
	}
	return result;
}

/* Parse a text. Its comments are overwritten by spaces. */
static doca_error_t parse(struct argp *argp, const char *name, char *text, size_t length)
{
	doca_error_t result = DOCA_ERROR_INVALID_VALUE;
	json_error_t error;
	json_t *root;

	blank_comments(text, length);
	root = json_loadb(text, length, JSON_REJECT_DUPLICATES, &error);
	if (!root)
		gd_argp_error(argp, "%s:%d: %s", name, error.line, error.text);
	else if (!json_is_object(root))
		gd_argp_error(argp, "%s: not a JSON object", name);
	else
		result = read_root(argp, name, root);
	json_decref(root);
	return result;
}

/* Read a file of limited size into memory from malloc(3). Returns its length, or -1 with errno. */
static ssize_t read_file(const char *path, char **text_p)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	size_t n = 0;
	ssize_t ret = -1;
	char *text;

	if (fd < 0)
		return -1;
	text = malloc(FILE_BYTES_MAX + 1);
	while (text && n <= FILE_BYTES_MAX &&
	       (ret = read(fd, text + n, FILE_BYTES_MAX + 1 - n)) > 0)
		n += (size_t)ret;
	close(fd);
	if (ret < 0 || n > FILE_BYTES_MAX) {
		errno = ret >= 0 ? EFBIG : errno;
		free(text);
		return -1;
	}
	*text_p = text;
	return (ssize_t)n;
}

doca_error_t gd_argp_read_json(struct argp *argp, const char *path)
{
	char *text = NULL;
	ssize_t length = read_file(path, &text);
	doca_error_t result;

	if (length < 0) {
		gd_argp_error(argp, "cannot read %s: %s", path, strerror(errno));
		return DOCA_ERROR_IO_FAILED;
	}
	result = parse(argp, path, text, (size_t)length);
	free(text);
	return result;
}
