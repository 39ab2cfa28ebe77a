/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cmd_devices.c - gantry devices: lists what each transport finds on this machine, and the devices
 * of a configuration.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/container_of.h"
#include "cli/cli.h"
#include "report/report.h"
#include "topology/topology.h"

/* -- one transport -- */

/* A host that collects the log lines of a scan, to print them with its result. */
struct scan {
	struct gn_host host;
	json_t *problems;
};

static void note_problem(const struct gantry_host *pub, int level, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static void note_problem(const struct gantry_host *pub, int level, const char *fmt, ...)
{
	struct scan *scan = gn_container_of((struct gn_host *)pub->core, struct scan, host);
	char text[512];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	if (level == GANTRY_LOG_DEBUG)
		gn_log(GN_LOG_DEBUG, pub->name, "%s", text);
	else
		json_array_append_new(scan->problems, gn_report_string(text));
}

/*
 * Scan for devices of a transport. Returns { "summary", "inside", "found": [ ... ], "problems": [
 * ... ] }; NULL: out of memory.
 */
static json_t *scan_transport(const struct gn_plugin *plugin)
{
	const struct gantry_transport_ops *ops = plugin->ops;
	struct scan scan = {.problems = json_array()};
	struct gn_report report;
	json_t *tree;
	int rc;

	gn_report_init(&report);
	gn_host_init(&scan.host, "%s", plugin->desc->name);
	scan.host.pub.log = note_problem;
	report.w.array(&report.w, "found");
	rc = ops->scan(&scan.host.pub, &report.w);
	report.w.end(&report.w);
	gn_host_fini(&scan.host);
	if (rc < 0 && !json_array_size(scan.problems))
		json_array_append_new(scan.problems, json_string(strerror(-rc)));
	tree = gn_report_tree(&report);
	if (!tree)
		json_array_append_new(
			scan.problems,
			json_string("plugin bug: invalid report, so the devices cannot be shown"));
	tree = json_pack("{ss sb so so}", "summary", plugin->desc->summary, "inside",
			 (ops->flags & GANTRY_TRANSPORT_INSIDE) != 0, "found",
			 tree ? json_incref(json_object_get(tree, "found")) : json_array(),
			 "problems", scan.problems);
	gn_report_fini(&report);
	return tree;
}

static int add_transport(void *arg, const struct gn_plugin_file *file)
{
	if (!file->plugin || file->plugin->desc->kind != GANTRY_KIND_TRANSPORT)
		return 0;
	return json_object_set_new(arg, file->name, scan_transport(file->plugin)) ? -ENOMEM : 0;
}

/* -- devices of a configuration -- */

/* Open and describe a device. Returns false if it cannot be opened. */
static bool describe_device(struct gn_topo_device *device, struct gn_loop *loop,
			    struct gantry_writer *w)
{
	int rc = gn_topology_open_device(device, loop);
	char text[128];

	snprintf(text, sizeof(text), "cannot be opened: %s", strerror(-rc));
	w->object(w, device->name);
	w->string(w, "transport", device->plugin->desc->name);
	w->string(w, "state", rc ? text : "ready");
	if (!rc)
		gn_device_describe(device->device, w);
	w->end(w);
	return !rc;
}

/* Describe all devices. *tree_p: out, the tree, which the caller owns. Returns enum gn_exit. */
static int describe_devices(struct gn_topology *t, json_t **tree_p)
{
	struct gn_loop *loop = gn_loop_create();
	struct gn_report report;
	int code = GN_EXIT_OK;

	if (!loop)
		return gn_cli_fail(GN_EXIT_FAILED, "cannot set up: %s", strerror(errno));
	gn_report_init(&report);
	for (uint32_t i = 0; i < t->n_devices; i++)
		if (t->devices[i].plugin && !describe_device(&t->devices[i], loop, &report.w))
			code = GN_EXIT_FAILED;
	*tree_p = json_incref(gn_report_tree(&report));
	gn_report_fini(&report);
	for (uint32_t i = 0; i < t->n_devices; i++)
		gn_device_close(&t->devices[i].device);
	gn_loop_destroy(&loop);
	return *tree_p ? code : gn_cli_fail(GN_EXIT_FAILED, "out of memory");
}

/* -- output -- */

static const char *string_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

/* Print "NAME  STATE", and the other values below it. */
static void print_found(const char *name, json_t *device)
{
	fputs("  ", stdout);
	gn_report_print_plain(stdout, name);
	fputs("  ", stdout);
	gn_report_print_plain(stdout, string_of(device, "state"));
	putchar('\n');
	json_object_del(device, "state");
	json_object_del(device, "name");
	gn_report_print_text(stdout, device, 2);
}

static void print_transport(const char *name, const json_t *transport)
{
	const json_t *found = json_object_get(transport, "found"),
		     *problems = json_object_get(transport, "problems");
	size_t i, n = json_array_size(found);
	json_t *item;

	printf("%s: ", name);
	if (n)
		printf("%zu found\n", n);
	else
		puts(json_is_true(json_object_get(transport, "inside"))
			     ? "nothing to find, each process has its own"
			     : "nothing found");
	json_array_foreach ((json_t *)found, i, item)
		print_found(string_of(item, "name"), item);
	json_array_foreach ((json_t *)problems, i, item) {
		fputs("  ", stdout);
		gn_report_print_plain(stdout, json_string_value(item));
		putchar('\n');
	}
}

static void print(json_t *tree, const char *file, const char *dirs)
{
	const char *name;
	json_t *item;

	json_object_foreach (json_object_get(tree, "transports"), name, item)
		print_transport(name, item);
	if (!json_object_size(json_object_get(tree, "transports")))
		printf("no transport plugin in %s; use --plugin-dir DIR to search another directory\n",
		       dirs);
	if (!file)
		return;
	printf("\ndevices of %s:\n", file);
	json_object_foreach (json_object_get(tree, "devices"), name, item)
		print_found(name, item);
}

static int list(const struct gn_cli *cli, struct gn_loader *loader, struct gn_topology *topology)
{
	json_t *transports = json_object(), *devices = NULL, *tree = NULL;
	int code = topology ? describe_devices(topology, &devices) : GN_EXIT_OK;
	bool ok = transports && !gn_loader_each(loader, add_transport, transports);

	if (ok)
		tree = json_pack("{si sO so* sO*}", "schema", 1, "transports", transports, "config",
				 topology ? gn_report_string(topology->file) : NULL, "devices",
				 devices);
	if ((!tree || cli->json) && gn_cli_print_json(tree))
		code = GN_EXIT_FAILED;
	else if (!cli->json)
		print(tree, topology ? topology->file : NULL, gn_loader_dirs(loader));
	json_decref(tree);
	json_decref(transports);
	json_decref(devices);
	return code;
}

int gn_cli_devices(const struct gn_cli *cli)
{
	const char *file = cli->args.n ? cli->args.word[0] : NULL;
	struct gn_topology topology = {0};
	struct gn_loader *loader = NULL;
	struct gn_errs errs = {0};
	int code;

	if (!file && (cli->topology.roles.n || cli->topology.sets.n))
		return gn_cli_fail(GN_EXIT_USAGE, "--role and --set need a configuration FILE");
	if (file)
		gn_topology_load(&topology, file, &cli->topology, &errs);
	else
		gn_topology_loader(NULL, &cli->topology, &errs, &loader);
	if (errs.n)
		code = gn_cli_complain(&errs);
	else
		code = list(cli, file ? topology.loader : loader, file ? &topology : NULL);
	gn_topology_close(&topology);
	gn_loader_close(&loader);
	return code;
}
