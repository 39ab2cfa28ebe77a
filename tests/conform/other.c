/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * other.c - the conformance suite over an out-of-tree transport; gantry-plugin(7) describes its
 * use. The environment replaces the driver: TEST_PLUGINDIR and RIG_PLUGIN select the plugin.
 * RIG_SERVICES lists the services that can be served, separated by spaces.
 */
#include <stdio.h>
#include <stdlib.h>

#include "conform/rig.h"

#define WORDS 32

struct rig_driver rig_driver = {.plugin = ""};

static const char *services[WORDS + 1];

static const char *missing(void)
{
	return rig_driver.plugin[0] ? NULL : "RIG_PLUGIN names no transport";
}

/* Split a variable into at most WORDS words, which are never freed. Returns their number. */
static unsigned split(const char *name, const char **words)
{
	char *value = getenv(name), *text = value && *value ? strdup(value) : NULL, *rest = NULL;
	unsigned n = 0;

	for (char *word = text ? strtok_r(text, " ", &rest) : NULL; word && n < WORDS;
	     word = strtok_r(NULL, " ", &rest))
		words[n++] = word;
	return n;
}

__attribute__((constructor)) static void read_environment(void)
{
	if (split("RIG_SERVICES", services) > 0)
		rig_driver.services = services;
	if (getenv("RIG_PLUGIN"))
		rig_driver.plugin = getenv("RIG_PLUGIN");
	rig_driver.missing = missing;
}
