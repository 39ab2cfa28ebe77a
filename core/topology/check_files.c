/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * check_files.c - for `gantry check`: compare the files and directories that a configuration names
 * with this machine
 *
 * It opens and changes nothing. The option tables state the use of a path with GANTRY_PATH_*.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/safe_path.h"
#include "topology/topology_priv.h"

struct look {
	const struct gn_topo_trial *trial;
	struct gn_errs *to; /* receives the faults of the current instance */
};

/* Check whether a file with this name could be created. Adds a fault if not. */
static void look_new(struct gn_errs *errs, const struct gn_topo_path *path)
{
	char end[PATH_MAX];
	const char *dir;
	struct stat st;

	if (!gn_topo_path_end(path->text, end)) {
		gn_conf_fault(
			errs, path->node,
			"\"%s\" is too long, or has too many symbolic links; write another path",
			path->text);
		return;
	}
	dir = gn_topo_path_split(end) == end ? "." : *end ? end : "/";
	if (stat(dir, &st))
		gn_conf_fault(
			errs, path->node,
			"\"%s\": cannot use the directory %s: %s; create it, or write another path",
			path->text, dir, strerror(errno));
	else if (!S_ISDIR(st.st_mode))
		gn_conf_fault(errs, path->node, "\"%s\": %s is not a directory; write another path",
			      path->text, dir);
	else if (faccessat(AT_FDCWD, dir, W_OK | X_OK, AT_EACCESS))
		gn_conf_fault(
			errs, path->node,
			"\"%s\": cannot create it in the directory %s: %s; write another path",
			path->text, dir, strerror(errno));
}

/* Check an existing file for this access(2) mode. */
static void look_access(struct gn_errs *errs, const struct gn_topo_path *path,
			const struct stat *st, int mode)
{
	if (S_ISDIR(st->st_mode))
		gn_conf_fault(errs, path->node, "\"%s\" is a directory; write the path of a file",
			      path->text);
	else if (faccessat(AT_FDCWD, path->text, mode, AT_EACCESS))
		gn_conf_fault(errs, path->node,
			      "\"%s\" cannot be %s: %s; change its mode, or write another path",
			      path->text, mode == R_OK ? "read" : "written", strerror(errno));
}

static void look_directory(struct gn_errs *errs, const struct gn_topo_path *path,
			   const struct stat *st)
{
	if (!S_ISDIR(st->st_mode))
		gn_conf_fault(errs, path->node, "\"%s\" is not a directory; write another path",
			      path->text);
	else if (faccessat(AT_FDCWD, path->text, X_OK, AT_EACCESS))
		gn_conf_fault(errs, path->node,
			      "\"%s\" cannot be used: %s; change its mode, or write another path",
			      path->text, strerror(errno));
}

static void look_path(struct gn_errs *errs, const struct gn_topo_path *path)
{
	struct stat st;
	int err = stat(path->text, &st) ? errno : 0;

	if (err && err != ENOENT)
		gn_conf_fault(errs, path->node, "\"%s\": %s; write another path", path->text,
			      strerror(err));
	else if (err && path->use & GANTRY_PATH_KEEP)
		gn_conf_fault(errs, path->node,
			      "\"%s\": %s; create the file, or write another path", path->text,
			      strerror(err));
	else if (err)
		look_new(errs, path);
	else if (path->use & GANTRY_PATH_DIRECTORY)
		look_directory(errs, path, &st);
	else
		look_access(errs, path, &st, path->use & GANTRY_PATH_KEEP ? R_OK : W_OK);
}

/* Check a file that the plugin replaces: report why the host would reject it. */
static void look_output(struct gn_errs *errs, const struct gn_topo_path *path)
{
	char why[GN_PATH_WHY];
	int fd = gn_path_open(path->text, O_PATH, 0, GN_PATH_OUTPUT, why);

	if (fd >= 0)
		close(fd);
	else if (why[0])
		gn_conf_fault(errs, path->node, "%s", why);
}

static int visit_path(void *arg, const struct gn_topo_instance *instance,
		      const struct gn_topo_path *path)
{
	struct look *look = arg;

	(void)instance;
	if (path->use & (GANTRY_PATH_KEEP | GANTRY_PATH_REPLACE | GANTRY_PATH_DIRECTORY))
		look_path(look->to, path);
	if (path->use & GANTRY_PATH_REPLACE)
		look_output(look->to, path);
	return 0;
}

/* True if this machine does not have a device of the role, so the role is for another machine. */
static bool is_elsewhere(const struct gn_topo_role *role)
{
	if (role->listen_device && role->listen_device->absent == -ENODEV)
		return true;
	for (uint32_t i = 0; i < role->spec.n_connects; i++)
		if (role->connect_devices[i] && role->connect_devices[i]->absent == -ENODEV)
			return true;
	return false;
}

static int visit_instance(void *arg, const struct gn_topo_instance *instance)
{
	struct look *look = arg;

	look->to = instance->role && is_elsewhere(instance->role) ? look->trial->warnings
								  : look->trial->errs;
	if (instance->part)
		gn_topo_try_part(instance, look->to);
	return gn_topo_each_path(instance, visit_path, look);
}

void gn_topology_look(struct gn_topology *topology, const struct gn_topo_trial *trial)
{
	struct gn_conf_node *runtime = gn_conf_child(gn_config_root(topology->config), "runtime");
	const struct gn_topo_path stat_dir = {gn_conf_child(runtime, "stat_dir"),
					      topology->runtime.stat_dir, GANTRY_PATH_DIRECTORY};
	struct look look = {trial, NULL};

	gn_topo_each_instance(topology, visit_instance, &look);
	/* only a warning, because gantry run logs the problem and continues */
	if (stat_dir.node && stat_dir.text && *stat_dir.text && topology->runtime.stat)
		look_path(trial->warnings, &stat_dir);
}
