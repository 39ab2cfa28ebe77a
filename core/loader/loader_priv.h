/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * loader_priv.h - functions that the files of this module share. why: out, GN_WHY bytes; the reason
 * of a failure, without the name of the file.
 */
#ifndef GN_LOADER_LOADER_PRIV_H
#define GN_LOADER_LOADER_PRIV_H

#include "loader/loader.h"

#define GN_WHY 512
#define GN_PLUGIN_NAME_MAX 48

/*
 * Open DIR/file for loading, if no untrusted user can write it (see loader.h). Returns a
 * descriptor; -ENOENT: no such directory or file; -EPERM: untrusted; or another -errno.
 */
int gn_loader_open_file(const char *dir, const char *file, char *why);

/*
 * Inspect the headers of the shared object behind fd, of `size` bytes. Returns 0, also if the file
 * is not a shared object; -ENOEXEC: truncated, corrupt, or for another machine type.
 */
int gn_loader_check_whole(int fd, uint64_t size, char *why);

/*
 * In a child process, call load(arg), which loads the plugin behind fd, and then the termination
 * functions of the plugin. Returns 0: the child has survived, whether or not it could load the
 * plugin; -ENOEXEC: the child has crashed or did not end; -EAGAIN, -EMFILE, -ENFILE or -ENOMEM: the
 * child could not be started.
 */
int gn_loader_try_in_child(int fd, void (*load)(void *arg), void *arg, char *why);

/* True if the address is in the code of a loaded program or library. */
bool gn_loader_is_code(const void *address);

/*
 * Check whether this host can use this description, as the plugin NAME. Calls no code of the
 * plugin. Returns 0 or -ENOEXEC.
 */
int gn_loader_check(const struct gantry_plugin *desc, const char *name, char *why);

/* Read every text of a description that gn_loader_check() has accepted. */
void gn_loader_read_all(const struct gantry_plugin *desc);

/*
 * Create a complete ops table for a plugin: its functions, and the stubs of its kind for NULL
 * slots. *ops_p: from malloc(3), owned by the caller. Returns 0; -ENOEXEC: a mandatory function is
 * missing, or the table is invalid; -ENOMEM.
 */
int gn_plugin_ops(const struct gantry_plugin *desc, void **ops_p, char *why);

#endif
