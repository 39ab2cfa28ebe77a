/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * os.h - the simulated kernel, between its modules
 *
 * A replaced function is named __wrap_NAME, is listed in wraps.list, calls sim_call() once before
 * it does its work (the point at which another thread may run), adds what it did to the trace with
 * sim_note(), and returns as the real one does, with errno set. What gantry does not use fails by
 * sim_fail() with a text, so that a new use is noticed.
 */
#ifndef SIM_OS_H
#define SIM_OS_H

#include <errno.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>

#include "proc.h"

struct sim_file;

/*
 * Functions of one kind of open file. Those that may be NULL fail with the errno in brackets. They
 * return -errno.
 */
struct sim_file_ops {
	const char *kind; /* "eventfd", for the timeline */
	/*
	 * POLLIN, POLLOUT, POLLHUP, POLLRDHUP and POLLERR as they hold now. Only looks. NULL:
	 * always readable and writable.
	 */
	uint32_t (*poll)(struct sim_file *file);
	/*
	 * They do not block: -EAGAIN; os_fd.c waits where O_NONBLOCK is not set. offset -1: the
	 * file's position. [EINVAL]
	 */
	ssize_t (*read)(struct sim_file *file, void *to, size_t bytes, off_t offset);
	ssize_t (*write)(struct sim_file *file, const void *from, size_t bytes, off_t offset);
	int (*stat)(struct sim_file *file, struct stat *st);
	int (*truncate)(struct sim_file *file, off_t bytes); /* [EINVAL] */
	/* [EOPNOTSUPP] */
	int (*allocate)(struct sim_file *file, int mode, off_t offset, off_t bytes);
	int (*sync)(struct sim_file *file, bool data_only); /* [EINVAL] */
	/* besides flags and duplicates [EINVAL] */
	int (*fcntl)(struct sim_file *file, int command, long arg);
	int (*ioctl)(struct sim_file *file, unsigned long request, void *arg); /* [ENOTTY] */
	/*
	 * The memory to map at `offset`, which stays as long as the file; NULL with errno set.
	 * [ENODEV]
	 */
	int (*map)(struct sim_file *file, void *at, size_t bytes, int prot, int flags,
		   off_t offset);
	void (*close)(struct sim_file *file); /* the last reference has gone */
};

/* An open file description. Each kind has a structure that begins with this one. */
struct sim_file {
	const struct sim_file_ops *ops;
	struct sim_file *next, **at; /* of all */
	uint32_t refs;               /* descriptors, mappings, messages on their way */
	/* O_NONBLOCK, O_ACCMODE, O_APPEND, O_DIRECT, O_DSYNC ... as open() and fcntl() have them */
	int flags;
	uint64_t changes; /* counts each change of what poll() would say: for edges of epoll */
};

/* bytes: of the whole structure, zeroed. With one reference. */
void *sim_file_new(const struct sim_file_ops *ops, size_t bytes, int flags);
void sim_file_get(struct sim_file *file);
void sim_file_put(struct sim_file *file);
/*
 * The kinds of those that exist and their references, as " socket 2, memfd 1". False: there are
 * none.
 */
bool sim_files_left(char *text, size_t bytes);
/* What poll() says may have changed: blocked threads look again. */
void sim_file_changed(struct sim_file *file);

/*
 * Gives the reference to the lowest free descriptor of the running process. -1 with EMFILE set: the
 * reference is dropped.
 */
int sim_fd_new(struct sim_file *file, bool cloexec);
/* Of the running process. NULL with EBADF set. No new reference. */
struct sim_file *sim_fd_file(int fd);
/* At the start of a system call: sim_call(), then the same. */
struct sim_file *sim_call_file(int fd);

/* Set errno and return -1 for a negative result; else return the result. */
static inline long sim_result(long rc)
{
	if (rc >= 0)
		return rc;
	errno = (int)-rc;
	return -1;
}

/* -- os_fd.c, os_epoll.c -- */
/* What poll() reports of it. */
uint32_t sim_file_events(struct sim_file *file);
/* The last reference to the file has gone: nothing watches it any more. */
void sim_epoll_forget(const struct sim_file *file);
uint64_t sim_ns_of(const struct timespec *ts);
int sim_pidfd_open(pid_t pid); /* -1 with ESRCH or EMFILE set */
int __wrap_fdatasync(int fd);
int __wrap_close(int fd);

/* -- os_unix.c -- */
extern uint32_t sim_messages; /* sent, not received */

/* -- os_misc.c -- */
/* Whether the kernel has membarrier(2); true at first. */
extern bool sim_has_membarrier;

/* -- os_memory.c -- */
/* The host's descriptor of a memfd; -1: the file is something else. */
int sim_memory_fd(const struct sim_file *file);

/* -- os_doca.c -- */
/* mmap() with MAP_FIXED, within a mapping of the process. `at` or -errno. */
long sim_map_over(void *at, size_t bytes, int prot, int flags, int fd, off_t offset);
/* System calls of libgantry-doca. False: it is none of them. */
bool sim_syscall_doca(long number, const unsigned long a[6], long *result);
/* Run what the process has given to atexit(). */
void sim_run_at_exit(void);

/* -- os_disk.c -- */

/* Open a path of the running process; what AT_FDCWD or dir is. NULL with errno set. */
struct sim_file *sim_path_open(int dir, const char *path, int flags, mode_t mode);

/* Faults of the disk of a run; all 0: none. */
struct sim_disk_faults {
	uint32_t write_fails_one_in, sync_fails_one_in, full_one_in;
	uint64_t slowest_ns;  /* of a read, write or sync; 0: they take no time */
	uint32_t slow_one_in; /* reads, writes and syncs for each one that takes time; 0: all do */
};
/* an empty file system with /tmp, /run, /vol */
void sim_disk_begin(const struct sim_disk_faults *faults);
/*
 * The power is cut: what was not synced is there, torn at a sector of 512 bytes, or missing, as
 * drawn for each write; names as their directories were synced. whole: all processes have been
 * killed before. Else the cut is that of another machine, which has the disk: its processes have
 * been killed, and file systems in memory and names stay for those of this one.
 */
void sim_disk_power_cut(bool whole);
/* No faults after this. */
void sim_disk_repair(void);
/* For the judge, without a running process. 0 or -errno. */
int sim_disk_put(const char *path, const void *bytes, size_t n);
ssize_t sim_disk_get(const char *path, void *bytes, size_t n, off_t offset);
/*
 * The names below a directory that are no directories and do not begin with `but`, as " a.sock b".
 * False: there are none.
 */
bool sim_disk_names(const char *path, const char *but, char *text, size_t bytes);
/* Give a file an attribute, durable at once. 0 or -errno. */
int sim_disk_put_attribute(const char *path, const char *name, const char *value);
/* Exchange the files behind two names. 0 or -errno. */
int sim_disk_swap(const char *a, const char *b);

/*
 * Socket files, for os_unix.c. bind: make the name; -EADDRINUSE, -ENOENT, -EACCES. socket: what was
 * bound, NULL with ENOENT, EACCES or ECONNREFUSED set. gone: the socket was closed; its name stays.
 */
int sim_path_bind(const char *path, mode_t mode, void *listener);
void *sim_path_socket(const char *path);
void sim_path_socket_gone(void *listener);

#endif
