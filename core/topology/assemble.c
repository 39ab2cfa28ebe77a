/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * assemble.c - create devices, threads and roles of a loaded topology; start, stop and destroy
 * them.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "topology/topology_priv.h"

/* Number of threads that the selected roles need. */
static uint32_t count_workers(const struct gn_topology *t)
{
	bool separate = t->runtime.threads == GN_THREADS_SEPARATE;
	uint32_t n = 0;

	if (t->own)
		return 0;
	for (uint32_t i = 0; i < t->n_roles; i++) {
		uint32_t lanes = t->roles[i].selected ? t->roles[i].spec.n_lanes : 0;

		if (separate)
			n += lanes;
		else if (lanes > n)
			n = lanes;
	}
	return n;
}

int gn_topology_open_device(struct gn_topo_device *device, struct gn_loop *loop)
{
	const struct gantry_transport_ops *ops = device->plugin->ops;
	const char *plugin = device->plugin->desc->name, *lack;
	struct gantry_device_info info = {.caps = 0};
	int rc = gn_device_open(loop, device->name, plugin, ops, device->conf, &device->auth,
				&device->device);

	if (rc)
		return rc;
	ops->info(device->device->dev, &info);
	lack = gn_ops_missing(ops, info.caps);
	if (!lack)
		return 0;
	gn_log(GN_LOG_ERROR, device->device->host.name,
	       "%s: plugin bug: info reports a capability that needs the missing function \"%s\"",
	       device->plugin->path, lack);
	gn_device_close(&device->device);
	return -ENOTSUP;
}

static int open_devices(struct gn_topology *t, struct gn_loop *loop)
{
	for (uint32_t i = 0; i < t->n_devices; i++) {
		struct gn_topo_device *device = &t->devices[i];
		int rc;

		if (!device->used || !device->plugin)
			continue;
		rc = t->trial ? gn_topo_try_device(device, loop, t->trial->errs)
			      : gn_topology_open_device(device, loop);
		if (rc) {
			gn_log(GN_LOG_ERROR, "gantry", "%s: %s: cannot open the device: %s",
			       gn_conf_where(device->node), gn_conf_path(device->node),
			       strerror(-rc));
			return rc;
		}
	}
	return 0;
}

static void complain_of_thread(const struct gn_topology *t, uint32_t k, int cpu, int rc)
{
	if (cpu >= 0 && rc == -EINVAL)
		gn_log(GN_LOG_ERROR, "gantry",
		       "%s: runtime.cpus: CPU %d, of thread %u, does not exist, or is not allowed for this process; "
		       "write CPUs that \"taskset -cp $$\" lists",
		       gn_conf_where(gn_conf_child(
			       gn_conf_child(gn_config_root(t->config), "runtime"), "cpus")),
		       cpu, k);
	else
		gn_log(GN_LOG_ERROR, "gantry", "cannot start thread %u: %s%s", k, strerror(-rc),
		       rc == -EAGAIN
			       ? "; no memory for its stack (ulimit -v), or too many threads (ulimit -u, TasksMax=)"
			       : "");
}

static int create_workers(struct gn_topology *t)
{
	uint32_t n = count_workers(t);

	t->workers = gn_arena_alloc(&t->arena, (n + 1) * sizeof(struct gn_worker *));
	if (!t->workers)
		return -ENOMEM;
	for (uint32_t k = 0; k < n; k++) {
		char name[24];
		struct gn_worker_attr attr = {
			.name = name, .cpu = -1, .spin_ns = t->runtime.spin_ns};
		int rc;

		/* in a trial, gantry check reports missing CPUs itself */
		if (t->runtime.n_cpus && !t->trial)
			attr.cpu = (int)t->runtime.cpu[k % t->runtime.n_cpus];
		snprintf(name, sizeof(name), "gantry-%u", k);
		rc = gn_worker_create(&attr, &t->workers[k]);
		if (rc) {
			complain_of_thread(t, k, attr.cpu, rc);
			return rc;
		}
		t->n_workers++;
	}
	return 0;
}

static void role_finished(void *arg, int status)
{
	struct gn_topo_role *role = arg;

	role->finished = true;
	role->status = status;
	if (role->topology->role_finished)
		role->topology->role_finished(role->topology->arg, role);
}

/* Lower *limit_p to the limit of the device; 0: the device has no limit. */
static void lower(uint64_t device_limit, uint64_t *limit_p)
{
	if (device_limit && device_limit < *limit_p)
		*limit_p = device_limit;
}

/*
 * For each limit of `listen` that the configuration file does not set: lower it to the limit of
 * `device`, which the sessions use.
 */
static void fit_listen(struct gn_topo_role *role, const struct gn_device *device)
{
	struct gn_conf_node *node = gn_conf_child(role->node, "listen");
	struct gantry_device_info info = {.caps = 0};

	device->ops->info(device->dev, &info);
	if (!gn_conf_child(node, "max_depth"))
		/* each IO needs two receives */
		lower(info.max_depth == 1 ? 1 : info.max_depth / 2, &role->listen->max_depth);
	if (!gn_conf_child(node, "max_regions"))
		lower(info.max_regions, &role->listen->max_regions);
	if (!gn_conf_child(node, "max_region_bytes"))
		lower(info.max_region_bytes, &role->listen->max_region_bytes);
}

static void connect_devices(struct gn_topo_role *role)
{
	if (role->listen) {
		role->listen->device = role->listen_device->device;
		fit_listen(role, role->listen->device);
	}
	for (uint32_t i = 0; i < role->spec.n_connects; i++) {
		role->connects[i].device = role->connect_devices[i]->device;
		if (role->listen)
			fit_listen(role, role->connects[i].device);
	}
}

static int create_role(struct gn_topology *t, struct gn_topo_role *role, struct gn_loop *loop,
		       uint32_t first_worker)
{
	struct gn_worker **workers =
		gn_arena_alloc(&t->arena, role->spec.n_lanes * sizeof(struct gn_worker *));

	if (!workers)
		return -ENOMEM;
	for (uint32_t k = 0; k < role->spec.n_lanes; k++)
		workers[k] = t->own ? t->own->workers[k] : t->workers[first_worker + k];
	role->spec.workers = workers;
	role->spec.stage_times = t->runtime.stage_times;
	connect_devices(role);
	role->spec.finished = role_finished;
	role->spec.arg = role;
	return gn_role_create(loop, &role->spec, &role->role);
}

int gn_topology_open(struct gn_topology *topology, struct gn_loop *loop)
{
	uint32_t first_worker = 0;
	int rc;

	rc = open_devices(topology, loop);
	if (!rc && topology->trial)
		gn_topology_look(topology, topology->trial);
	if (!rc)
		rc = create_workers(topology);
	for (uint32_t i = 0; i < topology->n_roles && !rc; i++) {
		struct gn_topo_role *role = &topology->roles[i];

		if (!role->selected)
			continue;
		rc = create_role(topology, role, loop, first_worker);
		if (rc && topology->trial) {
			role->status = rc;
			rc = 0;
		}
		if (topology->runtime.threads == GN_THREADS_SEPARATE)
			first_worker += role->spec.n_lanes;
	}
	return rc;
}

/*
 * Order of starting: roles without connect, then relays, then roles that end by themselves. So no
 * role waits for a listener of this process.
 */
static uint32_t start_rank(const struct gn_topo_role *role)
{
	if (role->flags & GANTRY_ROLE_WORKS)
		return 2;
	return role->flags & GANTRY_ROLE_CONNECTS ? 1 : 0;
}

int gn_topology_start(struct gn_topology *topology)
{
	for (uint32_t rank = 0; rank < 3; rank++) {
		for (uint32_t i = 0; i < topology->n_roles; i++) {
			struct gn_topo_role *role = &topology->roles[i];
			int rc;

			if (!role->role || start_rank(role) != rank)
				continue;
			gn_topo_warn_of_access(role);
			rc = gn_role_start(role->role);
			if (rc)
				return rc;
			role->started = true;
		}
	}
	return 0;
}

/* Order of stopping: the reverse of start_rank(), highest rank first. */
static uint32_t stop_rank(const struct gn_topo_role *role)
{
	return start_rank(role) + 1; /* 0 means: none */
}

static bool runs(const struct gn_topo_role *role)
{
	return role->started && !role->finished;
}

void gn_topology_wind_down(struct gn_topology *topology)
{
	uint32_t rank = 0;

	for (uint32_t i = 0; i < topology->n_roles; i++)
		if (runs(&topology->roles[i]) && stop_rank(&topology->roles[i]) > rank)
			rank = stop_rank(&topology->roles[i]);
	for (uint32_t i = 0; i < topology->n_roles; i++)
		if (runs(&topology->roles[i]) && stop_rank(&topology->roles[i]) == rank)
			gn_role_stop(topology->roles[i].role);
}

void gn_topology_close(struct gn_topology *topology)
{
	for (uint32_t i = topology->n_roles; i-- > 0;)
		gn_role_destroy(&topology->roles[i].role);
	for (uint32_t k = topology->n_workers; k-- > 0;)
		gn_worker_destroy(&topology->workers[k]);
	topology->n_workers = 0;
	for (uint32_t i = topology->n_devices; i-- > 0;)
		gn_device_close(&topology->devices[i].device);
	for (uint32_t i = topology->n_roles; i-- > 0;)
		if (topology->roles[i].listen)
			gn_access_free(&topology->roles[i].listen->access);
	topology->n_roles = topology->n_devices = 0;
	gn_config_close(&topology->config);
	gn_loader_close(&topology->loader);
	gn_arena_fini(&topology->arena);
}

void gn_topology_report(struct gn_topology *topology, struct gantry_writer *w)
{
	w->object(w, "roles");
	for (uint32_t i = 0; i < topology->n_roles; i++)
		if (topology->roles[i].role)
			gn_role_report(topology->roles[i].role, w);
	w->end(w);
	w->object(w, "devices");
	for (uint32_t i = 0; i < topology->n_devices; i++)
		if (topology->devices[i].device)
			gn_device_report(topology->devices[i].device, w);
	w->end(w);
	w->array(w, "threads");
	for (uint32_t k = 0; k < topology->n_workers; k++) {
		w->object(w, NULL);
		gn_worker_report(topology->workers[k], w);
		w->end(w);
	}
	w->end(w);
}
