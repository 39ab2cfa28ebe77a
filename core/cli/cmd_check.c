/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cmd_check.c - gantry check: checks everything that is possible before the first IO.
 *
 * It opens devices, because only an open device knows its limits. It creates roles, but does not
 * start them. Stubs replace backends, and other instances whose `open` would change something on
 * the machine (topology/trial.c).
 */
#include <errno.h>
#include <linux/capability.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/host.h"
#include "base/kernel.h"
#include "cli/budget.h"
#include "cli/cli.h"
#include "report/report.h"
#include "loader/loader.h"
#include "topology/topology.h"
#include "transport/bounce.h"

#define FDS_OF_PROCESS 64u /* descriptors of standard streams, plugins, loops, logs */
#define FDS_OF_SESSION 8u  /* descriptors of the control channel */
#define FDS_OF_REGION 3u   /* descriptors of each region: memory, socket and pipe of its owner */
#define FDS_OF_LANE 6u     /* descriptors of each lane: two queues with memory and doorbells */

struct check {
	struct gn_topology topology;
	struct gn_budget budget; /* its devices are in the order of those of the topology */
	struct gn_errs errs, warnings;
	size_t n_failed; /* number of errs that are not about the configuration */
	uint64_t n_fds;
};

/* -- demands -- */

/*
 * Returns the bytes of bounce buffers of a lane. Only a role with a backend on a device that cannot
 * map regions has such buffers.
 */
static uint64_t bounce_bytes(const struct gn_topo_role *role, const struct gn_budget_device *device)
{
	uint64_t most;

	if (!(role->flags & GANTRY_ROLE_STORES) || (device->info.caps & GANTRY_CAP_MAPPED))
		return 0;
	most = role->listen->max_depth * GN_BOUNCE_MAX_IO;
	return most < role->listen->move_memory ? most : role->listen->move_memory;
}

/*
 * Ignore max_region_bytes if the file does not set it: its default is a safety limit, not a plan.
 * If a device locks regions (GANTRY_CAP_PINS), it also locks those that a gateway re-exports, and
 * their sum is then not counted: warn about that.
 */
static void plan_region_bytes(struct check *check, struct gn_demand *demand)
{
	struct gn_conf_node *listen = gn_conf_child(demand->role, "listen");

	if (!listen || gn_conf_child(listen, "max_region_bytes"))
		return;
	demand->plan.region_bytes = 0;
	if (!demand->serves && (demand->device->info.caps & GANTRY_CAP_PINS))
		gn_conf_fault(
			&check->warnings, listen,
			"the sum of locked memory does not include the regions that this role "
			"re-exports on the device \"%s\": set max_region_bytes, the limit for "
			"each session, and the sum includes them",
			demand->device->name);
}

static void add_demand(struct check *check, const struct gn_topo_role *role,
		       const struct gn_topo_device *device, const struct gantry_plan *plan,
		       bool serves)
{
	struct gn_demand *demand = &check->budget.demands[check->budget.n_demands++];

	*demand = (struct gn_demand){
		.device = &check->budget.devices[device - check->topology.devices],
		.role = role->node,
		.plan = *plan,
		.serves = serves};
	if (serves)
		demand->bounce_bytes = bounce_bytes(role, demand->device);
	plan_region_bytes(check, demand);
}

static void add_demands(struct check *check, const struct gn_topo_role *role)
{
	struct gantry_plan plan;

	if (role->listen) {
		gn_role_plan_listen(role->role, &plan);
		add_demand(check, role, role->listen_device, &plan, true);
	}
	for (uint32_t i = 0; i < role->spec.n_connects; i++)
		add_demand(check, role, role->connect_devices[i], &role->plans[i], false);
}

static int make_budget(struct check *check)
{
	struct gn_topology *t = &check->topology;
	struct gn_budget *budget = &check->budget;
	uint32_t n = 0;

	for (uint32_t i = 0; i < t->n_roles; i++)
		n += t->roles[i].role ? 1 + t->roles[i].spec.n_connects : 0;
	budget->devices = gn_arena_alloc(&t->arena, (t->n_devices + 1) * sizeof(*budget->devices));
	budget->demands = gn_arena_alloc(&t->arena, (n + 1) * sizeof(*budget->demands));
	if (!budget->devices || !budget->demands)
		return -ENOMEM;
	for (uint32_t i = 0; i < t->n_devices; i++) {
		struct gn_device *device = t->devices[i].device;

		budget->devices[i].name = t->devices[i].name;
		if (device)
			device->ops->info(device->dev, &budget->devices[i].info);
	}
	budget->n_devices = t->n_devices;
	for (uint32_t i = 0; i < t->n_roles; i++)
		if (t->roles[i].role)
			add_demands(check, &t->roles[i]);
	gn_budget_sum(budget);
	return 0;
}

/* -- the process -- */

/*
 * True if RLIMIT_MEMLOCK does not apply: the process has CAP_IPC_LOCK in the initial user
 * namespace.
 */
static bool may_lock_all(void)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3] = {0};
	char map[64] = "";
	unsigned first = 1, outside = 1, n = 0;
	FILE *file;

	if (syscall(SYS_capget, &head, sets) ||
	    !(sets[CAP_TO_INDEX(CAP_IPC_LOCK)].effective & CAP_TO_MASK(CAP_IPC_LOCK)))
		return false;
	file = fopen("/proc/self/uid_map", "re");
	if (!file)
		return true;
	if (!fgets(map, sizeof(map), file) || sscanf(map, "%u %u %u", &first, &outside, &n) != 3)
		n = 0;
	fclose(file);
	return first == 0 && outside == 0 && n == UINT32_MAX;
}

static uint64_t memlock_bytes(void)
{
	struct rlimit limit;

	if (may_lock_all() || getrlimit(RLIMIT_MEMLOCK, &limit) || limit.rlim_cur == RLIM_INFINITY)
		return UINT64_MAX;
	return limit.rlim_cur;
}

static uint64_t count_fds(const struct check *check)
{
	uint64_t n = FDS_OF_PROCESS;

	for (uint32_t i = 0; i < check->topology.n_roles; i++) {
		const struct gn_endpoint *ep = check->topology.roles[i].role
						       ? check->topology.roles[i].listen
						       : NULL;

		if (ep)
			n += ep->max_sessions * (FDS_OF_SESSION + FDS_OF_REGION * ep->max_regions +
						 FDS_OF_LANE * ep->max_lanes);
	}
	return n;
}

static void add_failure(struct check *check, struct gn_conf_node *node, int rc)
{
	gn_conf_fault(&check->errs, node,
		      "cannot be opened: %s; the log on the standard error has the reason",
		      strerror(-rc));
	check->n_failed++;
}

static void check_device(struct check *check, const struct gn_topo_device *device)
{
	int rc = device->absent;

	if (rc == -EAGAIN || rc == -ENODEV || rc == -ENOENT)
		gn_conf_fault(
			&check->warnings, device->node,
			"this machine does not have it%s, so its limits and the memory that it locks were not checked; %s",
			rc == -EAGAIN ? " yet" : "",
			rc == -EAGAIN ? "gantry run would create it, and not remove it"
				      : "a role that uses it would not start here");
	else if (rc)
		add_failure(check, device->node, rc);
}

static void check_opened(struct check *check)
{
	const struct gn_topology *t = &check->topology;

	for (uint32_t i = 0; i < t->n_devices; i++)
		check_device(check, &t->devices[i]);
	for (uint32_t i = 0; i < t->n_roles; i++)
		if (t->roles[i].selected && !t->roles[i].role)
			add_failure(check, t->roles[i].node, t->roles[i].status);
}

/*
 * Returns true if this process can run on the CPU. Tests it by setting the affinity, because no
 * other interface reports which CPUs a container allows.
 */
static bool may_run_on(uint32_t cpu)
{
	cpu_set_t before, one;
	bool may;

	if (cpu >= CPU_SETSIZE || sched_getaffinity(0, sizeof(before), &before))
		return cpu < (uint32_t)sysconf(_SC_NPROCESSORS_CONF);
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	may = !sched_setaffinity(0, sizeof(one), &one);
	sched_setaffinity(0, sizeof(before), &before);
	return may;
}

static void check_process(struct check *check)
{
	const struct gn_topology *t = &check->topology;
	struct gn_conf_node *cpu_list =
		gn_conf_child(gn_conf_child(gn_config_root(t->config), "runtime"), "cpus");
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	char why[GN_KERNEL_WHY];
	struct rlimit limit;

	if (gn_kernel_check(why)) {
		gn_errs_add(&check->errs, "%s", why);
		check->n_failed++;
	}
	if (!getrlimit(RLIMIT_NOFILE, &limit) && limit.rlim_cur != RLIM_INFINITY &&
	    check->n_fds > limit.rlim_cur)
		gn_errs_add(
			&check->warnings,
			"all sessions at their limits need about %llu file descriptors, this process may "
			"have %llu; raise \"ulimit -Hn\" (LimitNOFILE=) or lower max_sessions, max_lanes or max_regions",
			(unsigned long long)check->n_fds, (unsigned long long)limit.rlim_cur);
	if (cpus > 0 && t->n_workers > (uint32_t)cpus)
		gn_errs_add(&check->warnings, "%u threads poll on %ld CPUs; they share the CPUs",
			    t->n_workers, cpus);
	for (uint32_t i = 0; i < t->runtime.n_cpus; i++)
		if (!may_run_on(t->runtime.cpu[i]))
			gn_conf_fault(
				&check->warnings, cpu_list,
				"CPU %u does not exist, or is not allowed for this process: gantry run would "
				"not start",
				t->runtime.cpu[i]);
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

static void describe_device(const struct check *check, uint32_t index, struct gantry_writer *w)
{
	const struct gn_device *device = check->topology.devices[index].device;

	w->object(w, device->name);
	w->string(w, "transport", device->plugin_name);
	gn_device_describe(device, w);
	gn_budget_write(&check->budget.devices[index], w);
	w->end(w);
}

static void describe(struct check *check, struct gantry_writer *w)
{
	struct gn_topology *t = &check->topology;

	w->object(w, "devices");
	for (uint32_t i = 0; i < t->n_devices; i++)
		if (t->devices[i].device)
			describe_device(check, i, w);
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
	w->u64(w, "locked_at_most_bytes", check->budget.locked_bytes);
	describe_limit(w, "memlock_bytes", RLIMIT_MEMLOCK);
	w->boolean(w, "memlock_applies", !may_lock_all());
	w->end(w);
}

static void list(struct gantry_writer *w, const char *key, const char *severity,
		 const struct gn_errs *errs)
{
	w->array(w, key);
	for (size_t i = 0; i < gn_errs_kept(errs); i++) {
		const struct gn_err *err = &errs->parts[i];

		w->object(w, NULL);
		w->string(w, "severity", severity);
		w->string(w, "file", err->place.file); /* lint: a word */
		if (err->place.line)
			w->u64(w, "line", err->place.line);
		else
			w->string(w, "line", NULL);
		w->string(w, "key", err->place.key);
		w->string(w, "message", err->message);
		w->end(w);
	}
	w->end(w);
}

/* Print a string of the tree between two texts; nothing if there is no string. */
static void print_string(const char *before, const json_t *string, const char *after)
{
	if (!json_is_string(string))
		return;
	fputs(before, stdout);
	gn_report_print_plain(stdout, json_string_value(string));
	fputs(after, stdout);
}

static void print_endpoint(const char *before, const json_t *endpoint)
{
	print_string(before, json_object_get(endpoint, "service"), "\"");
	print_string(" on device ", json_object_get(endpoint, "device"), "");
}

/* Print one line: roles.NAME: PLUGIN, LANES, where it listens and connects, its pipeline */
static void print_role(const char *name, const json_t *role)
{
	const json_t *pipeline = json_object_get(role, "pipeline"), *item;
	double lanes = gn_report_number(role, "lanes", 0);
	size_t i;

	fputs("roles.", stdout);
	gn_report_print_plain(stdout, name);
	print_string(": ", json_object_get(role, "role"), "");
	printf(", %.0f lane%s", lanes, lanes == 1 ? "" : "s");
	print_endpoint(", listens at \"", json_object_get(role, "listen"));
	json_array_foreach (json_object_get(role, "connects"), i, item)
		print_endpoint(i ? " and \"" : ", connects to \"", item);
	json_array_foreach (pipeline, i, item)
		print_string(i ? " -> " : ", pipeline ", item, "");
	putchar('\n');
}

/* verbose: print all values, as tables; else one line for each role. */
static void print_text(const struct check *check, const json_t *tree, bool verbose)
{
	const char *name;
	json_t *role;

	if (verbose)
		gn_report_print_text(stdout, tree, 0);
	else
		json_object_foreach (json_object_get(tree, "roles"), name, role)
			print_role(name, role);
	for (size_t i = 0; i < gn_errs_kept(&check->warnings); i++)
		printf("warning: %s\n", check->warnings.text[i]);
	if (!check->errs.n)
		printf("%s: ok\n", check->topology.file);
	gn_cli_flush();
}

/*
 * Print the report. opened: also describe devices and roles, even if there are errors, because the
 * sums show their cause.
 */
static int print(struct check *check, const struct gn_cli *cli, bool opened)
{
	struct gn_report report;
	int code = GN_EXIT_OK;

	gn_report_init(&report);
	if (cli->json) {
		report.w.u64(&report.w, "schema", 2);
		report.w.string(&report.w, "config", check->topology.file);
	}
	if (opened)
		describe(check, &report.w);
	if (cli->json) {
		list(&report.w, "warnings", "warning", &check->warnings);
		list(&report.w, "errors", "error", &check->errs);
		report.w.u64(&report.w, "errors_total", check->errs.n);
	}
	if (cli->json || !gn_report_tree(&report))
		code = gn_cli_print_json(gn_report_tree(&report));
	else
		print_text(check, gn_report_tree(&report), cli->topology.verbose != 0);
	gn_report_fini(&report);
	return code;
}

/* Print the report and all faults. Returns the exit code. */
static int end(struct check *check, const struct gn_cli *cli, bool opened)
{
	bool only_failed = check->errs.n == check->n_failed;
	int code = print(check, cli, opened);

	if (!check->errs.n)
		return code;
	gn_cli_complain(&check->errs);
	return only_failed ? GN_EXIT_FAILED : GN_EXIT_USAGE;
}

static int check_open(struct check *check, const struct gn_cli *cli, struct gn_loop *loop,
		      const struct gn_topo_trial *trial)
{
	struct gn_topology *t = &check->topology;
	int rc;

	t->trial = trial;
	rc = gn_topology_open(t, loop);
	if (rc)
		return gn_cli_fail(GN_EXIT_FAILED, "%s: gantry run would not start: %s", t->file,
				   strerror(-rc));
	check_opened(check);
	gn_topology_check_connects(t, &check->errs, &check->warnings);
	gn_topology_check_quotas(t, &check->warnings);
	if (gn_topology_expect(t, &check->errs) || make_budget(check))
		return gn_cli_fail(GN_EXIT_FAILED, "out of memory");
	gn_budget_check(&check->budget, memlock_bytes(), &check->errs);
	check->n_fds = count_fds(check);
	check_process(check);
	return end(check, cli, true);
}

/* Check the parts without faults of a configuration that has faults. Opens nothing. */
static int check_unopened(struct check *check, const struct gn_cli *cli,
			  const struct gn_topo_trial *trial)
{
	if (check->topology.config) {
		gn_topology_look(&check->topology, trial);
		gn_topology_check_connects(&check->topology, &check->errs, &check->warnings);
		gn_topology_check_quotas(&check->topology, &check->warnings);
	}
	return end(check, cli, false);
}

int gn_cli_check(const struct gn_cli *cli)
{
	struct check check = {.n_failed = 0};
	const struct gn_topo_trial trial = {&check.errs, &check.warnings};
	struct gn_loop *loop = gn_loop_create();
	int code;

	if (!loop)
		code = gn_cli_fail(GN_EXIT_FAILED, "cannot set up: %s", strerror(errno));
	else if (gn_topology_load(&check.topology, cli->args.word[0], &cli->topology, &check.errs))
		code = check_unopened(&check, cli, &trial);
	else
		code = check_open(&check, cli, loop, &trial);
	gn_topology_close(&check.topology);
	if (loop)
		gn_loop_destroy(&loop);
	gn_errs_fini(&check.errs);
	gn_errs_fini(&check.warnings);
	return code;
}
