/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * os.h - the interface between the modules of the simulated kernel
 *
 * A replaced function is named __wrap_NAME, is listed in wraps.list, calls sim_call() once before
 * it does its work (the point at which another thread may run), adds its result to the trace with
 * sim_note(), and returns as the real function does, with errno set. A function or option that
 * gantry does not use calls sim_fail(), so that a new use is noticed.
 */
#ifndef SIM_OS_H
#define SIM_OS_H

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>

#include "proc.h"

struct sim_file;

/*
 * The operations of one kind of open file. On an error they return -errno. If a comment has an
 * errno in brackets, the operation can be NULL, and calls of it then fail with this errno.
 */
struct sim_file_ops {
	const char *kind; /* "eventfd", for the timeline */
	/*
	 * Returns the current POLLIN, POLLOUT, POLLHUP, POLLRDHUP and POLLERR. Has no side effects.
	 * NULL: the file is always readable and writable.
	 */
	uint32_t (*poll)(struct sim_file *file);
	/*
	 * Does not block: returns -EAGAIN, and os_fd.c waits unless O_NONBLOCK is set. offset -1:
	 * use the file's position. [EINVAL]
	 */
	ssize_t (*read)(struct sim_file *file, void *to, size_t bytes, off_t offset);
	ssize_t (*write)(struct sim_file *file, const void *from, size_t bytes, off_t offset);
	int (*stat)(struct sim_file *file, struct stat *st);
	int (*truncate)(struct sim_file *file, off_t bytes); /* [EINVAL] */
	/* [EOPNOTSUPP] */
	int (*allocate)(struct sim_file *file, int mode, off_t offset, off_t bytes);
	int (*sync)(struct sim_file *file, bool data_only); /* [EINVAL] */
	/* executes all commands except those for flags and duplicates [EINVAL] */
	int (*fcntl)(struct sim_file *file, int command, long arg);
	int (*ioctl)(struct sim_file *file, unsigned long request, void *arg); /* [ENOTTY] */
	/* Maps the file from `offset` on at the unused address `at`. Returns 0. [ENODEV] */
	int (*map)(struct sim_file *file, void *at, size_t bytes, int prot, int flags,
		   off_t offset);
	void (*close)(struct sim_file *file); /* the last reference was dropped */
	const struct sim_socket_ops *socket;  /* [ENOTSOCK] */
	/*
	 * Returns a number that has grown if the result of poll() has changed. NULL: `changes` of
	 * the file.
	 */
	uint64_t (*count_changes)(const struct sim_file *file);
};

/* The operations of one family of sockets. On an error they return -errno. */
struct sim_socket_ops {
	int (*bind)(struct sim_file *file, const struct sockaddr *address);
	int (*listen)(struct sim_file *file, uint32_t backlog);
	int (*connect)(struct sim_file *file, const struct sockaddr *address);
	/* Returns a reference to the oldest connection; NULL: none waits. peer: IPv4 only */
	struct sim_file *(*accept)(struct sim_file *file, struct sockaddr_in *peer);
	ssize_t (*send)(struct sim_file *file, const struct msghdr *msg); /* does not block */
	ssize_t (*receive)(struct sim_file *file, struct msghdr *msg, int flags);
	int (*shutdown)(struct sim_file *file, int how);
	int (*name)(const struct sim_file *file, struct sockaddr_in *address); /* [EOPNOTSUPP] */
	/* Store the value of an option. Returns its size. */
	int (*get)(struct sim_file *file, int level, int option, void *value);
	int (*set)(struct sim_file *file, int level, int option, const void *value, socklen_t n);
};

/* An open file description. Each kind has a structure that begins with this one. */
struct sim_file {
	const struct sim_file_ops *ops;
	struct sim_file *next, **at; /* list of all files */
	uint32_t refs;               /* descriptors, mappings, messages in flight */
	/* O_NONBLOCK, O_ACCMODE, O_APPEND, O_DIRECT, O_DSYNC ... as open() and fcntl() have them */
	int flags;
	uint64_t changes; /* counts the changes of the result of poll(), for edges of epoll */
};

/* Create a file with one reference. bytes: the size of the whole structure, which is zeroed. */
void *sim_file_new(const struct sim_file_ops *ops, size_t bytes, int flags);
void sim_file_get(struct sim_file *file);
void sim_file_put(struct sim_file *file);
/*
 * Store the kinds of existing files and their references, such as " socket 2, memfd 1". Returns
 * false if no file exists.
 */
bool sim_files_left(char *text, size_t bytes);
/* The result of the operation `poll` may have changed: let blocked threads check it again. */
void sim_file_changed(struct sim_file *file);

/*
 * Moves the reference to the lowest free descriptor of the running process, and returns this
 * descriptor. If none is free, drops the reference and returns -1 with EMFILE set.
 */
int sim_fd_new(struct sim_file *file, bool cloexec);
/*
 * Returns the file of a descriptor of the running process, without a new reference, or NULL with
 * EBADF set.
 */
struct sim_file *sim_fd_file(int fd);
/* At the start of a system call: sim_call(), then sim_fd_file(). */
struct sim_file *sim_call_file(int fd);

/* For a negative result set errno and return -1; else return the result. */
static inline long sim_result(long rc)
{
	if (rc >= 0)
		return rc;
	errno = (int)-rc;
	return -1;
}

/* -- os_fd.c, os_epoll.c -- */
/* Returns the result of the operation `poll` of the file. */
uint32_t sim_file_events(struct sim_file *file);
/* Remove all watches of a file whose last reference was dropped. */
void sim_epoll_forget(const struct sim_file *file);
uint64_t sim_ns_of(const struct timespec *ts);
int sim_pidfd_open(pid_t pid); /* returns -1 with ESRCH or EMFILE set on an error */
int __wrap_fdatasync(int fd);
int __wrap_close(int fd);

/* Returns a number that has grown if the result of sim_file_events() has changed. */
uint64_t sim_file_changes(const struct sim_file *file);

/* -- os_unix.c, os_tcp.c -- */
struct sim_file *sim_unix_socket(int type); /* type: as socket() has it */
struct sim_file *sim_tcp_socket(int type);
/* Set the mode that a Unix socket gets at bind(2). Returns false: the file is no Unix socket. */
bool sim_unix_chmod(struct sim_file *file, mode_t mode);
extern uint32_t sim_messages; /* number of messages that were sent and not received */

/* -- os_misc.c -- */
/* Whether the kernel has membarrier(2); true at first. */
extern bool sim_has_membarrier;

/* -- os_memory.c -- */
/* Returns the host's descriptor of a memfd. -1: the file is not a memfd. */
int sim_memory_fd(const struct sim_file *file);

/* -- os_doca.c -- */
/* Executes mmap() with MAP_FIXED, within a mapping of the process. Returns `at` or -errno. */
long sim_map_over(void *at, size_t bytes, int prot, int flags, int fd, off_t offset);
/* Execute a system call that only libgantry-doca makes. False: `number` is no such call. */
bool sim_syscall_doca(long number, const unsigned long a[6], long *result);
/* Run the functions that the process has registered with atexit(). */
void sim_run_at_exit(void);

/* -- os_disk.c -- */

/*
 * Open a path in the running process, relative to dir or AT_FDCWD. Returns NULL with errno set on
 * an error.
 */
struct sim_file *sim_path_open(int dir, const char *path, int flags, mode_t mode);

/* The faults of the disk in a run; all 0: none. */
struct sim_disk_faults {
	uint32_t write_fails_one_in, sync_fails_one_in, full_one_in;
	uint64_t slowest_ns;  /* longest time of a read, write or sync; 0: they take no time */
	uint32_t slow_one_in; /* one in this many operations takes time; 0: all do */
};
/* Begin a run with an empty file system that has /tmp, /run and /vol. */
void sim_disk_begin(const struct sim_disk_faults *faults);
/*
 * Cut the power: each write that was not synced is kept, torn at a sector of 512 bytes, or lost, as
 * drawn.
 *
 * whole: all machines lose their power. All processes have been killed before. Names are kept or
 * lost as their directories were synced.
 *
 * whole false: only the machine of the targets, which has the disk, loses its power. Its processes
 * have been killed before. Other processes continue on another machine, but use the same simulated
 * tree of files: so all names, and the file systems in memory, are kept.
 */
void sim_disk_power_cut(bool whole);
/* End all faults of the disk. */
void sim_disk_repair(void);
/*
 * Create a file, for the judge: needs no running process. bytes NULL: the file is a hole. Returns 0
 * or -errno.
 */
int sim_disk_put(const char *path, const void *bytes, size_t n);
ssize_t sim_disk_get(const char *path, void *bytes, size_t n, off_t offset);
/*
 * Store the names below a directory that are not directories and do not begin with `but`, such as
 * " a.sock b". Returns false if there are no such names.
 */
bool sim_disk_names(const char *path, const char *but, char *text, size_t bytes);
/* Set an attribute of a file. It is durable when the function returns. Returns 0 or -errno. */
int sim_disk_put_attribute(const char *path, const char *name, const char *value);
/* Append zeroes to a file. Returns 0 or -errno. */
int sim_disk_grow(const char *path, uint64_t bytes);
/* Exchange the files of two names. Returns 0 or -errno. */
int sim_disk_swap(const char *a, const char *b);

/*
 * Socket files, for os_unix.c. sim_path_bind() creates the name; it returns 0, -EADDRINUSE, -ENOENT
 * or -EACCES. sim_path_socket() returns the bound listener, or NULL with ENOENT, EACCES or
 * ECONNREFUSED set. sim_path_socket_gone(): the socket was closed; its name stays.
 */
int sim_path_bind(const char *path, mode_t mode, void *listener);
void *sim_path_socket(const char *path);
void sim_path_socket_gone(void *listener);

#endif
