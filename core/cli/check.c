/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gantry check: everything that can be known before the first IO. Devices are opened, because only they know their
 * limits; roles are made, but not started. A stand-in takes the place of each backend, so that no volume is touched.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <gantry/backend.h>

#include "cli/cli.h"
#include "cli/report.h"
#include "cli/topology.h"

#define FDS_OF_PROCESS 64u  /* standard streams, plugins, loops, logs */
#define FDS_OF_SESSION 8u   /* control channel, regions */
#define FDS_OF_LANE 6u      /* of a session: two queues with memory and doorbells */

struct check {
	struct gn_topology topology;
	struct gn_errs errs;
	uint64_t n_fds;
	json_t *warnings;
};

/* -- the stand-in for backends -- */

static int stand_in_open(const struct gantry_host *host, const void *conf, void **backend_p)
{
	(void)host;
	(void)conf;
	*backend_p = NULL;
	return 0;
}

static void stand_in_volume(void *backend, struct gantry_volume *volume)
{
	(void)backend;
	*volume = (struct gantry_volume){.size = 1ull << 40, .block_size = 4096, .ops = ~0u >> (32 - GANTRY_OP_COUNT),
					 .max_io = 1u << 20};
}

static int stand_in_start(void *backend, struct gantry_lane *lane, uint32_t depth, void **self_p)
{
	(void)backend;
	(void)depth;
	*self_p = lane;
	return 0;
}

static int stand_in_submit(void *self, struct gantry_io *io)
{
	(void)self;
	gantry_fail(io, GANTRY_S_UNSUPPORTED);
	return 0;
}

static int zero(void *self)
{
	(void)self;
	return 0;
}

static int no_fd(void *self)
{
	(void)self;
	return -1;
}

static void nothing(void *self)
{
	(void)self;
}

static void no_report(void *self, struct gantry_writer *w)
{
	(void)self;
	(void)w;
}

static const struct gantry_backend_ops stand_in = {
	.open = stand_in_open,
	.volume = stand_in_volume,
	.start = stand_in_start,
	.submit = stand_in_submit,
	.poll = zero,
	.arm = zero,
	.disarm = nothing,
	.fd = no_fd,
	.stop = nothing,
	.report = no_report,
	.close = nothing,
};

/* -- limits -- */

static void warn(struct check *check, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void warn(struct check *check, const char *fmt, ...)
{
	char text[512];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	json_array_append_new(check->warnings, json_string(text));
}

/* Each queue has room for two receives of each IO in flight: no answer ever waits for its credit. */
static void check_listen(struct check *check, const struct gn_topo_role *role)
{
	const struct gn_endpoint *ep = role->listen;
	const struct gn_device *device = role->listen_device->device;
	struct gn_conf_node *node = gn_conf_child(role->node, "listen"), *at = gn_conf_child(node, "max_depth");
	struct gantry_device_info info = {.caps = 0};

	device->ops->info(device->dev, &info);
	if (info.max_depth && 2ull * ep->max_depth > info.max_depth)
		gn_conf_fault(&check->errs, at ? at : node,
			      "max_depth %u needs queues of %u; the device \"%s\" has up to %u; write max_depth = %u or less",
			      ep->max_depth, 2 * ep->max_depth, device->name, info.max_depth, info.max_depth / 2);
	if (info.max_regions && ep->max_regions > info.max_regions)
		gn_conf_fault(&check->errs, node, "max_regions is %u; the device \"%s\" has up to %u", ep->max_regions,
			      device->name, info.max_regions);
	check->n_fds += (uint64_t)ep->max_sessions * (FDS_OF_SESSION + ep->max_regions + FDS_OF_LANE * ep->max_lanes);
}

/* A role that listens at a service of the same device twice would refuse its own start. */
static void check_service_twice(struct check *check, uint32_t index)
{
	const struct gn_topo_role *role = &check->topology.roles[index];

	for (uint32_t i = 0; i < index; i++) {
		const struct gn_topo_role *other = &check->topology.roles[i];

		if (other->role && other->listen && other->listen_device == role->listen_device &&
		    !strcmp(other->listen->service, role->listen->service))
			gn_conf_fault(&check->errs, gn_conf_child(role->node, "listen"),
				      "the role \"%s\" (%s) listens at \"%s\" of this device already", other->name,
				      other->listen->where, role->listen->service);
	}
}

static void check_process(struct check *check)
{
	const struct gn_topology *t = &check->topology;
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	struct rlimit limit;

	if (!getrlimit(RLIMIT_NOFILE, &limit) && limit.rlim_cur != RLIM_INFINITY && check->n_fds > limit.rlim_cur)
		warn(check, "all sessions at their limits need about %llu file descriptors, this process may have %llu; raise "
			    "\"ulimit -n\" or lower max_sessions, max_lanes or max_regions",
		     (unsigned long long)check->n_fds, (unsigned long long)limit.rlim_cur);
	if (cpus > 0 && t->n_workers > (uint32_t)cpus)
		warn(check, "%u threads poll on %ld CPUs; they will take turns", t->n_workers, cpus);
	for (uint32_t i = 0; i < t->runtime.n_cpus; i++)
		if (t->runtime.cpu[i] >= (uint32_t)sysconf(_SC_NPROCESSORS_CONF))
			warn(check, "runtime.cpus names CPU %u, which this machine does not have", t->runtime.cpu[i]);
}

/* -- report -- */

static void describe_limit(struct gantry_writer *w, const char *key, int resource)
{
	struct rlimit limit;

	if (getrlimit(resource, &limit))
		return;
	if (limit.rlim_cur == RLIM_INFINITY)
		w->string(w, key, "unlimited");
	else
		w->u64(w, key, limit.rlim_cur);
}

static void describe(struct check *check, struct gantry_writer *w)
{
	struct gn_topology *t = &check->topology;

	w->u64(w, "schema", 1);
	w->string(w, "config", t->file);
	w->object(w, "devices");
	for (uint32_t i = 0; i < t->n_devices; i++)
		if (t->devices[i].device)
			gn_device_report(t->devices[i].device, w);
	w->end(w);
	w->object(w, "roles");
	for (uint32_t i = 0; i < t->n_roles; i++)
		if (t->roles[i].role)
			gn_role_describe(t->roles[i].role, w);
	w->end(w);
	w->object(w, "process");
	w->u64(w, "threads", t->n_workers);
	w->u64(w, "spin_ns", t->runtime.spin_ns);
	w->u64(w, "file_descriptors_at_most", check->n_fds);
	describe_limit(w, "file_descriptors_allowed", RLIMIT_NOFILE);
	describe_limit(w, "memlock_bytes", RLIMIT_MEMLOCK);
	w->end(w);
}

static int print(struct check *check, const struct gn_cli *cli)
{
	struct gn_report report;
	json_t *tree, *text;
	size_t i;
	int rc = -ENOMEM;

	gn_report_init(&report);
	describe(check, &report.w);
	tree = gn_report_tree(&report);
	if (tree && cli->json) {
		json_object_set(tree, "warnings", check->warnings);
		rc = gn_report_print_json(stdout, tree);
	} else if (tree) {
		json_object_del(tree, "schema");
		json_object_del(tree, "config");
		gn_report_print_text(stdout, tree, 0);
		json_array_foreach(check->warnings, i, text)
			printf("warning: %s\n", json_string_value(text));
		printf("%s: ok\n", check->topology.file);
		rc = 0;
	}
	gn_report_fini(&report);
	return rc;
}

static int check_open(struct check *check, const struct gn_cli *cli, struct gn_loop *loop)
{
	struct gn_topology *t = &check->topology;

	for (uint32_t i = 0; i < t->n_roles; i++)
		if (t->roles[i].selected && t->roles[i].backend)
			t->roles[i].backend->ops = &stand_in;
	if (gn_topology_open(t, loop))
		return gn_cli_fail(GN_EXIT_FAILED, "%s: it would not start; see the messages above", t->file);
	check->n_fds = FDS_OF_PROCESS;
	for (uint32_t i = 0; i < t->n_roles; i++) {
		if (!t->roles[i].role || !t->roles[i].listen)
			continue;
		check_listen(check, &t->roles[i]);
		check_service_twice(check, i);
	}
	check_process(check);
	if (check->errs.n)
		return gn_topology_complain(&check->errs);
	return print(check, cli) ? GN_EXIT_FAILED : GN_EXIT_OK;
}

int gn_cli_check(const struct gn_cli *cli)
{
	struct check check = {.warnings = json_array()};
	struct gn_loop *loop = gn_loop_create();
	int code;

	if (!loop || !check.warnings)
		code = gn_cli_fail(GN_EXIT_FAILED, "cannot set up: %s", strerror(errno));
	else if (gn_topology_load(&check.topology, cli->args.word[0], cli, &check.errs))
		code = gn_topology_complain(&check.errs);
	else
		code = check_open(&check, cli, loop);
	gn_topology_close(&check.topology);
	if (loop)
		gn_loop_destroy(&loop);
	json_decref(check.warnings);
	return code;
}
