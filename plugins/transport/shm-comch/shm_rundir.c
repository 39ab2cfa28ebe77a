/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shm_rundir.c - the runtime directory: DIR/PCI/SERVICE.sock and SERVICE.lock.
 *
 * A listener holds the lock while it serves the name, so a socket whose lock is free is stale. A
 * process removes a stale socket when its connect to the socket fails, when the peer that served
 * the socket dies, and when it opens a device in the same directory. Opening a device also removes
 * lock files that have no socket and that no process holds.
 *
 * open_dir() checks the directory. After that all access uses its descriptor, so no process can
 * replace the directory.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "shm_comch.h"

/* a burst of connects must not fill the backlog between two turns of the control thread */
#define BACKLOG 1024
#define PCI_BYTES 80u
#define SWEEP_TRIES 50 /* limit of tries, at intervals of one millisecond */

/* Convert a name to a file name: other characters than `plain` become %XX. */
static int file_name(char *out, size_t bytes, const char *name, const char *suffix)
{
	static const char plain[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.";
	size_t n = 0;

	if (!*name)
		return -EINVAL;
	for (const char *p = name; *p; p++) {
		if (n + 4 > bytes)
			return -ENAMETOOLONG;
		if (strchr(plain, *p) && !(p == name && *p == '.'))
			out[n++] = *p;
		else
			n += (size_t)snprintf(out + n, bytes - n, "%%%02X", (unsigned char)*p);
	}
	if (n + strlen(suffix) + 1 > bytes)
		return -ENAMETOOLONG;
	strcpy(out + n, suffix);
	return 0;
}

/*
 * Check whether the directory could be created, without side effects. Returns -1 and sets errno:
 * EAGAIN: it could; else the error that mkdirat(2) would set.
 */
static int check_creatable(int at, const char *path)
{
	const char *slash = strrchr(path, '/');
	char parent[COMCH_DIR_BYTES];

	snprintf(parent, sizeof(parent), "%.*s", slash ? (int)(slash - path) + 1 : 1,
		 slash ? path : ".");
	if (faccessat(at, path, F_OK, 0) == 0)
		errno = EEXIST;
	else if (faccessat(at, parent, W_OK | X_OK, AT_EACCESS) == 0)
		errno = EAGAIN;
	return -1;
}

/*
 * Returns the remedy for a directory that cannot be used. If `dir` is not set, the path comes from
 * the environment.
 */
static const char *directory_remedy(const struct comch_device *dev)
{
	return dev->conf->dir && *dev->conf->dir
		       ? ""
		       : "; set dir of the device, or XDG_RUNTIME_DIR, to another directory";
}

/*
 * Open a directory that only this user and root can modify, and create it if it is missing. Returns
 * a descriptor or -errno; -EAGAIN: dev->only_looks, and the directory is missing.
 */
static int open_dir(const struct comch_device *dev, int at, const char *path, const char *shown)
{
	/*
	 * if other users may connect, they get search permission, so that they can reach the socket
	 */
	mode_t mode = dev->n_uids > 1 ? 0711 : 0700;
	const char *why = NULL;
	struct stat st;
	int fd, err;

	if ((dev->only_looks ? check_creatable(at, path) : mkdirat(at, path, mode)) &&
	    errno != EEXIST) {
		err = errno;
		if (err == EAGAIN)
			gantry_log_info(dev->host, "would create directory %s", shown);
		else
			gantry_log_error(dev->host, "cannot create directory %s: %s%s", shown,
					 strerror(err), directory_remedy(dev));
		return -err;
	}
	fd = openat(at, path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0) {
		err = errno;
		gantry_log_error(dev->host, "cannot open directory %s: %s%s", shown, strerror(err),
				 directory_remedy(dev));
		return -err;
	}
	if (fstat(fd, &st))
		why = "cannot be examined";
	else if (st.st_uid != geteuid() && st.st_uid != 0)
		why = "belongs to another user";
	else if (st.st_mode & 022)
		why = "can be written by other users";
	if (why) {
		gantry_log_error(dev->host, "directory %s %s%s", shown, why, directory_remedy(dev));
		close(fd);
		return -EACCES;
	}
	return fd;
}

void comch_rundir_check(const struct comch_conf *conf, const struct gantry_check *check)
{
	char pci[PCI_BYTES], name[COMCH_NAME_BYTES];

	if (conf->dir && strlen(conf->dir) >= COMCH_DIR_BYTES)
		gantry_option_fault(check, "dir", "has %zu bytes; up to %u are possible",
				    strlen(conf->dir), COMCH_DIR_BYTES - 1);
	if (file_name(pci, sizeof(pci), conf->pci, ""))
		gantry_option_fault(check, "pci",
				    "is empty or too long; write such as \"03:00.0\"");
	if (check->service && file_name(name, sizeof(name), check->service, ".sock"))
		gantry_option_fault(
			check, "services",
			"is too long for a file name: each character other than a letter, a digit, '_', '-' and '.' counts three times");
}

/*
 * Open the runtime directory. open_file of the host does not follow links of other users in its
 * path. Returns a descriptor or -errno.
 */
static int open_top(const struct comch_device *dev, char *dir)
{
	char parent[COMCH_DIR_BYTES], *slash;
	int at, fd;

	for (size_t n = strlen(dir); n > 1 && dir[n - 1] == '/'; n--)
		dir[n - 1] = '\0';
	slash = strrchr(dir, '/');
	snprintf(parent, sizeof(parent), "%.*s", slash ? (int)(slash - dir) + 1 : 1,
		 slash ? dir : ".");
	at = dev->host->open_file(dev->host, parent, O_PATH | O_DIRECTORY);
	if (at < 0) {
		gantry_log_error(dev->host, "cannot create directory %s: %s%s", dir, strerror(-at),
				 directory_remedy(dev));
		return at;
	}
	fd = open_dir(dev, at, slash ? slash + 1 : dir, dir);
	close(at);
	return fd;
}

int comch_rundir_open(const struct comch_device *dev, struct comch_rundir *rundir)
{
	char dir[COMCH_DIR_BYTES], pci[PCI_BYTES], shown[COMCH_DIR_BYTES + PCI_BYTES];
	int fd, rc;

	if (dev->conf->dir && *dev->conf->dir)
		snprintf(dir, sizeof(dir), "%s", dev->conf->dir);
	else
		gantry_rundir(dir, sizeof(dir));
	rc = file_name(pci, sizeof(pci), dev->conf->pci, "");
	if (rc)
		return rc;
	snprintf(shown, sizeof(shown), "%s/%s", dir, pci);
	snprintf(rundir->path, sizeof(rundir->path), "%.95s", shown);
	fd = open_top(dev, dir);
	rundir->fd = fd < 0 ? fd : open_dir(dev, fd, pci, shown);
	if (fd >= 0)
		close(fd);
	return rundir->fd < 0 && rundir->fd != -EAGAIN ? rundir->fd : 0;
}

void comch_rundir_close(struct comch_rundir *rundir)
{
	if (rundir->fd >= 0)
		close(rundir->fd);
	rundir->fd = -1;
}

/*
 * Take the lock without blocking. Returns a descriptor; -EADDRINUSE: another process holds the
 * lock; or another -errno.
 */
static int take_lock(int dir, const char *name)
{
	for (int tries = 0; tries < 16; tries++) {
		struct stat ours, there;
		int fd = openat(dir, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

		if (fd < 0)
			return -errno;
		if (flock(fd, LOCK_EX | LOCK_NB)) {
			int err = errno;

			close(fd);
			return err == EWOULDBLOCK ? -EADDRINUSE : -err;
		}
		/* the previous holder might have removed the file after openat(2) */
		if (fstat(fd, &ours) == 0 && fstatat(dir, name, &there, AT_SYMLINK_NOFOLLOW) == 0 &&
		    ours.st_ino == there.st_ino && ours.st_dev == there.st_dev)
			return fd;
		close(fd);
	}
	return -EADDRINUSE;
}

static void address(int dir, const char *name, struct sockaddr_un *sun)
{
	_Static_assert(sizeof("/proc/self/fd/2147483647/") - 1 + COMCH_NAME_BYTES <=
			       sizeof(sun->sun_path),
		       "any name fits");
	*sun = (struct sockaddr_un){.sun_family = AF_UNIX};
	snprintf(sun->sun_path, sizeof(sun->sun_path), "/proc/self/fd/%d/%s", dir, name);
}

/*
 * Take the lock of a stale socket. A process that removes a stale socket holds the lock for a short
 * time, in which no process listens at the socket. In that case this function retries.
 */
static int take_stale_lock(int dir, const char *name, const struct sockaddr_un *sun)
{
	int lock = take_lock(dir, name);

	for (int tries = 0; lock == -EADDRINUSE && tries < SWEEP_TRIES; tries++) {
		int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		int served = fd >= 0 &&
			     (connect(fd, (const struct sockaddr *)sun, sizeof(*sun)) == 0 ||
			      errno == EAGAIN);

		if (fd >= 0)
			close(fd);
		if (served)
			break;
		poll(NULL, 0, 1);
		lock = take_lock(dir, name);
	}
	return lock;
}

int comch_rundir_bind(const struct comch_device *dev, const char *service, struct comch_listener *l)
{
	struct sockaddr_un sun;
	int rc;

	rc = file_name(l->name, sizeof(l->name), service, ".sock");
	if (!rc)
		rc = file_name(l->lock_name, sizeof(l->lock_name), service, ".lock");
	if (rc)
		return rc;
	address(dev->rundir.fd, l->name, &sun);
	l->lock = take_stale_lock(dev->rundir.fd, l->lock_name, &sun);
	if (l->lock < 0)
		return l->lock;
	l->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (l->fd < 0) {
		rc = -errno;
		goto out_undo_lock;
	}
	unlinkat(dev->rundir.fd, l->name, 0);
	if (bind(l->fd, (struct sockaddr *)&sun, sizeof(sun)) ||
	    fchmodat(dev->rundir.fd, l->name, dev->n_uids > 1 ? 0666 : 0600, 0) ||
	    listen(l->fd, BACKLOG)) {
		rc = -errno;
		goto out_undo_socket;
	}
	return 0;

out_undo_socket:
	close(l->fd);
	unlinkat(dev->rundir.fd, l->name, 0);
out_undo_lock:
	unlinkat(dev->rundir.fd, l->lock_name, 0);
	close(l->lock);
	return rc;
}

void comch_rundir_unbind(struct comch_device *dev, struct comch_listener *l)
{
	/* a forked child must not remove the files of its parent */
	if (dev->pid == getpid()) {
		unlinkat(dev->rundir.fd, l->name, 0);
		unlinkat(dev->rundir.fd, l->lock_name, 0);
		flock(l->lock, LOCK_UN);
	}
	comch_watch_close(dev, l->fd);
	close(l->lock);
}

static bool has_type(int dir, const char *name, mode_t type)
{
	struct stat st;

	return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && (st.st_mode & S_IFMT) == type;
}

/*
 * Remove the socket and the lock file of a dead server. A server that starts or ends also has a
 * lock file without a socket, but it holds the lock. If the sweep takes the lock before a starting
 * server does, the server tries again with a new file.
 */
static void sweep(int dir, const char *sock_name, const char *lock_name)
{
	int lock;

	if (!has_type(dir, sock_name, S_IFSOCK) && !has_type(dir, lock_name, S_IFREG))
		return;
	lock = take_lock(dir, lock_name);
	if (lock < 0)
		return; /* a process serves the service, or the files belong to another user */
	unlinkat(dir, sock_name, 0);
	unlinkat(dir, lock_name, 0);
	close(lock);
}

void comch_rundir_sweep(const struct comch_device *dev, const char *service)
{
	char sock_name[COMCH_NAME_BYTES], lock_name[COMCH_NAME_BYTES];

	if (file_name(sock_name, sizeof(sock_name), service, ".sock") == 0 &&
	    file_name(lock_name, sizeof(lock_name), service, ".lock") == 0)
		sweep(dev->rundir.fd, sock_name, lock_name);
}

void comch_rundir_sweep_all(const struct comch_device *dev)
{
	int fd = openat(dev->rundir.fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;

	if (!dir) { /* the directory belongs to another user, and this user cannot read it */
		if (fd >= 0)
			close(fd);
		return;
	}
	while ((entry = readdir(dir))) {
		size_t n = strlen(entry->d_name);
		char sock_name[COMCH_NAME_BYTES], lock_name[COMCH_NAME_BYTES];

		if (n < 6 || n >= sizeof(lock_name) ||
		    (strcmp(entry->d_name + n - 5, ".sock") != 0 &&
		     strcmp(entry->d_name + n - 5, ".lock") != 0))
			continue;
		snprintf(sock_name, sizeof(sock_name), "%.*s.sock", (int)(n - 5), entry->d_name);
		snprintf(lock_name, sizeof(lock_name), "%.*s.lock", (int)(n - 5), entry->d_name);
		sweep(dev->rundir.fd, sock_name, lock_name);
	}
	closedir(dir);
}

int comch_rundir_connect(const struct comch_device *dev, const char *service)
{
	struct sockaddr_un sun;
	char name[COMCH_NAME_BYTES];
	int fd, rc;

	rc = file_name(name, sizeof(name), service, ".sock");
	if (rc)
		return rc;
	address(dev->rundir.fd, name, &sun);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, (struct sockaddr *)&sun, sizeof(sun))) {
		const int error = errno; /* of connect(), before the sweep changes errno */

		if (error == ECONNREFUSED)
			comch_rundir_sweep(dev, service);
		rc = error == ENOENT ? -ECONNREFUSED : error == EAGAIN ? -EBUSY : -error;
		if (rc == -EACCES) /* a server rejects a user with the same errno */
			gantry_log_error(dev->host, "no right to connect to the socket %s: %s",
					 name, strerror(EACCES));
		close(fd);
		return rc;
	}
	return fd;
}
