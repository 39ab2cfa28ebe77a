/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * topology.h - create devices, workers and roles from a configuration.
 *
 *     gn_topology_load      parse the configuration, load the plugins; no side effects; collects
 *                           all faults
 *     gn_topology_open      create devices, workers and roles; starts nothing
 *     gn_topology_start     start the roles: servers first, roles that end by themselves last
 *     gn_topology_close     destroy everything, in the reverse order
 *
 * Control thread.
 */
#ifndef GN_TOPOLOGY_TOPOLOGY_H
#define GN_TOPOLOGY_TOPOLOGY_H

#include <gantry/role.h>

#include "base/arena.h"
#include "base/errs.h"
#include "base/strlist.h"
#include "config/config.h"
#include "loader/loader.h"
#include "session/session_role.h"

#define GN_TOPOLOGY_LANES_MAX 64

/* Arguments that are not part of the configuration. Zeroed: the whole configuration, unchanged. */
struct gn_topology_args {
	bool probe; /* load each plugin in a child process first, see gn_loader_probe */
	struct gn_strlist roles; /* run only these roles, with their devices; empty: all roles */
	/* overrides of the configuration, see gn_config_open() */
	struct gn_strlist sets;
	/* directories of plugins, instead of runtime.plugin_dirs */
	struct gn_strlist plugin_dirs;
	int verbose;      /* the command line has set the log level: ignore runtime.log */
	bool values_only; /* the topology is not run: do not apply runtime.log and log_format */
	/* the embedded role, valid as long as the topology; NULL: none */
	const struct gn_topo_embedded_role *own;
};

/*
 * A role that the embedding program implements. It replaces one role of the configuration, and uses
 * its connect and stages. That role must connect to exactly one service, or not name a plugin. If
 * args.roles is empty, the configuration must have only one such role. The topology creates only
 * those other roles that the embedded role reaches over transports inside this process, because no
 * other process can reach them. These roles have as many lanes as the embedded role, on the same
 * workers.
 */
struct gn_topo_embedded_role {
	const char *name; /* name of the role plugin in messages and reports */
	/* all slots must be set; `flags` is ignored */
	const struct gantry_role_ops *ops;
	const void *conf;
	uint32_t n_lanes;
	/*
	 * n_lanes workers, which the caller sets before gn_topology_open(). The topology creates no
	 * threads.
	 */
	struct gn_worker **workers;
};

/* Options of the groups of a configuration that belong to the core. */
extern const struct gantry_option gn_runtime_options[], gn_role_options[], gn_listen_options[],
	gn_connect_options[], gn_allow_options[];

/* Options of the group `runtime`. */
struct gn_runtime {
	uint32_t log, log_format; /* enum gn_log_level, enum gn_log_form */
	uint64_t spin_ns;
	uint32_t threads;       /* enum gn_threads */
	const char *cpus;       /* "0-3,8"; "": do not pin */
	uint64_t stop_limit_ns; /* time from the start of the shutdown; 0: no limit */
	const char *stat_dir;
	uint8_t stat;
	uint8_t stage_times; /* measure the own time of each stage and backend */
	const uint32_t *cpu;
	uint32_t n_cpus;
};

enum gn_threads { GN_THREADS_SHARED, GN_THREADS_SEPARATE };

/* One entry of `devices`. */
struct gn_topo_device {
	const char *name;
	struct gn_conf_node *node;
	/* NULL: the configuration has faults, or the device is not used */
	const struct gn_plugin *plugin;
	const void *conf;
	bool used;
	struct gn_auth_conf auth; /* how its peers are authenticated */
	bool connects;            /* a role of this process connects from the device */
	struct gn_device *device; /* NULL before it is open */
	/* -errno with which `open` failed, or would fail, in a trial; else 0 */
	int absent;
	struct gantry_device_info info; /* in a trial: properties of a device that is not open */
};

/* One entry of `roles`. */
struct gn_topo_role {
	const char *name;
	struct gn_conf_node *node;
	bool selected;
	bool is_embedded; /* the embedded role replaces this role */
	/* NULL: the configuration has faults, or names no plugin for a role that `own` replaces */
	const struct gn_plugin *plugin;
	struct gn_role_spec spec; /* device and worker pointers are set when those are created */
	struct gn_endpoint *listen;
	struct gn_endpoint *connects;
	struct gn_topo_device *listen_device;
	struct gn_topo_device **connect_devices;
	struct gn_plugin_instance *stages;
	struct gn_plugin_instance *backend;
	uint32_t flags;       /* GANTRY_ROLE_* */
	struct gn_role *role; /* NULL before it is created */
	/* results of gn_topology_expect(); plans: one for each connect */
	struct gantry_volume_info volume;
	struct gantry_plan *plans;
	bool expected;
	bool started, finished;
	int status;
	struct gn_topology *topology;
};

/* A trial, for `gantry check`. It receives the faults. */
struct gn_topo_trial {
	struct gn_errs *errs, *warnings;
};

struct gn_topology {
	const char *file;
	struct gn_config *config;
	struct gn_loader *loader;
	const struct gn_topo_embedded_role *own; /* NULL: none */
	struct gn_arena arena;
	struct gn_runtime runtime;
	struct gn_topo_device *devices;
	struct gn_topo_role *roles;
	struct gn_plugin_instance *observers; /* ops: struct gantry_observer_ops */
	uint32_t n_devices, n_roles, n_observers;
	struct gn_worker **workers;
	uint32_t n_workers;
	/*
	 * Set it before gn_topology_open() for a trial, which has no effect on the machine; see
	 * gn_topology_look(). NULL: no trial; gn_topology_open() fails at the first failure.
	 */
	const struct gn_topo_trial *trial;
	/* Set it before gn_topology_open(): called when a role has finished. */
	void (*role_finished)(void *arg, struct gn_topo_role *role);
	void *arg;
};

/*
 * Load a configuration. Call gn_topology_close() after success and after failure.
 *
 * file      path; `file` and `args` must stay valid until gn_topology_close()
 * returns   0, or the cause of the first message in errs:
 *           -EINVAL: faults in the configuration
 *           -ENOENT: no such role or file
 *           -EMFILE, -ENOMEM and similar: a resource of the process is exhausted
 *           another -errno of gn_loader_find() for a plugin
 */
int gn_topology_load(struct gn_topology *topology, const char *file,
		     const struct gn_topology_args *args, struct gn_errs *errs);
/* Load a text, otherwise as gn_topology_load(). name: replaces the file name in messages. */
int gn_topology_load_text(struct gn_topology *topology, const char *name, const char *text,
			  const struct gn_topology_args *args, struct gn_errs *errs);

/*
 * True if a connect of a selected role uses a transport inside this process, and no selected role
 * listens on the service of that connect. The configuration must have no faults.
 */
bool gn_topology_leads_nowhere(const struct gn_topology *topology, const struct gn_topo_role *role,
			       uint32_t connect);

/* Get the group of the configuration of the i-th connect of a role. */
struct gn_conf_node *gn_topology_connect_node(const struct gn_topo_role *role, uint32_t connect);

/*
 * Open `device->device`. The configuration must have no faults. Returns 0; or -errno, after the
 * cause was logged.
 */
int gn_topology_open_device(struct gn_topo_device *device, struct gn_loop *loop);
/* Create devices, workers and roles. Returns 0; or -errno, after the cause was logged. */
int gn_topology_open(struct gn_topology *topology, struct gn_loop *loop);
int gn_topology_start(struct gn_topology *topology);
/*
 * For `gantry check`, after gn_topology_open(): check that each role can use the volumes that it
 * connects to in this configuration. Adds faults. Returns 0 or -ENOMEM.
 */
int gn_topology_expect(struct gn_topology *topology, struct gn_errs *errs);
/*
 * For `gantry check`: compare stages, backends, files and directories of the configuration with
 * this machine, and report what `gantry run` could not use. Opens and changes nothing. Skips roles
 * whose options have faults. If this machine does not have a device of a role, the role is for
 * another machine, and its faults are only warnings.
 *
 * In a trial, gn_topology_open() calls it. Stubs then replace all backends, the stages that would
 * change something on this machine, and the devices that do or that cannot be opened (`absent`). A
 * role that cannot be created stays NULL, and its status has the reason.
 */
void gn_topology_look(struct gn_topology *topology, const struct gn_topo_trial *trial);
/*
 * For `gantry check`: report each connect of a selected role to a service that no role of the file
 * serves. If the transport reaches only this process, the serving role must be selected as well.
 * served.c defines which of them are faults, and which are warnings.
 */
void gn_topology_check_connects(struct gn_topology *topology, struct gn_errs *errs,
				struct gn_errs *warnings);
/*
 * For `gantry run`: report each connect inside this process to a service that no role serves here.
 */
void gn_topology_check_inside(struct gn_topology *topology, struct gn_errs *errs);
/*
 * For `gantry check`: report each quota of a `listen` group that another limit makes unreachable.
 */
void gn_topology_check_quotas(const struct gn_topology *topology, struct gn_errs *warnings);
/*
 * Stop the roles of the next rank among those that still run: first roles that end by themselves,
 * then relays, then servers.
 */
void gn_topology_wind_down(struct gn_topology *topology);
void gn_topology_close(struct gn_topology *topology);

/* Write the current state of roles, devices and workers to a report. */
void gn_topology_report(struct gn_topology *topology, struct gantry_writer *w);

/*
 * Create the loader for the directories of args->plugin_dirs, else runtime.plugin_dirs (config may
 * be NULL), else $GANTRY_PLUGIN_PATH, else the built-in directory.
 */
int gn_topology_loader(struct gn_config *config, const struct gn_topology_args *args,
		       struct gn_errs *errs, struct gn_loader **loader_p);

#endif
