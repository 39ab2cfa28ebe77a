/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/cli.h"

#include <jansson.h>
#include <stdio.h>

#include <gantry/plugin.h>

#include "cli/report.h"

int gn_cli_version(const struct gn_cli *cli)
{
	json_t *tree;
	int rc;

	if (!cli->json) {
		printf("gantry %s (plugin ABI %d.%d)\n", GANTRY_VERSION, GANTRY_ABI_MAJOR, GANTRY_ABI_MINOR);
		return GN_EXIT_OK;
	}
	tree = json_pack("{si ss si si ss}", "schema", 1, "version", GANTRY_VERSION, "abi_major", GANTRY_ABI_MAJOR,
			 "abi_minor", GANTRY_ABI_MINOR, "plugin_dir", GANTRY_PLUGINDIR);
	rc = tree ? gn_report_print_json(stdout, tree) : -1;
	json_decref(tree);
	return rc ? GN_EXIT_FAILED : GN_EXIT_OK;
}
