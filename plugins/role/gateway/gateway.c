/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gateway.c - plugin interface of the gateway, which relays the sessions of initiators to one or
 * more targets. It never holds their data.
 */
#define GANTRY_API_VERSION 1

#include "gateway.h"

#include <gantry/uuid.h>

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#define AT(field) offsetof(struct gateway_conf, field)

/* indexed by enum gateway_mode */
static const char *const modes[] = {"concat", "stripe", "failover", NULL};

static const struct gantry_option options[] = {
	{"mode", GANTRY_OPT_CHOICE, AT(mode), "concat", 0, 0, modes, NULL,
	 "How several targets become one volume: in their order, in alternating chunks, or as paths to it."},
	{"chunk", GANTRY_OPT_SIZE, AT(chunk), "64KiB", 512, 1 << 30, NULL, NULL,
	 "Bytes of a chunk, with stripe; a multiple of the block size."},
	{"uuid", GANTRY_OPT_STRING, AT(uuid), "", 0, 0, NULL, NULL,
	 "UUID that the volume of the gateway must have. Empty: any."},
	GANTRY_OPTION_END,
};

static int gateway_open(const struct gantry_role_host *rh, const void *conf, void **role_p)
{
	struct gateway *gateway = malloc(sizeof(*gateway));

	if (!gateway)
		return -ENOMEM;
	gateway->rh = rh;
	gateway->conf = conf;
	gateway->path = 0;
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

/* All paths lead to one volume, as far as the UUIDs are known. */
static void check_paths(const struct gantry_check *check)
{
	const uint8_t *first = check->volumes[0].uuid;

	for (uint32_t i = 1; i < check->n_connects; i++)
		if (gantry_uuid_is_other(first, check->volumes[i].uuid))
			gantry_option_fault(check, "connect",
					    "target %u is another volume than target 0", i);
}

/* The volumes of the connects are known only once the role is open. */
static void gateway_check(const void *conf_arg, struct gantry_check *check)
{
	const struct gateway_conf *conf = conf_arg;
	char why[LAYOUT_WHY];

	if (!check->role)
		return;
	if (conf->mode == GATEWAY_FAILOVER) {
		check->volume = check->volumes[0];
		check_paths(check);
	} else if (layout_compose(conf, check->volumes, check->n_connects, &check->volume, why) !=
		   0) {
		gantry_option_fault(check, "connect", "%s", why);
		check->volume = (struct gantry_volume_info){.size = 0};
		return;
	}
	if (gantry_uuid_is_known(check->volume.uuid) &&
	    layout_check_uuid(conf, &check->volume, why) != 0) {
		gantry_option_fault(check, "uuid", "%s", why);
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
	.options = options,
	.conf_size = sizeof(struct gateway_conf),
	.ops_size = sizeof(ops),
	.ops = &ops,
	.check = gateway_check,
};
