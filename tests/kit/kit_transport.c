/* SPDX-License-Identifier: BSD-3-Clause */
/* kit_transport.c - the conformance suite of transports over the plugin of the command line. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "kit/kit_program.h"

#define SERVICES 16

/*
 * Services without --service. Other processes can see the names of a transport, so the names
 * contain the number of this process. The last one has the maximum length.
 */
static char names[SERVICES][64];
static const char *services[SERVICES + 1];

static void *conf_of(int is_a, char *why, size_t size)
{
	return kit_conf(is_a ? &kit_program.connector_sets : &kit_program.listener_sets, why, size);
}

static void make_names(void)
{
	static const char *const kinds[] = {"vol",     "a",       "192.0.2.7:4791", "a/b",
					    "../../x", ".hidden", "sp ace%",        "\xc3\xa4"};
	unsigned n = 0;

	for (; n < sizeof(kinds) / sizeof(kinds[0]); n++)
		snprintf(names[n], sizeof(names[n]), "%s-%d", kinds[n], (int)getppid());
	snprintf(names[n], sizeof(names[n]), "%063d", (int)getppid());
	for (unsigned i = 0; i <= n; i++)
		services[i] = names[i];
}

static void use_services(void)
{
	for (size_t i = 0; i < kit_program.services.n && i < SERVICES; i++)
		services[i] = kit_program.services.word[i];
	if (!kit_program.services.n)
		make_names();
	rig_driver.services = services;
}

void kit_transport_cases(void)
{
	rig_driver.plugin = kit_program.plugin->name;
	rig_driver.conf = conf_of;
	use_services();
	conn_cases();
	queue_cases();
	data_cases();
	region_cases();
	hold_cases();
	rma_cases();
	lane_cases();
	thread_cases();
}
