/* SPDX-License-Identifier: BSD-3-Clause */
/* file_open.c - opens the path of a store, with exclusive access unless it is read-only. */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "file.h"

#define LOCK_RETRY_NS 10000000

#define refuse(store, ...) gantry_log_error((store)->host, __VA_ARGS__)

/*
 * Check the type of the path before it is opened: opening a special file can block or have side
 * effects.
 */
static int check_path(struct file_store *store)
{
	const struct file_conf *conf = store->conf;
	struct stat st;
	int err;

	if (stat(conf->path, &st)) {
		err = errno;
		if (err == ENOENT && conf->create && !conf->read_only)
			return 0;
		refuse(store, "%s: %s%s", conf->path, strerror(err),
		       err == ENOENT ? "; create the file, or set create = true and a size" : "");
		return -err;
	}
	store->is_device = S_ISBLK(st.st_mode);
	if (!store->is_device && !S_ISREG(st.st_mode)) {
		refuse(store, "%s: %s; it must be a regular file or a block device", conf->path,
		       S_ISDIR(st.st_mode) ? "is a directory" : "is a special file");
		return S_ISDIR(st.st_mode) ? -EISDIR : -EINVAL;
	}
	return 0;
}

/* Returns a descriptor or -errno. */
static int open_path(const struct file_store *store, int flags)
{
	const struct file_conf *conf = store->conf;
	int fd;

	if (!conf->read_only)
		return store->host->open_file(store->host, conf->path, flags);
	fd = open(conf->path, flags);
	return fd < 0 ? -errno : fd;
}

/* Open and lock the path. Returns 0 or -errno; -EBUSY: another process has locked it. */
static int take(struct file_store *store)
{
	const struct file_conf *conf = store->conf;
	int flags = O_CLOEXEC | (conf->read_only ? O_RDONLY : O_RDWR);
	int fd, err;

	if (store->is_device && !conf->read_only)
		flags |= O_EXCL; /* O_EXCL rejects a mounted device, too */
	if (!store->is_device && conf->create && !conf->read_only)
		flags |= O_CREAT;
	fd = open_path(store, flags | (store->direct ? O_DIRECT : 0));
	if (fd == -EINVAL && store->direct) {
		gantry_log_info(store->host, "%s: no direct IO here, using the page cache",
				conf->path);
		store->direct = 0;
		fd = open_path(store, flags);
	}
	if (fd < 0)
		return fd;
	store->holder[0] = '\0';
	if (flock(fd, (conf->read_only ? LOCK_SH : LOCK_EX) | LOCK_NB)) {
		err = errno == EWOULDBLOCK ? EBUSY : errno;
		close(fd);
		return -err;
	}
	store->fd = fd;
	err = file_below_take(store);
	if (err)
		close(fd);
	return err;
}

static int take_in_time(struct file_store *store)
{
	const struct gantry_host *host = store->host;
	const struct file_conf *conf = store->conf;
	const struct timespec pause = {0, LOCK_RETRY_NS};
	uint64_t limit = host->now_ns(host) + conf->lock_wait_ns;
	int rc;

	while ((rc = take(store)) == -EBUSY && host->now_ns(host) < limit)
		nanosleep(&pause, NULL);
	if (rc == -EBUSY)
		refuse(store,
		       "%s: in use by %s; end that use, or set lock_wait to wait until it ends",
		       conf->path, store->holder[0] ? store->holder : "another process");
	else if (rc)
		refuse(store, "%s: %s", conf->path, strerror(-rc));
	return rc;
}

int file_find_size(const struct file_store *store, uint64_t *size_p)
{
	struct stat st;

	if (fstat(store->fd, &st))
		return -errno;
	if (S_ISBLK(st.st_mode) != store->is_device || (!store->is_device && !S_ISREG(st.st_mode)))
		return -EINVAL; /* the path has changed since check_path() */
	if (!store->is_device)
		*size_p = (uint64_t)st.st_size;
	else if (ioctl(store->fd, BLKGETSIZE64, size_p))
		return -errno;
	return 0;
}

static int fit_size(struct file_store *store)
{
	const struct file_conf *conf = store->conf;
	char text[200];
	uint64_t have;
	int rc = file_find_size(store, &have);

	if (!rc && conf->create && !conf->read_only && !store->is_device && have < conf->size) {
		rc = ftruncate(store->fd, (off_t)conf->size) ? -errno : 0;
		have = conf->size;
	}
	if (rc) {
		refuse(store, "%s: cannot find or set its size: %s", conf->path, strerror(-rc));
		return rc;
	}
	store->size = conf->size ? conf->size : have;
	if (!file_size_fault(conf, have, text, sizeof text))
		return 0;
	refuse(store, "%s: %s", conf->path, text);
	return -EINVAL;
}

/* Sync the directory of a new file. Otherwise a power failure can lose the name of the file. */
static int sync_name(struct file_store *store)
{
	const struct file_conf *conf = store->conf;
	int rc = 0, fd;
	char *path;

	if (!conf->create || conf->read_only || !conf->fsync || store->is_device)
		return 0;
	path = strdup(conf->path);
	if (!path)
		return -ENOMEM;
	fd = open(dirname(path), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	/* if the directory cannot be opened or synced, rely on the sync of the file itself */
	if (fd >= 0 && fsync(fd) && errno != EINVAL)
		rc = -errno;
	if (!rc && fsync(store->fd))
		rc = -errno;
	if (rc)
		refuse(store, "%s: cannot sync the directory of the new file: %s", conf->path,
		       strerror(-rc));
	if (fd >= 0)
		close(fd);
	free(path);
	return rc;
}

/*
 * Read one block into a buffer with the smallest alignment that an IO can have. Returns 0 or
 * -errno.
 */
static int try_direct(struct file_store *store, uint64_t block)
{
	uint8_t *memory = aligned_alloc(4096, 3 * 4096);
	int rc = 0;

	if (!memory)
		return -ENOMEM;
	if (pread(store->fd, memory + block % 4096, block, 0) < 0)
		rc = -errno;
	free(memory);
	return rc;
}

static int check_direct(struct file_store *store)
{
	const struct file_conf *conf = store->conf;
	int rc;

	if (!store->direct)
		return 0;
	rc = try_direct(store, store->alignment);
	if (rc == -EINVAL && conf->block < 4096) {
		int larger = try_direct(store, 4096);

		if (larger == 0) {
			refuse(store,
			       "%s: direct IO needs blocks of 4 KiB here; set block = \"4KiB\" or direct = false",
			       conf->path);
			return rc;
		}
		rc = larger;
	}
	if (rc == -EINVAL) {
		gantry_log_info(store->host, "%s: no direct IO here, using the page cache",
				conf->path);
		store->direct = 0;
		if (fcntl(store->fd, F_SETFL, fcntl(store->fd, F_GETFL) & ~O_DIRECT) == 0)
			rc = 0;
	}
	if (rc)
		refuse(store, "%s: cannot read: %s", conf->path, strerror(-rc));
	return rc;
}

/*
 * Detect whether the file system can punch holes: a hole beyond the end of the file changes
 * nothing.
 */
static void check_discard(struct file_store *store)
{
	store->can_discard = !store->conf->read_only;
	if (store->can_discard && !store->is_device)
		store->can_discard = fallocate(store->fd,
					       FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
					       (off_t)(store->size + (1u << 20)), 4096) == 0;
}

int file_store_open(struct file_store *store)
{
	const struct file_conf *conf = store->conf;
	int rc;

	store->direct = conf->direct;
	store->alignment = conf->block < 4096 ? conf->block : 4096;
	rc = check_path(store);
	if (!rc)
		rc = take_in_time(store);
	if (rc)
		return rc;
	rc = fit_size(store);
	if (!rc)
		rc = sync_name(store);
	if (!rc)
		rc = check_direct(store);
	if (rc)
		goto out_undo_take;
	check_discard(store);
	file_generation_load(store);
	rc = file_identity_find(store);
	if (rc)
		goto out_undo_take;
	store->zeroes = mmap(NULL, FILE_ZERO_BYTES, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (store->zeroes == MAP_FAILED) {
		rc = -ENOMEM;
		refuse(store, "%s: %s", conf->path, strerror(-rc));
		goto out_undo_take;
	}
	return 0;

out_undo_take:
	file_below_drop(store);
	close(store->fd);
	return rc;
}

int file_witness_open(const struct file_store *store)
{
	char path[40];
	int fd;

	if (store->conf->read_only || !store->conf->fsync)
		return -1;
	snprintf(path, sizeof path, "/proc/self/fd/%d", store->fd);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		gantry_log_warn(
			store->host,
			"%s: cannot be opened a second time for a lane (%s), so lanes share an open file, to which "
			"the kernel reports lost writes only once: one of two concurrent flushes can report success "
			"although writes are lost: raise ulimit -n, or check the mode of the file",
			store->conf->path, strerror(errno));
	return fd;
}

void file_store_close(struct file_store *store)
{
	munmap(store->zeroes, FILE_ZERO_BYTES);
	/*
	 * Unlock explicitly: the lock belongs to the open file description, to which a ring can
	 * hold a reference. The kernel tears down a ring in the background, so the lock could
	 * outlast close(2).
	 */
	flock(store->fd, LOCK_UN);
	file_below_drop(store);
	close(store->fd);
}
