/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/safe_path.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <linux/magic.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statfs.h>
#include <unistd.h>

#define LINKS_MAX 40 /* the limit of the kernel */
#define TRIES 16     /* attempts to open a file that other processes create and remove */

#define DIRECTORY (O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

struct walk {
	enum gn_path_rule rule;
	char *why;
	int dir;             /* current directory of the walk */
	struct stat st;      /* attributes of dir */
	char left[PATH_MAX]; /* part of the path that is left, relative to dir */
	int fd;              /* the result; -1: the walk is not finished */
	unsigned links;
};

/* -- trust -- */

static bool listed(const char *list, uid_t uid)
{
	char *end;

	for (; list && *list; list = *end == ',' ? end + 1 : end) {
		unsigned long number = strtoul(list, &end, 10);

		if (end == list || *list < '0' || *list > '9' || (*end && *end != ','))
			return false;
		if (number == uid)
			return true;
	}
	return false;
}

static bool is_trusted(uid_t uid)
{
	return uid == 0 || uid == geteuid() || listed(secure_getenv("GANTRY_TRUST_UID"), uid);
}

/* True if the group has the name of this user and no other members. */
static bool is_private_group(gid_t gid)
{
	/* large enough for an entry of this user and of a group without other members */
	char user_text[1024], group_text[1024];
	struct passwd user, *is_user;
	struct group group, *is_group;

	if (gid != getegid())
		return false;
	/* not getpwuid(3): another thread of the program could use its static result */
	if (getpwuid_r(geteuid(), &user, user_text, sizeof(user_text), &is_user) || !is_user ||
	    getgrgid_r(gid, &group, group_text, sizeof(group_text), &is_group) || !is_group ||
	    strcmp(user.pw_name, group.gr_name) != 0)
		return false;
	for (char **member = group.gr_mem; *member; member++)
		if (strcmp(*member, user.pw_name) != 0)
			return false;
	return true;
}

int gn_path_check_trusted(const struct stat *st, const char *what, char *why)
{
	bool sticky_of_root = S_ISDIR(st->st_mode) && (st->st_mode & S_ISVTX) && st->st_uid == 0;
	const char *weakness = NULL, *remedy = "fix its owner or mode";

	if (!is_trusted(st->st_uid)) {
		weakness = "belongs to neither root nor the user that runs gantry";
		remedy = "fix its owner or mode, or list the owner in GANTRY_TRUST_UID";
	} else if (sticky_of_root) {
		return 0;
	} else if (st->st_mode & S_IWOTH) {
		weakness = "is writable by all users";
	} else if ((st->st_mode & S_IWGRP) && !is_private_group(st->st_gid)) {
		weakness = "is writable by its group";
	}
	if (!weakness)
		return 0;
	snprintf(why, GN_PATH_WHY, "%.300s %s (owner=%u, mode=%04o): %s", what, weakness,
		 (unsigned)st->st_uid, (unsigned)st->st_mode & 07777, remedy);
	return -EPERM;
}

/* -- output -- */

/* True if users other than the owner of the directory can create files in it, as in /tmp. */
static bool is_shared(const struct stat *dir)
{
	return (dir->st_mode & S_IWOTH) || ((dir->st_mode & S_ISVTX) && (dir->st_mode & S_IWGRP));
}

/* True if the rule accepts this owner of a link or file in the current directory. */
static bool accepts_owner(const struct walk *w, uid_t uid)
{
	if (!is_shared(&w->st))
		return true;
	return w->rule == GN_PATH_TRUSTED ? is_trusted(uid)
					  : uid == geteuid() || uid == 0 || uid == w->st.st_uid;
}

/* Get the path of an open file, for messages. out: `size` bytes. */
static const char *path_of(int fd, char *out, size_t size)
{
	char link[40];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, out, size - 1);
	out[n < 0 ? 0 : n] = '\0';
	return out;
}

static int reject(struct walk *w, const char *name, const char *what, const struct stat *st)
{
	char dir[200];

	snprintf(
		w->why, GN_PATH_WHY,
		"%s/%.100s: %s in a directory that other users can write to (owner=%u, links=%lu, directory "
		"mode=%04o): remove it, or configure another path",
		path_of(w->dir, dir, sizeof(dir)), name, what, (unsigned)st->st_uid,
		(unsigned long)st->st_nlink, (unsigned)w->st.st_mode & 07777);
	return -EPERM;
}

/* -- the walk -- */

/* Move to a directory. The walk takes ownership of the descriptor. Returns 0 or -errno. */
static int enter(struct walk *w, int dir)
{
	char path[256], what[300];

	if (dir < 0 || fstat(dir, &w->st)) {
		int err = errno;

		if (dir >= 0)
			close(dir);
		return -err;
	}
	if (w->dir >= 0)
		close(w->dir);
	w->dir = dir;
	if (w->rule != GN_PATH_TRUSTED)
		return 0;
	snprintf(what, sizeof(what), "the directory %s", path_of(dir, path, sizeof(path)));
	return gn_path_check_trusted(&w->st, what, w->why);
}

static int begin(struct walk *w, const char *path)
{
	char here[PATH_MAX] = "";
	bool from_root = path[0] == '/' || w->rule == GN_PATH_TRUSTED;

	if (!path[0])
		return -ENOENT;
	if (path[0] != '/' && from_root && !getcwd(here, sizeof(here)))
		return -errno;
	if ((size_t)snprintf(w->left, sizeof(w->left), "%s%s%s", here, *here ? "/" : "", path) >=
	    sizeof(w->left))
		return -ENAMETOOLONG;
	return enter(w, open(from_root ? "/" : ".", DIRECTORY));
}

/*
 * Remove the first name from the remaining path. name: NAME_MAX + 1 bytes; "." at the end. Returns
 * 0 or -ENAMETOOLONG.
 */
static int next_name(struct walk *w, char *name)
{
	const char *at = w->left + strspn(w->left, "/");
	size_t n = strcspn(at, "/");

	if (n > NAME_MAX)
		return -ENAMETOOLONG;
	memcpy(name, n ? at : ".", n ? n : 1);
	name[n ? n : 1] = '\0';
	memmove(w->left, at + n, strlen(at + n) + 1);
	return 0;
}

/*
 * True if the kernel must follow a link in /proc. The text of such a link is not always a path
 * ("pipe:[17]"), and can be the path of a removed file.
 */
static bool kernel_follows(const struct walk *w, int link, const char *text)
{
	struct statfs fs;

	return !fstatfs(link, &fs) && fs.f_type == PROC_SUPER_MAGIC &&
	       (w->rule == GN_PATH_OUTPUT || (text[0] != '/' && strchr(text, ':')));
}

/*
 * Insert the text of the link `name` before the remaining path. Returns 0; 1: the kernel must
 * follow this link; -ENOTDIR: not a link; -EPERM: the rule rejects the link; or another -errno.
 */
static int follow(struct walk *w, const char *name)
{
	char text[PATH_MAX], tail[PATH_MAX];
	int link = openat(w->dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC), rc = 0;
	struct stat st;
	ssize_t n;

	if (link < 0)
		return -errno;
	n = fstat(link, &st)      ? -1
	    : S_ISLNK(st.st_mode) ? readlinkat(link, "", text, sizeof(text) - 1)
				  : 0;
	if (n <= 0)
		rc = n < 0 ? -errno : -ENOTDIR;
	else if (!accepts_owner(w, st.st_uid))
		rc = reject(w, name, "symbolic link of another user", &st);
	else if (++w->links > LINKS_MAX)
		rc = -ELOOP;
	text[n < 0 ? 0 : n] = '\0';
	if (!rc)
		rc = kernel_follows(w, link, text);
	close(link);
	if (rc)
		return rc;
	snprintf(tail, sizeof(tail), "%s", w->left);
	if ((size_t)snprintf(w->left, sizeof(w->left), "%s%s", text, tail) >= sizeof(w->left))
		return -ENAMETOOLONG;
	return text[0] == '/' ? enter(w, open("/", DIRECTORY)) : 0;
}

/*
 * Check the open file. Returns 0; -ELOOP: it is a link, which O_PATH opens; -EPERM: the rule
 * rejects the file.
 */
static int check(struct walk *w, int fd, const char *name)
{
	char path[256], what[300];
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	if (S_ISLNK(st.st_mode))
		return -ELOOP;
	if (w->rule == GN_PATH_TRUSTED && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
		return 0;
	if (w->rule == GN_PATH_TRUSTED) {
		path_of(fd, path, sizeof(path));
		snprintf(what, sizeof(what),
			 S_ISDIR(st.st_mode) ? "the directory %s" : "the file %s", path);
		return gn_path_check_trusted(&st, what, w->why);
	}
	if (!accepts_owner(w, st.st_uid))
		return reject(w, name, "file of another user", &st);
	if (is_shared(&w->st) && S_ISREG(st.st_mode) && st.st_nlink > 1)
		return reject(w, name, "file with several hard links", &st);
	return 0;
}

/*
 * Open the last name of the path. Returns a descriptor; -ELOOP: the name is a link; -EPERM: the
 * rule rejects the file; or another -errno.
 */
static int open_last(struct walk *w, const char *name, int flags, mode_t mode)
{
	const int plain = (flags & ~(O_CREAT | O_TRUNC)) | O_NOFOLLOW | O_CLOEXEC;
	int fd = -1, rc;

	for (int tries = 0; fd < 0; tries++) {
		fd = openat(w->dir, name, plain);
		if (fd < 0 && errno == ENOENT && (flags & O_CREAT)) {
			fd = openat(w->dir, name, plain | O_CREAT | O_EXCL, mode);
			if (fd < 0 && errno == EEXIST && tries < TRIES)
				continue;
		}
		if (fd < 0)
			return -errno;
	}
	rc = check(w, fd, name);
	/* EINVAL: not a regular file */
	if (!rc && (flags & O_TRUNC) && ftruncate(fd, 0) && errno != EINVAL)
		rc = -errno;
	if (rc)
		close(fd);
	return rc ? rc : fd;
}

/*
 * Open a link that the kernel follows, because its file is already open in this process. Returns a
 * descriptor or -errno.
 */
static int open_by_kernel(struct walk *w, const char *name, int flags, mode_t mode)
{
	int fd = openat(w->dir, name, flags | O_CLOEXEC, mode), rc;

	if (fd < 0 || w->rule == GN_PATH_OUTPUT)
		return fd < 0 ? -errno : fd;
	rc = check(w, fd, name);
	if (rc)
		close(fd);
	return rc ? rc : fd;
}

/* Handle the last name: set w->fd, or follow a link. Returns 0 or -errno. */
static int step_last(struct walk *w, const char *name, int flags, mode_t mode)
{
	int fd = open_last(w, name, flags, mode), rc;

	if (fd == -ELOOP || (fd == -ENOTDIR && (flags & O_DIRECTORY))) {
		rc = follow(w, name);
		if (rc <= 0)
			return rc;
		fd = open_by_kernel(w, name, flags, mode);
	}
	w->fd = fd;
	return fd < 0 ? fd : 0;
}

/*
 * Handle a name that is not the last: move to the directory, or follow a link. Returns 0 or -errno.
 */
static int step(struct walk *w, const char *name)
{
	int fd = openat(w->dir, name, DIRECTORY), rc;

	if (fd >= 0)
		return enter(w, fd);
	if (errno != ENOTDIR && errno != ELOOP)
		return -errno;
	rc = follow(w, name);
	return rc == 1 ? enter(w, openat(w->dir, name, DIRECTORY & ~O_NOFOLLOW)) : rc;
}

int gn_path_open(const char *path, int flags, mode_t mode, enum gn_path_rule rule, char *why)
{
	struct walk w = {.rule = rule, .why = why, .dir = -1, .fd = -1};
	char name[NAME_MAX + 1];
	int rc;

	why[0] = '\0';
	rc = begin(&w, path);
	while (!rc && w.fd < 0) {
		rc = next_name(&w, name);
		if (!rc)
			rc = w.left[0] ? step(&w, name) : step_last(&w, name, flags, mode);
	}
	if (w.dir >= 0)
		close(w.dir);
	return rc ? rc : w.fd;
}

/* Check that only this user and root can create files in a directory. Returns 0 or -EPERM. */
static int check_claimed(const char *path, const struct stat *st, char *why)
{
	const char *weakness = NULL;

	if (st->st_uid != geteuid() && st->st_uid != 0)
		weakness = "belongs to another user";
	else if (st->st_mode & 022)
		weakness = "is writable by other users";
	if (!weakness)
		return 0;
	snprintf(
		why, GN_PATH_WHY,
		"the directory %.300s %s (owner=%u, mode=%04o): fix its owner or mode, or use another "
		"directory",
		path, weakness, (unsigned)st->st_uid, (unsigned)st->st_mode & 07777);
	return -EPERM;
}

int gn_path_claim_dir(const char *path, char *why)
{
	char parent[PATH_MAX], *name;
	struct stat st;
	int dir, rc = 0;
	size_t n;

	why[0] = '\0';
	if ((size_t)snprintf(parent, sizeof(parent), "%s%s", strchr(path, '/') ? "" : "./", path) >=
	    sizeof(parent))
		return -ENAMETOOLONG;
	for (n = strlen(parent); n > 1 && parent[n - 1] == '/'; n--)
		parent[n - 1] = '\0';
	name = strrchr(parent, '/');
	*name++ = '\0';
	dir = gn_path_open(name == parent + 1 ? "/" : parent, O_PATH | O_DIRECTORY, 0,
			   GN_PATH_OUTPUT, why);
	if (dir < 0)
		return dir;
	if (!*name) /* the path is "/" */
		strcpy(name, ".");
	if ((mkdirat(dir, name, 0700) && errno != EEXIST) ||
	    fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW))
		rc = -errno;
	else if (!S_ISDIR(st.st_mode))
		rc = -ENOTDIR;
	else
		rc = check_claimed(path, &st, why);
	close(dir);
	if (rc == -EPERM && !why[0]) /* the file system has rejected the creation, as sysfs does */
		snprintf(why, GN_PATH_WHY,
			 "the directory %.300s cannot be created: %s: use another directory", path,
			 strerror(EPERM));
	return rc;
}
