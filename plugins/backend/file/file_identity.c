/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * file_identity.c - the UUID of a store, from the first of these sources that exists:
 *
 *     1. the option `uuid`
 *     2. of a file: the attribute user.gantry.uuid, which the target adds if it is missing
 *     3. of a device: its persistent name in sysfs
 *     4. a UUID derived from machine id and path
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "../common/identity.h"
#include "file.h"

static void from_path(struct file_store *store)
{
	char path[PATH_MAX];

	if (!realpath(store->conf->path, path))
		snprintf(path, sizeof path, "%s", store->conf->path);
	identity_of_machine(store->host, path, store->uuid);
}

/*
 * Returns 0; -ENODATA: no attribute; -EINVAL: the attribute is not a UUID; -ENOTSUP or another
 * -errno: the file system has no user attributes.
 */
static int from_attribute(struct file_store *store)
{
	char text[IDENTITY_TEXT] = "";

	if (fgetxattr(store->fd, FILE_UUID_ATTRIBUTE, text, sizeof text - 1) < 0)
		return errno == ERANGE ? -EINVAL : -errno;
	return identity_parse(text, store->uuid);
}

/* Add the attribute with a random UUID. Returns 0, or -errno if it cannot be stored. */
static int make_attribute(struct file_store *store)
{
	const struct file_calls *calls = store->calls;
	char text[IDENTITY_TEXT];

	if (store->conf->read_only)
		return -EROFS;
	identity_random(store->uuid);
	identity_text(store->uuid, text);
	return calls->set_attribute(store->fd, FILE_UUID_ATTRIBUTE, text);
}

/*
 * Make the new attribute stable. The kernel reports a failed write-back only once, and the lost
 * data might have been written before this process started. So the store treats a failure as a
 * failed flush, and the target does not serve the volume.
 */
static int keep_attribute(struct file_store *store)
{
	int rc = store->conf->fsync ? store->calls->sync_all(store->fd) : 0;

	if (rc) {
		file_generation_raise(store);
		gantry_log_error(
			store->host,
			"%s: sync failed: %s: check the disk; data that was not flushed may be lost",
			store->conf->path, strerror(-rc));
	}
	return rc;
}

static int of_file(struct file_store *store)
{
	const char *path = store->conf->path;
	int rc = from_attribute(store);

	if (rc == -EINVAL) {
		gantry_log_error(
			store->host,
			"%s: attribute %s is not a UUID: remove it (setfattr -x %s), or set option uuid",
			path, FILE_UUID_ATTRIBUTE, FILE_UUID_ATTRIBUTE);
		return rc;
	}
	if (rc == 0)
		return 0;
	if (rc == -ENODATA)
		rc = make_attribute(store);
	if (rc == 0)
		return keep_attribute(store);
	if (rc != -EROFS)
		gantry_log_info(
			store->host,
			"%s: cannot store a UUID in attribute %s (%s), using a UUID derived from the path",
			path, FILE_UUID_ATTRIBUTE, strerror(-rc));
	from_path(store);
	return 0;
}

static void of_device(struct file_store *store)
{
	char dir[64], name[FILE_NAME_BYTES];
	enum file_name_scope scope = FILE_NAME_NONE;
	struct stat st;

	if (fstat(store->fd, &st) == 0) {
		snprintf(dir, sizeof dir, "/sys/dev/block/%u:%u", major(st.st_rdev),
			 minor(st.st_rdev));
		scope = file_device_name(dir, name, sizeof name);
	}
	if (scope == FILE_NAME_WORLD)
		identity_of_name(name, store->uuid);
	else if (scope == FILE_NAME_MACHINE)
		identity_of_machine(store->host, name, store->uuid);
	else
		from_path(store);
}

int file_identity_find(struct file_store *store)
{
	if (*store->conf->uuid)
		identity_option(store->conf->uuid, store->uuid);
	else if (store->is_device)
		of_device(store);
	else
		return of_file(store);
	return 0;
}
