/* SPDX-License-Identifier: BSD-3-Clause */
/* path.c - open the file of a plugin, if only trusted users can write it. */
#include "loader/loader_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/safe_path.h"

_Static_assert(GN_WHY >= GN_PATH_WHY, "a reason fits");

static int check_file(int fd, char *why)
{
	struct stat st;
	int rc;

	if (fstat(fd, &st)) {
		snprintf(why, GN_WHY, "cannot examine the file: %s", strerror(errno));
		return -errno;
	}
	if (!S_ISREG(st.st_mode)) {
		snprintf(why, GN_WHY, "the file is not a regular file");
		return -EPERM;
	}
	rc = gn_path_check_trusted(&st, "the file", why);
	return rc ? rc : gn_loader_check_whole(fd, (uint64_t)st.st_size, why);
}

int gn_loader_open_file(const char *dir, const char *file, char *why)
{
	int dirfd = gn_path_open(dir, O_PATH | O_DIRECTORY, 0, GN_PATH_TRUSTED, why), fd, rc;

	if (dirfd < 0) {
		if (!why[0])
			snprintf(why, GN_WHY, "cannot open its directory: %s", strerror(-dirfd));
		return dirfd;
	}
	fd = openat(dirfd, file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	rc = fd < 0 ? -errno : 0;
	close(dirfd);
	if (rc == -ELOOP) {
		snprintf(why, GN_WHY,
			 "the file is a symbolic link: configure the directory of the file that "
			 "the link points to");
		return -EPERM;
	}
	if (rc) {
		snprintf(why, GN_WHY, "cannot open the file: %s", strerror(-rc));
		return rc;
	}
	rc = check_file(fd, why);
	if (rc) {
		close(fd);
		return rc;
	}
	return fd;
}
