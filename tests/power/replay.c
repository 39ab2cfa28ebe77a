/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * replay LOG RECORD [--mount DEVICE DIRECTORY FILE] - compares each power cut that the log of
 * dm-log-writes describes with the record
 *
 * The kernel's Documentation/admin-guide/device-mapper/log-writes.rst has the format of the log: it
 * contains a write when the device has confirmed a later flush, or FUA of the write itself. So
 * each prefix of the log is the content of a disk after a power cut that loses the whole write
 * cache. The program compares the prefixes that end with a flush, FUA or a mark, see power.h.
 *
 * Without --mount the log is that of the volume itself. With it, the log is that of a file system:
 * each prefix is written to DEVICE, which is mounted at DIRECTORY, so that the file system
 * recovers; FILE, a path below DIRECTORY, is the volume. FILE must have its final size and the
 * attribute user.gantry.uuid from the first mark on.
 *
 * Prints a line for each wrong block, then a summary. Exit status: 0: all blocks are right; 1: a
 * block is wrong; 2: the comparison failed.
 */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <linux/fs.h>

#include "power/power.h"

#define LOG_MAGIC 0x6a736677736872u
#define LOG_VERSION 1u
#define BYTES ((size_t)POWER_BLOCKS * SOAK_BLOCK)
#define MOST_FINDINGS 8u

enum { FLAG_FLUSH = 1, FLAG_FUA = 2, FLAG_DISCARD = 4, FLAG_MARK = 8 };

struct log_super {
	uint64_t magic, version, entries;
	uint32_t sector_bytes;
};

struct log_entry {
	uint64_t sector, sectors, flags, data_bytes;
};

static struct soak_journal journal = {.run = POWER_RUN};
static struct power_mark *marks;
static size_t n_marks;
static int log_fd;
static uint64_t log_at; /* position in the log, in bytes */
static struct log_super super;
static char *image; /* content of the device */
static uint64_t image_bytes;
static char content[BYTES]; /* content of the volume, with --mount */
static const char *mount_device, *mount_dir, *mount_file;
static char uuid[64];
static ssize_t uuid_bytes;
static unsigned long n_prefixes, n_mounts, n_writes;

static void quit(const char *what)
{
	fprintf(stderr, "replay: %s: %s\n", what, errno ? strerror(errno) : "wrong format");
	exit(2);
}

static void wrong(const char *what)
{
	soak_report(&journal, SOAK_STATUS, "%s: %s: %s", mount_file, what, strerror(errno));
}

static void read_log(void *to, size_t bytes)
{
	if (pread(log_fd, to, bytes, (off_t)log_at) != (ssize_t)bytes)
		quit("read of the log");
}

static void read_record(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st))
		quit(path);
	n_marks = (size_t)st.st_size / sizeof(*marks);
	marks = malloc((size_t)st.st_size + 1);
	if (!marks || n_marks < 2 || read(fd, marks, (size_t)st.st_size) != st.st_size)
		quit(path);
	close(fd);
}

static void open_log(const char *path)
{
	log_fd = open(path, O_RDONLY | O_CLOEXEC);
	if (log_fd < 0 || ioctl(log_fd, BLKGETSIZE64, &image_bytes))
		quit(path);
	read_log(&super, sizeof(super));
	super.sector_bytes = le32toh(super.sector_bytes);
	if (le64toh(super.magic) != LOG_MAGIC || le64toh(super.version) != LOG_VERSION ||
	    super.sector_bytes < 512)
		quit(path);
	log_at = super.sector_bytes;
	/*
	 * The image has the size of the log device. The logged device must not be larger: apply()
	 * rejects a write beyond the image. Pages are allocated when they are written.
	 */
	image = mmap(NULL, image_bytes, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (image == MAP_FAILED)
		quit("memory");
}

/* -- the volume as a file -- */

static void write_device(void)
{
	int fd = open(mount_device, O_WRONLY | O_DIRECT | O_EXCL | O_CLOEXEC);
	uint64_t bytes = 0, at = 0;
	ssize_t n;

	if (fd < 0 || ioctl(fd, BLKGETSIZE64, &bytes))
		quit(mount_device);
	for (; at < bytes; at += (uint64_t)n) {
		n = pwrite(fd, image + at, bytes - at < 4u << 20 ? bytes - at : 4u << 20,
			   (off_t)at);
		if (n <= 0)
			quit(mount_device);
	}
	close(fd);
}

static void read_file(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	char is[sizeof(uuid)];
	struct stat st;
	ssize_t n;

	errno = 0;
	if (fd < 0 || fstat(fd, &st) || st.st_size != (off_t)BYTES ||
	    pread(fd, content, BYTES, 0) != (ssize_t)BYTES) {
		wrong("missing, too short, or not readable");
	} else {
		n = fgetxattr(fd, "user.gantry.uuid", is, sizeof(is));
		if (!uuid_bytes && n > 0) {
			memcpy(uuid, is, (size_t)n);
			uuid_bytes = n;
		}
		if (n <= 0 || n != uuid_bytes || memcmp(is, uuid, (size_t)n) != 0)
			wrong("attribute user.gantry.uuid");
	}
	if (fd >= 0)
		close(fd);
}

static void mount_and_read(void)
{
	char path[512];

	write_device();
	n_mounts++;
	if (mount(mount_device, mount_dir, "ext4", MS_NOATIME, NULL)) {
		wrong("the file system cannot be mounted");
		return;
	}
	snprintf(path, sizeof(path), "%s/%s", mount_dir, mount_file);
	read_file(path);
	if (umount(mount_dir))
		quit(mount_dir);
}

/* -- prefixes -- */

/*
 * Compare the content after mark number `at`, from 1. marks[at - 1] is the record of this mark,
 * marks[at] that of the next one.
 */
static void compare(size_t at)
{
	const char *volume = mount_device ? content : image;
	char where[32];
	uint32_t found;

	snprintf(where, sizeof(where), "after mark %zu", at);
	n_prefixes++;
	for (uint32_t b = 0; b < POWER_BLOCKS; b++) {
		const struct power_block *before = &marks[at - 1].blocks[b],
					 *after = &marks[at].blocks[b];
		struct soak_window w = {
			.lo = before->stable,
			.hi = after->issued,
			.zeroed = after->zeroed,
			.n = after->n_issued - before->n_stable,
		};

		soak_check(&journal, volume + (size_t)b * SOAK_BLOCK, b, &w, &found, where);
	}
}

static void apply(const struct log_entry *entry)
{
	uint64_t at = entry->sector * super.sector_bytes,
		 bytes = entry->sectors * super.sector_bytes;

	if (!bytes)
		return;
	if (at > image_bytes || bytes > image_bytes - at)
		quit("write behind the end of the device");
	read_log(image + at, bytes);
	log_at += bytes;
	n_writes++;
}

/* Read the next entry of the log, and its text if it is a mark. */
static void next(struct log_entry *entry, char text[32])
{
	char buf[sizeof(*entry) + 32];

	read_log(buf, sizeof(buf));
	memcpy(entry, buf, sizeof(*entry));
	entry->sector = le64toh(entry->sector);
	entry->sectors = le64toh(entry->sectors);
	entry->flags = le64toh(entry->flags);
	entry->data_bytes = le64toh(entry->data_bytes);
	log_at += super.sector_bytes;
	memset(text, 0, 32);
	if (entry->flags & FLAG_MARK)
		memcpy(text, buf + sizeof(*entry), entry->data_bytes < 31 ? entry->data_bytes : 31);
}

static void replay(void)
{
	/* since the last comparison: the image has changed; the mark has */
	int changed = 1, moved = 0;
	struct log_entry entry;
	size_t at = 0;
	char text[32];

	for (uint64_t i = 0;
	     i < le64toh(super.entries) && atomic_load(&journal.n_records) < MOST_FINDINGS; i++) {
		next(&entry, text);
		if (entry.flags & FLAG_DISCARD) {
			if (at)
				quit("a discard");
			continue;
		}
		if (!(entry.flags & FLAG_MARK)) {
			apply(&entry);
			changed |= entry.sectors != 0;
		} else if (strtoul(text, NULL, 10) == at + 1) {
			at++;
			moved = 1;
		}
		if (!at || !(entry.flags & (FLAG_FLUSH | FLAG_FUA | FLAG_MARK)) ||
		    !(changed || moved))
			continue;
		if (at >= n_marks)
			quit("more marks than records");
		if (changed && mount_device)
			mount_and_read();
		compare(at);
		changed = moved = 0;
	}
	if (at != n_marks - 1 && !atomic_load(&journal.n_records))
		quit("the log does not have all marks");
}

int main(int argc, char **argv)
{
	if (argc != 3 && !(argc == 7 && !strcmp(argv[3], "--mount"))) {
		fprintf(stderr, "usage: replay LOG RECORD [--mount DEVICE DIRECTORY FILE]\n");
		return 2;
	}
	if (argc == 7) {
		mount_device = argv[4];
		mount_dir = argv[5];
		mount_file = argv[6];
	}
	errno = 0;
	read_record(argv[2]);
	open_log(argv[1]);
	replay();
	for (uint32_t i = 0; i < atomic_load(&journal.n_records) && i < SOAK_RECORDS; i++)
		printf("%s: %s\n", soak_kinds[journal.records[i].kind], journal.records[i].text);
	printf("replay: entries=%llu writes=%lu marks=%zu prefixes=%lu mounts=%lu findings=%u\n",
	       (unsigned long long)le64toh(super.entries), n_writes, n_marks - 1, n_prefixes,
	       n_mounts, atomic_load(&journal.n_records));
	return atomic_load(&journal.n_records) != 0;
}
