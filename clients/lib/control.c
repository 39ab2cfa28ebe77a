/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * control.c - the control thread of a volume: load the configuration, open the session, run the
 * loop, clean up.
 *
 * The configuration becomes a topology. This file replaces the plugin of one role of the topology:
 * the replacement opens a session and runs until gantry_volume_close(). The queues of the volume
 * are the lanes of that role; the threads of the program drive their workers.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "lib_priv.h"

#define COPY_BYTES (1u << 20)
#define TURN_NS GN_NS_PER_MS
#define WITHDRAW_AGAIN_NS (100 * GN_NS_PER_MS)

/* Serialises the loading of plugins and the configuration of the log. */
static pthread_mutex_t loading = PTHREAD_MUTEX_INITIALIZER;
/* The volume that this thread is opening. Its log lines become the error text of the open. */
static __thread struct gantry_volume *opening;

/* -- state -- */

static void set_state(struct gantry_volume *volume, enum gc_state state)
{
	pthread_mutex_lock(&volume->lock);
	volume->state = state;
	pthread_cond_broadcast(&volume->changed);
	pthread_mutex_unlock(&volume->lock);
}

/* Record why the volume is not open. Only the first reason is kept. */
__attribute__((format(printf, 3, 4))) static int fail(struct gantry_volume *volume, int rc,
						      const char *fmt, ...)
{
	va_list ap;

	pthread_mutex_lock(&volume->lock);
	if (!volume->rc)
		volume->rc = rc;
	if (!volume->text[0]) {
		va_start(ap, fmt);
		vsnprintf(volume->text, sizeof(volume->text), fmt, ap);
		va_end(ap);
	}
	pthread_mutex_unlock(&volume->lock);
	return rc;
}

/*
 * Log hook. While a volume is being opened, an error becomes the text of gantry_error() instead of
 * a line.
 */
static void log_line(enum gn_log_level level, const char *object, const char *message)
{
	if (!opening)
		dprintf(STDERR_FILENO, "gantry: %s %s: %s\n", gn_log_word(level), object, message);
	else if (level == GN_LOG_ERROR)
		fail(opening, 0, "%s: %s", object, message);
}

/* -- the role -- */

static uint32_t copy_bytes(const struct gantry_volume *volume,
			   const struct gantry_volume_info *info)
{
	uint32_t wanted = volume->attr.copy_bytes ? volume->attr.copy_bytes : COPY_BYTES;

	if (wanted > info->max_io)
		wanted = info->max_io;
	if (wanted < info->block_size)
		wanted = info->block_size;
	return wanted - wanted % info->block_size;
}

static int on_ready(void *arg, const struct gantry_volume_info *info)
{
	struct gantry_volume *volume = arg;
	int rc;

	volume->info = *info;
	volume->verifier = info->verifier;
	volume->copy_bytes = copy_bytes(volume, info);
	rc = volume->rh->engine->memory(volume->session, volume->copy_bytes,
					volume->attr.buffer_bytes, 0);
	if (rc)
		return rc;
	volume->buffers = volume->rh->engine->shared(volume->session, &volume->buffers_offset);
	return 0;
}

static void report_change(const struct gantry_volume *volume)
{
	struct gantry_volume_info info;

	if (!volume->attr.changed)
		return;
	gantry_volume_get_info(volume, &info);
	volume->attr.changed(volume->attr.changed_arg, &info);
}

static void on_resized(void *arg, uint64_t size)
{
	struct gantry_volume *volume = arg;

	__atomic_store_n(&volume->info.size, size, __ATOMIC_RELAXED);
	report_change(volume);
}

static void on_verifier_changed(void *arg, uint64_t verifier)
{
	struct gantry_volume *volume = arg;

	__atomic_store_n(&volume->verifier, verifier, __ATOMIC_RELAXED);
	report_change(volume);
}

static void on_started(void *arg)
{
	opening = NULL;
	set_state(arg, GC_OPEN);
}

static void finish(struct gantry_volume *volume)
{
	if (volume->ending && volume->session_closed)
		volume->rh->finished(volume->rh, 0);
}

/*
 * Stop the embedded role after the session has ended, so that its stages complete the IOs that they
 * hold. Otherwise the queues of the program would wait for these IOs.
 */
static void drain(void *arg)
{
	struct gantry_volume *volume = arg;
	struct gn_topology *t = &volume->topology;

	for (uint32_t i = 0; i < t->n_roles; i++)
		if (t->roles[i].role && t->roles[i].is_embedded)
			gn_role_stop(t->roles[i].role);
}

static void set_buffers_released(struct gantry_volume *volume)
{
	pthread_mutex_lock(&volume->lock);
	volume->buffers_released = 1;
	pthread_cond_broadcast(&volume->changed);
	pthread_mutex_unlock(&volume->lock);
}

/*
 * The session has ended: let the program use gantry_volume_buffers() again when no peer can access
 * them. Retry while there is no memory for the copy.
 */
static void release_buffers(void *arg)
{
	struct gantry_volume *volume = arg;

	if (!volume->rh->engine->withdraw(volume->session))
		set_buffers_released(volume);
	else
		gn_loop_set_timer(volume->loop, &volume->withdraw_again,
				  gn_now_ns() + WITHDRAW_AGAIN_NS);
}

static void on_closed(void *arg, int reason, const char *text)
{
	struct gantry_volume *volume = arg;

	volume->session_closed = 1;
	gc_memories_closed(volume);
	release_buffers(volume);
	if (opening) {
		fail(volume, reason ? reason : -ECANCELED, "%s", text);
		volume->ending = 1;
	} else if (!volume->ending) {
		fail(volume, reason ? reason : -ENOTCONN, "%s", text);
		set_state(volume, GC_LOST);
		volume->rh->post(volume->rh, drain, volume);
	}
	finish(volume);
}

static void on_memory_event(void *arg, uint32_t handle)
{
	gc_memory_event(arg, handle);
}

static const struct gantry_engine_events events = {
	.ready = on_ready,
	.started = on_started,
	.verifier_changed = on_verifier_changed,
	.resized = on_resized,
	.closed = on_closed,
	.exported = on_memory_event,
	.unexported = on_memory_event,
};

static void poll_workers(void *arg);

static int role_open(const struct gantry_role_host *rh, const void *conf, void **role_p)
{
	struct gantry_volume *volume = (struct gantry_volume *)conf;

	volume->rh = rh;
	volume->withdraw_again = (struct gn_timer){.fn = release_buffers, .arg = volume};
	volume->turns = (struct gn_timer){.fn = poll_workers, .arg = volume};
	*role_p = volume;
	return 0;
}

static int role_start(void *role)
{
	struct gantry_volume *volume = role;
	const struct gantry_engine_attr attr = {.n_queues = volume->attr.queues,
						.depth = volume->attr.depth,
						.complete = gc_queue_done,
						.regions = volume->attr.memories};

	return volume->rh->engine->open(volume->rh, &attr, &events, volume, &volume->session);
}

static void role_stop(void *role)
{
	struct gantry_volume *volume = role;

	volume->rh->engine->close(volume->session);
}

static void role_close(void *role)
{
	struct gantry_volume *volume = role;

	gn_loop_clear_timer(volume->loop, &volume->withdraw_again);
	volume->rh->engine->free(volume->session);
	volume->session = NULL;
}

static void role_report(void *role, struct gantry_writer *w)
{
	(void)role;
	(void)w;
}

static const struct gantry_role_ops role_ops = {
	.open = role_open,
	.start = role_start,
	.stop = role_stop,
	.close = role_close,
	.report = role_report,
	.flags = GANTRY_ROLE_CONNECTS | GANTRY_ROLE_ONE_VOLUME,
};

/* -- from a configuration to the role -- */

/* Report the first fault, and the number of further faults. */
static int report_fault(struct gantry_volume *volume, int rc, struct gn_errs *errs)
{
	char more[40] = "";

	if (errs->n > 1)
		snprintf(more, sizeof(more), " (and %zu more)", errs->n - 1);
	fail(volume, rc, "%.900s%s", errs->n ? errs->text[0] : "out of memory", more);
	gn_errs_fini(errs);
	return rc;
}

static int load_file(struct gantry_volume *volume, const char *file, const char *role)
{
	struct gn_topology_args *args = &volume->args;
	struct gn_errs errs = {0};
	int rc = role ? gn_strlist_add(&args->roles, role) : 0;

	if (!rc)
		rc = gn_topology_load(&volume->topology, file, args, &errs);
	return rc ? report_fault(volume, rc, &errs) : 0;
}

static int load_uri(struct gantry_volume *volume)
{
	struct gc_uri *uri = &volume->parsed;
	struct gn_topology_args *args = &volume->args;
	struct gn_errs errs = {0};
	char text[GC_TEXT] = "out of memory";
	int rc = gc_uri_parse(uri, volume->uri, text, sizeof(text));

	if (rc)
		return fail(volume, rc, "%s", text);
	if (uri->config) {
		gc_volume_name(volume, uri->config);
		return load_file(volume, uri->config, uri->role);
	}
	for (size_t i = 0; i < uri->n_sets && !rc; i++)
		rc = gn_strlist_add(&args->sets, uri->sets[i]);
	if (!rc)
		rc = gn_topology_load_text(&volume->topology, volume->name, "", args, &errs);
	return rc ? report_fault(volume, rc, &errs) : 0;
}

static int load_volume(struct gantry_volume *volume)
{
	volume->own = (struct gn_topo_embedded_role){.name = "volume",
						     .ops = &role_ops,
						     .conf = volume,
						     .n_lanes = volume->attr.queues,
						     .workers = volume->workers};
	volume->args.own = &volume->own;
	return volume->uri ? load_uri(volume) : load_file(volume, volume->file, volume->role);
}

static int make_workers(struct gantry_volume *volume)
{
	const struct gn_worker_attr attr = {
		.cpu = -1, .spin_ns = volume->topology.runtime.spin_ns, .driven = true};
	int rc = 0;

	for (uint32_t i = 0; i < volume->attr.queues && !rc; i++)
		rc = gn_worker_create(&attr, &volume->workers[i]);
	return rc;
}

/* -- life -- */

/*
 * Continue the shutdown. The role of the volume finishes first, then the other roles of the
 * topology: gateways before the targets they connect to.
 */
static void continue_shutdown(void *arg)
{
	struct gantry_volume *volume = arg;
	struct gn_topology *t = &volume->topology;

	for (uint32_t i = 0; i < t->n_roles; i++)
		if (t->roles[i].started && !t->roles[i].finished) {
			gn_topology_wind_down(t);
			return;
		}
	gn_loop_quit(volume->loop, 0);
}

static void role_finished(void *arg, struct gn_topo_role *role)
{
	struct gantry_volume *volume = arg;

	(void)role;
	/* posted, because a role can finish inside its stop function */
	gn_loop_must_post(volume->loop, continue_shutdown, volume);
}

static int run(struct gantry_volume *volume)
{
	struct gn_topology *t = &volume->topology;
	int rc;

	pthread_mutex_lock(&loading);
	gn_log_set_hook(log_line);
	rc = load_volume(volume);
	pthread_mutex_unlock(&loading);
	if (!rc)
		rc = make_workers(volume);
	if (rc)
		return rc;
	volume->loop = gn_loop_create();
	if (!volume->loop)
		return -errno;
	t->role_finished = role_finished;
	t->arg = volume;
	rc = gn_topology_open(t, volume->loop);
	if (!rc)
		rc = gn_topology_start(t);
	return rc ? rc : gn_loop_run(volume->loop);
}

static void clean_up(struct gantry_volume *volume)
{
	pthread_mutex_lock(&loading);
	gn_topology_close(&volume->topology);
	pthread_mutex_unlock(&loading);
	for (uint32_t i = 0; i < volume->attr.queues; i++)
		gn_worker_destroy(&volume->workers[i]);
	if (volume->loop)
		gn_loop_destroy(&volume->loop);
	gn_strlist_fini(&volume->args.roles);
	gn_strlist_fini(&volume->args.sets);
	gc_uri_fini(&volume->parsed);
}

void *gc_control_run(void *arg)
{
	struct gantry_volume *volume = arg;
	int rc;

	opening = volume;
	rc = run(volume);
	if (rc)
		fail(volume, rc, "cannot be set up: %s", strerror(-rc));
	clean_up(volume);
	set_state(volume, GC_ENDED);
	return NULL;
}

/*
 * Poll all workers once in each TURN_NS while the volume closes or memory is exported or
 * unexported. No queue might be polled, but the session, and roles of this process, can have work
 * on these workers.
 */
static void poll_workers(void *arg)
{
	struct gantry_volume *volume = arg;

	if (!volume->ending && !gc_memories_pending(volume))
		return;
	for (uint32_t i = 0; i < volume->attr.queues; i++) {
		gn_worker_enter(volume->workers[i]);
		gn_worker_turn(volume->workers[i]);
		gn_worker_leave(volume->workers[i]);
	}
	gn_loop_set_timer(volume->loop, &volume->turns, gn_now_ns() + TURN_NS);
}

void gc_control_poll(struct gantry_volume *volume)
{
	gn_loop_set_timer(volume->loop, &volume->turns, gn_now_ns() + TURN_NS);
}

static void stop(void *arg)
{
	struct gantry_volume *volume = arg;

	volume->ending = 1;
	gn_loop_set_timer(volume->loop, &volume->turns, 1);
	volume->rh->engine->close(volume->session);
	finish(volume);
}

void gc_control_stop(struct gantry_volume *volume)
{
	gn_loop_must_post(volume->loop, stop, volume);
}

static void give_up(void *arg)
{
	struct gantry_volume *volume = arg;

	volume->rh->engine->give_up(volume->session);
}

void gc_control_give_up(struct gantry_volume *volume)
{
	gn_loop_must_post(volume->loop, give_up, volume);
}
