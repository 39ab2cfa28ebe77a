/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * os_disk.c - open files of the simulated disk with its faults; start and end of a machine;
 * functions for the judge
 *
 * /vol, /etc and / lie on the disk. /tmp, /run, /proc and /dev lie in memory: a power cut empties
 * them and creates /tmp and /run/gantry again. A run has one of two kinds of file systems, as
 * drawn: with a journal, a sync of a file or a directory makes all names durable, and a power cut
 * loses only the newest ones; without one, each name is durable only when its directory is synced.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "disk.h"

#define SIZE_MAX_BYTES ((uint64_t)1 << 34) /* largest file; the limit keeps page tables small */

static struct sim_inode *root;
static struct sim_disk_file *files;
static struct sim_disk_faults faults;
#define BOOT_ID 40 /* bytes of text */

static bool journals;
static struct sim_inode *boot; /* /proc/sys/kernel/random/boot_id */
static uint64_t last_serial;

struct sim_inode *sim_disk_root(void)
{
	return root;
}

static bool one_in(uint32_t n)
{
	return n != 0 && sim_draw(n) == 0;
}

bool sim_disk_is_full(const struct sim_inode *inode)
{
	return inode->fs == SIM_FS_DISK && one_in(faults.full_one_in);
}

/* -- open files -- */

struct sim_disk_file *sim_disk_file_find(uint64_t serial)
{
	struct sim_disk_file *f = files;

	while (f && f->serial != serial)
		f = f->next;
	return f;
}

int sim_disk_report(struct sim_disk_file *f)
{
	if (f->errors_seen == f->inode->n_errors)
		return 0;
	f->errors_seen = f->inode->n_errors;
	f->inode->error_reported = true;
	return -EIO;
}

bool sim_disk_lock_conflicts(const struct sim_disk_file *f, int lock)
{
	for (const struct sim_disk_file *other = files; other; other = other->next)
		if (other != f && other->inode == f->inode &&
		    (other->lock == LOCK_EX || (other->lock == LOCK_SH && lock == LOCK_EX)))
			return true;
	return false;
}

/*
 * Wait for the drawn time of the operation. Meanwhile the running thread can be killed, and another
 * thread can close the file; the inode stays. Returns the open file. NULL: it was closed.
 */
static struct sim_disk_file *take_time(struct sim_disk_file *f)
{
	uint64_t serial = f->serial;

	if (faults.slowest_ns == 0 || f->inode->fs != SIM_FS_DISK || !sim_self())
		return f;
	if (faults.slow_one_in != 0 && !one_in(faults.slow_one_in))
		return f;
	sim_block(NULL, NULL, sim_now() + 1 + sim_draw64() % faults.slowest_ns);
	return sim_disk_file_find(serial);
}

static bool is_misaligned(const struct sim_disk_file *f, size_t bytes, off_t offset)
{
	return (f->file.flags & O_DIRECT) &&
	       (bytes % SIM_SECTOR != 0 || (offset > 0 && offset % SIM_SECTOR != 0));
}

static ssize_t file_read(struct sim_file *file, void *to, size_t bytes, off_t offset)
{
	struct sim_disk_file *f = (struct sim_disk_file *)file;
	uint64_t at = offset < 0 ? f->position : (uint64_t)offset;
	struct sim_inode *inode;

	if ((file->flags & O_PATH) || (file->flags & O_ACCMODE) == O_WRONLY)
		return -EBADF;
	if (sim_inode_type(f->inode) == S_IFDIR)
		return -EISDIR;
	if (is_misaligned(f, bytes, (off_t)at))
		return -EINVAL;
	inode = f->inode;
	f = take_time(f);
	bytes = sim_inode_read(inode, at, to, bytes);
	if (offset < 0 && f)
		f->position = at + bytes;
	return (ssize_t)bytes;
}

/* Sync the covered changes. f NULL: the open file was closed meanwhile. Returns 0 or -EIO. */
static int sync_inode(struct sim_inode *inode, struct sim_disk_file *f,
		      const struct sim_cover *cover)
{
	bool fails = one_in(faults.sync_fails_one_in);

	sim_inode_sync(inode, cover, fails);
	if (f)
		return sim_disk_report(f);
	return fails ? -EIO : 0;
}

/*
 * The disk becomes full at a drawn page of the write that is not allocated yet. Returns the bytes
 * before this page.
 */
static size_t bytes_that_fit(const struct sim_inode *inode, uint64_t at, size_t bytes)
{
	size_t n = 0;

	while (n < bytes && (!sim_inode_has_hole(inode, at + n, at + n + 1) || sim_draw(2) != 0))
		n += SIM_PAGE - (at + n) % SIM_PAGE;
	return n < bytes ? n : bytes;
}

/* Apply the faults of a write. Returns the number of bytes to write, or -errno. */
static ssize_t writable(struct sim_inode *inode, const void *from, size_t bytes, uint64_t at)
{
	if (bytes > SIZE_MAX_BYTES || at > SIZE_MAX_BYTES - bytes)
		return -EFBIG;
	if (inode->fs != SIM_FS_DISK)
		return (ssize_t)bytes;
	if (one_in(faults.write_fails_one_in)) {
		/* a write that fails may have reached the page cache */
		if (sim_draw(2) != 0)
			sim_inode_write(inode, at, from, bytes);
		return -EIO;
	}
	if (sim_inode_has_hole(inode, at, at + bytes) && sim_disk_is_full(inode)) {
		bytes = bytes_that_fit(inode, at, bytes);
		return bytes != 0 ? (ssize_t)bytes : -ENOSPC;
	}
	return (ssize_t)bytes;
}

ssize_t sim_disk_write(struct sim_file *file, const void *from, size_t bytes, off_t offset,
		       int more_flags)
{
	struct sim_disk_file *f = (struct sim_disk_file *)file;
	struct sim_inode *inode = f->inode;
	int flags = file->flags | more_flags;
	uint64_t at;
	ssize_t n;

	if ((flags & O_PATH) || (flags & O_ACCMODE) == O_RDONLY)
		return -EBADF;
	if (is_misaligned(f, bytes, offset < 0 ? (off_t)f->position : offset))
		return -EINVAL;
	if (bytes == 0)
		return 0;
	at = offset < 0 ? f->position : (uint64_t)offset;
	f = take_time(f);
	if (flags & O_APPEND)
		at = inode->layers[SIM_SEEN].size;
	n = writable(inode, from, bytes, at);
	if (n <= 0)
		return n;
	sim_inode_write(inode, at, from, (size_t)n);
	if (offset < 0 && f)
		f->position = at + (uint64_t)n;
	if ((flags & O_DSYNC) && inode->fs == SIM_FS_DISK) {
		struct sim_cover cover = {.last_number = inode->n_changes,
					  .from = at / SIM_PAGE * SIM_PAGE,
					  .to = (at + (uint64_t)n + SIM_PAGE - 1) / SIM_PAGE *
						SIM_PAGE,
					  .data_only = true};
		int rc = sync_inode(inode, f, &cover);

		return rc != 0 ? rc : n;
	}
	return n;
}

static ssize_t file_write(struct sim_file *file, const void *from, size_t bytes, off_t offset)
{
	return sim_disk_write(file, from, bytes, offset, 0);
}

static int file_stat(struct sim_file *file, struct stat *st)
{
	sim_inode_stat(((struct sim_disk_file *)file)->inode, st);
	return 0;
}

static bool may_change(const struct sim_disk_file *f)
{
	return !(f->file.flags & O_PATH) && (f->file.flags & O_ACCMODE) != O_RDONLY;
}

static int file_truncate(struct sim_file *file, off_t bytes)
{
	struct sim_disk_file *f = (struct sim_disk_file *)file;

	if (!may_change(f) || bytes < 0)
		return -EINVAL;
	if ((uint64_t)bytes > SIZE_MAX_BYTES)
		return -EFBIG;
	sim_inode_truncate(f->inode, (uint64_t)bytes);
	return 0;
}

static int file_allocate(struct sim_file *file, int mode, off_t offset, off_t bytes)
{
	struct sim_disk_file *f = (struct sim_disk_file *)file;
	struct sim_inode *inode = f->inode;
	uint64_t from = (uint64_t)offset, n = (uint64_t)bytes;
	bool keeps_size = mode & FALLOC_FL_KEEP_SIZE;

	if (!may_change(f))
		return -EBADF;
	if (offset < 0 || bytes <= 0)
		return -EINVAL;
	if (from > SIZE_MAX_BYTES || n > SIZE_MAX_BYTES - from)
		return -EFBIG;
	mode &= ~FALLOC_FL_KEEP_SIZE;
	if (mode != 0 && mode != FALLOC_FL_ZERO_RANGE &&
	    (mode != FALLOC_FL_PUNCH_HOLE || !keeps_size))
		return -EOPNOTSUPP;
	take_time(f);
	if (mode == FALLOC_FL_PUNCH_HOLE) {
		sim_inode_punch(inode, from, n);
		return 0;
	}
	if (sim_inode_has_hole(inode, from, from + n) && sim_disk_is_full(inode))
		return -ENOSPC;
	if (mode == FALLOC_FL_ZERO_RANGE)
		sim_inode_zero(inode, from, n);
	else
		sim_inode_allocate(inode, from, n);
	if (!keeps_size)
		sim_inode_grow(inode, from + n);
	return 0;
}

static int file_sync(struct sim_file *file, bool data_only)
{
	struct sim_disk_file *f = (struct sim_disk_file *)file;
	struct sim_inode *inode = f->inode;
	struct sim_cover cover = {
		.last_number = inode->n_changes, .to = UINT64_MAX, .data_only = data_only};
	uint64_t last_name = sim_names_number();
	int rc;

	if (file->flags & O_PATH)
		return -EBADF;
	if (inode->fs != SIM_FS_DISK)
		return 0;
	rc = sync_inode(inode, take_time(f), &cover);
	if (rc == 0 && sim_inode_type(inode) == S_IFDIR)
		sim_names_sync(journals ? NULL : inode, last_name);
	else if (rc == 0 && journals && !data_only)
		sim_names_sync(NULL, last_name);
	return rc;
}

static int file_map(struct sim_file *file, void *at, size_t bytes, int prot, int flags,
		    off_t offset)
{
	(void)file;
	(void)prot;
	(void)flags;
	sim_fail("mmap of a file (at=%p, bytes=%zu, offset=%lld)", at, bytes, (long long)offset);
}

static void file_close(struct sim_file *file)
{
	struct sim_disk_file **at = &files;

	while (*at && *at != (struct sim_disk_file *)file)
		at = &(*at)->next;
	if (!*at)
		return; /* a file of an earlier run */
	*at = (*at)->next;
	sim_changed(); /* the lock of the file is released */
}

static const struct sim_file_ops file_ops = {.kind = "file",
					     .read = file_read,
					     .write = file_write,
					     .stat = file_stat,
					     .truncate = file_truncate,
					     .allocate = file_allocate,
					     .sync = file_sync,
					     .map = file_map,
					     .close = file_close};

static ssize_t null_read(struct sim_file *file, void *to, size_t bytes, off_t offset)
{
	(void)file;
	(void)to;
	(void)bytes;
	(void)offset;
	return 0;
}

static ssize_t null_write(struct sim_file *file, const void *from, size_t bytes, off_t offset)
{
	(void)file;
	(void)from;
	(void)offset;
	return (ssize_t)bytes;
}

static const struct sim_file_ops null_ops = {.kind = "null",
					     .read = null_read,
					     .write = null_write,
					     .stat = file_stat,
					     .close = file_close};

struct sim_disk_file *sim_disk_file(struct sim_file *file)
{
	return file->ops == &file_ops || file->ops == &null_ops ? (struct sim_disk_file *)file
								: NULL;
}

struct sim_file *sim_disk_open(struct sim_inode *inode, int flags)
{
	const struct sim_file_ops *ops = sim_inode_type(inode) == S_IFCHR && !(flags & O_PATH)
						 ? &null_ops
						 : &file_ops;
	struct sim_disk_file *f = sim_file_new(ops, sizeof(*f), flags);

	f->inode = inode;
	f->serial = ++last_serial;
	f->lock = LOCK_UN;
	/* this open file, too, must report an error that no open file has reported */
	f->errors_seen = inode->error_reported ? inode->n_errors : 0;
	f->next = files;
	files = f;
	return &f->file;
}

/* -- a run -- */

static struct sim_inode *make_dir(const char *name, struct sim_inode *dir, enum sim_fs fs,
				  mode_t mode)
{
	struct sim_inode *inode = sim_inode_make(fs, S_IFDIR | mode, 0);

	sim_dir_add(dir, name, inode);
	return inode;
}

static struct sim_inode *make_text(const char *name, struct sim_inode *dir, const char *text)
{
	struct sim_inode *inode = sim_inode_new(dir, S_IFREG | 0444, 0);

	sim_inode_fill(inode, text, strlen(text));
	sim_dir_add(dir, name, inode);
	return inode;
}

static void draw_boot_id(char text[BOOT_ID])
{
	uint64_t high = sim_draw64(), low = sim_draw64();

	snprintf(text, BOOT_ID, "%08x-%04x-4%03x-a%03x-%012llx\n", (unsigned)(high >> 32),
		 (unsigned)(high >> 16) & 0xffff, (unsigned)high & 0xfff,
		 (unsigned)(low >> 48) & 0xfff, (unsigned long long)low & 0xffffffffffff);
}

/* Create the file systems in memory, as at the start of a machine. */
static void mount(void)
{
	struct sim_inode *proc = make_dir("proc", root, SIM_FS_PROC, 0555);
	struct sim_inode *self = make_dir("self", proc, SIM_FS_PROC, 0555);
	struct sim_inode *sys = make_dir("sys", proc, SIM_FS_PROC, 0555);
	struct sim_inode *kernel = make_dir("kernel", sys, SIM_FS_PROC, 0555);
	struct sim_inode *random = make_dir("random", kernel, SIM_FS_PROC, 0555);
	struct sim_inode *dev = make_dir("dev", root, SIM_FS_PROC, 0755);
	char boot_id[BOOT_ID];

	draw_boot_id(boot_id);
	make_dir("fd", self, SIM_FS_PROC, 0555)->proc_fd = true;
	boot = make_text("boot_id", random, boot_id);
	sim_dir_add(dev, "null", sim_inode_make(SIM_FS_PROC, S_IFCHR | 0666, 0));
	make_dir("tmp", root, SIM_FS_TMP, 01777);
	make_dir("gantry", make_dir("run", root, SIM_FS_TMP, 0755), SIM_FS_TMP, 0755);
	sim_names_sync(NULL, UINT64_MAX);
}

void sim_disk_begin(const struct sim_disk_faults *f)
{
	sim_streams_clear();
	sim_inodes_clear();
	files = NULL;
	last_serial = 0;
	faults = *f;
	journals = sim_draw(2) != 0;
	root = sim_inode_make(SIM_FS_DISK, S_IFDIR | 0755, 0);
	root->parent = root;
	make_dir("vol", root, SIM_FS_DISK, 0755);
	make_text("machine-id", make_dir("etc", root, SIM_FS_DISK, 0755),
		  "5d1a5e4bb6e84a3f9f0d7c1e2a3b4c5d\n");
	mount();
}

void sim_disk_repair(void)
{
	faults = (struct sim_disk_faults){0};
}

void sim_disk_power_cut(bool whole)
{
	char boot_id[BOOT_ID];

	if (!whole) {
		sim_inodes_cut(false, journals);
		draw_boot_id(boot_id);
		sim_inode_fill(boot, boot_id, strlen(boot_id));
		return;
	}
	sim_streams_clear();
	sim_inodes_cut(true, journals);
	for (struct sim_disk_file *f = files; f; f = f->next)
		f->lock = LOCK_UN;
	mount();
	sim_note(sim_draw64());
}

/* -- the judge -- */

int sim_disk_put(const char *path, const void *bytes, size_t n)
{
	struct sim_place place;
	int rc = sim_path_find(AT_FDCWD, path, true, &place);

	if (rc != 0)
		return rc;
	if (place.inode && sim_inode_type(place.inode) != S_IFREG)
		return -EISDIR;
	if (!place.inode) {
		place.inode = sim_inode_new(place.dir, S_IFREG | 0644, 0);
		sim_dir_add(place.dir, place.name, place.inode);
		sim_names_sync(place.dir, UINT64_MAX);
	}
	sim_inode_fill(place.inode, bytes, n);
	return 0;
}

ssize_t sim_disk_get(const char *path, void *bytes, size_t n, off_t offset)
{
	struct sim_place place;
	int rc = sim_path_find(AT_FDCWD, path, true, &place);

	if (rc == 0 && (!place.inode || sim_inode_type(place.inode) != S_IFREG))
		rc = !place.inode ? -ENOENT : -EISDIR;
	if (rc != 0)
		return rc;
	return (ssize_t)sim_inode_read(place.inode, (uint64_t)offset, bytes, n);
}

static size_t add_names(const struct sim_inode *dir, const char *but, char *text, size_t bytes,
			size_t n)
{
	for (const struct sim_entry *e = dir->layers[SIM_SEEN].entries; e && n < bytes; e = e->next)
		if (sim_inode_type(e->inode) == S_IFDIR)
			n = add_names(e->inode, but, text, bytes, n);
		else if (strncmp(e->name, but, strlen(but)) != 0)
			n += (size_t)snprintf(text + n, bytes - n, " %s", e->name);
	return n;
}

bool sim_disk_names(const char *path, const char *but, char *text, size_t bytes)
{
	struct sim_place place;

	if (sim_path_find(AT_FDCWD, path, true, &place) != 0 || !place.inode)
		sim_fail("%s: no such directory", path);
	return add_names(place.inode, but, text, bytes, 0) != 0;
}

int sim_disk_put_attribute(const char *path, const char *name, const char *value)
{
	struct sim_cover all = {.last_number = UINT64_MAX, .to = UINT64_MAX};
	struct sim_place place;
	int rc = sim_path_find(AT_FDCWD, path, true, &place);

	if (rc != 0 || !place.inode)
		return rc != 0 ? rc : -ENOENT;
	sim_inode_set_xattr(place.inode, name, value, strlen(value));
	sim_inode_sync(place.inode, &all, false);
	return 0;
}

int sim_disk_grow(const char *path, uint64_t bytes)
{
	struct sim_place at;
	int rc = sim_path_find(AT_FDCWD, path, false, &at);

	if (rc == 0 && !at.inode)
		rc = -ENOENT;
	if (rc == 0)
		sim_inode_grow(at.inode, at.inode->layers[SIM_SEEN].size + bytes);
	return rc;
}

int sim_disk_swap(const char *a, const char *b)
{
	struct sim_place at_a, at_b;
	int rc = sim_path_find(AT_FDCWD, a, false, &at_a);

	if (rc == 0)
		rc = sim_path_find(AT_FDCWD, b, false, &at_b);
	if (rc == 0 && (!at_a.inode || !at_b.inode))
		rc = -ENOENT;
	if (rc != 0)
		return rc;
	sim_dir_add(at_a.dir, at_a.name, at_b.inode);
	sim_dir_add(at_b.dir, at_b.name, at_a.inode);
	sim_names_sync(at_a.dir, UINT64_MAX);
	sim_names_sync(at_b.dir, UINT64_MAX);
	return 0;
}

int sim_disk_symlink(const char *target, const char *path)
{
	struct sim_place place;
	int rc = sim_path_find(AT_FDCWD, path, false, &place);

	if (rc != 0 || place.inode)
		return rc != 0 ? rc : -EEXIST;
	place.inode = sim_inode_new(place.dir, S_IFLNK | 0777, 0);
	place.inode->target = strcpy(sim_host_alloc(strlen(target) + 1), target);
	sim_dir_add(place.dir, place.name, place.inode);
	sim_names_sync(place.dir, UINT64_MAX);
	return 0;
}

int sim_disk_owner(const char *path, uid_t uid, mode_t permissions)
{
	struct sim_place place;
	int rc = sim_path_find(AT_FDCWD, path, true, &place);

	if (rc != 0 || !place.inode)
		return rc != 0 ? rc : -ENOENT;
	place.inode->uid = uid;
	for (int i = 0; i < SIM_LAYERS; i++)
		place.inode->layers[i].mode = (place.inode->layers[i].mode & S_IFMT) |
					      (permissions & 07777);
	return 0;
}
