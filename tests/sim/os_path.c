/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * os_path.c - paths of the simulated file system: open, stat, permissions, names, socket files
 *
 * The working directory of each process is the root directory, its umask is 022. User 0 has all
 * permissions, the owner of an inode those of the owner, any other user those of others. Groups are
 * ignored.
 */
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "disk.h"

#define LINKS_MAX 40
#define UMASK 022
/* Flags of open(2) that concern the call, not the open file. */
#define CALL_FLAGS (O_CREAT | O_EXCL | O_TRUNC | O_NOCTTY | O_CLOEXEC | O_DIRECTORY | O_NOFOLLOW)

/* os_memory.c: opens a memfd again by /proc/self/fd/N. Returns NULL with errno set on an error. */
struct sim_file *sim_memory_reopen(struct sim_file *file, int flags) __attribute__((weak));

/* -- permissions -- */

static uid_t caller(void)
{
	return sim_self() ? sim_proc_self()->uid : 0;
}

bool sim_inode_permits(const struct sim_inode *inode, int mask)
{
	mode_t mode = sim_inode_mode(inode);
	uid_t uid = caller();

	if (uid == 0)
		return true;
	if (uid == inode->uid)
		mode >>= 6;
	return ((int)mode & mask) == mask;
}

static bool is_owner(const struct sim_inode *inode)
{
	return caller() == 0 || caller() == inode->uid;
}

/* Check that the caller has the permission to create a name in this directory. 0 or -errno. */
static int check_add(const struct sim_inode *dir)
{
	if (!dir)
		return -EEXIST; /* the path does not end in a name, such as "/" or "." */
	if (dir->fs == SIM_FS_PROC)
		return -EACCES;
	return sim_inode_permits(dir, W_OK | X_OK) ? 0 : -EACCES;
}

/*
 * Check that the caller has the permission to remove the name of this inode; in a sticky directory
 * only the owner of the inode or of the directory has it. 0 or -errno.
 */
static int check_remove(const struct sim_inode *dir, const struct sim_inode *inode)
{
	int rc = check_add(dir);

	if (rc == 0 && (sim_inode_mode(dir) & S_ISVTX) && !is_owner(dir) && !is_owner(inode))
		rc = -EPERM;
	return rc;
}

/* -- paths -- */

struct walk {
	struct sim_inode *at;
	unsigned links;
	char left[2 * PATH_MAX];
};

static int begin(struct walk *w, int dir, const char *path)
{
	struct sim_file *file;
	struct sim_disk_file *f;

	if (path[0] == '\0')
		return -ENOENT;
	if (strlen(path) >= PATH_MAX)
		return -ENAMETOOLONG;
	strcpy(w->left, path);
	w->links = 0;
	w->at = sim_disk_root();
	if (path[0] == '/' || dir == AT_FDCWD)
		return 0;
	file = sim_fd_file(dir);
	f = file ? sim_disk_file(file) : NULL;
	if (!f)
		return !file ? -EBADF : -ENOTDIR;
	w->at = f->inode;
	return 0;
}

/*
 * Remove the next name from the path and store it; at the end of the path, store ".". last: no
 * other name follows. slash: a slash follows the name.
 */
static int next_name(struct walk *w, char *name, bool *last, bool *slash)
{
	const char *p = w->left + strspn(w->left, "/");
	size_t n = strcspn(p, "/");

	if (n > NAME_MAX)
		return -ENAMETOOLONG;
	memcpy(name, n != 0 ? p : ".", n != 0 ? n : 1);
	name[n != 0 ? n : 1] = '\0';
	*slash = p[n] == '/';
	p += n;
	p += strspn(p, "/");
	*last = *p == '\0';
	memmove(w->left, p, strlen(p) + 1);
	return 0;
}

/* Continue the path with the target of the link. */
static int follow_link(struct walk *w, const struct sim_inode *link, bool slash)
{
	char rest[2 * PATH_MAX];

	if (++w->links > LINKS_MAX)
		return -ELOOP;
	strcpy(rest, w->left);
	if ((size_t)snprintf(w->left, sizeof(w->left), "%s%s%s", link->target, slash ? "/" : "",
			     rest) >= PATH_MAX)
		return -ENAMETOOLONG;
	if (link->target[0] == '/')
		w->at = sim_disk_root();
	return 0;
}

static struct sim_file *find_fd(const char *name)
{
	char *end;
	unsigned long fd = strtoul(name, &end, 10);

	return *name >= '0' && *name <= '9' && *end == '\0' && fd < SIM_FDS && sim_self()
		       ? sim_proc_self()->fds[fd].file
		       : NULL;
}

/*
 * Look up a name in /proc/self/fd: the file of that descriptor. 0: w->at is the inode; 1: `place`
 * is filled; or -errno.
 */
static int step_fd(struct walk *w, const char *name, bool last, bool follow,
		   struct sim_place *place)
{
	struct sim_file *file = find_fd(name);
	struct sim_disk_file *f = file ? sim_disk_file(file) : NULL;

	if (!file)
		return -ENOENT;
	if (f && (!last || follow)) {
		w->at = f->inode;
		return 0;
	}
	if (!last)
		return -ENOTDIR;
	place->file = file;
	return 1;
}

/* Look up one name. Returns 0: the walk continues; 1: the walk has ended; or -errno. */
static int step(struct walk *w, bool follow, struct sim_place *place)
{
	struct sim_inode *dir = w->at, *inode;
	bool last, slash;
	int rc = next_name(w, place->name, &last, &slash);

	if (rc != 0)
		return rc;
	if (sim_inode_type(dir) != S_IFDIR)
		return -ENOTDIR;
	if (!sim_inode_permits(dir, X_OK))
		return -EACCES;
	if (strcmp(place->name, ".") == 0 || strcmp(place->name, "..") == 0) {
		w->at = place->name[1] == '.' ? dir->parent : dir;
	} else if (dir->proc_fd) {
		rc = step_fd(w, place->name, last, follow || slash, place);
		if (rc != 0)
			return rc;
	} else {
		inode = sim_dir_find(dir, place->name);
		if (!inode && !last)
			return -ENOENT;
		if (inode && sim_inode_type(inode) == S_IFLNK && (!last || slash || follow))
			return follow_link(w, inode, slash);
		place->dir = last ? dir : NULL;
		w->at = inode;
		if (inode && last && slash && sim_inode_type(inode) != S_IFDIR)
			return -ENOTDIR;
	}
	place->inode = w->at;
	return last;
}

int sim_path_find(int dir, const char *path, bool follow, struct sim_place *place)
{
	struct walk w;
	int rc = begin(&w, dir, path);

	*place = (struct sim_place){0};
	if (rc != 0)
		return rc;
	while (rc == 0)
		rc = step(&w, follow, place);
	return rc < 0 ? rc : 0;
}

int sim_path_find_inode(int dir, const char *path, bool follow, struct sim_inode **inode_p)
{
	struct sim_place place;
	int rc = sim_path_find(dir, path, follow, &place);

	if (rc == 0 && place.file)
		sim_fail("%s: not simulated for a file of kind %s", path, place.file->ops->kind);
	if (rc == 0 && !place.inode)
		rc = -ENOENT;
	*inode_p = place.inode;
	return rc;
}

/* -- open -- */

static int check_open(const struct sim_inode *inode, int flags)
{
	static const int masks[] = {R_OK, W_OK, R_OK | W_OK};
	mode_t type = sim_inode_type(inode);

	if (type == S_IFLNK && !(flags & O_PATH))
		return -ELOOP;
	if ((flags & O_DIRECTORY) && type != S_IFDIR)
		return -ENOTDIR;
	if (flags & O_PATH)
		return 0;
	if ((flags & O_ACCMODE) == O_ACCMODE)
		return -EINVAL;
	if (type == S_IFDIR && ((flags & O_ACCMODE) != O_RDONLY || (flags & O_CREAT)))
		return -EISDIR;
	if (type == S_IFSOCK)
		return -ENXIO;
	if (type == S_IFREG && inode->fs == SIM_FS_PROC && (flags & O_ACCMODE) != O_RDONLY)
		return -EACCES;
	return sim_inode_permits(inode, masks[flags & O_ACCMODE]) ? 0 : -EACCES;
}

static int create(struct sim_place *place, mode_t mode, const char *path)
{
	int rc = check_add(place->dir);

	if (rc != 0)
		return rc == -EEXIST ? -ENOENT : rc;
	if (path[strlen(path) - 1] == '/')
		return -EISDIR;
	if (sim_disk_is_full(place->dir))
		return -ENOSPC;
	place->inode = sim_inode_new(place->dir, S_IFREG | (mode & 07777 & ~(mode_t)UMASK),
				     caller());
	sim_dir_add(place->dir, place->name, place->inode);
	return 0;
}

static struct sim_file *reopen(struct sim_file *file, int flags)
{
	if ((flags & (O_PATH | O_NOFOLLOW)) || strcmp(file->ops->kind, "memfd") != 0 ||
	    !sim_memory_reopen)
		sim_fail("open of /proc/self/fd for a file of kind %s (flags=%#o)", file->ops->kind,
			 (unsigned)flags);
	return sim_memory_reopen(file, flags & ~CALL_FLAGS);
}

struct sim_file *sim_path_open(int dir, const char *path, int flags, mode_t mode)
{
	struct sim_place place;
	bool created = false;
	int rc;

	if ((flags & O_TMPFILE) == O_TMPFILE)
		sim_fail("%s: O_TMPFILE", path);
	if (flags & O_PATH)
		flags &= O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	rc = sim_path_find(dir, path,
			   !(flags & O_NOFOLLOW) &&
				   (flags & (O_CREAT | O_EXCL)) != (O_CREAT | O_EXCL),
			   &place);
	if (rc == 0 && place.file)
		return reopen(place.file, flags);
	if (rc == 0 && place.inode && (flags & O_CREAT) && (flags & O_EXCL))
		rc = -EEXIST;
	if (rc == 0 && !place.inode) {
		rc = flags & O_CREAT ? create(&place, mode, path) : -ENOENT;
		created = rc == 0;
	}
	if (rc == 0 && !created) /* the process that creates a file can open it in any mode */
		rc = check_open(place.inode, flags);
	if (rc != 0) {
		errno = -rc;
		return NULL;
	}
	if ((flags & O_TRUNC) && !created && sim_inode_type(place.inode) == S_IFREG)
		sim_inode_truncate(place.inode, 0);
	return sim_disk_open(place.inode, flags & ~CALL_FLAGS);
}

int sim_path_open_fd(int dir, const char *path, int flags, mode_t mode)
{
	struct sim_file *file;

	sim_call();
	file = sim_path_open(dir, path, flags, mode);
	return file ? sim_fd_new(file, flags & O_CLOEXEC) : (int)sim_done(-errno, 0x40);
}

int __wrap_openat(int dir, const char *path, int flags, ...)
{
	mode_t mode = 0;
	va_list ap;

	va_start(ap, flags);
	if (flags & O_CREAT)
		mode = va_arg(ap, mode_t);
	va_end(ap);
	return sim_path_open_fd(dir, path, flags, mode);
}

int __wrap_open(const char *path, int flags, ...)
{
	mode_t mode = 0;
	va_list ap;

	va_start(ap, flags);
	if (flags & O_CREAT)
		mode = va_arg(ap, mode_t);
	va_end(ap);
	return sim_path_open_fd(AT_FDCWD, path, flags, mode);
}

/* -- properties -- */

int __wrap_faccessat(int dir, const char *path, int mode, int flags)
{
	struct sim_inode *inode;
	int rc;

	sim_call();
	if (flags & ~AT_EACCESS)
		sim_fail("faccessat with flags %#x", (unsigned)flags);
	rc = sim_path_find_inode(dir, path, true, &inode);
	/* user 0 can execute a file only if any user has the execute permission */
	if (rc == 0 &&
	    (!sim_inode_permits(inode, mode) || ((mode & X_OK) && !(sim_inode_mode(inode) & 0111))))
		rc = -EACCES;
	return (int)sim_done(rc, 0x41);
}

int __wrap_access(const char *path, int mode)
{
	return __wrap_faccessat(AT_FDCWD, path, mode, 0);
}

int __wrap_fstatat(int dir, const char *path, struct stat *st, int flags)
{
	struct sim_inode *inode;
	int rc;

	if ((flags & AT_EMPTY_PATH) && path[0] == '\0')
		return __wrap_fstat(dir, st);
	sim_call();
	if (flags & ~(AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH))
		sim_fail("fstatat with flags %#x", (unsigned)flags);
	rc = sim_path_find_inode(dir, path, !(flags & AT_SYMLINK_NOFOLLOW), &inode);
	if (rc == 0)
		sim_inode_stat(inode, st);
	return (int)sim_done(rc, 0x42);
}

int __wrap_stat(const char *path, struct stat *st)
{
	return __wrap_fstatat(AT_FDCWD, path, st, 0);
}

int __wrap_lstat(const char *path, struct stat *st)
{
	return __wrap_fstatat(AT_FDCWD, path, st, AT_SYMLINK_NOFOLLOW);
}

int __wrap_statx(int dir, const char *path, int flags, unsigned mask, struct statx *stx)
{
	struct stat st;

	(void)mask;
	if (__wrap_fstatat(dir, path, &st, flags & (AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH)) != 0)
		return -1;
	*stx = (struct statx){
		.stx_mask = STATX_BASIC_STATS | STATX_BTIME,
		.stx_blksize = (uint32_t)st.st_blksize,
		.stx_nlink = (uint32_t)st.st_nlink,
		.stx_uid = st.st_uid,
		.stx_gid = st.st_gid,
		.stx_mode = (uint16_t)st.st_mode,
		.stx_ino = st.st_ino,
		.stx_size = (uint64_t)st.st_size,
		.stx_blocks = (uint64_t)st.st_blocks,
		.stx_btime = {.tv_sec = st.st_mtim.tv_sec, .tv_nsec = (uint32_t)st.st_mtim.tv_nsec},
		.stx_dev_major = major(st.st_dev),
		.stx_dev_minor = minor(st.st_dev),
	};
	stx->stx_mtime = stx->stx_ctime = stx->stx_atime = stx->stx_btime;
	return 0;
}

int sim_inode_chmod(struct sim_inode *inode, mode_t mode)
{
	if (!is_owner(inode))
		return -EPERM;
	sim_inode_set_mode(inode, mode);
	return 0;
}

int __wrap_fchmodat(int dir, const char *path, mode_t mode, int flags)
{
	struct sim_inode *inode;
	int rc;

	sim_call();
	if (flags != 0)
		sim_fail("fchmodat with flags %#x", (unsigned)flags);
	rc = sim_path_find_inode(dir, path, true, &inode);
	return (int)sim_done(rc != 0 ? rc : sim_inode_chmod(inode, mode), 0x43);
}

int __wrap_chmod(const char *path, mode_t mode)
{
	return __wrap_fchmodat(AT_FDCWD, path, mode, 0);
}

/* -- names -- */

int __wrap_mkdirat(int dir, const char *path, mode_t mode)
{
	struct sim_place place;
	int rc;

	sim_call();
	rc = sim_path_find(dir, path, false, &place);
	if (rc == 0 && (place.inode || place.file))
		rc = -EEXIST;
	if (rc == 0)
		rc = check_add(place.dir);
	if (rc == 0 && sim_disk_is_full(place.dir))
		rc = -ENOSPC;
	if (rc == 0) {
		struct sim_inode *made = sim_inode_new(
			place.dir, S_IFDIR | (mode & 01777 & ~(mode_t)UMASK), caller());

		sim_dir_add(place.dir, place.name, made);
	}
	return (int)sim_done(rc, 0x45);
}

int __wrap_mkdir(const char *path, mode_t mode)
{
	return __wrap_mkdirat(AT_FDCWD, path, mode);
}

int __wrap_unlinkat(int dir, const char *path, int flags)
{
	struct sim_place place;
	int rc;

	sim_call();
	if (flags != 0)
		sim_fail("%s: a directory is removed", path);
	rc = sim_path_find(dir, path, false, &place);
	if (rc == 0 && !place.inode)
		rc = place.file ? -EPERM : -ENOENT;
	if (rc == 0 && (sim_inode_type(place.inode) == S_IFDIR || !place.dir))
		rc = -EISDIR;
	if (rc == 0)
		rc = check_remove(place.dir, place.inode);
	if (rc == 0)
		sim_dir_remove(place.dir, place.name);
	return (int)sim_done(rc, 0x46);
}

int __wrap_unlink(const char *path)
{
	return __wrap_unlinkat(AT_FDCWD, path, 0);
}

static int rename_place(const struct sim_place *from, const struct sim_place *to)
{
	int rc;

	if (!from->inode)
		return -ENOENT;
	if (!from->dir || !to->dir)
		return -EBUSY;
	rc = check_remove(from->dir, from->inode);
	if (rc == 0)
		rc = to->inode ? check_remove(to->dir, to->inode) : check_add(to->dir);
	if (rc != 0 || from->inode == to->inode)
		return rc;
	if (from->dir->fs != to->dir->fs)
		return -EXDEV;
	if (sim_inode_type(from->inode) == S_IFDIR ||
	    (to->inode && sim_inode_type(to->inode) == S_IFDIR))
		sim_fail("rename of a directory");
	sim_dir_rename(from->dir, from->name, to->dir, to->name);
	return 0;
}

int __wrap_rename(const char *old, const char *new)
{
	struct sim_place from, to;
	int rc;

	sim_call();
	rc = sim_path_find(AT_FDCWD, old, false, &from);
	if (rc == 0)
		rc = sim_path_find(AT_FDCWD, new, false, &to);
	return (int)sim_done(rc != 0 ? rc : rename_place(&from, &to), 0x47);
}

/* Store the text of the symbolic link of an open file in /proc/self/fd. */
static void file_text(struct sim_file *file, char *out, size_t bytes)
{
	struct sim_disk_file *f = sim_disk_file(file);
	const char *kind = file->ops->kind;

	if (f) {
		sim_inode_path(f->inode, out, bytes);
		if (out[0] == '\0')
			snprintf(out, bytes, "/removed (deleted)");
	} else if (strcmp(kind, "memfd") == 0) {
		snprintf(out, bytes, "/memfd:sim (deleted)");
	} else if (strcmp(kind, "eventfd") == 0 || strcmp(kind, "timerfd") == 0 ||
		   strcmp(kind, "signalfd") == 0) {
		snprintf(out, bytes, "anon_inode:[%s]", kind);
	} else {
		snprintf(out, bytes, "%s:[1]", kind);
	}
}

ssize_t __wrap_readlinkat(int dir, const char *path, char *out, size_t bytes)
{
	char text[PATH_MAX];
	struct sim_place place;
	size_t n;
	int rc = 0;

	sim_call();
	if (path[0] == '\0') {
		struct sim_file *file = sim_fd_file(dir);

		if (!file)
			return -1;
		place = (struct sim_place){.inode = sim_disk_file(file) ? sim_disk_file(file)->inode
									: NULL};
	} else {
		rc = sim_path_find(dir, path, false, &place);
	}
	if (rc == 0 && !place.file && (!place.inode || !place.inode->target))
		rc = !place.inode ? -ENOENT : -EINVAL;
	if (rc != 0)
		return sim_done(rc, 0x48);
	if (place.file)
		file_text(place.file, text, sizeof(text));
	else
		snprintf(text, sizeof(text), "%s", place.inode->target);
	n = strlen(text);
	if (n > bytes)
		n = bytes;
	memcpy(out, text, n);
	return sim_done((long)n, 0x48);
}

ssize_t __wrap_readlink(const char *path, char *out, size_t bytes)
{
	return __wrap_readlinkat(AT_FDCWD, path, out, bytes);
}

char *__wrap_realpath(const char *path, char *out)
{
	char text[PATH_MAX];
	struct sim_inode *inode;
	int rc;

	sim_call();
	rc = sim_path_find_inode(AT_FDCWD, path, true, &inode);
	if (sim_done(rc, 0x49) != 0)
		return NULL;
	sim_inode_path(inode, text, sizeof(text));
	if (!out)
		return strdup(text);
	return strcpy(out, text);
}

char *__wrap_getcwd(char *out, size_t bytes)
{
	sim_call();
	if (!out)
		sim_fail("getcwd without a buffer");
	if (bytes < 2) {
		errno = ERANGE;
		return NULL;
	}
	return strcpy(out, "/");
}

/* -- socket files -- */

int sim_path_bind(const char *path, mode_t mode, void *listener)
{
	struct sim_place place;
	int rc = sim_path_find(AT_FDCWD, path, false, &place);

	if (rc == 0 && (place.inode || place.file))
		rc = -EADDRINUSE;
	if (rc == 0)
		rc = check_add(place.dir);
	if (rc != 0)
		return rc;
	place.inode = sim_inode_new(place.dir, S_IFSOCK | (mode & 07777 & ~(mode_t)UMASK),
				    caller());
	place.inode->listener = listener;
	sim_dir_add(place.dir, place.name, place.inode);
	return 0;
}

void *sim_path_socket(const char *path)
{
	struct sim_inode *inode;
	int rc = sim_path_find_inode(AT_FDCWD, path, true, &inode);

	if (rc == 0 && !sim_inode_permits(inode, W_OK))
		rc = -EACCES;
	if (rc == 0 && !inode->listener)
		rc = -ECONNREFUSED;
	errno = -rc;
	return rc == 0 ? inode->listener : NULL;
}

void sim_path_socket_gone(void *listener)
{
	for (struct sim_inode *inode = sim_inodes(); inode; inode = inode->next)
		if (inode->listener == listener)
			inode->listener = NULL;
}
