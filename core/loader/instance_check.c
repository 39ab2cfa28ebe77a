/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * instance_check.c - call `check` of plugins: for options, and for services.
 *
 * The option `services` of a device, which the host adds to the options of each transport, maps
 * names of services to the texts of the transport, such as addresses.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "config/config.h"
#include "loader/loader.h"

/* Receives the faults of one call. */
struct faults {
	struct gn_errs *errs;      /* NULL: ignore the faults */
	struct gn_conf_node *node; /* group of the options, or the service; can be NULL */
	const char *plugin;
	const char *remedy; /* of a service */
};

__attribute__((format(printf, 3, 4))) static void add_fault(const struct gantry_check *check,
							    const char *option, const char *fmt,
							    ...)
{
	const struct faults *faults = check->core;
	char text[512];
	va_list args;

	if (!faults->errs)
		return;
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	if (check->service)
		gn_conf_fault(faults->errs, faults->node, "\"%s\" %s%s", check->service, text,
			      faults->remedy);
	else if (faults->node)
		gn_conf_fault_option(faults->errs, faults->node, option, text);
	else
		gn_errs_add(faults->errs, "%s: %s %s", faults->plugin, option, text);
}

static void call_check(const struct gn_plugin *plugin, const void *conf, struct faults *faults,
		       struct gantry_check *check)
{
	faults->plugin = plugin->desc->name;
	check->core = faults;
	check->fault = add_fault;
	if (plugin->desc->check)
		plugin->desc->check(conf, check);
}

void gn_plugin_check(const struct gn_plugin *plugin, const void *conf, struct gn_conf_node *group,
		     struct gn_errs *errs, struct gantry_check *check)
{
	struct faults faults = {.errs = errs, .node = group};

	call_check(plugin, conf, &faults, check);
}

struct gantry_check gn_plugin_properties(const struct gn_plugin *plugin, const void *conf)
{
	struct gantry_check check = {.flags = 0};

	gn_plugin_check(plugin, conf, NULL, NULL, &check);
	return check;
}

void gn_service_check(const struct gn_plugin *plugin, const void *conf, const char *service,
		      struct gn_conf_node *node, const char *remedy, struct gn_errs *errs)
{
	struct faults faults = {.errs = errs, .node = node, .remedy = remedy};
	struct gantry_check check = {.service = service};

	call_check(plugin, conf, &faults, &check);
}

const char *gn_service_text(struct gn_conf_node *device, const char *name)
{
	const char *text = gn_conf_string(gn_conf_child(gn_conf_child(device, "services"), name));

	return text ? text : name;
}

void gn_services_check(struct gn_conf_node *device, const struct gn_plugin *plugin,
		       const void *conf, struct gn_errs *errs)
{
	struct gn_conf_node *map = gn_conf_child(device, "services");

	if (map && !gn_conf_is_group(map))
		gn_conf_fault(errs, map, "is not a group; write { NAME = \"ADDRESS\"; ... }");
	for (unsigned i = 0; i < gn_conf_length(map); i++) {
		struct gn_conf_node *entry = gn_conf_index(map, i);
		const char *text = gn_conf_string(entry);

		if (!text || !*text || strlen(text) > GN_SERVICE_MAX)
			gn_conf_fault(errs, entry, "is not a string of 1 to %d characters",
				      GN_SERVICE_MAX);
		else
			gn_service_check(plugin, conf, text, entry, "", errs);
	}
}
