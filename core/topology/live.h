/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * live.h - change options of a topology that runs: those whose row has GANTRY_OPT_CHANGEABLE
 *
 *     new values -> load and check a whole configuration -> compare it with the present one
 *                -> change options of `runtime` and of plugin instances
 *
 * A configuration with a fault changes nothing. The second configuration is loaded, but never
 * opened. Control thread.
 */
#ifndef GN_TOPOLOGY_LIVE_H
#define GN_TOPOLOGY_LIVE_H

#include "topology/topology.h"

struct gn_live {
	struct gn_topology *topology; /* it runs */
	const struct gn_topology_args *args;
	struct gn_config *values; /* the present values; NULL: those of topology->config */
	/* "PATH=VALUE" of all changes so far, one for each path; owns the strings */
	struct gn_strlist changes;
	bool keeps_log; /* a reload with -v: the file does not set the log level */
	/*
	 * Called for each setting that differs from its present value. is_changed true: after the
	 * change; false: the setting cannot change while the process runs. from, to: text of a
	 * value; "" if it is not set and has no default
	 */
	void (*on_difference)(void *arg, bool is_changed, const char *path, const char *from,
			      const char *to);
	void *arg;
};

/* Free what the functions below allocated. */
void gn_live_fini(struct gn_live *live);

/* Get the present configuration. */
struct gn_config *gn_live_config(const struct gn_live *live);

/*
 * Change one option.
 *
 * set      "roles.load.stages[0].enabled=false", as --set has it
 * errs     receives at least one message if the function fails
 * returns  0, also if the value is the present one
 *          -EINVAL: the path or the value is invalid
 *          -EPERM: the option cannot change while the process runs
 *          -ENOMEM: out of memory
 */
int gn_live_set(struct gn_live *live, const char *set, struct gn_errs *errs);

/*
 * Read the file of the topology again, with the overrides of its start, and change the options
 * that differ and can change. Take over the rows of `listen.allow`, read the keys and certificates
 * of the devices again, and end the sessions of peers that have lost rights.
 *
 * returns  0
 *          -EINVAL: the file has a fault
 *          -ENOMEM: out of memory
 *          another -errno: a device keeps its keys, see gn_auth_reload()
 */
int gn_live_reload(struct gn_live *live, struct gn_errs *errs);

/*
 * Call fn for each changeable option of `runtime` and of the instances that run.
 *
 * path   "runtime.log", "roles.load.stages[0].enabled"
 * value  its present value as text
 */
void gn_live_each_option(const struct gn_live *live,
			 void (*fn)(void *arg, const char *path, const struct gantry_option *row,
				    const char *value),
			 void *arg);

#endif
