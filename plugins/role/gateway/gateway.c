/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gateway - relays the sessions of any number of initiators to one or more targets, and never holds their data.
 */
#include "gateway.h"

#include <errno.h>
#include <stdlib.h>

static int gateway_open(const struct gantry_role_host *rh, const void *conf, void **role_p)
{
	struct gateway *gateway = malloc(sizeof(*gateway));

	(void)conf;
	if (gateway == NULL)
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
};
