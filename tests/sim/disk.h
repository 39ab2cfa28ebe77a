/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * disk.h - the simulated file system, between its modules
 *
 *	os_contents.c  pages, extended attributes, entries of a directory
 *	os_inode.c   changes and names, and which of them are durable
 *	os_disk.c    open files, faults, power cuts
 *	os_path.c    functions of paths
 *	os_file.c    functions of descriptors, streams
 */
#ifndef SIM_DISK_H
#define SIM_DISK_H

#include <limits.h>

#include "os.h"

#define SIM_SECTOR 512u /* the disk writes a sector wholly or not at all */
#define SIM_PAGE 4096u  /* bytes; unit of allocation */

enum sim_fs {
	SIM_FS_DISK,
	SIM_FS_TMP,  /* lost at a power cut; no extended attributes */
	SIM_FS_PROC, /* and /dev: processes do not write there */
};

/*
 * SEEN: the state that processes see. DURABLE: the state after a power cut that loses each change
 * that was not synced.
 */
enum sim_layer { SIM_SEEN, SIM_DURABLE, SIM_LAYERS };

struct sim_inode;

struct sim_entry {
	struct sim_entry *next;
	struct sim_inode *inode;
	char name[NAME_MAX + 1];
};

struct sim_xattr {
	struct sim_xattr *next;
	size_t n;
	char name[64];
	uint8_t value[256];
};

struct sim_contents {
	mode_t mode; /* with the type */
	uint64_t size;
	uint8_t **pages; /* NULL: a hole */
	size_t n_pages;
	struct sim_xattr *xattrs;
	struct sim_entry *entries; /* entries of a directory, in the order of creation */
};

struct sim_inode {
	struct sim_inode *next; /* list of all inodes, until the next sim_disk_begin() */
	ino_t ino;
	enum sim_fs fs;
	uid_t uid;
	uint64_t birth_ns;
	struct sim_contents layers[SIM_LAYERS];
	struct sim_inode *parent;                  /* of a directory: the one that contains it */
	struct sim_change *changes, **changes_end; /* not durable yet, oldest first */
	uint64_t n_changes;                        /* number of changes that were ever made */
	uint64_t n_errors; /* failed syncs, as errseq_t of Linux counts them */
	/* an open file has reported the last error: files that are opened later do not report it */
	bool error_reported;
	char *target;   /* path that a symbolic link contains */
	void *listener; /* the listener of a socket file; NULL: it is closed */
	bool proc_fd;   /* this inode is the directory /proc/self/fd */
};

/* An open file description of an inode. */
struct sim_disk_file {
	struct sim_file file;
	struct sim_disk_file *next; /* list of all open files */
	struct sim_inode *inode;
	uint64_t serial; /* not used again within a run */
	uint64_t position;
	uint64_t errors_seen; /* value of n_errors that was reported here */
	int lock;             /* LOCK_SH, LOCK_EX; LOCK_UN: none */
};

static inline mode_t sim_inode_mode(const struct sim_inode *inode)
{
	return inode->layers[SIM_SEEN].mode;
}

static inline mode_t sim_inode_type(const struct sim_inode *inode)
{
	return sim_inode_mode(inode) & S_IFMT;
}

/* The changes that a sync covers. */
struct sim_cover {
	uint64_t first_number, last_number; /* the oldest and the newest covered change */
	uint64_t from, to;                  /* range of the covered data */
	bool data_only;                     /* the sync covers no attributes and no permissions */
};

/* -- os_inode.c -- */

struct sim_inode *sim_inode_make(enum sim_fs fs, mode_t mode, uid_t uid);
/* Create an inode without a name, in the file system that contains the directory `dir`. */
struct sim_inode *sim_inode_new(const struct sim_inode *dir, mode_t mode, uid_t uid);
/* Returns the first of the list of all inodes. */
struct sim_inode *sim_inodes(void);
void sim_inode_stat(const struct sim_inode *inode, struct stat *st);
/* The number of names of the inode in all directories. */
nlink_t sim_inode_links(const struct sim_inode *inode);
/* Store the path of the inode in out; an empty text if it has no name. */
void sim_inode_path(const struct sim_inode *inode, char *out, size_t bytes);

/* Read at most `bytes` bytes, up to the end of the file. Returns the number of bytes read. */
size_t sim_inode_read(const struct sim_inode *inode, uint64_t at, void *to, size_t bytes);
bool sim_inode_has_hole(const struct sim_inode *inode, uint64_t from, uint64_t to);
/* As lseek(2): SEEK_DATA or SEEK_HOLE. */
off_t sim_inode_seek(const struct sim_inode *inode, off_t from, int whence);
const struct sim_xattr *sim_inode_xattr(const struct sim_inode *inode, const char *name);

void sim_inode_write(struct sim_inode *inode, uint64_t at, const void *from, size_t bytes);
void sim_inode_punch(struct sim_inode *inode, uint64_t at, uint64_t bytes);
/* Write zeroes to the range, and allocate it. */
void sim_inode_zero(struct sim_inode *inode, uint64_t at, uint64_t bytes);
/* Allocate the range. */
void sim_inode_allocate(struct sim_inode *inode, uint64_t at, uint64_t bytes);
void sim_inode_grow(struct sim_inode *inode, uint64_t size);
void sim_inode_truncate(struct sim_inode *inode, uint64_t size);
void sim_inode_set_mode(struct sim_inode *inode, mode_t permissions);
void sim_inode_set_xattr(struct sim_inode *inode, const char *name, const void *value, size_t n);
/*
 * Mark the covered changes as safe: the next power cut keeps them. If `fails` is set, the disk
 * keeps or loses each covered write instead, as drawn, and n_errors counts the failure.
 */
void sim_inode_sync(struct sim_inode *inode, const struct sim_cover *cover, bool fails);
/* Replace the contents; the new contents are durable when the function returns. */
void sim_inode_fill(struct sim_inode *inode, const void *bytes, size_t n);

struct sim_inode *sim_dir_find(const struct sim_inode *dir, const char *name);
/* Give the inode this name; a name that exists is replaced. */
void sim_dir_add(struct sim_inode *dir, const char *name, struct sim_inode *inode);
void sim_dir_remove(struct sim_inode *dir, const char *name);
void sim_dir_rename(struct sim_inode *from, const char *old, struct sim_inode *to,
		    const char *name);
/* Returns the number of the last change of a name. */
uint64_t sim_names_number(void);
/* Make changes of names in `dir` (NULL: in all directories) durable, up to this number. */
void sim_names_sync(const struct sim_inode *dir, uint64_t last_number);

void sim_inodes_clear(void);
/* Apply a power cut to the contents of one inode. */
void sim_inode_cut(struct sim_inode *inode);
/*
 * Apply a power cut to all inodes. whole: see sim_disk_power_cut(). journals: of the changes of
 * names that are not synced, the power cut loses only a drawn number of the newest; false: it keeps
 * or loses each of them, as drawn.
 */
void sim_inodes_cut(bool whole, bool journals);

/* -- os_disk.c -- */

/* The root directory of this run. */
struct sim_inode *sim_disk_root(void);
/* Whether the file system has no space for this inode: a drawn fault. */
bool sim_disk_is_full(const struct sim_inode *inode);
struct sim_file *sim_disk_open(struct sim_inode *inode, int flags);
/* Returns NULL if the file belongs to no simulated file system. */
struct sim_disk_file *sim_disk_file(struct sim_file *file);
/*
 * The operation `write` of a disk file. more_flags: O_DSYNC for RWF_DSYNC of this call. Returns the
 * number of bytes, or -errno.
 */
ssize_t sim_disk_write(struct sim_file *file, const void *from, size_t bytes, off_t offset,
		       int more_flags);
/* Returns the open file with this number. NULL: it was closed meanwhile. */
struct sim_disk_file *sim_disk_file_find(uint64_t serial);
/* Report a failed sync once to this open file. Returns 0 or -EIO. */
int sim_disk_report(struct sim_disk_file *f);
/* True if another open file has a lock that excludes this one. */
bool sim_disk_lock_conflicts(const struct sim_disk_file *f, int lock);

/*
 * For tests: like symlink(2), and like chown(2) with chmod(2). The change is durable when the
 * function returns. Returns 0 or -errno.
 */
int sim_disk_symlink(const char *target, const char *path);
int sim_disk_owner(const char *path, uid_t uid, mode_t permissions);

/* -- os_path.c -- */

/* The result of a lookup of a path. */
struct sim_place {
	/* the directory of the last name; NULL: the path does not end in a name */
	struct sim_inode *dir;
	char name[NAME_MAX + 1];
	struct sim_inode *inode; /* NULL: the name is free, or `file` is set */
	struct sim_file *file;   /* /proc/self/fd/N: the file of descriptor N */
};

/* Look up a path. follow: follow a symbolic link at its end, too. Returns 0 or -errno. */
int sim_path_find(int dir, const char *path, bool follow, struct sim_place *place);
/* Look up the inode at the end of a path, which must exist. Returns 0 or -errno. */
int sim_path_find_inode(int dir, const char *path, bool follow, struct sim_inode **inode_p);
/* As openat(2). */
int sim_path_open_fd(int dir, const char *path, int flags, mode_t mode);
/* Whether the caller has these permissions. mask: R_OK, W_OK, X_OK. */
bool sim_inode_permits(const struct sim_inode *inode, int mask);
/* Change the permissions. Returns 0 or -EPERM. */
int sim_inode_chmod(struct sim_inode *inode, mode_t mode);

/* -- os_file.c -- */

/* Free directory streams and streams of libc. Their processes have ended. */
void sim_streams_clear(void);

/* -- replaced functions that other replaced functions call -- */
int __wrap_fstat(int fd, struct stat *st);
off_t __wrap_lseek(int fd, off_t offset, int whence);
ssize_t __wrap_read(int fd, void *to, size_t bytes);
ssize_t __wrap_write(int fd, const void *from, size_t bytes);

/* Add the result of a call to the trace, and return it to the caller. */
static inline long sim_done(long rc, unsigned call)
{
	sim_note((uint64_t)rc << 8 | call);
	return sim_result(rc);
}

/* -- os_contents.c -- */
void sim_contents_write(struct sim_contents *c, uint64_t at, const uint8_t *from, uint64_t bytes);
void sim_contents_drop(struct sim_contents *c, uint64_t from, uint64_t to);
void sim_contents_allocate(struct sim_contents *c, uint64_t from, uint64_t to);
bool sim_contents_have_hole(const struct sim_contents *c, uint64_t from, uint64_t to);
void sim_contents_read(const struct sim_contents *c, uint64_t at, uint8_t *to, uint64_t bytes);
void sim_contents_set_size(struct sim_contents *c, uint64_t size);
struct sim_xattr *sim_contents_find_xattr(const struct sim_contents *c, const char *name);
void sim_contents_set_xattr(struct sim_contents *c, const struct sim_xattr *from);
void sim_contents_free(struct sim_contents *c);
struct sim_entry **sim_contents_find_entry(struct sim_contents *c, const char *name);
void sim_contents_set_entry(struct sim_contents *c, const char *name, struct sim_inode *inode);
void sim_contents_copy(struct sim_contents *to, const struct sim_contents *from);

#endif
