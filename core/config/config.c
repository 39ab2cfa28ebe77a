/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/config.h"

#include <errno.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>

#include "config/config_priv.h"

/* Add the error message of libconfig, with the place and a hint. */
static void add_parse_fault(struct gn_config *config, struct gn_errs *errs)
{
	const char *file = config_error_file(&config->cfg), *text = config_error_text(&config->cfg),
		   *hint = "";
	struct gn_err_place place = {gn_config_file_name(config, file),
				     (unsigned int)config_error_line(&config->cfg), NULL};

	if (!text)
		text = "cannot be parsed";
	if (!strcmp(text, "syntax error"))
		hint = "; look for a missing ; or quote or bracket in this line or the one before";
	else if (!strcmp(text, "duplicate setting name"))
		hint = "; the group has this key twice: keep one";
	else if (!strncmp(text, "mismatched element", 18))
		hint = "; all members of [ ] must have one type, use ( ) to mix";
	gn_errs_add_at(errs, &place, "%s%s", text, hint);
}

static int parse(struct gn_config *config, char *text, struct gn_errs *errs)
{
	FILE *stream = fmemopen(text, strlen(text), "r");
	int ok;

	if (!stream) {
		gn_errs_because(errs, -errno);
		gn_errs_add_at(errs, &(struct gn_err_place){.file = config->path}, "%s",
			       strerror(errno));
		return gn_errs_rc(errs);
	}
	ok = config_read(&config->cfg, stream);
	fclose(stream);
	if (ok)
		return 0;
	add_parse_fault(config, errs);
	return -EINVAL;
}

/*
 * Create a configuration. text: content of the main file. dir: directory for includes; NULL: the
 * directory of path.
 */
static struct gn_config *make(const char *path, char *text, const char *dir,
			      const char *const *overrides, size_t n, struct gn_errs *errs)
{
	struct gn_config *config = calloc(1, sizeof(*config));
	size_t before = errs->n;
	char *copy;

	if (!config) {
		gn_errs_no_memory(errs);
		return NULL;
	}
	config_init(&config->cfg);
	config->path = gn_arena_strdup(&config->arena, path);
	copy = gn_arena_strdup(&config->arena, path);
	if (!config->path || !copy) {
		gn_errs_no_memory(errs);
		goto out_undo_config;
	}
	config->dir = dir ? dir : dirname(copy);
	config->beside = dir ? config->path : "--set";
	config_set_include_dir(&config->cfg, config->dir);
	if (gn_config_scan(path, text, config->dir, errs) || parse(config, text, errs))
		goto out_undo_config;
	for (size_t i = 0; i < n; i++)
		gn_config_override(config, overrides[i], errs);
	if (errs->n != before)
		goto out_undo_config;
	return config;

out_undo_config:
	gn_config_close(&config);
	return NULL;
}

struct gn_config *gn_config_open(const char *path, const char *const *overrides, size_t n,
				 struct gn_errs *errs)
{
	struct gn_err_place place = {.file = path};
	size_t before = errs->n;
	char *text = gn_config_read_file(path, "", errs);
	struct gn_config *config;

	gn_errs_locate(errs, before, &place, 0);
	config = text ? make(path, text, NULL, overrides, n, errs) : NULL;

	free(text);
	return config;
}

struct gn_config *gn_config_open_text(const char *name, const char *text,
				      const char *const *overrides, size_t n, struct gn_errs *errs)
{
	struct gn_config *config;
	char *line;

	/* libconfig 1.5 rejects a comment without a newline at the end of the text */
	if (asprintf(&line, "%s\n", text) < 0) {
		gn_errs_no_memory(errs);
		return NULL;
	}
	config = make(name, line, ".", overrides, n, errs);
	free(line);
	return config;
}

void gn_config_close(struct gn_config **config_p)
{
	struct gn_config *config = *config_p;

	*config_p = NULL;
	if (!config)
		return;
	config_destroy(&config->cfg);
	gn_arena_fini(&config->arena);
	free(config);
}

void gn_config_dump(const struct gn_config *config, FILE *out)
{
	config_write(&config->cfg, out);
}

struct gn_conf_node *gn_config_root(struct gn_config *config)
{
	return gn_conf_node(config_root_setting(&config->cfg));
}
