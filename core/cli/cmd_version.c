/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/cli.h"

#include <jansson.h>
#include <stdio.h>

#include <gantry/plugin.h>

int gn_cli_version(const struct gn_cli *cli)
{
	json_t *tree;
	int code;

	if (!cli->json) {
		printf("gantry %s (plugin ABI %d.%d)\n", GANTRY_VERSION, GANTRY_ABI_MAJOR,
		       GANTRY_ABI_MINOR);
		return GN_EXIT_OK;
	}
	tree = json_pack("{si ss si si ss}", "schema", 1, "version", GANTRY_VERSION, "abi_major",
			 GANTRY_ABI_MAJOR, "abi_minor", GANTRY_ABI_MINOR, "plugin_dir",
			 GANTRY_PLUGINDIR);
	code = gn_cli_print_json(tree);
	json_decref(tree);
	return code;
}
