/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * loader.h - find plugins by name, check and load them, and complete their tables of functions.
 *
 * A plugin is the file DIR/NAME.so of the first directory that has one. The plugin runs with all
 * rights of this process. So the loader checks the following before it loads the file:
 *   - the path of the directory is absolute, and is opened by GN_PATH_TRUSTED (base/safe_path.h):
 *     the directory and all directories on the path to it belong to a trusted user, and no other
 *     user can write to them;
 *   - the file is a regular file, not a symbolic link, with owner and mode by the same rule.
 * The loader passes the checked file to libltdl as /proc/self/fd/N, so no other file can be loaded
 * instead.
 *
 * Plugins stay loaded until the process ends, and the descriptor of each file stays open as long.
 * libltdl has no locking: call all functions on the control thread, before other threads exist.
 */
#ifndef GN_LOADER_LOADER_H
#define GN_LOADER_LOADER_H

#include <stdbool.h>
#include <stddef.h>

#include <gantry/stage.h>
#include <gantry/transport.h>

struct gn_loader;

/* A usable plugin; valid as long as the loader. */
struct gn_plugin {
	const struct gantry_plugin *desc;
	const void *ops;  /* struct gantry_KIND_ops of this build, without a NULL slot */
	const char *path; /* path of the file, for messages */
};

/* One file in a listing of plugins. */
struct gn_plugin_file {
	const char *path;
	const char *name;               /* file name without ".so" */
	const struct gn_plugin *plugin; /* NULL: not usable */
	const char *why;                /* reason why it is not usable */
};

/*
 * Create a loader for n_dirs directories, which are searched in this order. The strings are copied.
 * It opens no directory yet. Removes LTDL_LIBRARY_PATH from the environment.
 *
 * text_p    out, after an error: the problem; a static string
 * returns   0
 *           -EPERM: the process has more rights than its user (AT_SECURE)
 *           -EINVAL: a directory is not absolute
 *           -ENOMEM: out of memory
 */
int gn_loader_open(const char *const *dirs, size_t n_dirs, struct gn_loader **loader_p,
		   const char **text_p);
/*
 * From now on, load each plugin in a child process first, and reject a plugin that crashes the
 * child (-ENOEXEC). Other threads of the program must not hold a lock that a load needs.
 */
void gn_loader_probe(struct gn_loader *loader);
/* Close the loader. Plugins stay in memory; their ops tables are freed. */
void gn_loader_close(struct gn_loader **loader_p);

/*
 * Find a plugin by name and load it, or return the plugin that was loaded before. gn_loader_error()
 * has details of a failure.
 *
 * kind      0: any kind
 * returns   0
 *           -EINVAL: not a valid name
 *           -ENOENT: no such file
 *           -EPERM: other users can write to the file
 *           -ENOEXEC: the file is not a usable plugin
 *           -EMFILE, -ENFILE, -ENOMEM and others: the file could not be opened
 */
int gn_loader_find(struct gn_loader *loader, unsigned kind, const char *name,
		   const struct gn_plugin **plugin_p);

/*
 * Get the reason why the last gn_loader_find() failed: one sentence with the path of the file,
 * without newline; valid until its next call.
 */
const char *gn_loader_error(const struct gn_loader *loader);

/*
 * Call fn for each DIR/NAME.so of the directories, sorted by name. Loads every file. Returns 0,
 * -ENOMEM, or the first non-zero value that fn returned.
 */
int gn_loader_each(struct gn_loader *loader,
		   int (*fn)(void *arg, const struct gn_plugin_file *file), void *arg);

/* Get the directories, for messages: "/a, /b", or "no directory". Valid as long as the loader. */
const char *gn_loader_dirs(const struct gn_loader *loader);

/*
 * Put the stub of this kind into each empty slot of an ops table. Returns the name of the first
 * mandatory slot that is still empty, or NULL if the table is complete.
 */
const char *gn_ops_complete(unsigned kind, void *ops);

/*
 * Get the name of the first function that devices with these GANTRY_CAP_* need and the plugin does
 * not have: its slot is empty or contains a stub. Returns NULL if the plugin has all of them.
 */
const char *gn_ops_missing(const struct gantry_transport_ops *ops, uint32_t caps);

/*
 * True if a transport has neither GANTRY_TRANSPORT_UIDS nor GANTRY_TRANSPORT_INSIDE: its peers are
 * not authenticated.
 */
bool gn_transport_is_network(const struct gantry_transport_ops *ops);

#define GN_SERVICE_MAX 63 /* bytes of a service, see struct gantry_transport_ops */

struct gn_conf_node;
struct gn_errs;

/*
 * Returns the text that the transport of a device uses for the service `name`: that of the entry in
 * its option `services`; without an entry, the name itself.
 */
const char *gn_service_text(struct gn_conf_node *device, const char *name);

/*
 * Call `check` of a plugin, if it has one, and add its faults to errs. group: the options of conf;
 * NULL: none. errs NULL: ignore faults. check: zeroed, except for the members that are inputs.
 */
void gn_plugin_check(const struct gn_plugin *plugin, const void *conf, struct gn_conf_node *group,
		     struct gn_errs *errs, struct gantry_check *check);

/* Returns what `check` of a plugin reports about a conf without faults. */
struct gantry_check gn_plugin_properties(const struct gn_plugin *plugin, const void *conf);

/*
 * Let a transport check the text of a service, which belongs to `node`. Adds its fault to errs,
 * with the text `remedy` at the end.
 */
void gn_service_check(const struct gn_plugin *plugin, const void *conf, const char *service,
		      struct gn_conf_node *node, const char *remedy, struct gn_errs *errs);

/* Let the transport check the entries of the option `services` of a device. */
void gn_services_check(struct gn_conf_node *device, const struct gn_plugin *plugin,
		       const void *conf, struct gn_errs *errs);

/*
 * True if an instance can serve only one lane: a stage or backend that has open() but not start().
 * Several lanes would call it from several threads with the same `self`. ops: table of the ABI of
 * the host, completed by gn_ops_complete().
 */
bool gn_ops_serve_one_lane(unsigned kind, const void *ops);

/*
 * True if the text can be the name of a plugin: a letter, then letters, digits and '-', in lower
 * case, at most 47 bytes.
 */
bool gn_plugin_name_ok(const char *name);
/*
 * Get the name of a kind: "transport", "role", "backend", "stage" or "observer"; "unknown kind" for
 * other numbers.
 */
const char *gn_kind_name(unsigned kind);
/* Get the name with its article: "a role", "an observer". */
const char *gn_kind_phrase(unsigned kind);

#endif
