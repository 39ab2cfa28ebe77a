/* SPDX-License-Identifier: BSD-3-Clause */
/* kit_conf.c - options of the plugin under test, by the parser of configurations. */
#include <stdio.h>
#include <stdlib.h>

#include "config/config.h"
#include "kit/kit_program.h"

#define GROUP "plugin."

/* Copy the settings as overrides of the group that this file parses. */
static void add_keys(struct gn_strlist *keys, const struct gn_strlist *settings)
{
	for (size_t i = 0; i < settings->n; i++) {
		char *key = NULL;

		if (asprintf(&key, GROUP "%s", settings->word[i]) < 0 || gn_strlist_add(keys, key))
			fake_fail("out of memory");
	}
}

static void *parse(struct gn_conf_node *group, struct gn_errs *errs)
{
	const struct gantry_plugin *plugin = kit_program.plugin;
	struct gantry_check check = {0};
	void *conf = plugin->options ? calloc(1, plugin->conf_size) : NULL;

	if (plugin->options && !conf)
		fake_fail("out of memory");
	if (!gn_conf_options(group, plugin->options, conf, NULL, errs))
		gn_plugin_check(kit_program.loaded, conf, group, errs, &check);
	return conf;
}

/* Returns the configuration, which has the strings of *conf_p; NULL: it could not be opened. */
static struct gn_config *open_conf(const struct gn_strlist *more, void **conf_p, char *why,
				   size_t size)
{
	static const char text[] = "plugin = { };";
	struct gn_strlist keys = {0};
	struct gn_errs errs = {0};
	struct gn_config *config;

	*conf_p = NULL;
	add_keys(&keys, &kit_program.sets);
	if (more)
		add_keys(&keys, more);
	config = gn_config_open_text("--set", text, keys.word, keys.n, &errs);
	if (config)
		*conf_p = parse(gn_conf_child(gn_config_root(config), "plugin"), &errs);
	snprintf(why, size, "%s", errs.n ? errs.text[0] : "");
	if (errs.n) {
		free(*conf_p);
		*conf_p = NULL;
	}
	gn_errs_fini(&errs);
	for (size_t i = 0; i < keys.n; i++)
		free((char *)(uintptr_t)keys.word[i]);
	gn_strlist_fini(&keys);
	return config;
}

void kit_check_conf(const struct gn_strlist *more, char *why, size_t size)
{
	void *conf;
	struct gn_config *config = open_conf(more, &conf, why, size);

	free(conf);
	gn_config_close(&config);
}

void *kit_conf(const struct gn_strlist *more, char *why, size_t size)
{
	void *conf;

	open_conf(more, &conf, why, size);
	return conf;
}

void *kit_conf_with(const char *setting, char *why, size_t size)
{
	struct gn_strlist more = {.word = &setting, .n = setting != NULL};

	return kit_conf(&more, why, size);
}

void *kit_conf_copy(void)
{
	static void *parsed; /* once: a case can count the blocks of memory */
	const struct gantry_plugin *plugin = kit_program.plugin;
	char why[512] = "out of memory";
	void *conf;

	if (!plugin->options)
		return NULL;
	if (!parsed)
		parsed = kit_conf(NULL, why, sizeof(why));
	conf = parsed ? malloc(plugin->conf_size) : NULL;
	if (!conf)
		rig_fail_at(__FILE__, __LINE__, "%s", why);
	memcpy(conf, parsed, plugin->conf_size);
	return conf;
}
