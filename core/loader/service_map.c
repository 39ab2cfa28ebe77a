/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * service_map.c - the option `services` of a device, which the host adds to the options of each
 * transport: it maps names of services to the texts of the transport, such as addresses.
 */
#include <string.h>

#include "config/config.h"
#include "loader/loader.h"

const char *gn_service_text(struct gn_conf_node *device, const char *name)
{
	const char *text = gn_conf_string(gn_conf_child(gn_conf_child(device, "services"), name));

	return text ? text : name;
}

void gn_services_check(struct gn_conf_node *device, const struct gantry_transport_ops *ops,
		       struct gn_errs *errs)
{
	struct gn_conf_node *map = gn_conf_child(device, "services");

	if (map && !gn_conf_is_group(map))
		gn_conf_fault(errs, map, "is not a group; write { NAME = \"ADDRESS\"; ... }");
	for (unsigned i = 0; i < gn_conf_length(map); i++) {
		struct gn_conf_node *entry = gn_conf_index(map, i);
		const char *text = gn_conf_string(entry), *wrong;

		if (!text || !*text || strlen(text) > GN_SERVICE_MAX) {
			gn_conf_fault(errs, entry, "is not a string of 1 to %d characters",
				      GN_SERVICE_MAX);
			continue;
		}
		wrong = ops->check_service(text);
		if (wrong)
			gn_conf_fault(errs, entry, "\"%s\" %s", text, wrong);
	}
}
