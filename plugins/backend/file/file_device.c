/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * file_device.c - the persistent name of a block device, from sysfs. A path such as /dev/sdb can
 * name another disk after a reboot.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/xattr.h>

#include "../common/identity.h"
#include "file.h"

#define PART_BYTES 64

/*
 * Files in a device directory of /sys/dev/block that hold a unique name of the device, in order of
 * preference.
 */
static const char *const names[] = {"dm/uuid", "wwid", "device/wwid", "device/cid"};

/* Read the line of dir/file without the surrounding whitespace. Returns 1 if it is not empty. */
static int read_name(const char *dir, const char *file, char *out, size_t bytes)
{
	char path[FILE_NAME_BYTES];
	char line[FILE_NAME_BYTES];
	char *start = line;
	size_t n;

	if ((size_t)snprintf(path, sizeof path, "%s/%s", dir, file) >= sizeof path)
		return 0;
	if (identity_read_line(path, line, sizeof line) <= 0)
		return 0;
	start += strspn(start, " \t");
	n = strlen(start);
	while (n && strchr(" \t", start[n - 1]))
		n--;
	if (n == 0 || n >= bytes)
		return 0;
	memcpy(out, start, n);
	out[n] = '\0';
	return 1;
}

static enum file_name_scope loop_name(const char *dir, char *out, size_t bytes)
{
	char offset[PART_BYTES] = "0", uuid[IDENTITY_TEXT] = "";
	char file[FILE_NAME_BYTES];

	if (!read_name(dir, "loop/backing_file", file, sizeof file))
		return FILE_NAME_NONE;
	read_name(dir, "loop/offset", offset, sizeof offset);
	if (getxattr(file, FILE_UUID_ATTRIBUTE, uuid, sizeof uuid - 1) > 0) {
		snprintf(out, bytes, "loop %s offset %s", uuid, offset);
		return FILE_NAME_WORLD;
	}
	return (size_t)snprintf(out, bytes, "loop %s offset %s", file, offset) < bytes
		       ? FILE_NAME_MACHINE
		       : FILE_NAME_NONE;
}

/* Find the name of a whole device, not of a partition. */
static enum file_name_scope disk_name(const char *dir, char *out, size_t bytes)
{
	for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
		if (read_name(dir, names[i], out, bytes))
			return FILE_NAME_WORLD;
	return loop_name(dir, out, bytes);
}

enum file_name_scope file_device_name(const char *dir, char *out, size_t bytes)
{
	char disk[FILE_NAME_BYTES], number[PART_BYTES], start[PART_BYTES];
	enum file_name_scope scope;
	size_t n;

	if (!read_name(dir, "partition", number, sizeof number) ||
	    !read_name(dir, "start", start, sizeof start))
		return disk_name(dir, out, bytes);
	/* the directory of a partition is inside that of its disk */
	if ((size_t)snprintf(disk, sizeof disk, "%s/..", dir) >= sizeof disk)
		return FILE_NAME_NONE;
	scope = disk_name(disk, out, bytes);
	n = strlen(out);
	if (scope != FILE_NAME_NONE &&
	    (size_t)snprintf(out + n, bytes - n, " partition %s start %s", number, start) >=
		    bytes - n)
		return FILE_NAME_NONE;
	return scope;
}
