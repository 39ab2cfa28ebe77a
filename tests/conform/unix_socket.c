/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * unix_socket.c - the conformance suite over the example examples/transport/unix-socket.c, which
 * the Makefile builds in tests/.libs.
 *
 * Its service names are visible in the whole network namespace. Those of this test contain the
 * number of the process, because another build can run the same test.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "conform/rig.h"

#define NAMES 9

static char names[NAMES][64];
static const char *services[NAMES + 1];

struct rig_driver rig_driver = {
	.plugin = "unix-socket",
	.services = services,
	.slower = 20,
};

__attribute__((constructor)) static void prepare(void)
{
	static const char *const kinds[] = {"vol",     "a",       "192.0.2.7:4791", "a/b",
					    "../../x", ".hidden", "sp ace%",        "\xc3\xa4"};
	unsigned n = 0;

	setenv("TEST_PLUGINDIR", TEST_PLUGINDIR "/../../tests/.libs", 0);
	for (; n < NAMES - 1; n++)
		snprintf(names[n], sizeof(names[n]), "%s-%d", kinds[n], (int)getpid());
	snprintf(names[n], sizeof(names[n]), "%063d", (int)getpid());
	for (n = 0; n < NAMES; n++)
		services[n] = names[n];
}
