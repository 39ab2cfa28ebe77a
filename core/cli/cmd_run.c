/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/cmd_run.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/kernel.h"
#include "base/log.h"
#include "control/control_socket.h"
#include "control/control_methods.h"
#include "cli/notify.h"
#include "report/page_writer.h"
#include "cli/progress.h"
#include "report/report.h"
#include "report/report_table.h"
#include "cli/stop.h"
#include "topology/topology.h"
#include "memory/region.h"

#define LATE_NS (3 * GN_NS_PER_S)
#define DRAIN_NS (100 * GN_NS_PER_MS) /* interval at which a draining process checks for sessions */

struct run {
	const struct gn_cli *cli;
	struct gn_topology topology;
	char path[PATH_MAX]; /* of the configuration, absolute */
	struct gn_loop *loop;
	struct gn_timer advance; /* runs advance() after a role has finished */
	struct gn_timer alive;   /* runs alive(): notify the watchdog of the service manager */
	struct gn_timer late;    /* runs late(): log the roles that have not finished */
	struct gn_timer drained; /* runs stop_idle_listeners() */
	struct gn_controlled controlled;
	struct gn_control *control;
	struct gn_progress progress;
	struct gn_page_writer page;
	uint64_t start_ns;
	struct gn_stop stop;
	bool failed, interrupted, winding_down, late_set, limit_over;
};

/* -- the end of roles -- */

static bool works(const struct gn_topo_role *role)
{
	return role->flags & GANTRY_ROLE_WORKS;
}

/*
 * The roles have not ended within LATE_NS: log each of them, and the IOs that its stages and
 * backend hold.
 */
static void late(void *arg)
{
	struct run *run = arg;
	const struct gn_topology *t = &run->topology;

	for (uint32_t i = 0; i < t->n_roles; i++) {
		if (!t->roles[i].started || t->roles[i].finished)
			continue;
		gn_log(GN_LOG_WARN, "gantry",
		       "roles.%s has not ended yet: it waits for its peers, or for IO that its "
		       "backend or a stage has not completed; %s ends the process at once",
		       t->roles[i].name, run->interrupted ? "one more signal" : "a second signal");
		gn_role_log_held(t->roles[i].role, GN_LOG_WARN);
	}
}

/*
 * Log as late() does, when runtime.stop_limit has expired. Runs on the control thread, or on the
 * guard's thread (stop.h) if the control thread does not answer.
 */
static void explain(void *arg)
{
	const struct run *run = arg;
	const struct gn_topology *t = &run->topology;

	for (uint32_t i = 0; i < t->n_roles; i++) {
		if (!t->roles[i].started || t->roles[i].finished)
			continue;
		gn_log(GN_LOG_ERROR, "gantry", "roles.%s did not end (runtime.stop_limit=%llu ms)",
		       t->roles[i].name,
		       (unsigned long long)(t->runtime.stop_limit_ns / GN_NS_PER_MS));
		gn_role_log_held(t->roles[i].role, GN_LOG_ERROR);
	}
}

static void advance(void *arg)
{
	struct run *run = arg;
	struct gn_topology *t = &run->topology;
	uint32_t n_works = 0, works_left = 0, left = 0;

	gn_progress_report_ends(&run->progress);
	for (uint32_t i = 0; i < t->n_roles; i++) {
		const struct gn_topo_role *role = &t->roles[i];

		if (!role->started)
			continue;
		n_works += works(role);
		works_left += works(role) && !role->finished;
		left += !role->finished;
		if (role->finished && role->status)
			run->failed = true;
		if (role->finished && role->status && !works(role))
			run->winding_down = true;
	}
	if (n_works && !works_left)
		run->winding_down = true;
	if (!left)
		gn_loop_quit(run->loop, 0);
	else if (run->winding_down)
		gn_topology_wind_down(&run->topology);
	if (run->winding_down && !run->late_set) {
		gn_notify(GN_NOTIFY_STOPPING);
		gn_stop_begin(&run->stop);
		gn_loop_set_timer(run->loop, &run->late, gn_now_ns() + LATE_NS);
	}
	run->late_set |= run->winding_down;
}

/*
 * Call advance() in the next turn of the loop, because gn_role_stop() can call this function before
 * it returns.
 */
static void role_finished(void *arg, struct gn_topo_role *role)
{
	struct run *run = arg;

	(void)role;
	gn_loop_set_timer(run->loop, &run->advance, 1);
}

/* -- drain -- */

static bool listens(const struct gn_topo_role *role)
{
	return role->started && !role->finished && role->listen;
}

/* True if a role that ends by itself runs. */
static bool has_work(const struct gn_topology *t)
{
	for (uint32_t i = 0; i < t->n_roles; i++)
		if (t->roles[i].started && !t->roles[i].finished && works(&t->roles[i]))
			return true;
	return false;
}

/* Stop the roles that listen and have no session. Their peers may be roles of this process. */
static void stop_idle_listeners(void *arg)
{
	struct run *run = arg;
	struct gn_topology *t = &run->topology;
	uint32_t n_busy = 0, n_running = 0;

	for (uint32_t i = 0; i < t->n_roles; i++) {
		n_running += t->roles[i].started && !t->roles[i].finished;
		if (!listens(&t->roles[i]))
			continue;
		n_busy += gn_role_has_sessions(t->roles[i].role);
		if (!gn_role_has_sessions(t->roles[i].role))
			gn_role_stop(t->roles[i].role);
	}
	if (n_running && !n_busy && !has_work(t)) {
		run->winding_down = true; /* the roles end now, within stop_limit */
		advance(run);
	} else if (n_busy) {
		gn_loop_set_timer(run->loop, &run->drained, gn_now_ns() + DRAIN_NS);
	}
}

static void drain(void *arg)
{
	struct run *run = arg;
	struct gn_topology *t = &run->topology;

	for (uint32_t i = 0; i < t->n_roles; i++)
		if (listens(&t->roles[i]))
			gn_role_unlisten(t->roles[i].role);
	gn_loop_set_timer(run->loop, &run->drained, 1);
}

/* -- signals -- */

/* Exit immediately, but remove the names of sockets from the file system. */
static _Noreturn void leave(struct run *run, int code)
{
	const struct gn_topology *t = &run->topology;

	gn_control_unlink(run->control);
	for (uint32_t i = 0; i < t->n_roles; i++)
		if (t->roles[i].role)
			gn_role_unlisten(t->roles[i].role);
	_exit(code);
}

/*
 * End the loop, so that the report is printed. Nothing is freed afterwards, because plugins still
 * refer to IOs.
 */
static void on_limit(struct run *run)
{
	explain(run);
	gn_stop_set(&run->stop, 0, NULL, NULL);
	run->failed = true;
	run->limit_over = true;
	gn_loop_quit(run->loop, 0);
}

static void on_event(void *arg, int event)
{
	struct run *run = arg;

	gn_log_erase_line();
	if (event == SIGHUP && !run->stop.hup_ends && run->winding_down)
		return; /* too late for a reload */
	if (event == SIGHUP && !run->stop.hup_ends) {
		gn_notify_reload();
		gn_control_reload(&run->controlled);
		gn_notify(GN_NOTIFY_READY);
		return;
	}
	if (event == GN_STOP_LIMIT) {
		on_limit(run);
		return;
	}
	if (run->winding_down && run->interrupted)
		leave(run, GN_EXIT_INTERRUPTED);
	fprintf(stderr, "gantry: %s: stopping; send the signal again to end at once\n",
		strsignal(event));
	run->interrupted = true;
	run->winding_down = true;
	advance(run);
}

/* -- report -- */

static uint64_t timeval_ns(const struct timeval *tv)
{
	return (uint64_t)tv->tv_sec * GN_NS_PER_S + (uint64_t)tv->tv_usec * GN_NS_PER_US;
}

static const char *result(const struct run *run)
{
	return run->failed ? "failed" : run->interrupted ? "interrupted" : "ok";
}

static json_t *write_report(struct run *run, struct gn_report *report, bool final)
{
	struct rusage usage;
	struct gantry_writer *w = &report->w;

	gn_report_init(report);
	w->u64(w, "schema", 1);
	w->string(w, "version", GANTRY_VERSION);
	w->string(w, "command", run->cli->command);
	w->string(w, "config", run->topology.file);
	w->string(w, "config_path", run->path);
	w->u64(w, "pid", (uint64_t)getpid());
	w->string(w, "result", final ? result(run) : "running");
	w->u64(w, "elapsed_ns", gn_now_ns() - run->start_ns);
	getrusage(RUSAGE_SELF, &usage);
	w->u64(w, "cpu_ns", timeval_ns(&usage.ru_utime) + timeval_ns(&usage.ru_stime));
	w->u64(w, "quarantined_bytes", gn_region_quarantined());
	gn_topology_report(&run->topology, w);
	return gn_report_tree(report);
}

static json_t *running_report(void *arg, struct gn_report *report)
{
	return write_report(arg, report, false);
}

int gn_run_print_all(const json_t *report)
{
	static const char *const heads[] = {"schema", "version",     "command",
					    "config", "config_path", "pid"};
	json_t *shown = json_deep_copy(report), *role;
	const char *name;

	if (!shown)
		return gn_cli_fail(GN_EXIT_FAILED, "out of memory");
	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++)
		json_object_del(shown, heads[i]);
	json_object_foreach (json_object_get(shown, "roles"), name, role)
		json_object_del(role, "progress"); /* not relevant after the end */
	gn_report_print_text(stdout, shown, 0);
	json_decref(shown);
	return GN_EXIT_OK;
}

/* Print the final report of `gantry run`: JSON, the table or, with -v, all values. */
static int print_run(const struct gn_cli *cli, const json_t *report)
{
	if (cli->json)
		return gn_cli_print_json(report);
	if (cli->topology.verbose)
		return gn_run_print_all(report);
	gn_report_print_table(stdout, report);
	return GN_EXIT_OK;
}

/* True if the role has work, but never had a session: its report would be all zeroes. */
static bool never_connected(const struct gn_topo_role *role)
{
	return role->started && works(role) && gn_role_no_session(role->role);
}

/*
 * If no role that has work ever had a session, print the reasons in place of the report. Returns
 * false, without output, if such a role had a session.
 */
static bool print_unconnected(const struct run *run)
{
	const struct gn_topology *t = &run->topology;
	uint32_t n = 0;

	for (uint32_t i = 0; i < t->n_roles; i++) {
		if (t->roles[i].started && works(&t->roles[i]) && !never_connected(&t->roles[i]))
			return false;
		n += never_connected(&t->roles[i]);
	}
	for (uint32_t i = 0; i < t->n_roles; i++) {
		const char *why;

		if (!never_connected(&t->roles[i]))
			continue;
		why = gn_role_no_session(t->roles[i].role);
		printf("roles.%s: no session: ", t->roles[i].name);
		gn_report_print_plain(stdout, *why               ? why
					      : run->interrupted ? "interrupted"
								 : "see the log above");
		putchar('\n');
	}
	return n > 0;
}

/* Write the page of --report. Returns enum gn_exit. */
static int write_page(struct run *run, json_t *report)
{
	int rc = gn_page_writer_finish(&run->page, report);

	if (!rc)
		return GN_EXIT_OK;
	gn_cli_flush();
	return gn_cli_fail(GN_EXIT_FAILED, "%s: the report was not written: %s", run->page.path,
			   strerror(-rc));
}

static int print_report(struct run *run,
			int (*print)(const struct gn_cli *cli, const json_t *report))
{
	struct gn_report report;
	json_t *tree = write_report(run, &report, true);
	int code = GN_EXIT_OK, page_code;

	if (run->cli->json || !print_unconnected(run))
		code = tree ? print(run->cli, tree) : gn_cli_fail(GN_EXIT_FAILED, "out of memory");
	page_code = write_page(run, tree);
	gn_report_fini(&report);
	return code ? code : page_code;
}

/*
 * Print the failed roles after the report, because a long report can scroll the log out of sight.
 */
static void name_failures(const struct run *run)
{
	const struct gn_topology *t = &run->topology;

	gn_cli_flush();
	for (uint32_t i = 0; i < t->n_roles && !run->cli->json; i++)
		if (t->roles[i].finished && t->roles[i].status && !never_connected(&t->roles[i]))
			gn_cli_fail(GN_EXIT_FAILED,
				    "%s: roles.%s failed; see the log above the report", t->file,
				    t->roles[i].name);
}

/* -- start and end -- */

static void alive(void *arg)
{
	struct run *run = arg;

	gn_notify(GN_NOTIFY_WATCHDOG);
	gn_loop_set_timer(run->loop, &run->alive, gn_now_ns() + gn_notify_watchdog_ns() / 2);
}

static int open_run(struct run *run)
{
	struct gn_topology *t = &run->topology;

	run->loop = gn_loop_create();
	if (!run->loop)
		return -errno;
	run->advance.fn = advance;
	run->advance.arg = run;
	run->alive.fn = alive;
	run->alive.arg = run;
	run->late.fn = late;
	run->late.arg = run;
	run->drained.fn = stop_idle_listeners;
	run->drained.arg = run;
	run->controlled = (struct gn_controlled){
		.live = {.topology = t, .args = &run->cli->topology},
		.path = run->path,
		.report = running_report,
		.drain = drain,
		.arg = run,
	};
	t->role_finished = role_finished;
	t->arg = run;
	return gn_topology_open(t, run->loop);
}

/* Notify the service manager. The status has each address at which a role listens. */
static void notify_ready(const struct gn_topology *t)
{
	char text[1024] = GN_NOTIFY_READY;
	size_t n = strlen(text);
	bool first = true;

	for (uint32_t i = 0; i < t->n_roles; i++) {
		const char *address = t->roles[i].role ? gn_role_address(t->roles[i].role) : NULL;

		if (!address || n >= sizeof(text))
			continue;
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s %s at %s",
				      first ? "\nSTATUS=listening:" : ",", t->roles[i].name,
				      address);
		first = false;
	}
	gn_notify(text);
}

/* Start and run until all started roles have finished. */
static void run_loop(struct run *run)
{
	int rc;

	if (gn_topology_start(&run->topology)) {
		run->failed = true;
		run->winding_down = true;
	} else {
		notify_ready(&run->topology);
		if (gn_notify_watchdog_ns())
			alive(run);
	}
	gn_loop_set_timer(run->loop, &run->advance, 1);
	rc = gn_loop_run(run->loop);
	if (rc) {
		gn_cli_fail(GN_EXIT_FAILED, "%s: the control thread cannot wait: %s",
			    run->topology.file, strerror(-rc));
		run->failed = true;
	}
}

static int exit_code(const struct run *run)
{
	const struct gn_topology *t = &run->topology;
	bool has_work = false;

	for (uint32_t i = 0; i < t->n_roles; i++)
		has_work |= t->roles[i].started && works(&t->roles[i]);
	if (run->failed)
		return GN_EXIT_FAILED;
	/* servers normally end by a signal */
	return run->interrupted && has_work ? GN_EXIT_INTERRUPTED : GN_EXIT_OK;
}

static int run_topology(struct run *run,
			int (*print)(const struct gn_cli *cli, const json_t *report))
{
	struct gn_topology *t = &run->topology;
	int code, rc;

	rc = open_run(run);
	if (rc)
		return gn_cli_fail(GN_EXIT_FAILED, "%s: cannot set up: %s", t->file, strerror(-rc));
	gn_stop_set(&run->stop, t->runtime.stop_limit_ns, explain, run);
	rc = gn_stop_watch(&run->stop, run->loop, on_event, run);
	if (rc)
		return gn_cli_fail(GN_EXIT_FAILED, "cannot watch signals: %s", strerror(-rc));
	rc = gn_progress_open(&run->progress, run->loop, t);
	if (rc)
		return gn_cli_fail(GN_EXIT_FAILED, "%s: cannot set up: %s", t->file, strerror(-rc));
	if (t->runtime.stat)
		gn_control_open(run->loop, t->runtime.stat_dir, gn_control_methods,
				&run->controlled, &run->control);
	run->start_ns = gn_now_ns();
	rc = gn_page_writer_start(&run->page, run->loop, t, running_report, run);
	if (rc)
		return gn_cli_fail(GN_EXIT_FAILED, "%s: cannot set up: %s", t->file, strerror(-rc));
	run_loop(run);
	gn_progress_close(&run->progress);
	gn_control_close(&run->control);
	code = GN_EXIT_FAILED;
	if (!print_report(run, print)) {
		name_failures(run);
		code = exit_code(run);
	}
	if (run->limit_over)
		leave(run, code);
	return code;
}

/*
 * True, after a message, if a selected role connects to a service inside this process on which no
 * selected role listens. The role would only wait until its timeout.
 */
static bool is_cut_off(const struct gn_topology *t)
{
	for (uint32_t i = 0; i < t->n_roles; i++)
		for (uint32_t k = 0; t->roles[i].selected && k < t->roles[i].spec.n_connects; k++) {
			const struct gn_endpoint *connect = &t->roles[i].connects[k];

			if (!gn_topology_leads_nowhere(t, &t->roles[i], k))
				continue;
			gn_cli_fail(
				GN_EXIT_USAGE,
				"%s: roles.%s connects to \"%s\" on the device \"%s\", which reaches only this "
				"process, and no other role runs here; gantry run with --set roles.%s.copy.from=FILE, or "
				"copy.to, runs all",
				connect->where, t->roles[i].name, connect->service,
				t->roles[i].connect_devices[k]->name, t->roles[i].name);
			return true;
		}
	return false;
}

int gn_run(const struct gn_cli *cli, const char *file, bool alone,
	   int (*print)(const struct gn_cli *cli, const json_t *report))
{
	struct run run = {.cli = cli};
	struct gn_errs errs = {0};
	char why[GN_KERNEL_WHY], page_why[GN_PAGE_WHY];
	int code, rc;

	if (gn_kernel_check(why))
		return gn_cli_fail(GN_EXIT_FAILED, "%s", why);
	gn_clock_init();
	rc = gn_stop_open(&run.stop, strcmp(cli->command, "run") != 0);
	if (rc) {
		gn_stop_close(&run.stop);
		return gn_cli_fail(GN_EXIT_FAILED, "cannot receive signals: %s", strerror(-rc));
	}
	if (!realpath(file, run.path))
		snprintf(run.path, sizeof(run.path), "%s", file);
	rc = gn_topology_load(&run.topology, file, &cli->topology, &errs);
	if (!rc && !alone)
		gn_topology_check_inside(&run.topology, &errs);
	if (rc || errs.n > 0)
		code = gn_cli_complain(&errs);
	else if (alone && is_cut_off(&run.topology))
		code = GN_EXIT_USAGE;
	else if (gn_page_writer_open(&run.page, cli->report, page_why))
		code = gn_cli_fail(GN_EXIT_USAGE, "%s: %s", cli->report, page_why);
	else
		code = run_topology(&run, print);
	gn_page_writer_close(&run.page);
	if (run.loop) {
		gn_loop_clear_timer(run.loop, &run.advance);
		gn_loop_clear_timer(run.loop, &run.alive);
		gn_loop_clear_timer(run.loop, &run.late);
		gn_loop_clear_timer(run.loop, &run.drained);
	}
	gn_stop_set(&run.stop, run.topology.runtime.stop_limit_ns, NULL, NULL);
	gn_live_fini(&run.controlled.live);
	gn_topology_close(&run.topology);
	gn_stop_close(&run.stop);
	if (run.loop)
		gn_loop_destroy(&run.loop);
	return code;
}

int gn_cli_run(const struct gn_cli *cli)
{
	return gn_run(cli, cli->args.word[0], false, print_run);
}
