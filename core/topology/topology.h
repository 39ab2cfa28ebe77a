/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * topology.h - from a configuration to devices, workers and roles.
 *
 *     gn_topology_load      parse everything, load the plugins; no side effects; all faults are
 *                           collected
 *     gn_topology_open      devices, workers, roles; creates what a role creates, starts nothing
 *     gn_topology_start     servers first, workers last
 *     gn_topology_close     takes down what there is, in reverse order
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
#include "session/role.h"

#define GN_TOPOLOGY_LANES_MAX 64

/*
 * What is asked of a configuration, beside the configuration itself. Zeroed: all of it, as it is.
 */
struct gn_topology_args {
	bool probe; /* load each plugin in a child process first, see gn_loader_probe */
	struct gn_strlist roles; /* only these, with the devices that they use; none: all */
	/* values that override those of the file, as of gn_config_open */
	struct gn_strlist sets;
	/* where plugins are looked for, instead of runtime.plugin_dirs */
	struct gn_strlist plugin_dirs;
	int verbose; /* the level of the log was said: runtime.log does not count */
	/* NULL: none; else it lives as long as the topology */
	const struct gn_topo_embedded_role *own;
};

/*
 * A role of this process itself, for programs around the core. It takes the place of one role of
 * the configuration, whose connect and stages it gets. That must be one that connects to one place,
 * or one that does not say which plugin it is; without a name in `roles`, the only such role. Of
 * the others only those are made that it leads to and that nobody else can reach: over a transport
 * inside this process. They have as many lanes, on the same workers.
 */
struct gn_topo_embedded_role {
	const char *name; /* in the place of that of a plugin */
	/* without a NULL slot, but for `expect`; not its flags */
	const struct gantry_role_ops *ops;
	const void *conf;
	uint32_t n_lanes;
	/*
	 * n_lanes of them, the caller's, who sets them before gn_topology_open. No threads are
	 * made.
	 */
	struct gn_worker **workers;
};

/* What the core's own groups of a configuration accept. */
extern const struct gantry_option gn_runtime_options[], gn_role_options[], gn_listen_options[],
	gn_connect_options[];

/* The group `runtime`. */
struct gn_runtime {
	uint64_t spin_ns;
	uint32_t threads;       /* enum gn_threads */
	const char *cpus;       /* "0-3,8"; "": do not pin */
	uint64_t stop_limit_ns; /* from the start of the shutdown; 0: no limit */
	const char *stat_dir;
	uint8_t stat;
	const uint32_t *cpu;
	uint32_t n_cpus;
};

enum gn_threads { GN_THREADS_SHARED, GN_THREADS_SEPARATE };

/* One entry of `devices`. */
struct gn_topo_device {
	const char *name;
	struct gn_conf_node *node;
	/* NULL: the configuration is wrong, or the device is not used */
	const struct gn_plugin *plugin;
	const void *conf;
	bool used;
	struct gn_device *device; /* once open */
	int absent; /* in a trial: 0, or -errno of its open; then a stand-in is open instead */
};

/* One entry of `roles`. */
struct gn_topo_role {
	const char *name;
	struct gn_conf_node *node;
	bool selected;
	bool is_own; /* struct gn_topo_embedded_role takes its place */
	/* NULL: the configuration is wrong, or does not say and `own` takes its place */
	const struct gn_plugin *plugin;
	struct gn_role_spec spec; /* device and worker pointers are set when those are made */
	struct gn_endpoint *listen;
	struct gn_endpoint *connects;
	struct gn_topo_device *listen_device;
	struct gn_topo_device **connect_devices;
	struct gn_plugin_instance *stages;
	struct gn_plugin_instance *backend;
	uint32_t flags;                   /* GANTRY_ROLE_* */
	struct gn_role *role;             /* once created */
	struct gantry_volume_info volume; /* of gn_topology_expect */
	bool expected;
	bool started, finished;
	int status;
	struct gn_topology *topology;
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
	uint32_t n_devices, n_roles;
	struct gn_worker **workers;
	uint32_t n_workers;
	/*
	 * A stand-in for each device that cannot be opened. Set it before gn_topology_open for a
	 * trial: then a role that cannot be created stays NULL, with the reason in its status.
	 * NULL: no trial, the first such failure ends gn_topology_open.
	 */
	const struct gantry_transport_ops *absent;
	/* The same: a role has finished. */
	void (*role_finished)(void *arg, struct gn_topo_role *role);
	void *arg;
};

/*
 * Load `file`. Returns 0, or what the first of the messages in errs is about: -EINVAL: mistakes;
 * -ENOENT: there is no such role, or file; what gn_loader_find returned for a plugin; -EMFILE,
 * -ENOMEM and others that the process lacks. Close in either case. `file` and `args` must stay
 * until then.
 */
int gn_topology_load(struct gn_topology *topology, const char *file,
		     const struct gn_topology_args *args, struct gn_errs *errs);
/* The same with the text of a configuration; `name` stands for the file in messages. */
int gn_topology_load_text(struct gn_topology *topology, const char *name, const char *text,
			  const struct gn_topology_args *args, struct gn_errs *errs);

/*
 * Of a configuration without mistakes: a transport inside the process leads to a role of this
 * process, or nowhere. Does this connect of a role that is to run lead to none that is?
 */
bool gn_topology_leads_nowhere(const struct gn_topology *topology, const struct gn_topo_role *role,
			       uint32_t connect);

/* The group of the configuration that the i-th connect of a role is parsed from. */
struct gn_conf_node *gn_topology_connect_node(const struct gn_topo_role *role, uint32_t connect);

/*
 * Open `device->device`, of a configuration without mistakes; what failed has been logged. 0 or
 * -errno.
 */
int gn_topology_open_device(struct gn_topo_device *device, struct gn_loop *loop);
/* Open and create; what failed has been logged. 0 or -errno. */
int gn_topology_open(struct gn_topology *topology, struct gn_loop *loop);
int gn_topology_start(struct gn_topology *topology);
/*
 * For `gantry check`, once open: does each role go with the volumes that it leads to in this
 * configuration? `volume` of a role with a backend is what that is expected to say. Adds faults. 0,
 * -ENOMEM.
 */
int gn_topology_expect(struct gn_topology *topology, struct gn_errs *errs);
/*
 * For `gantry check`: report each file and directory of the configuration that `gantry run` could
 * not use on this machine. Opens and changes nothing. Roles whose options have faults are left out.
 * A role whose device this machine does not have (`absent`, after gn_topology_open) is for another
 * machine: what it lacks is a warning.
 */
void gn_topology_look(struct gn_topology *topology, struct gn_errs *errs, struct gn_errs *warnings);
/*
 * For `gantry check`: report each connect of a selected role to a service that no role of the file
 * serves. If the transport reaches only this process, the role that serves it must be selected as
 * well. served.c states what is a fault, and what a warning.
 */
void gn_topology_check_connects(struct gn_topology *topology, struct gn_errs *errs,
				struct gn_errs *warnings);
/*
 * For `gantry check`: report each quota of a `listen` group that is above a limit which is reached
 * first.
 */
void gn_topology_check_quotas(const struct gn_topology *topology, struct gn_errs *warnings);
/* Ask those to stop who must be first of those that still run: who works, relays, servers. */
void gn_topology_wind_down(struct gn_topology *topology);
void gn_topology_close(struct gn_topology *topology);

/* Workers, devices and roles as they are now. */
void gn_topology_report(struct gn_topology *topology, struct gantry_writer *w);

/*
 * Make the loader: args->plugin_dirs, else runtime.plugin_dirs (config may be NULL), else
 * $GANTRY_PLUGIN_PATH, else built in.
 */
int gn_topology_loader(struct gn_config *config, const struct gn_topology_args *args,
		       struct gn_errs *errs, struct gn_loader **loader_p);

#endif
