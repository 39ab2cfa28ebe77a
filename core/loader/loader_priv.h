/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the files of this room share. Each function writes one reason without the file's name into
 * why[GN_WHY].
 */
#ifndef GN_LOADER_LOADER_PRIV_H
#define GN_LOADER_LOADER_PRIV_H

#include "loader/loader.h"

#define GN_WHY 512
#define GN_PLUGIN_NAME_MAX 48

/*
 * Open DIR/file for loading if nobody else could have written it (rules: loader.h). Returns a
 * descriptor, or
 * -ENOENT (no such directory or file), -EPERM (not safe), other -errno.
 */
int gn_loader_open_file(const char *dir, const char *file, char *why);

/*
 * Inspect the headers of the shared object behind fd, of `size` bytes. 0, also if the file is no
 * shared object; -ENOEXEC: cut short, corrupt, or for another machine.
 */
int gn_loader_check_whole(int fd, uint64_t size, char *why);

/*
 * Call load(arg), which loads the plugin behind fd, in a child process, and then the termination
 * functions of the plugin. Returns 0: the child has survived, whether or not it could load the
 * plugin; -ENOEXEC: the child has crashed or did not end; -EAGAIN, -EMFILE, -ENFILE or -ENOMEM: the
 * child could not be started.
 */
int gn_loader_try_in_child(int fd, void (*load)(void *arg), void *arg, char *why);

/* True if the address is in the code of a loaded program or library. */
bool gn_loader_is_code(const void *address);

/*
 * Is this description fit for this host, as the plugin NAME? Touches no code of the plugin. 0, or
 * -ENOEXEC.
 */
int gn_loader_check(const struct gantry_plugin *desc, const char *name, char *why);

/* Read every text of the description, which gn_loader_check has accepted. */
void gn_loader_read_all(const struct gantry_plugin *desc);

/*
 * The check of a plugin's options; of one that has none, or was built before there were any, one
 * that finds nothing.
 */
void (*gn_plugin_check(const struct gantry_plugin *desc))(
	const void *conf, const struct gantry_option_faults *faults);

/* The same for `look`. */
void (*gn_plugin_look(const struct gantry_plugin *desc))(const void *conf,
							 const struct gantry_option_faults *faults);

/*
 * Make a complete ops table of the plugin's kind: what the plugin has, and for the rest the stubs
 * of that kind.
 * *ops_p is the caller's, from malloc. 0, -ENOEXEC: a slot that must be there is missing; -ENOMEM.
 */
int gn_plugin_ops(const struct gantry_plugin *desc, void **ops_p, char *why);

#endif
