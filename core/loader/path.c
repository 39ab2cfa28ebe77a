/* SPDX-License-Identifier: BSD-3-Clause */
/* Which files may be loaded: who could have written them. */
#include "loader/loader_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The group of the same name as our user, with nobody else in it. */
static bool is_private_group(gid_t gid)
{
	char user_text[1024], group_text[1024]; /* too small: there are others in it */
	struct passwd user, *is_user;
	struct group group, *is_group;

	if (gid != getegid())
		return false;
	/* not getpwuid: what that returns, another thread of the program may be looking at */
	if (getpwuid_r(geteuid(), &user, user_text, sizeof(user_text), &is_user) || !is_user ||
	    getgrgid_r(gid, &group, group_text, sizeof(group_text), &is_group) || !is_group ||
	    strcmp(user.pw_name, group.gr_name) != 0)
		return false;
	for (char **member = group.gr_mem; *member; member++)
		if (strcmp(*member, user.pw_name) != 0)
			return false;
	return true;
}

/* NULL, or what somebody else could do to it. */
static const char *weakness(const struct stat *st)
{
	bool sticky_of_root = S_ISDIR(st->st_mode) && (st->st_mode & S_ISVTX) && st->st_uid == 0;

	if (st->st_uid != 0 && st->st_uid != geteuid())
		return "belongs to neither root nor the user that runs gantry";
	if (sticky_of_root)
		return NULL;
	if (st->st_mode & S_IWOTH)
		return "is writable for everybody";
	if ((st->st_mode & S_IWGRP) && !is_private_group(st->st_gid))
		return "is writable for its group";
	return NULL;
}

/* Open each directory from the root to `path` (resolved, absolute) and look at it. A descriptor or -errno. */
static int open_dir(const char *path, char *why)
{
	char part[NAME_MAX + 1];
	int dir = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	const char *at = path, *weak;
	struct stat st;
	int next, err;

	for (;;) {
		size_t n;

		if (dir < 0 || fstat(dir, &st)) {
			err = errno;
			snprintf(why, GN_WHY, "cannot open its directory %s: %s", path, strerror(err));
			break;
		}
		weak = weakness(&st);
		if (weak) {
			n = (size_t)(at - path);
			snprintf(why, GN_WHY, "the directory %.*s %s; fix its owner or mode", n ? (int)n : 1, path, weak);
			err = EPERM;
			break;
		}
		at += strspn(at, "/");
		n = strcspn(at, "/");
		if (!n)
			return dir;
		snprintf(part, sizeof(part), "%.*s", (int)n, at);
		at += n;
		next = openat(dir, part, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		close(dir);
		dir = next;
	}
	if (dir >= 0)
		close(dir);
	return -err;
}

static int check_file(int fd, char *why)
{
	const char *weak;
	struct stat st;

	if (fstat(fd, &st)) {
		snprintf(why, GN_WHY, "cannot look at it: %s", strerror(errno));
		return -errno;
	}
	weak = S_ISREG(st.st_mode) ? weakness(&st) : "is not a regular file";
	if (!weak)
		return gn_loader_check_whole(fd, (uint64_t)st.st_size, why);
	snprintf(why, GN_WHY, "the file %s; fix its owner or mode", weak);
	return -EPERM;
}

int gn_loader_open_file(const char *dir, const char *file, char *why)
{
	char *real = realpath(dir, NULL);
	int dirfd, fd, rc;

	if (!real) {
		rc = -errno;
		snprintf(why, GN_WHY, "cannot resolve its directory: %s", strerror(-rc));
		return rc;
	}
	dirfd = open_dir(real, why);
	free(real);
	if (dirfd < 0)
		return dirfd;
	fd = openat(dirfd, file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	rc = fd < 0 ? -errno : 0;
	close(dirfd);
	if (rc == -ELOOP) {
		snprintf(why, GN_WHY, "the file is a symbolic link; name its directory instead");
		return -EPERM;
	}
	if (rc) {
		snprintf(why, GN_WHY, "cannot open it: %s", strerror(-rc));
		return rc;
	}
	rc = check_file(fd, why);
	if (rc) {
		close(fd);
		return rc;
	}
	return fd;
}
