/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the files that make a topology share. All add their faults to errs and return 0 or -EINVAL
 * (-ENOMEM).
 */
#ifndef GN_TOPOLOGY_TOPOLOGY_PRIV_H
#define GN_TOPOLOGY_TOPOLOGY_PRIV_H

#include "topology/topology.h"

struct gn_topo_parse {
	struct gn_topology *topology;
	struct gn_errs *errs;
};

/*
 * The plugin that the string `node` names. owner: the group it stands in, for the message when node
 * is NULL.
 */
const struct gn_plugin *gn_topo_plugin(struct gn_topo_parse *p, unsigned kind,
				       struct gn_conf_node *owner, const char *key);

/* A plugin instance from a group { key = "NAME"; options... }. NULL after a fault. */
const struct gn_plugin *gn_topo_part(struct gn_topo_parse *p, unsigned kind,
				     struct gn_conf_node *group, const char *key,
				     struct gn_plugin_instance *part);

/* Have a plugin look at the options that were filled from `group`. */
int gn_topo_check_options(struct gn_topo_parse *p, const struct gn_plugin *plugin,
			  struct gn_conf_node *group, const void *conf);

/* Takes the mistakes that a plugin finds in its options, which stand in `group`. */
struct gn_topo_objections {
	struct gantry_option_faults pub;
	struct gn_errs *errs;
	struct gn_conf_node *group;
};

void gn_topo_object(const struct gantry_option_faults *faults, const char *option, const char *fmt,
		    ...) __attribute__((format(printf, 3, 4)));

/* The role that the i-th connect of a role leads to; NULL: it is not in this process. */
struct gn_topo_role *gn_topo_next_role(struct gn_topology *t, const struct gn_topo_role *role,
				       uint32_t i);

/* One entry of `roles`. */
int gn_topo_role(struct gn_topo_parse *p, struct gn_topo_role *role);

/* Can the role of this process take the place of this one, as far as can be seen? */
bool gn_topo_can_be_own(struct gn_topo_parse *p, struct gn_conf_node *node);

/*
 * Select and parse the roles that this one leads to and that only this process can reach; and so on
 * from them.
 */
void gn_topo_select_reachable(struct gn_topo_parse *p, const struct gn_topo_role *role);

/* After all roles: what they are together. 0, also when it added faults; -ENOMEM. */
int gn_topo_graph(struct gn_topo_parse *p);

/* A device, role, stage or backend of the configuration, with options that have no faults. */
struct gn_topo_instance {
	unsigned kind;
	struct gn_conf_node *group;
	const struct gn_plugin *plugin;
	const void *conf;
	const struct gn_topo_role *role; /* NULL: a device */
};

/* An option of an instance that names a file or a directory. */
struct gn_topo_path {
	struct gn_conf_node *node; /* of the option; of its group if the option is omitted */
	const char *text;
	int64_t use; /* GANTRY_PATH_* */
};

/*
 * Call fn for each instance of the selected roles and for each parsed device, until it returns
 * other than 0. Returns that.
 */
int gn_topo_each_instance(struct gn_topology *t,
			  int (*fn)(void *arg, const struct gn_topo_instance *instance), void *arg);

/* The same for the paths of an instance that are not empty. */
int gn_topo_each_path(const struct gn_topo_instance *instance,
		      int (*fn)(void *arg, const struct gn_topo_instance *instance,
				const struct gn_topo_path *path),
		      void *arg);

/*
 * Follow symbolic links to the name that an open(2) with O_CREAT would make. out: PATH_MAX bytes.
 * Returns false if the name is too long, or there are too many links.
 */
bool gn_topo_path_end(const char *path, char *out);

/*
 * Cut a path before its name, which is returned; `path` itself: it has no directory. "/name"
 * becomes "".
 */
const char *gn_topo_path_split(char *path);

/*
 * Call after all roles: add a fault for each option that replaces a file that another option uses,
 * and for each volume of two backends. 0; -ENOMEM.
 */
int gn_topo_paths(struct gn_topo_parse *p);

/* `listen`, a group, and `connect`, a group or a list of groups, of a role. */
int gn_topo_listen(struct gn_topo_parse *p, struct gn_topo_role *role, struct gn_conf_node *node);
int gn_topo_connect(struct gn_topo_parse *p, struct gn_topo_role *role, struct gn_conf_node *node);

/*
 * After roles and devices: have each transport look at the services that are to be reached by it.
 */
void gn_topo_services(struct gn_topo_parse *p);

/*
 * After roles and devices: compare the sessions of all listeners of a device with the connections
 * that it has.
 */
void gn_topo_sessions(struct gn_topo_parse *p);

/*
 * After roles and devices: add a fault for each access rule of a `listen` group that its transport
 * cannot enforce, and for each listener on a network without insecure = true.
 */
void gn_topo_access(struct gn_topo_parse *p);
/* Before a role starts: one line in the log if it listens on a network. */
void gn_topo_warn_of_access(const struct gn_topo_role *role);

/* "uid 1000=4, host 192.0.2.7=2" to weights of peers; node: where it stands. */
int gn_topo_weights(struct gn_topo_parse *p, struct gn_conf_node *node, const char *text,
		    struct gn_endpoint *listen);

/* "0-3,8" to numbers; node: where it stands. "" gives none. */
int gn_topo_numbers(struct gn_topo_parse *p, struct gn_conf_node *node, const char *text,
		    uint32_t max, const uint32_t **list_p, uint32_t *n_p);

#endif
