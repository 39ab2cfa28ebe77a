/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * other.c - the conformance suite over an out-of-tree transport; gantry-plugin(7) describes its
 * use. The environment replaces the driver: TEST_PLUGINDIR and RIG_PLUGIN select the plugin.
 * RIG_SERVICES lists the services that can be served, RIG_GAPS the cases that do not apply, both
 * separated by spaces. RIG_ONE_DEVICE is set if both ends must use one device.
 */
#include <stdio.h>
#include <stdlib.h>

#include "conform/rig.h"

#define WORDS 32

struct rig_driver rig_driver = {.plugin = "", .closed_ms = 100, .uncounted = 1};

static const char *services[WORDS + 1];
static struct rig_gap gaps[WORDS + 1];

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
	const char *words[WORDS];
	unsigned n = split("RIG_GAPS", words);

	for (unsigned i = 0; i < n; i++)
		gaps[i] = (struct rig_gap){words[i], "RIG_GAPS"};
	rig_driver.gaps = gaps;
	if (split("RIG_SERVICES", services) > 0)
		rig_driver.services = services;
	rig_driver.one_device = getenv("RIG_ONE_DEVICE") != NULL;
	if (getenv("RIG_PLUGIN"))
		rig_driver.plugin = getenv("RIG_PLUGIN");
	rig_driver.missing = missing;
}
