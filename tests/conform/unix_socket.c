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
#define NO_REGION_DATA "its messages have no data of regions"
#define NO_RMA "it has no remote read and write"

static char names[NAMES][64];
static const char *services[NAMES + 1];

/* The cases of rma.c are ignored because the device lacks GANTRY_CAP_RMA. */
static const struct rig_gap gaps[] = {
	{"changed_data_of_a_destroyed_producer", NO_REGION_DATA},
	{"region_data_of_many_sizes", NO_REGION_DATA},
	{"payload_is_copied_once", NO_REGION_DATA},
	{"invalid_region_sends_are_rejected", NO_REGION_DATA},
	{"completions_come_in_order", NO_REGION_DATA},
	{"inline_and_region_data_in_order", NO_REGION_DATA},
	{"queue_full_of_region_data_rings", NO_REGION_DATA},
	{"region_buffers_are_reused_after_completion", NO_REGION_DATA},
	/* cases of killed.c */
	{"peer_is_killed_while_data_is_sent_to_it", NO_REGION_DATA},
	{"region_of_a_killed_peer_can_still_be_released", NO_RMA},
	{"peer_is_killed_while_its_memory_is_read", NO_RMA},
	{"peer_is_killed_while_it_writes_an_imported_region", NO_RMA},
	{NULL, NULL},
};

struct rig_driver rig_driver = {
	.plugin = "unix-socket",
	.services = services,
	.uncounted = 1,
	.slower = 20,
	.closed_ms = 100,
	.gaps = gaps,
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
