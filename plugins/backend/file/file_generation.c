/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * file_generation.c - computes the verifier, a hash that changes when acknowledged but unflushed
 * writes might be lost. The inputs of the hash:
 *
 *     boot id     a crash of the machine loses the page cache; a crash of this process does not
 *     identity    of a file: device, inode and birth time; of a block device: its number and its
 *                 disk sequence number. Another file or disk has other data
 *     generation  a number that the target increments and stores after a failed sync, which also
 *                 loses writes. A restart therefore does not hide the loss
 *
 * The generation of a file is stored in its attribute user.gantry.generation, in decimal. If the
 * attribute cannot be stored, the generation is stored in the runtime directory of gantry, in a
 * file. A reboot can remove that file without harm, because the boot id also changes.
 */
#include <errno.h>
#include <fcntl.h>
#include <gantry/rundir.h>
#include <inttypes.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "../common/identity.h"
#include "file.h"

#define NUMBER_BYTES 24 /* size of a buffer for a generation as text */

/* The input of the hash. Must have no padding. */
struct life {
	char boot_id[40];
	uint64_t device;
	uint64_t inode;     /* 0: a block device */
	uint64_t birth_sec; /* birth time; for a block device its disk sequence number */
	uint64_t birth_nsec;
	uint64_t generation;
};

static void set_verifier(struct file_store *store, uint64_t verifier)
{
	__atomic_store_n(&store->verifier, verifier, __ATOMIC_RELAXED);
}

static int find_life(const struct file_store *store, struct life *life)
{
	struct statx st;
	int rc;

	memset(life, 0, sizeof *life);
	rc = identity_read_line("/proc/sys/kernel/random/boot_id", life->boot_id,
				sizeof life->boot_id);
	if (rc < 0)
		return rc;
	if (statx(store->fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_BTIME, &st))
		return -errno;
	if (store->is_device) {
		life->device = makedev(st.stx_rdev_major, st.stx_rdev_minor);
#ifdef BLKGETDISKSEQ
		if (ioctl(store->fd, BLKGETDISKSEQ, &life->birth_sec))
			life->birth_sec = 0; /* Linux before 5.15 has no such number */
#endif
		return 0;
	}
	life->device = makedev(st.stx_dev_major, st.stx_dev_minor);
	life->inode = st.stx_ino;
	if (st.stx_mask & STATX_BTIME) {
		life->birth_sec = (uint64_t)st.stx_btime.tv_sec;
		life->birth_nsec = st.stx_btime.tv_nsec;
	}
	return 0;
}

/* Parse "17" or "17\n". Returns 0; -EINVAL: any other text. */
static int parse(const char *text, uint64_t *value_p)
{
	size_t digits = strspn(text, "0123456789");

	if (digits == 0 || digits > 19 || (text[digits] && text[digits] != '\n'))
		return -EINVAL;
	*value_p = strtoull(text, NULL, 10);
	return 0;
}

/* -- generation in an attribute -- */

static int read_attribute(const struct file_store *store, uint64_t *value_p)
{
	char text[NUMBER_BYTES] = "";

	if (store->is_device)
		return 0;
	if (fgetxattr(store->fd, FILE_GENERATION_ATTRIBUTE, text, sizeof text - 1) >= 0)
		return parse(text, value_p);
	return errno == ENODATA || errno == ENOTSUP ? 0 : errno == ERANGE ? -EINVAL : -errno;
}

static int write_attribute(const struct file_store *store, uint64_t value)
{
	char text[NUMBER_BYTES];
	int rc;

	if (store->is_device)
		return -ENOTSUP;
	snprintf(text, sizeof text, "%" PRIu64, value);
	rc = store->calls->set_attribute(store->fd, FILE_GENERATION_ATTRIBUTE, text);
	return rc ? rc : store->calls->sync_all(store->fd);
}

/* -- generation in the runtime directory -- */

/*
 * Open a directory that belongs to this user or root and that no other user can write. Returns a
 * descriptor or -errno.
 */
static int open_directory(const char *path, int create)
{
	struct stat st;
	int fd, rc = 0;

	if (create && mkdir(path, 0700) && errno != EEXIST)
		return -errno;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st))
		rc = -errno;
	else if ((st.st_uid != geteuid() && st.st_uid != 0) || (st.st_mode & 022))
		rc = -EPERM;
	if (rc) {
		close(fd);
		return rc;
	}
	return fd;
}

/* Open the file with the generation of this store. flags 0: read-only. */
static int open_number(const struct file_store *store, int flags)
{
	char path[FILE_NAME_BYTES], name[40];
	int dir, fd;

	gantry_rundir(path, sizeof path);
	snprintf(name, sizeof name, "generation-%016" PRIx64, store->place);
	dir = open_directory(path, flags & O_CREAT);
	if (dir < 0)
		return dir;
	fd = openat(dir, name, flags | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0600);
	if (fd < 0)
		fd = -errno;
	close(dir);
	return fd;
}

static int read_number(const struct file_store *store, uint64_t *value_p)
{
	char text[NUMBER_BYTES] = "";
	int fd = open_number(store, O_RDONLY);
	ssize_t n;
	int rc;

	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	n = pread(fd, text, sizeof text - 1, 0);
	rc = n < 0 ? -errno : parse(text, value_p);
	close(fd);
	return rc;
}

/*
 * Write the generation. It only grows, so the new text is never shorter than the text that it
 * overwrites.
 */
static int write_number(const struct file_store *store, uint64_t value)
{
	char text[NUMBER_BYTES];
	int n = snprintf(text, sizeof text, "%" PRIu64 "\n", value);
	int fd = open_number(store, O_WRONLY | O_CREAT);
	ssize_t written;
	int rc = 0;

	if (fd < 0)
		return fd;
	written = pwrite(fd, text, (size_t)n, 0);
	if (written != n)
		rc = written < 0 ? -errno : -EIO;
	close(fd);
	return rc;
}

static void compute(struct file_store *store)
{
	struct life life;

	if (find_life(store, &life)) { /* not expected: find_life() succeeded at open */
		set_verifier(store, identity_nonce());
		return;
	}
	life.generation = store->generation;
	set_verifier(store, identity_hash(&life, sizeof life));
}

void file_generation_load(struct file_store *store)
{
	uint64_t in_attribute = 0, in_file = 0;
	struct life life;
	const char *what = "the boot id or the file's properties";
	int rc = find_life(store, &life);

	if (!rc) {
		store->place = identity_hash(&life, sizeof life);
		what = FILE_GENERATION_ATTRIBUTE;
		rc = read_attribute(store, &in_attribute);
	}
	if (!rc) {
		what = "generation in the runtime directory";
		rc = read_number(store, &in_file);
	}
	if (rc) {
		gantry_log_warn(
			store->host,
			"%s: cannot read %s: %s: each restart counts as a loss of unflushed writes",
			store->conf->path, what, strerror(-rc));
		/* random, so that it equals no earlier generation */
		store->generation = identity_nonce() >> 2;
	} else {
		store->generation = in_attribute > in_file ? in_attribute : in_file;
	}
	compute(store);
}

void file_generation_raise(struct file_store *store)
{
	uint64_t next = store->generation + 1;
	int attribute = write_attribute(store, next);
	int number = attribute ? write_number(store, next) : 0;
	char dir[FILE_NAME_BYTES];

	if (!attribute || !number) {
		store->generation = next;
		compute(store);
	} else {
		set_verifier(store, identity_nonce());
	}
	if (!attribute || (attribute == -ENOTSUP && !number))
		return;
	gantry_rundir(dir, sizeof dir);
	if (number)
		gantry_log_error(
			store->host,
			"%s: cannot record a failed sync (attribute: %s, directory %s: %s): "
			"a restart of the target hides the loss of writes from clients; restart "
			"the clients too",
			store->conf->path, strerror(-attribute), dir, strerror(-number));
	else
		gantry_log_warn(store->host,
				"%s: cannot record a failed sync in %s (%s); recorded in %s "
				"until the next reboot",
				store->conf->path, FILE_GENERATION_ATTRIBUTE, strerror(-attribute),
				dir);
}
