/* SPDX-License-Identifier: BSD-3-Clause */
#include "report/page_facts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "report/report.h"

/* -- topology -- */

/*
 * All of it is read from the configuration, because the structs of a role that this process does
 * not run are not filled.
 */
static const char *text(struct gn_conf_node *group, const char *key)
{
	const char *string = gn_conf_string(gn_conf_child(group, key));

	return string ? string : "";
}

static const char *transport(const struct gn_topology *t, const char *device)
{
	for (uint32_t i = 0; i < t->n_devices; i++)
		if (!strcmp(t->devices[i].name, device))
			return text(t->devices[i].node, "transport");
	return "";
}

/*
 * Find the role that serves a connect: on the same device, or else on a device of the same
 * transport, because each end can have a device of its own. NULL: none.
 */
static const struct gn_topo_role *server_of(const struct gn_topology *t,
					    struct gn_conf_node *connect)
{
	const struct gn_topo_role *found = NULL;
	const char *device = text(connect, "device");

	for (uint32_t i = 0; i < t->n_roles; i++) {
		struct gn_conf_node *listen = gn_conf_child(t->roles[i].node, "listen");
		const char *other = text(listen, "device");

		if (!listen || strcmp(text(listen, "name"), text(connect, "name")) != 0)
			continue;
		if (!strcmp(other, device))
			return &t->roles[i];
		if (!found && !strcmp(transport(t, other), transport(t, device)))
			found = &t->roles[i];
	}
	return found;
}

static json_t *endpoint(struct gn_conf_node *node)
{
	return json_pack("{so so}", "service", gn_report_string(text(node, "name")), "device",
			 gn_report_string(text(node, "device")));
}

static void add_connect(const struct gn_topology *t, struct gn_conf_node *node, json_t *list)
{
	const struct gn_topo_role *server = server_of(t, node);
	json_t *connect = endpoint(node);

	json_object_set_new(connect, "to", gn_report_string(server ? server->name : NULL));
	json_array_append_new(list, connect);
}

/* A connect is a group, or a list of groups. */
static json_t *connects_of(const struct gn_topology *t, struct gn_conf_node *node)
{
	json_t *list = json_array();

	if (gn_conf_is_group(node))
		add_connect(t, node, list);
	for (unsigned i = 0; gn_conf_is_list(node) && i < gn_conf_length(node); i++)
		add_connect(t, gn_conf_index(node, i), list);
	return list;
}

static json_t *role_tree(const struct gn_topology *t, const struct gn_topo_role *role)
{
	struct gn_conf_node *listen = gn_conf_child(role->node, "listen"),
			    *backend = gn_conf_child(role->node, "backend"),
			    *stages = gn_conf_child(role->node, "stages");
	json_t *tree = json_object(), *types = json_array();

	json_object_set_new(tree, "role", gn_report_string(text(role->node, "role")));
	if (role->selected)
		json_object_set_new(tree, "lanes", json_integer(role->spec.n_lanes));
	json_object_set_new(tree, "here", json_boolean(role->selected));
	if (listen)
		json_object_set_new(tree, "listen", endpoint(listen));
	json_object_set_new(tree, "connects", connects_of(t, gn_conf_child(role->node, "connect")));
	for (unsigned i = 0; i < gn_conf_length(stages); i++)
		json_array_append_new(types,
				      gn_report_string(text(gn_conf_index(stages, i), "type")));
	json_object_set_new(tree, "stages", types);
	if (backend)
		json_object_set_new(tree, "backend", gn_report_string(text(backend, "type")));
	return tree;
}

json_t *gn_page_topology(const struct gn_topology *topology)
{
	json_t *devices = json_object(), *roles = json_object();

	for (uint32_t i = 0; i < topology->n_devices; i++) {
		const char *name = topology->devices[i].name;

		json_object_set_new(devices, name,
				    json_pack("{so}", "transport",
					      gn_report_string(transport(topology, name))));
	}
	for (uint32_t i = 0; i < topology->n_roles; i++)
		json_object_set_new(roles, topology->roles[i].name,
				    role_tree(topology, &topology->roles[i]));
	return json_pack("{so so}", "devices", devices, "roles", roles);
}

/* -- machine -- */

/* Get the model of the first CPU; "" if the kernel does not report it. Returns dst. */
static char *cpu_model(char *dst, size_t size)
{
	FILE *f = fopen("/proc/cpuinfo", "re");
	char line[256];

	*dst = '\0';
	while (f && !*dst && fgets(line, sizeof(line), f)) {
		const char *colon = strchr(line, ':');

		if (!strncmp(line, "model name", strlen("model name")) && colon)
			snprintf(dst, size, "%.*s", (int)strcspn(colon + 2, "\n"), colon + 2);
	}
	if (f)
		fclose(f);
	return dst;
}

json_t *gn_page_machine(void)
{
	const long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
	struct utsname name = {0};
	char cpu[128], kernel[256];

	uname(&name);
	snprintf(kernel, sizeof(kernel), "%.60s %.120s %.60s", name.sysname, name.release,
		 name.machine);
	return json_pack("{so so sI sI ss}", "kernel", gn_report_string(kernel), "cpu",
			 gn_report_string(cpu_model(cpu, sizeof(cpu))), "cores",
			 (json_int_t)sysconf(_SC_NPROCESSORS_ONLN), "memory_bytes",
			 (json_int_t)pages * page_bytes, "gantry", GANTRY_VERSION);
}

/* -- configuration -- */

json_t *gn_page_config(const struct gn_topology *topology)
{
	char *text = NULL;
	json_t *string;
	size_t n;
	FILE *f = open_memstream(&text, &n);
	int rc;

	if (!f)
		return NULL;
	rc = gn_config_dump_public(topology->config, f);
	if (fclose(f) || rc == -ENOMEM) {
		free(text);
		return NULL;
	}
	string = gn_report_string(rc ? "(the configuration cannot be shown)" : text);
	free(text);
	return string;
}
