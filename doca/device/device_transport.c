/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * device_transport.c - transports of functions: the first use loads and opens them; the service
 * thread progresses them
 *
 * Transports stay open until the process ends. A child of fork(2) opens its own transports and does
 * not use those of its parent.
 */
#include "device/device_list.h"
#include "device/service_thread.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/host.h"
#include "base/safe_path.h"
#include "common/gd_log.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

struct gd_transport {
	struct gd_transport *inherited; /* transport of the parent process */
	const struct gantry_transport_ops *ops;
	void *device;
	pthread_mutex_t lock; /* recursive */
	struct gn_timer due;  /* next call of progress that needs no event of the fd */
	pid_t pid;
	struct gn_host host;
};

/* guards the loader, the wires, and the variables below */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct gn_loader *loader;
static struct gn_conf_node *conf_dirs;
static struct gn_arena arena; /* memory of filled options */

/* -- log -- */

/* Log a message of the core or of a plugin. */
static void core_line(enum gn_log_level level, const char *who, const char *message)
{
	static const enum doca_log_level levels[] = {DOCA_LOG_LEVEL_ERROR, DOCA_LOG_LEVEL_WARNING,
						     DOCA_LOG_LEVEL_INFO, DOCA_LOG_LEVEL_DEBUG,
						     DOCA_LOG_LEVEL_TRACE};

	gd_log(levels[level], "%s: %s", who, message);
}

void gd_log_errs(struct gn_errs *errs)
{
	size_t kept = gn_errs_kept(errs);

	for (size_t i = 0; i < kept; i++)
		gd_log(DOCA_LOG_LEVEL_ERROR, "%s", errs->text[i]);
	gn_errs_fini(errs);
}

/* Returned instead of -errno if the run directory cannot be used, which gd_run_dir() has logged. */
#define NO_RUN_DIR 1

static const char *reason(int rc)
{
	return rc == NO_RUN_DIR ? "no run directory, see the message before" : strerror(-rc);
}

/* -- plugins -- */

void gd_plugin_dirs(struct gn_conf_node *list)
{
	conf_dirs = list;
}

static size_t split_path(char *path, const char **dirs, size_t max)
{
	char *rest = NULL;
	size_t n = 0;

	for (char *p = strtok_r(path, ":", &rest); p && n < max; p = strtok_r(NULL, ":", &rest))
		dirs[n++] = p;
	return n;
}

/*
 * Create the loader. It searches the same directories as gantry(1): those of the environment, else
 * of the configuration, else of the installation.
 */
static int open_loader(struct gn_errs *errs)
{
	const char *env = getauxval(AT_SECURE) ? NULL : getenv("GANTRY_PLUGIN_PATH"), *dirs[16],
		   *text;
	char *copy = env ? strdup(env) : NULL;
	size_t n = copy ? split_path(copy, dirs, 16) : 0;
	int rc;

	if (env && !copy) {
		gn_errs_add(errs, "out of memory");
		return -ENOMEM;
	}
	for (unsigned i = 0; n == i && i < gn_conf_length(conf_dirs) && i < 16; i++) {
		dirs[i] = gn_conf_string(gn_conf_index(conf_dirs, i));
		n += dirs[i] != NULL;
	}
	if (n == 0)
		dirs[n++] = GANTRY_PLUGINDIR;
	rc = gn_loader_open(dirs, n, &loader, &text);
	if (rc != 0)
		gn_errs_add(errs, "%s", text);
	free(copy);
	return rc;
}

static int find_plugin(struct gd_wire *wire, const struct gn_plugin **plugin_p,
		       struct gn_errs *errs)
{
	char why[512];
	int rc = !loader ? open_loader(errs) : 0;

	if (rc != 0)
		return rc;
	rc = gn_loader_find(loader, GANTRY_KIND_TRANSPORT, wire->plugin, plugin_p);
	if (rc == 0)
		return 0;
	snprintf(
		why, sizeof(why),
		"no transport plugin \"%s\" in %s; set GANTRY_PLUGIN_PATH to the directory of plugins",
		wire->plugin, gn_loader_dirs(loader));
	if (wire->node)
		gn_conf_fault_option(errs, wire->node, "transport",
				     rc == -ENOENT ? why : gn_loader_error(loader));
	else
		gn_errs_add(errs, "%s", rc == -ENOENT ? why : gn_loader_error(loader));
	return rc;
}

/* Returns the address of a string option; NULL: the plugin has no such option. */
static const char **string_option(const struct gantry_plugin *desc, void *conf, const char *name)
{
	for (const struct gantry_option *o = desc->options; o && o->name; o++)
		if (gantry_option_type(o) == GANTRY_OPT_STRING && strcmp(o->name, name) == 0)
			return (const char **)((char *)conf + o->offset);
	return NULL;
}

/*
 * Set the options `pci` and `dir` of a transport of this machine, from which it derives the path of
 * its socket: the name of the card, and the run directory. So functions of one card can connect,
 * whatever their PCI addresses are. A network transport must not have an option `pci`.
 */
static int set_place(const struct gantry_plugin *desc, struct gd_wire *wire)
{
	const char **pci = string_option(desc, wire->conf, "pci"),
		   **dir = string_option(desc, wire->conf, "dir");
	char run_dir[80];

	if (pci)
		*pci = wire->card;
	if (!dir || (*dir && **dir != '\0'))
		return 0;
	if (gd_run_dir(run_dir) != DOCA_SUCCESS)
		return NO_RUN_DIR;
	*dir = gn_arena_strdup(&arena, run_dir);
	return *dir ? 0 : -ENOMEM;
}

static int fill(struct gd_wire *wire, const struct gn_plugin *plugin, const char *const *also_known,
		struct gn_errs *errs)
{
	struct gantry_check check = {.flags = 0};
	size_t before = errs->n;
	int rc;

	wire->conf = gn_arena_alloc(&arena, plugin->desc->conf_size + 1);
	if (!wire->conf)
		return -ENOMEM;
	rc = gn_conf_options(wire->node, plugin->desc->options, wire->conf, also_known, errs);
	if (rc == 0)
		rc = set_place(plugin->desc, wire);
	if (rc == 0)
		gn_plugin_check(plugin, wire->conf, wire->node, errs, &check);
	return rc == 0 && errs->n > before ? -EINVAL : rc;
}

static int load(struct gd_wire *wire, const char *const *also_known, struct gn_errs *errs)
{
	const struct gn_plugin *plugin;
	int rc = find_plugin(wire, &plugin, errs);

	if (rc == 0)
		rc = fill(wire, plugin, also_known, errs);
	if (rc == 0)
		wire->loaded = plugin;
	return rc;
}

int gd_wire_load(struct gd_wire *wire, const char *const *also_known, struct gn_errs *errs)
{
	int rc;

	pthread_mutex_lock(&lock);
	rc = load(wire, also_known, errs);
	pthread_mutex_unlock(&lock);
	if (rc != 0 && errs->n == 0)
		gn_errs_add(errs, "%s: %s", wire->name, reason(rc));
	return rc;
}

/* -- devices -- */

static void progress(void *arg)
{
	struct gd_transport *t = arg;

	pthread_mutex_lock(&t->lock);
	t->ops->progress(t->device);
	gd_service_set_timer(&t->due, t->ops->wake_ns(t->device));
	pthread_mutex_unlock(&t->lock);
}

static void init_lock(pthread_mutex_t *mutex)
{
	pthread_mutexattr_t attr;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE);
	pthread_mutex_init(mutex, &attr);
	pthread_mutexattr_destroy(&attr);
}

static int check_functions(const struct gd_wire *wire, const struct gd_transport *t)
{
	struct gantry_device_info info;
	const char *lack;

	gd_transport_info(t, &info);
	lack = gn_ops_missing(t->ops, info.caps);
	if (!lack)
		return 0;
	gd_log(DOCA_LOG_LEVEL_ERROR,
	       "device %s: plugin %s reports a capability without its function \"%s\"", wire->name,
	       wire->plugin, lack);
	return -ENOTSUP;
}

static int open_transport(struct gd_wire *wire, struct gd_transport **transport_p)
{
	struct gd_transport *t = calloc(1, sizeof(*t));
	int rc, fd;

	if (!t)
		return -ENOMEM;
	t->ops = wire->loaded->ops;
	t->pid = getpid();
	t->due = (struct gn_timer){.fn = progress, .arg = t};
	init_lock(&t->lock);
	gn_host_init(&t->host, "devices.%s", wire->name);
	rc = gn_auth_use(&t->host, &wire->auth);
	if (rc != 0)
		goto out_free;
	if (gn_transport_is_network(t->ops) && wire->auth.mode == GN_AUTH_NONE)
		gd_log(DOCA_LOG_LEVEL_WARNING,
		       "device %s: the transport does not authenticate peers (transport=%s): every host that reaches the device can connect to "
		       "this program (auth = \"none\")",
		       wire->name, wire->plugin);
	rc = gn_host_returned(&t->host, wire->plugin, "open",
			      t->ops->open(&t->host.pub, wire->conf, &t->device));
	if (rc != 0)
		goto out_free;
	rc = check_functions(wire, t);
	if (rc != 0)
		goto out_close;
	rc = -ENOMEM;
	fd = t->ops->fd(t->device); /* -1: progress only at wake_ns */
	if (fd >= 0 && gd_service_add_fd(fd, progress, t) != DOCA_SUCCESS)
		goto out_close;
	gd_service_set_timer(&t->due, 1);
	*transport_p = t;
	return 0;

out_close:
	t->ops->close(t->device);
out_free:
	gn_auth_close(&t->host.auth);
	gn_host_fini(&t->host);
	pthread_mutex_destroy(&t->lock);
	free(t);
	return rc;
}

static doca_error_t get(struct gd_wire *wire, struct gd_transport **transport_p)
{
	struct gn_errs errs = {.n = 0};
	struct gd_transport *open = NULL;
	int rc = 0;

	if (wire->open && wire->open->pid == getpid()) {
		*transport_p = wire->open;
		return DOCA_SUCCESS;
	}
	gn_log_set_hook(core_line);
	if (!wire->loaded)
		rc = load(wire, NULL, &errs);
	if (rc == 0)
		rc = open_transport(wire, &open);
	gd_log_errs(&errs);
	if (rc != 0) {
		gd_log(DOCA_LOG_LEVEL_ERROR,
		       "device %s: cannot open the transport (transport=%s): %s", wire->name,
		       wire->plugin, reason(rc));
		return rc == -ENOMEM ? DOCA_ERROR_NO_MEMORY : DOCA_ERROR_INITIALIZATION;
	}
	open->inherited = wire->open;
	*transport_p = wire->open = open;
	return DOCA_SUCCESS;
}

static doca_error_t get_locked(struct gd_wire *wire, struct gd_transport **transport_p)
{
	doca_error_t result;

	if (!wire)
		return DOCA_ERROR_NOT_SUPPORTED;
	pthread_mutex_lock(&lock);
	result = get(wire, transport_p);
	pthread_mutex_unlock(&lock);
	return result;
}

doca_error_t gd_transport_get(struct doca_devinfo *info, struct gd_transport **transport_p)
{
	return get_locked(info->local, transport_p);
}

doca_error_t gd_transport_get_rdma(struct doca_devinfo *info, struct gd_transport **transport_p)
{
	return get_locked(info->wide ? info->wide : info->local, transport_p);
}

/*
 * Returns whether this process opened the transport. In a child of fork(2) a thread that does not
 * exist there can hold the lock, so the child must not take it. The transport rejects its calls.
 */
static bool is_ours(const struct gd_transport *transport)
{
	return transport->pid == getpid();
}

const struct gantry_transport_ops *gd_transport_lock(struct gd_transport *transport,
						     void **device_p)
{
	if (is_ours(transport))
		pthread_mutex_lock(&transport->lock);
	if (device_p)
		*device_p = transport->device;
	return transport->ops;
}

void gd_transport_unlock(struct gd_transport *transport)
{
	if (!is_ours(transport))
		return;
	pthread_mutex_unlock(&transport->lock);
	gd_service_set_timer(&transport->due, 1);
}

const struct gantry_transport_ops *gd_transport_ops(const struct gd_transport *transport)
{
	return transport->ops;
}

doca_error_t gd_transport_need_data(const struct gd_transport *transport)
{
	if (transport->ops->data)
		return DOCA_SUCCESS;
	gd_log(DOCA_LOG_LEVEL_ERROR,
	       "%s: the transport has no data queues, which consumers, producers and RDMA need: use another transport",
	       transport->host.name);
	return DOCA_ERROR_NOT_SUPPORTED;
}

void gd_transport_info(const struct gd_transport *transport, struct gantry_device_info *info)
{
	*info = (struct gantry_device_info){.caps = 0};
	transport->ops->info(transport->device, info);
}

/* -- the run directory -- */

static bool is_dir(const char *path)
{
	struct stat st;

	return path && path[0] == '/' && stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static const char *usual_dir(char path[80])
{
	const char *own = getauxval(AT_SECURE) ? NULL : getenv("GANTRY_RUNDIR");
	const char *xdg = getauxval(AT_SECURE) ? NULL : getenv("XDG_RUNTIME_DIR");
	int n;

	if (own && *own)
		n = snprintf(path, 80, "%s", own);
	else if (is_dir(xdg)) /* checked: the login session may have ended */
		n = snprintf(path, 80, "%s/gantry", xdg);
	else if (geteuid() == 0)
		n = snprintf(path, 80, "/run/gantry");
	else
		n = snprintf(path, 80, "/tmp/gantry-%u", (unsigned)geteuid());
	if (path[0] != '/') /* the peer can have another current directory */
		return "not an absolute path: set GANTRY_RUNDIR to one";
	return n < 80 ? NULL
		      : "path is too long (limit 79 bytes): set GANTRY_RUNDIR to a shorter path";
}

/*
 * Create or check the run directory. Returns NULL, or the problem, which can be in `why`
 * (GN_PATH_WHY bytes).
 */
static const char *claim(const char *path, char *why)
{
	int rc = gn_path_claim_dir(path, why);

	if (rc == 0)
		return NULL;
	if (rc == -EPERM)
		return why;
	if (rc == -ENOTDIR)
		return "not a directory: set GANTRY_RUNDIR to another directory";
	snprintf(why, GN_PATH_WHY, "does not exist and cannot be created: %s: %s", strerror(-rc),
		 rc == -ENOENT
			 ? "create its parent directory, or set GANTRY_RUNDIR to another directory"
			 : "set GANTRY_RUNDIR to another directory");
	return why;
}

doca_error_t gd_run_dir(char path[80])
{
	char text[GN_PATH_WHY];
	const char *why = usual_dir(path);

	if (!why)
		why = claim(path, text);
	if (!why)
		return DOCA_SUCCESS;
	gd_log(DOCA_LOG_LEVEL_ERROR, "run directory %s: %s", path, why);
	return DOCA_ERROR_OPERATING_SYSTEM;
}
