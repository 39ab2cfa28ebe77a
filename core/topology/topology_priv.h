/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * topology_priv.h - functions that the files of this module share. Functions that return int add
 * their faults to errs, and return 0, -EINVAL or -ENOMEM, unless their comment differs.
 */
#ifndef GN_TOPOLOGY_TOPOLOGY_PRIV_H
#define GN_TOPOLOGY_TOPOLOGY_PRIV_H

#include "topology/topology.h"

struct gn_topo_parse {
	struct gn_topology *topology;
	struct gn_errs *errs;
};

/* Load the plugin that the setting `key` of the group `owner` names. NULL: a fault was added. */
const struct gn_plugin *gn_topo_plugin(struct gn_topo_parse *p, unsigned kind,
				       struct gn_conf_node *owner, const char *key);

/* Fill a plugin instance from a group { key = "NAME"; options... }. NULL: a fault was added. */
const struct gn_plugin *gn_topo_plugin_instance(struct gn_topo_parse *p, unsigned kind,
						struct gn_conf_node *group, const char *key,
						struct gn_plugin_instance *part);

/*
 * Fill a plugin instance from each group of a list. list NULL: none. *n_p: length of the list; 0
 * after -ENOMEM.
 */
int gn_topo_plugin_list(struct gn_topo_parse *p, unsigned kind, struct gn_conf_node *list,
			struct gn_plugin_instance **parts_p, uint32_t *n_p);

/* Call `check` of a plugin for the options that were filled from `group`. */
int gn_topo_check_options(struct gn_topo_parse *p, const struct gn_plugin *plugin,
			  struct gn_conf_node *group, const void *conf);

/* Get the role to which the i-th connect of a role leads; NULL: no role of this process. */
struct gn_topo_role *gn_topo_next_role(struct gn_topology *t, const struct gn_topo_role *role,
				       uint32_t i);

/* Parse one entry of `roles`. */
int gn_topo_role(struct gn_topo_parse *p, struct gn_topo_role *role);

/* True if the embedded role can replace this role, as far as the configuration shows. */
bool gn_topo_can_be_own(struct gn_topo_parse *p, struct gn_conf_node *node);

/*
 * Select and parse the roles that this role reaches over transports inside this process,
 * recursively.
 */
void gn_topo_select_reachable(struct gn_topo_parse *p, const struct gn_topo_role *role);

/*
 * Call after all roles: check relations between roles. Returns 0, also when it added faults;
 * -ENOMEM.
 */
int gn_topo_graph(struct gn_topo_parse *p);

/* A plugin instance of the configuration, with options that have no faults. */
struct gn_topo_instance {
	unsigned kind;
	struct gn_conf_node *group;
	const struct gn_plugin *plugin;
	const void *conf;
	struct gn_topo_role *role;       /* NULL: a device or an observer */
	struct gn_plugin_instance *part; /* of a stage, backend or observer; else NULL */
};

/*
 * In a trial: compare a device with this machine, and open it if that has no effect on the machine,
 * else a stub. Returns 0; -errno: the stub could not be opened.
 */
int gn_topo_try_device(struct gn_topo_device *device, struct gn_loop *loop, struct gn_errs *errs);
/*
 * In a trial: compare a stage, backend or observer with this machine, and replace a stage or
 * backend by a stub.
 */
void gn_topo_try_part(const struct gn_topo_instance *instance, struct gn_errs *errs);

/* An option of an instance that is the path of a file or directory. */
struct gn_topo_path {
	/* setting of the option, or its group if the option is omitted */
	struct gn_conf_node *node;
	const char *text;
	int64_t use; /* GANTRY_PATH_* */
};

/*
 * Call fn for each instance of the selected roles and for each parsed device, until it returns a
 * non-zero value. Returns that value, or 0.
 */
int gn_topo_each_instance(struct gn_topology *t,
			  int (*fn)(void *arg, const struct gn_topo_instance *instance), void *arg);

/*
 * Call fn for each path of an instance that is not empty, until it returns a non-zero value.
 * Returns that value, or 0.
 */
int gn_topo_each_path(const struct gn_topo_instance *instance,
		      int (*fn)(void *arg, const struct gn_topo_instance *instance,
				const struct gn_topo_path *path),
		      void *arg);

/*
 * Follow symbolic links to the name of the file that open(2) with O_CREAT would create. out:
 * PATH_MAX bytes. Returns false if the name is too long, or there are too many links.
 */
bool gn_topo_path_end(const char *path, char *out);

/*
 * Split a path: truncate it before its last name, and return that name. Returns `path` itself if it
 * has no directory. The directory of "/name" becomes "".
 */
const char *gn_topo_path_split(char *path);

/*
 * Call after all roles: add a fault for each option that replaces a file that another option uses,
 * and for each volume file that two backends use. Returns 0 or -ENOMEM.
 */
int gn_topo_paths(struct gn_topo_parse *p);

/* Parse `listen`, a group, and `connect`, a group or a list of groups, of a role. */
int gn_topo_listen(struct gn_topo_parse *p, struct gn_topo_role *role, struct gn_conf_node *node);
int gn_topo_connect(struct gn_topo_parse *p, struct gn_topo_role *role, struct gn_conf_node *node);

/* Parse the options of a device that belong to the core. */
void gn_topo_device_options(struct gn_topo_parse *p, struct gn_topo_device *device);

/*
 * Call after roles and devices: let each transport check the texts of its services, and the entries
 * of `services`.
 */
void gn_topo_services(struct gn_topo_parse *p);

/*
 * Call after roles and devices: compare the sessions of all listeners of a device with its limit of
 * connections.
 */
void gn_topo_sessions(struct gn_topo_parse *p);
/* Get the limit of connections to all listeners of a device; 0: none, or unknown. */
uint32_t gn_topo_max_connections(const struct gn_topo_device *device);

/*
 * Call after roles and devices: add a fault for each access rule of a `listen` group that its
 * transport cannot enforce, and for each device on a network that does not say how its peers are
 * authenticated.
 */
void gn_topo_access(struct gn_topo_parse *p);
/* Call before a role starts: log a warning if it listens on a network. */
void gn_topo_warn_of_access(const struct gn_topo_role *role);

/* Parse `allow` of `listen`. node NULL: none. */
int gn_topo_allow(struct gn_topo_parse *p, struct gn_conf_node *node, struct gn_endpoint *listen);

/* Parse weights of peers, "uid 1000=4, host 192.0.2.7=2". node: the setting, for messages. */
int gn_topo_weights(struct gn_topo_parse *p, struct gn_conf_node *node, const char *text,
		    struct gn_endpoint *listen);

/* Parse a list of numbers, "0-3,8"; "": an empty list. node: the setting, for messages. */
int gn_topo_numbers(struct gn_topo_parse *p, struct gn_conf_node *node, const char *text,
		    uint32_t max, const uint32_t **list_p, uint32_t *n_p);

#endif
