/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * os_file.c - descriptors of files: locks, positions, attributes; directory streams; streams of
 * libc
 */
#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "disk.h"

/* -- descriptors of files -- */

/* Returns an open file of the simulated disk, without O_PATH, or NULL with errno set. */
static struct sim_disk_file *open_file(int fd)
{
	struct sim_file *file = sim_fd_file(fd);
	struct sim_disk_file *f = file ? sim_disk_file(file) : NULL;

	if (file && !f)
		sim_fail("a call for files with a descriptor of kind %s", file->ops->kind);
	if (f && (file->flags & O_PATH)) {
		errno = EBADF;
		f = NULL;
	}
	return f;
}

int __wrap_fstatfs(int fd, struct statfs *fs)
{
	struct sim_file *file;
	struct sim_disk_file *f;

	file = sim_call_file(fd);
	if (!file)
		return -1;
	f = sim_disk_file(file);
	*fs = (struct statfs){.f_bsize = SIM_PAGE, .f_namelen = NAME_MAX};
	if (!f)
		fs->f_type = strcmp(file->ops->kind, "memfd") == 0 ? TMPFS_MAGIC
								   : ANON_INODE_FS_MAGIC;
	else if (f->inode->fs == SIM_FS_PROC)
		fs->f_type = PROC_SUPER_MAGIC;
	else
		fs->f_type = f->inode->fs == SIM_FS_TMP ? TMPFS_MAGIC : EXT4_SUPER_MAGIC;
	return 0;
}

int __wrap_fchmod(int fd, mode_t mode)
{
	struct sim_file *file;
	struct sim_disk_file *f;

	file = sim_call_file(fd);
	if (file && sim_memory_fd(file) >= 0)
		return fchmod(sim_memory_fd(file), mode);
	if (file && sim_unix_chmod(file, mode))
		return 0;
	f = open_file(fd);
	return f ? (int)sim_done(sim_inode_chmod(f->inode, mode), 0x44) : -1;
}

struct lock_wait {
	uint64_t serial;
	int lock;
};

static bool can_lock(void *arg)
{
	const struct lock_wait *wait = arg;
	const struct sim_disk_file *f = sim_disk_file_find(wait->serial);

	return !f || !sim_disk_lock_conflicts(f, wait->lock);
}

int __wrap_flock(int fd, int operation)
{
	struct sim_disk_file *f;
	struct lock_wait wait;
	int rc = 0;

	sim_call();
	f = open_file(fd);
	if (!f)
		return -1;
	wait = (struct lock_wait){f->serial, operation & ~LOCK_NB};
	if (f->lock != wait.lock) {
		f->lock = LOCK_UN; /* as in Linux: a conversion first drops the old lock */
		sim_changed();
	}
	if (wait.lock != LOCK_UN && !can_lock(&wait)) {
		if (operation & LOCK_NB) {
			rc = -EWOULDBLOCK;
		} else {
			sim_block(can_lock, &wait, SIM_NEVER);
			f = sim_disk_file_find(wait.serial);
			rc = !f ? -EBADF : 0;
		}
	}
	if (rc == 0)
		f->lock = wait.lock;
	return (int)sim_done(rc, 0x4a);
}

/* lseek() in a file that is not on the simulated disk: all bytes are data. */
static off_t seek_other(struct sim_file *file, off_t offset, int whence)
{
	struct stat st = {0};

	if (!file->ops->stat || file->ops->stat(file, &st) != 0 || !S_ISREG(st.st_mode))
		return -ESPIPE;
	if (whence == SEEK_END)
		return st.st_size + offset;
	if (whence != SEEK_DATA && whence != SEEK_HOLE)
		sim_fail("lseek of a file of kind %s (whence=%d)", file->ops->kind, whence);
	if (offset >= st.st_size)
		return -ENXIO;
	return whence == SEEK_DATA ? offset : st.st_size;
}

off_t __wrap_lseek(int fd, off_t offset, int whence)
{
	struct sim_file *file;
	struct sim_disk_file *f;

	file = sim_call_file(fd);
	if (!file)
		return -1;
	f = sim_disk_file(file);
	if (!f)
		return sim_done(seek_other(file, offset, whence), 0x4b);
	if (file->flags & O_PATH)
		return sim_done(-EBADF, 0x4b);
	if (whence == SEEK_DATA || whence == SEEK_HOLE)
		offset = sim_inode_seek(f->inode, offset, whence);
	else if (whence == SEEK_END)
		offset += (off_t)f->inode->layers[SIM_SEEN].size;
	else if (whence == SEEK_CUR)
		offset += (off_t)f->position;
	if (offset < 0)
		return sim_done(offset == -ENXIO ? -ENXIO : -EINVAL, 0x4b);
	f->position = (uint64_t)offset;
	return sim_done(offset, 0x4b);
}

/* Starts writeback, which makes nothing durable. Waiting reports an earlier failure. */
int __wrap_sync_file_range(int fd, off_t offset, off_t bytes, unsigned flags)
{
	struct sim_disk_file *f;

	(void)offset;
	(void)bytes;
	sim_call();
	f = open_file(fd);
	if (!f)
		return -1;
	if (flags & (SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WAIT_AFTER))
		return (int)sim_done(sim_disk_report(f), 0x4c);
	return 0;
}

static ssize_t get_xattr(const struct sim_inode *inode, const char *name, void *value, size_t bytes)
{
	const struct sim_xattr *x = sim_inode_xattr(inode, name);

	if (inode->fs != SIM_FS_DISK)
		return -ENOTSUP;
	if (!sim_inode_permits(inode, R_OK))
		return -EACCES;
	if (!x)
		return -ENODATA;
	if (bytes == 0)
		return (ssize_t)x->n;
	if (bytes < x->n)
		return -ERANGE;
	memcpy(value, x->value, x->n);
	return (ssize_t)x->n;
}

ssize_t __wrap_fgetxattr(int fd, const char *name, void *value, size_t bytes)
{
	struct sim_disk_file *f;

	sim_call();
	f = open_file(fd);
	return f ? sim_done(get_xattr(f->inode, name, value, bytes), 0x4d) : -1;
}

ssize_t __wrap_getxattr(const char *path, const char *name, void *value, size_t bytes)
{
	struct sim_inode *inode;
	int rc;

	sim_call();
	rc = sim_path_find_inode(AT_FDCWD, path, true, &inode);
	return sim_done(rc != 0 ? rc : get_xattr(inode, name, value, bytes), 0x4e);
}

int __wrap_fsetxattr(int fd, const char *name, const void *value, size_t bytes, int flags)
{
	struct sim_disk_file *f;
	int rc = 0;

	sim_call();
	if (flags != 0)
		sim_fail("fsetxattr with flags %#x", (unsigned)flags);
	f = open_file(fd);
	if (!f)
		return -1;
	if (f->inode->fs != SIM_FS_DISK)
		rc = -ENOTSUP;
	else if (!sim_inode_permits(f->inode, W_OK))
		rc = -EACCES;
	else if (sim_disk_is_full(f->inode))
		rc = -ENOSPC;
	else
		sim_inode_set_xattr(f->inode, name, value, bytes);
	return (int)sim_done(rc, 0x4f);
}

/* -- directory streams -- */

struct names {
	char (*text)[NAME_MAX + 1];
	ino_t *inos;
	size_t n;
};

struct dir_stream {
	struct dir_stream *next; /* list of all streams */
	int fd;
	struct names names; /* the names when the stream was opened */
	size_t at;
	struct dirent entry;
};

static struct dir_stream *dir_streams;

/* Store "." and "..", then the names of the directory in a drawn order. */
static void read_names(const struct sim_inode *dir, struct names *names)
{
	size_t n = 2;

	for (const struct sim_entry *e = dir->layers[SIM_SEEN].entries; e; e = e->next)
		n++;
	names->text = sim_host_alloc(n * sizeof(*names->text));
	names->inos = sim_host_alloc(n * sizeof(*names->inos));
	strcpy(names->text[0], ".");
	strcpy(names->text[1], "..");
	names->inos[0] = dir->ino;
	names->inos[1] = dir->parent->ino;
	names->n = 2;
	for (const struct sim_entry *e = dir->layers[SIM_SEEN].entries; e; e = e->next) {
		size_t i = 2 + sim_draw((uint32_t)names->n - 1);

		memmove(names->text[names->n], names->text[i], sizeof(names->text[i]));
		names->inos[names->n++] = names->inos[i];
		strcpy(names->text[i], e->name);
		names->inos[i] = e->inode->ino;
	}
}

static void free_names(struct names *names)
{
	sim_host_free(names->text);
	sim_host_free(names->inos);
}

static DIR *dir_stream_new(int fd)
{
	struct sim_file *file = sim_fd_file(fd);
	struct sim_disk_file *f = file ? sim_disk_file(file) : NULL;
	struct dir_stream *d;

	if (!file)
		return NULL;
	if (!f || sim_inode_type(f->inode) != S_IFDIR || (file->flags & O_PATH)) {
		errno = file->flags & O_PATH ? EBADF : ENOTDIR;
		return NULL;
	}
	d = sim_host_alloc(sizeof(*d));
	d->fd = fd;
	read_names(f->inode, &d->names);
	d->next = dir_streams;
	dir_streams = d;
	return (DIR *)d;
}

DIR *__wrap_fdopendir(int fd)
{
	sim_call();
	return dir_stream_new(fd);
}

DIR *__wrap_opendir(const char *path)
{
	int fd = sim_path_open_fd(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);

	return fd < 0 ? NULL : dir_stream_new(fd);
}

struct dirent *__wrap_readdir(DIR *dir)
{
	struct dir_stream *d = (struct dir_stream *)dir;

	sim_call();
	if (d->at == d->names.n)
		return NULL;
	d->entry = (struct dirent){.d_ino = d->names.inos[d->at],
				   .d_off = (off_t)d->at + 1,
				   .d_reclen = sizeof(d->entry),
				   .d_type = DT_UNKNOWN};
	strcpy(d->entry.d_name, d->names.text[d->at++]);
	return &d->entry;
}

int __wrap_dirfd(DIR *dir)
{
	return ((struct dir_stream *)dir)->fd;
}

static void dir_stream_free(struct dir_stream **at)
{
	struct dir_stream *d = *at;

	*at = d->next;
	free_names(&d->names);
	sim_host_free(d);
}

int __wrap_closedir(DIR *dir)
{
	struct dir_stream **at = &dir_streams;
	int fd = ((struct dir_stream *)dir)->fd;

	while (*at != (struct dir_stream *)dir)
		at = &(*at)->next;
	dir_stream_free(at);
	return __wrap_close(fd);
}

typedef int compare_fn(const struct dirent **, const struct dirent **);

static int compare_entries(const void *a, const void *b, void *arg)
{
	compare_fn *compare = *(compare_fn **)arg;

	return compare((const struct dirent **)(uintptr_t)a, (const struct dirent **)(uintptr_t)b);
}

/* The caller frees the list, which lies in the heap of the process. */
int __wrap_scandir(const char *path, struct dirent ***list_p, int (*filter)(const struct dirent *),
		   compare_fn *compare)
{
	DIR *dir = __wrap_opendir(path);
	struct dirent **list, *entry;
	int n = 0;

	if (!dir)
		return -1;
	list = malloc(((struct dir_stream *)dir)->names.n * sizeof(*list));
	while (list && (entry = __wrap_readdir(dir))) {
		if (filter && !filter(entry))
			continue;
		list[n] = malloc(sizeof(*entry));
		if (!list[n]) {
			while (n > 0)
				free(list[--n]);
			free(list);
			list = NULL;
		} else {
			*list[n++] = *entry;
		}
	}
	__wrap_closedir(dir);
	if (!list) {
		errno = ENOMEM;
		return -1;
	}
	if (compare)
		qsort_r(list, (size_t)n, sizeof(*list), compare_entries, &compare);
	*list_p = list;
	return n;
}

/* -- streams of libc -- */

struct stream {
	struct stream *next; /* list of all streams */
	FILE *file;
	struct sim_proc *proc;
	int fd;
};

static struct stream *streams;

static ssize_t stream_read(void *cookie, char *to, size_t bytes)
{
	return __wrap_read(((struct stream *)cookie)->fd, to, bytes);
}

static ssize_t stream_write(void *cookie, const char *from, size_t bytes)
{
	ssize_t n = __wrap_write(((struct stream *)cookie)->fd, from, bytes);

	return n < 0 ? 0 : n; /* 0: an error, see fopencookie(3) */
}

static int stream_seek(void *cookie, off64_t *offset, int whence)
{
	off_t at = __wrap_lseek(((struct stream *)cookie)->fd, *offset, whence);

	if (at < 0)
		return -1;
	*offset = at;
	return 0;
}

static int stream_close(void *cookie)
{
	return __wrap_close(((struct stream *)cookie)->fd);
}

FILE *__wrap_fdopen(int fd, const char *mode)
{
	static const cookie_io_functions_t functions = {stream_read, stream_write, stream_seek,
							stream_close};
	struct stream *s;

	sim_call();
	if (!sim_fd_file(fd))
		return NULL;
	s = sim_host_alloc(sizeof(*s));
	s->fd = fd;
	s->proc = sim_proc_self();
	s->file = fopencookie(s, mode, functions);
	if (!s->file) {
		sim_host_free(s);
		return NULL;
	}
	s->next = streams;
	streams = s;
	s->proc->n_files_open++;
	return s->file;
}

FILE *__wrap_fopen(const char *path, const char *mode)
{
	int flags = strchr(mode, '+') ? O_RDWR : mode[0] == 'r' ? O_RDONLY : O_WRONLY, fd;
	FILE *file;

	flags |= mode[0] == 'r' ? 0 : mode[0] == 'w' ? O_CREAT | O_TRUNC : O_CREAT | O_APPEND;
	fd = sim_path_open_fd(AT_FDCWD, path, flags | (strchr(mode, 'e') ? O_CLOEXEC : 0), 0666);
	file = fd < 0 ? NULL : __wrap_fdopen(fd, mode);
	if (fd >= 0 && !file)
		__wrap_close(fd);
	return file;
}

/* Also handles streams that libc created itself, such as those of open_memstream(3). */
int __wrap_fclose(FILE *file)
{
	struct stream **at = &streams, *s;
	int rc;

	while (*at && (*at)->file != file)
		at = &(*at)->next;
	s = *at;
	if (!s)
		return fclose(file);
	*at = s->next;
	rc = fclose(file);
	s->proc->n_files_open--;
	sim_changed();
	sim_host_free(s);
	return rc;
}

void sim_streams_clear(void)
{
	while (dir_streams)
		dir_stream_free(&dir_streams);
	while (streams) {
		struct stream *s = streams;

		streams = s->next;
		sim_host_free(s);
	}
}
