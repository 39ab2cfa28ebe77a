/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * file_below.c - locks the backing file of a loop device, and detects loop devices that are
 * attached to a file.
 *
 * A loop device and its backing file are two inodes, so a lock on one does not cover the other. A
 * store on a loop device therefore also locks the backing file. If the backing file is itself a
 * loop device, the store also locks its backing file, and so on. A file with an attached loop
 * device counts as in use, whatever uses that device.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "file.h"

#define SYS_PATH_BYTES 320

/* Read the first line of a sysfs file, without the newline. Returns 0 or -errno. */
static int read_line(const char *path, char *line, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, line, size - 1);
	int rc = n < 0 ? -errno : 0;

	if (fd >= 0)
		close(fd);
	if (rc)
		return rc;
	line[n] = '\0';
	line[strcspn(line, "\n")] = '\0';
	return 0;
}

/*
 * Read the path of the backing file of a loop device, or of a partition of one. Returns 0; -errno:
 * fd is not a loop device.
 */
static int find_below(int fd, char *path, size_t size, struct loop_info64 *info)
{
	char name[SYS_PATH_BYTES];
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	if (!S_ISBLK(st.st_mode))
		return -ENOTBLK;
	snprintf(name, sizeof name, "/sys/dev/block/%u:%u/loop/backing_file", major(st.st_rdev),
		 minor(st.st_rdev));
	if (read_line(name, path, size)) {
		snprintf(name, sizeof name, "/sys/dev/block/%u:%u/../loop/backing_file",
			 major(st.st_rdev), minor(st.st_rdev));
		if (read_line(name, path, size))
			return -ENOTBLK;
	}
	return ioctl(fd, LOOP_GET_STATUS64, info) ? -errno : 0;
}

/*
 * Returns true if fd is the backing file of the device. In another mount namespace the path of the
 * backing file can lead to another file.
 */
static int is_backing(int fd, const struct loop_info64 *info)
{
	struct stat st;

	return !fstat(fd, &st) && st.st_ino == info->lo_inode && st.st_dev == info->lo_device;
}

/*
 * Open and lock the backing file of a loop device. Returns 0 or -errno; -EBUSY: another process has
 * locked it. A file that cannot be opened by its path stays unlocked (*fd_p is -1): no other target
 * can open a store by that path either.
 */
static int lock_below(struct file_store *store, const char *path, const struct loop_info64 *info,
		      int *fd_p)
{
	int fd = open(path, O_CLOEXEC | O_NOCTTY | O_NONBLOCK |
				    (store->conf->read_only ? O_RDONLY : O_RDWR)),
	    err;

	*fd_p = -1;
	if (fd < 0 || !is_backing(fd, info)) {
		gantry_log_warn(store->host,
				"%s: backing file of this loop device is not locked (path=%s): %s",
				store->conf->path, path,
				fd < 0 ? strerror(errno) : "the path leads to another file");
		if (fd >= 0)
			close(fd);
		return 0;
	}
	if (flock(fd, (store->conf->read_only ? LOCK_SH : LOCK_EX) | LOCK_NB)) {
		err = errno == EWOULDBLOCK ? EBUSY : errno;
		close(fd);
		snprintf(store->holder, sizeof store->holder,
			 "another process that uses the backing file of this loop device");
		return -err;
	}
	*fd_p = fd;
	return 0;
}

/*
 * Returns true if the loop device is attached to this file. *read_only_p: 1 if the device is
 * read-only.
 */
static int is_attached(const char *name, const struct stat *st, int *read_only_p)
{
	char path[SYS_PATH_BYTES], backing[FILE_NAME_BYTES], ro[8] = "";
	struct loop_info64 info;
	struct stat at;
	int fd, rc;

	snprintf(path, sizeof path, "/sys/block/%s/loop/backing_file", name);
	if (read_line(path, backing, sizeof backing))
		return 0;
	snprintf(path, sizeof path, "/sys/block/%s/ro", name);
	*read_only_p = !read_line(path, ro, sizeof ro) && ro[0] == '1';
	snprintf(path, sizeof path, "/dev/%s", name);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	rc = fd < 0 ? -1 : ioctl(fd, LOOP_GET_STATUS64, &info);
	if (fd >= 0)
		close(fd);
	if (rc == 0)
		return st->st_ino == info.lo_inode && st->st_dev == info.lo_device;
	return !stat(backing, &at) && at.st_ino == st->st_ino && at.st_dev == st->st_dev;
}

/*
 * Returns 0; -EBUSY: a loop device other than number `own` is attached to the file, and the device
 * or this store is writable; or another -errno.
 */
static int check_above(struct file_store *store, int fd, int own)
{
	DIR *dir = opendir("/sys/block");
	const struct dirent *entry;
	struct stat st;
	int rc = 0;

	if (!dir)
		return 0; /* no sysfs: loop devices cannot be detected */
	if (fstat(fd, &st))
		rc = -errno;
	while (!rc && (entry = readdir(dir))) {
		int number, read_only;

		if (sscanf(entry->d_name, "loop%d", &number) != 1 || number == own ||
		    !is_attached(entry->d_name, &st, &read_only) ||
		    (read_only && store->conf->read_only))
			continue;
		snprintf(store->holder, sizeof store->holder, "loop device %.16s attached to %s",
			 entry->d_name, own < 0 ? "this file" : "the same backing file");
		rc = -EBUSY;
	}
	closedir(dir);
	return rc;
}

int file_below_take(struct file_store *store)
{
	int fd = store->fd, own = -1, rc;

	store->holder[0] = '\0';
	while (!(rc = check_above(store, fd, own))) {
		struct loop_info64 info;
		char path[FILE_NAME_BYTES];

		if (find_below(fd, path, sizeof path, &info))
			return 0;
		rc = store->n_below == FILE_BELOW_MAX ? -ELOOP
						      : lock_below(store, path, &info, &fd);
		if (rc || fd < 0)
			break;
		own = (int)info.lo_number;
		store->below[store->n_below++] = fd;
	}
	if (rc)
		file_below_drop(store);
	return rc;
}

void file_below_drop(struct file_store *store)
{
	while (store->n_below)
		close(store->below[--store->n_below]);
}
