/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * file_look.c - checks whether a path and a size can be opened as a volume. It opens no file and
 * has no side effects.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "../common/identity.h"
#include "file.h"

#define SECTOR 512u /* unit of the size in sysfs */
#define LINKS_MAX 40

const char *file_size_fault(const struct file_conf *conf, uint64_t have, char *text, size_t bytes)
{
	uint64_t size = conf->size ? conf->size : have;

	if (size == 0)
		snprintf(text, bytes, "is empty; set create = true and a size");
	else if (size > have)
		snprintf(
			text, bytes,
			"has %llu bytes, less than the size of %llu; set create = true to extend a file",
			(unsigned long long)have, (unsigned long long)size);
	else if (size % conf->block)
		snprintf(text, bytes,
			 "%llu bytes are not a multiple of the block size %llu; set size or block",
			 (unsigned long long)size, (unsigned long long)conf->block);
	else
		return NULL;
	return text;
}

/*
 * Read the size of a block device from sysfs, because opening the device can have side effects.
 * Returns 0 or -errno.
 */
static int device_size(dev_t device, uint64_t *size_p)
{
	char path[64], line[32];
	int rc;

	snprintf(path, sizeof path, "/sys/dev/block/%u:%u/size", major(device), minor(device));
	rc = identity_read_line(path, line, sizeof line);
	if (rc < 0)
		return rc;
	*size_p = strtoull(line, NULL, 10) * SECTOR;
	return 0;
}

/*
 * Follow symbolic links from `path` to the name that open with O_CREAT would create. out: PATH_MAX
 * bytes. Returns 0 or -errno.
 */
static int find_name(const char *path, char *out)
{
	char target[PATH_MAX], joined[2 * PATH_MAX];
	ssize_t n;

	if ((size_t)snprintf(out, PATH_MAX, "%s", path) >= PATH_MAX)
		return -ENAMETOOLONG;
	for (int links = 0; (n = readlink(out, target, sizeof target - 1)) >= 0; links++) {
		const char *slash = strrchr(out, '/');

		target[n] = '\0';
		if (links == LINKS_MAX)
			return -ELOOP;
		snprintf(joined, sizeof joined, "%.*s%s",
			 slash && target[0] != '/' ? (int)(slash - out) + 1 : 0, out, target);
		if ((size_t)snprintf(out, PATH_MAX, "%s", joined) >= PATH_MAX)
			return -ENAMETOOLONG;
	}
	return 0;
}

/* Check a path whose file is missing and would be created by opening the store. */
static void look_new(const struct file_conf *conf, const struct gantry_check *check)
{
	char name[PATH_MAX];
	struct stat st;
	char *slash;
	int rc = find_name(conf->path, name);

	slash = strrchr(name, '/');
	if (slash)
		slash[1] = '\0';
	else
		snprintf(name, sizeof name, ".");
	if (!rc && stat(name, &st))
		rc = -errno;
	if (rc == -ENOENT)
		gantry_option_fault(
			check, "path",
			"\"%s\" cannot be created: its directory is missing (%s): create the directory",
			conf->path, name);
	else if (rc || faccessat(AT_FDCWD, name, W_OK | X_OK, AT_EACCESS))
		gantry_option_fault(check, "path",
				    "\"%s\" cannot be created: %s: write another path", conf->path,
				    strerror(rc ? -rc : errno));
	if (!conf->size)
		gantry_option_fault(check, "size",
				    "is 0, and the file \"%s\" is missing: write its size",
				    conf->path);
}

static void look_missing(const struct file_conf *conf, int err, const struct gantry_check *check)
{
	if (err == ENOENT && conf->create && !conf->read_only)
		look_new(conf, check);
	else
		gantry_option_fault(
			check, "path", "\"%s\": %s%s", conf->path, strerror(err),
			err == ENOENT ? "; create the file, or set create = true and a size" : "");
}

static void look_size(const struct file_conf *conf, const struct stat *st,
		      const struct gantry_check *check)
{
	uint64_t have = (uint64_t)st->st_size;
	char text[200];

	if (S_ISBLK(st->st_mode) && device_size(st->st_rdev, &have))
		return; /* the size is unknown */
	if (S_ISREG(st->st_mode) && conf->create && !conf->read_only && have < conf->size)
		return; /* opening the store extends the file */
	if (file_size_fault(conf, have, text, sizeof text))
		gantry_option_fault(check, conf->size ? "size" : "path", "\"%s\" %s", conf->path,
				    text);
}

void file_look(const struct file_conf *conf, const struct gantry_check *check)
{
	struct stat st;

	if (stat(conf->path, &st)) {
		look_missing(conf, errno, check);
		return;
	}
	if (!S_ISBLK(st.st_mode) && !S_ISREG(st.st_mode)) {
		gantry_option_fault(check, "path",
				    "\"%s\" is a %s; it must be a regular file or a block device",
				    conf->path, S_ISDIR(st.st_mode) ? "directory" : "special file");
		return;
	}
	if (faccessat(AT_FDCWD, conf->path, R_OK | (conf->read_only ? 0 : W_OK), AT_EACCESS))
		gantry_option_fault(
			check, "path",
			"\"%s\" cannot be opened for %s: %s; change its mode, or set read_only = true",
			conf->path, conf->read_only ? "reading" : "reading and writing",
			strerror(errno));
	look_size(conf, &st, check);
}
