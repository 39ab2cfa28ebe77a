/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * loader.h - from the name of a plugin to its description and a complete table of its functions.
 *
 * A plugin is the file DIR/NAME.so of the first directory that has one. It runs with all the rights
 * of this process, so the loader asks before it opens one:
 *   - the directory is given as an absolute path, and is opened by GN_PATH_TRUSTED
 *     (base/safe_path.h): it and each directory on the way to it belongs to a trusted user, and no
 *     other user can write to it;
 *   - the file is no symbolic link, a regular file, and owned and writable in the same sense.
 * The file that was checked is the one that is loaded: it goes to libltdl as /proc/self/fd/N.
 *
 * Plugins stay loaded until the process ends, and so does the descriptor that each came through.
 * libltdl has no locking: everything here is for the control thread, before there are others.
 */
#ifndef GN_LOADER_LOADER_H
#define GN_LOADER_LOADER_H

#include <stdbool.h>
#include <stddef.h>

#include <gantry/stage.h>
#include <gantry/transport.h>

struct gn_loader;

/* A plugin that is fit for use; lives as long as the loader. */
struct gn_plugin {
	const struct gantry_plugin *desc;
	const void *ops; /* struct gantry_KIND_ops of this build, without a NULL slot */
	/* as in desc, but never NULL */
	void (*check)(const void *conf, const struct gantry_option_faults *faults);
	void (*look)(const void *conf, const struct gantry_option_faults *faults); /* the same */
	const char *path; /* the file, for people */
};

/* One file of a listing. */
struct gn_plugin_file {
	const char *path;
	const char *name;               /* the file's name without ".so" */
	const struct gn_plugin *plugin; /* NULL: not usable */
	const char *why;                /* reason, when not usable */
};

/*
 * Make a loader that looks into n_dirs directories, in this order; the strings are copied. Nothing
 * is opened yet.
 * Takes LTDL_LIBRARY_PATH out of the environment. Returns 0; -EPERM: the process runs with more
 * rights than its user (AT_SECURE); -EINVAL: a directory is not absolute; -ENOMEM. *text_p: then
 * what is wrong, a static or thread-local string.
 */
int gn_loader_open(const char *const *dirs, size_t n_dirs, struct gn_loader **loader_p,
		   const char **text_p);
/*
 * From now on load each plugin in a child process first, and reject a plugin whose load the child
 * does not survive (-ENOEXEC). The other threads of the program must hold no lock that a load
 * needs.
 */
void gn_loader_probe(struct gn_loader *loader);
/* the plugins stay in memory, their ops tables do not */
void gn_loader_close(struct gn_loader **loader_p);

/*
 * Find a plugin by name and load it, or give the one that was loaded before. kind 0: any kind.
 * Returns 0; -EINVAL not a name; -ENOENT no such file; else gn_loader_error says why: -EPERM others
 * could write to it; -ENOEXEC unfit; -EMFILE, -ENFILE, -ENOMEM or whatever kept it from being
 * opened.
 */
int gn_loader_find(struct gn_loader *loader, unsigned kind, const char *name,
		   const struct gn_plugin **plugin_p);

/*
 * Why the last gn_loader_find failed: one sentence with the file's path, without newline; valid
 * until the next call.
 */
const char *gn_loader_error(const struct gn_loader *loader);

/*
 * Call fn for each DIR/NAME.so of the directories, sorted by name; loads them all. 0, -ENOMEM, or
 * what fn returned.
 */
int gn_loader_each(struct gn_loader *loader,
		   int (*fn)(void *arg, const struct gn_plugin_file *file), void *arg);

/* The directories, for messages: "/a, /b" (or "no directory"). Lives as long as the loader. */
const char *gn_loader_dirs(const struct gn_loader *loader);

/*
 * What the loader does with the operations of a plugin, for a table that stands in for one: each
 * empty slot gets what is usual for this kind. Returns the first slot that stays empty, since every
 * plugin brings its own; NULL: none does.
 */
const char *gn_ops_complete(unsigned kind, void *ops);

/*
 * The first function that devices with these GANTRY_CAP_* need, and that this table does not have:
 * empty, or filled in here. NULL: it has all.
 */
const char *gn_ops_lack(const struct gantry_transport_ops *ops, uint32_t caps);

/*
 * True if a transport has neither GANTRY_TRANSPORT_UIDS nor GANTRY_TRANSPORT_INSIDE: nothing
 * authenticates its peers.
 */
bool gn_transport_is_network(const struct gantry_transport_ops *ops);

/*
 * True if a stage never keeps a descriptor: it has no `drain`. ops: of the host's ABI, without a
 * NULL slot.
 */
bool gn_stage_never_holds(const struct gantry_stage_ops *ops);

/*
 * True if an instance can serve only one lane: a stage or backend with an open() but without a
 * start(). Several lanes would call it from several threads with the same `self`. ops: of the
 * host's ABI, without a NULL slot.
 */
bool gn_ops_serve_one_lane(unsigned kind, const void *ops);

/* "transport" ... "stage"; "unknown kind" for other numbers. */
const char *gn_kind_name(unsigned kind);

#endif
