/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gateway.c - plugin interface of the gateway, which relays the sessions of initiators to one or
 * more targets. It never holds their data.
 */
#define GANTRY_API_VERSION 1

#include "gateway.h"

#include <errno.h>
#include <stdlib.h>

static int gateway_open(const struct gantry_role_host *rh, const void *conf, void **role_p)
{
	struct gateway *gateway = malloc(sizeof(*gateway));

	(void)conf;
	if (!gateway)
		return -ENOMEM;
	gateway->rh = rh;
	*role_p = gateway;
	return 0;
}

static int gateway_start(void *role)
{
	struct gateway *gateway = role;

	return gateway->rh->serve(gateway->rh, &relay_ops, gateway);
}

static void gateway_close(void *role)
{
	free(role);
}

/* The volumes of the connects are known only once the role is open. */
static void gateway_check(const void *conf, struct gantry_check *check)
{
	const struct gantry_volume_info *volumes = check->volumes;
	struct gantry_volume_info *shown = &check->volume;
	uint64_t base = 0;

	(void)conf;
	if (!check->role)
		return;
	*shown = volumes[0];
	for (uint32_t i = 1; i < check->n_connects; i++)
		if (route_append(shown, &volumes[i]) != 0) {
			gantry_option_fault(check, "connect",
					    "the targets together are larger than 2^64 bytes");
			*shown = (struct gantry_volume_info){.size = 0};
		}
	for (uint32_t i = 0; i < check->n_connects && shown->size != 0 && shown->block_size != 0;
	     i++) {
		if (base % shown->block_size != 0)
			gantry_option_fault(
				check, "connect",
				"target %u begins at byte %llu, not at a multiple of the block size %u",
				i, (unsigned long long)base, shown->block_size);
		base += volumes[i].size;
	}
}

static const struct gantry_role_ops ops = {
	.open = gateway_open,
	.start = gateway_start,
	.close = gateway_close,
	.flags = GANTRY_ROLE_LISTENS | GANTRY_ROLE_CONNECTS,
};

GANTRY_PLUGIN(gateway) = {
	GANTRY_PLUGIN_HEAD,
	.kind = GANTRY_KIND_ROLE,
	.name = "gateway",
	.version = "1",
	.summary = "relays sessions to one or more targets without touching the data",
	.ops_size = sizeof(ops),
	.ops = &ops,
	.check = gateway_check,
};
