/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * paths.c - reject a configuration in which two options conflict over a file
 *
 * The option tables mark paths with GANTRY_PATH_*. Two options that name the same file are a fault
 * if one of them replaces it. For example, a trace could truncate a volume, or the recording that a
 * role replays. Two backends with the same volume are a fault as well, unless both only read it.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "topology/topology_priv.h"

#define LINKS_MAX 40

/* An option that names a file. */
struct path {
	struct gn_topo_path pub;
	bool read_only; /* the file is a read-only volume */
	bool exists;
	struct stat st;   /* attributes of the file; of its directory if the file does not exist */
	const char *name; /* name in that directory; NULL: the directory does not exist */
	struct path *next;
};

/* List of all earlier paths. */
struct paths {
	struct gn_topo_parse *p;
	struct path *list;
};

bool gn_topo_path_end(const char *path, char *out)
{
	char target[PATH_MAX], joined[2 * PATH_MAX];
	ssize_t n;

	if (snprintf(out, PATH_MAX, "%s", path) >= PATH_MAX)
		return false;
	for (int links = 0; (n = readlink(out, target, sizeof(target) - 1)) >= 0; links++) {
		const char *slash = strrchr(out, '/');

		target[n] = '\0';
		snprintf(joined, sizeof(joined), "%.*s%s",
			 slash && target[0] != '/' ? (int)(slash - out) + 1 : 0, out, target);
		if (links == LINKS_MAX || snprintf(out, PATH_MAX, "%s", joined) >= PATH_MAX)
			return false;
	}
	return true;
}

const char *gn_topo_path_split(char *path)
{
	char *slash = strrchr(path, '/');
	const char *name = slash ? path + (slash - path) + 1 : path;

	if (slash)
		*slash = '\0';
	return name;
}

/*
 * Find where a file that does not exist would be created: sets path->st and path->name. Returns 0
 * or -ENOMEM.
 */
static int find_place(struct gn_arena *arena, struct path *path)
{
	char end[PATH_MAX];
	const char *name;

	if (!gn_topo_path_end(path->pub.text, end))
		return 0;
	name = gn_topo_path_split(end);
	if (stat(name == end ? "." : *end ? end : "/", &path->st))
		return 0;
	path->name = gn_arena_strdup(arena, name);
	return path->name ? 0 : -ENOMEM;
}

static bool is_same(const struct path *a, const struct path *b)
{
	if (a->exists != b->exists)
		return false;
	if (!a->exists)
		return a->name && b->name && !strcmp(a->name, b->name) &&
		       a->st.st_dev == b->st.st_dev && a->st.st_ino == b->st.st_ino;
	if (S_ISBLK(a->st.st_mode) && S_ISBLK(b->st.st_mode))
		return a->st.st_rdev == b->st.st_rdev;
	return S_ISREG(a->st.st_mode) && a->st.st_dev == b->st.st_dev &&
	       a->st.st_ino == b->st.st_ino;
}

static const char *use_text(const struct path *path)
{
	return path->pub.use & GANTRY_PATH_REPLACE ? "replaces" : "uses";
}

/*
 * Report a conflict of two options. The message names the option that replaces the file, or the
 * later option if both replace it.
 */
static void compare(struct gn_topo_parse *p, const struct path *earlier, const struct path *later)
{
	const struct path *culprit = later->pub.use & GANTRY_PATH_REPLACE ? later : earlier;
	const struct path *other = culprit == later ? earlier : later;

	if (culprit->pub.use & GANTRY_PATH_REPLACE)
		gn_conf_fault(
			p->errs, culprit->pub.node,
			"\"%s\" would be replaced, and %s (%s) %s the same file; write another path",
			culprit->pub.text, gn_conf_path(other->pub.node),
			gn_conf_where(other->pub.node), use_text(other));
	else if ((earlier->pub.use & later->pub.use & GANTRY_PATH_VOLUME) &&
		 !(earlier->read_only && later->read_only))
		gn_conf_fault(
			p->errs, later->pub.node,
			"\"%s\" is the volume of %s (%s) as well; write another path, or make both volumes read-only",
			later->pub.text, gn_conf_path(earlier->pub.node),
			gn_conf_where(earlier->pub.node));
}

static bool is_read_only(const struct gn_topo_instance *instance)
{
	return instance->kind == GANTRY_KIND_BACKEND &&
	       (gn_plugin_properties(instance->plugin, instance->conf).volume.flags &
		GANTRY_VOLUME_READ_ONLY);
}

/* Compare a path with all earlier paths, and add it to the list. Returns 0 or -ENOMEM. */
static int add_path(void *arg, const struct gn_topo_instance *instance,
		    const struct gn_topo_path *pub)
{
	struct paths *paths = arg;
	struct gn_arena *arena = &paths->p->topology->arena;
	struct path *path;

	if (!(pub->use & (GANTRY_PATH_KEEP | GANTRY_PATH_REPLACE | GANTRY_PATH_VOLUME)))
		return 0;
	path = gn_arena_alloc(arena, sizeof(*path));
	if (!path)
		return -ENOMEM;
	*path = (struct path){
		.pub = *pub, .read_only = is_read_only(instance), .next = paths->list};
	path->exists = stat(pub->text, &path->st) == 0;
	if (!path->exists && find_place(arena, path))
		return -ENOMEM;
	for (const struct path *before = paths->list; before; before = before->next)
		if (is_same(before, path))
			compare(paths->p, before, path);
	paths->list = path;
	return 0;
}

static int add_paths(void *arg, const struct gn_topo_instance *instance)
{
	return gn_topo_each_path(instance, add_path, arg);
}

int gn_topo_paths(struct gn_topo_parse *p)
{
	struct paths paths = {.p = p};

	return gn_topo_each_instance(p->topology, add_paths, &paths);
}
