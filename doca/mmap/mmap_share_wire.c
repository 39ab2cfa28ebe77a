/* SPDX-License-Identifier: BSD-3-Clause */
/* mmap_share_wire.c - sockets and messages of importers and owners of memory */
#include "mmap/mmap_share_wire.h"

#include "common/gd_log.h"
#include "device/gd_device.h"

#include <gantry/memfd.h>

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>

#define PREFIX "map-"
#define SUFFIX ".sock"
#define TEMPORARY ".new" /* suffix until the socket listens */
#define TEMPORARY_S 60   /* an older temporary file is a leftover of an ended process */
#define ANSWER_S 5
#define BACKLOG 128
#define WHY_BYTES 96 /* bytes of an error message */

uint64_t gd_host_id(void)
{
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	uint64_t h = 0xcbf29ce484222325ull;
	char id[64];
	ssize_t n = fd >= 0 ? read(fd, id, sizeof(id)) : 0;

	for (ssize_t i = 0; i < n; i++)
		h = (h ^ (unsigned char)id[i]) * 0x100000001b3ull;
	if (fd >= 0)
		close(fd);
	return h;
}

/* -- the socket -- */

static bool address(struct sockaddr_un *sun, const char *path)
{
	*sun = (struct sockaddr_un){.sun_family = AF_UNIX};
	return (size_t)snprintf(sun->sun_path, sizeof(sun->sun_path), "%s", path) <
	       sizeof(sun->sun_path);
}

static bool ends_with(const char *name, const char *end)
{
	size_t n = strlen(name), m = strlen(end);

	return n > m && strcmp(name + n - m, end) == 0;
}

/* Returns whether no process listens on the socket. */
static bool is_dead(const char *path)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_un sun;
	bool dead;

	dead = fd >= 0 && address(&sun, path) &&
	       connect(fd, (struct sockaddr *)&sun, sizeof(sun)) != 0 && errno == ECONNREFUSED;
	if (fd >= 0)
		close(fd);
	return dead;
}

static bool is_old(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0 && time(NULL) - st.st_mtime > TEMPORARY_S;
}

static void sweep(const char *dir)
{
	DIR *d = opendir(dir);
	struct dirent *entry;
	char path[400];

	while (d && (entry = readdir(d))) {
		if (strncmp(entry->d_name, PREFIX, strlen(PREFIX)) != 0)
			continue;
		snprintf(path, sizeof(path), "%s/%s", dir, entry->d_name);
		if ((ends_with(entry->d_name, SUFFIX) && is_dead(path)) ||
		    (ends_with(entry->d_name, TEMPORARY) && is_old(path)))
			unlink(path);
	}
	if (d)
		closedir(d);
}

/*
 * Bind under a temporary name and rename after listen(2): a socket that does not listen would be
 * removed as dead.
 */
static int bind_and_listen(int fd, const char *path, const char *temporary)
{
	struct sockaddr_un sun;

	if (!address(&sun, temporary))
		return -ENAMETOOLONG;
	if (bind(fd, (struct sockaddr *)&sun, sizeof(sun)) != 0)
		return -errno;
	if (chmod(temporary, 0600) != 0 || listen(fd, BACKLOG) != 0 ||
	    rename(temporary, path) != 0) {
		int rc = -errno;

		unlink(temporary);
		return rc;
	}
	return 0;
}

doca_error_t gd_listener_open(struct gd_listener *listener)
{
	char dir[80], temporary[GD_BLOB_PATH + 8];
	doca_error_t result = gd_run_dir(dir);
	uint32_t number = 0;
	int rc;

	if (result != DOCA_SUCCESS)
		return result;
	sweep(dir);
	if (getrandom(&number, sizeof(number), 0) != sizeof(number))
		number = (uint32_t)time(NULL);
	snprintf(listener->path, sizeof(listener->path), "%s/" PREFIX "%d-%08x" SUFFIX, dir,
		 (int)getpid(), number);
	snprintf(temporary, sizeof(temporary), "%s/" PREFIX "%d-%08x" TEMPORARY, dir, (int)getpid(),
		 number);
	listener->pid = getpid();
	listener->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	rc = listener->fd < 0 ? -errno : bind_and_listen(listener->fd, listener->path, temporary);
	if (rc == 0) {
		listener->reserve = open("/dev/null", O_RDONLY | O_CLOEXEC);
		return DOCA_SUCCESS;
	}
	gd_log(DOCA_LOG_LEVEL_ERROR,
	       "memory map cannot be exported: cannot create the socket %s: %s", listener->path,
	       strerror(-rc));
	if (listener->fd >= 0)
		close(listener->fd);
	listener->fd = -1;
	return DOCA_ERROR_OPERATING_SYSTEM;
}

void gd_listener_remove(const struct gd_listener *listener)
{
	if (listener->fd >= 0 && listener->pid == getpid())
		unlink(listener->path);
}

void gd_listener_forget(struct gd_listener *listener)
{
	if (listener->fd < 0)
		return;
	close(listener->fd);
	close(listener->reserve);
	listener->fd = -1;
}

void gd_listener_close(struct gd_listener *listener)
{
	gd_listener_remove(listener);
	gd_listener_forget(listener);
}

/* Returns whether the peer runs as the user of this process, or as root. */
static bool is_same_user(int fd)
{
	struct ucred cred;
	socklen_t n = sizeof(cred);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &n) == 0 &&
	       (cred.uid == geteuid() || cred.uid == 0);
}

static int accept_one(struct gd_listener *listener)
{
	int fd = accept4(listener->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd >= 0 || (errno != EMFILE && errno != ENFILE) || listener->reserve < 0)
		return fd;
	close(listener->reserve);
	fd = accept4(listener->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd >= 0)
		close(fd);
	listener->reserve = open("/dev/null", O_RDONLY | O_CLOEXEC);
	gd_log(DOCA_LOG_LEVEL_ERROR,
	       "memory map: import by another process rejected: this process has too many open files: raise ulimit -n");
	return -1;
}

int gd_listener_accept(struct gd_listener *listener)
{
	int fd = listener->fd < 0 ? -1 : accept_one(listener);

	while (fd >= 0 && !is_same_user(fd)) {
		close(fd);
		gd_log(DOCA_LOG_LEVEL_WARNING,
		       "memory map: import by a process of another user rejected: run both programs as one user");
		fd = accept_one(listener);
	}
	return fd;
}

/* -- the owner's side -- */

/* A message without data. */
struct word {
	uint32_t magic, word;
};

int gd_wire_read_ask(int fd, struct gd_share_ask *ask)
{
	/* no control buffer: the kernel discards descriptors that the importer sends */
	ssize_t n = recv(fd, ask, sizeof(*ask), MSG_DONTWAIT | MSG_TRUNC);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? -EAGAIN : -errno;
	if (n == sizeof(struct word) && ask->magic == GD_SHARE_MAGIC &&
	    ((struct word *)ask)->word == GD_SHARE_RELEASED)
		return GD_SHARE_RELEASED;
	if (n != sizeof(*ask) || ask->magic != GD_SHARE_MAGIC || ask->zero != 0)
		return -EPROTO;
	return 0;
}

void gd_wire_say(int fd, enum gd_share_word word)
{
	struct word message = {GD_SHARE_MAGIC, word};

	if (send(fd, &message, sizeof(message), MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		shutdown(fd, SHUT_RDWR);
}

/* Open a read-only descriptor of the same memory. */
static int read_only(int memfd)
{
	char path[40];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", memfd);
	return open(path, O_RDONLY | O_CLOEXEC);
}

/* Send one message with n descriptors. */
static int send_reply(int fd, const struct gd_share_reply *reply, const int *fds, uint32_t n)
{
	char control[CMSG_SPACE(GD_RUNS * sizeof(int))] __attribute__((aligned(8))) = {0};
	struct iovec iov = {(void *)(uintptr_t)reply, sizeof(*reply)};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};

	if (n > 0) {
		struct cmsghdr *cmsg;

		msg.msg_control = control;
		msg.msg_controllen = CMSG_SPACE(n * sizeof(int));
		cmsg = CMSG_FIRSTHDR(&msg);
		cmsg->cmsg_level = SOL_SOCKET;
		cmsg->cmsg_type = SCM_RIGHTS;
		cmsg->cmsg_len = CMSG_LEN(n * sizeof(int));
		memcpy(CMSG_DATA(cmsg), fds, n * sizeof(int));
	}
	return sendmsg(fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -errno : 0;
}

void gd_wire_reply(int fd, const struct gd_share_reply *reply, const struct gd_run *runs)
{
	const uint32_t writes = DOCA_ACCESS_FLAG_PCI_READ_WRITE | DOCA_ACCESS_FLAG_RDMA_WRITE |
				DOCA_ACCESS_FLAG_RDMA_ATOMIC;
	int fds[GD_RUNS], rc = 0;
	uint32_t n;

	for (n = 0; n < reply->n_runs && rc == 0; n++) {
		fds[n] = (reply->access & writes) != 0 ? runs[n].fd : read_only(runs[n].fd);
		rc = fds[n] < 0 ? -errno : 0;
	}
	if (rc == 0)
		rc = send_reply(fd, reply, fds, n);
	if (rc != 0)
		shutdown(fd, SHUT_RDWR);
	while (n-- > 0)
		if (fds[n] >= 0 && fds[n] != runs[n].fd)
			close(fds[n]);
}

/* -- the importer's side -- */

static doca_error_t no_owner(int err)
{
	gd_log(DOCA_LOG_LEVEL_ERROR,
	       "memory map cannot be imported: cannot connect to the owner: %s: check that the owner runs and has not stopped its map",
	       strerror(err));
	return DOCA_ERROR_DRIVER;
}

static doca_error_t connect_owner(const char *path, int *conn_p)
{
	struct timeval patience = {.tv_sec = ANSWER_S};
	struct sockaddr_un sun;
	int fd;

	if (!address(&sun, path))
		return DOCA_ERROR_INVALID_VALUE;
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	*conn_p = fd;
	if (fd < 0)
		return no_owner(errno);
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	if (connect(fd, (struct sockaddr *)&sun, sizeof(sun)) != 0)
		return no_owner(errno);
	if (is_same_user(fd))
		return DOCA_SUCCESS;
	gd_log(DOCA_LOG_LEVEL_ERROR,
	       "memory map cannot be imported: the owner runs as another user: run both programs as one user");
	return DOCA_ERROR_NOT_PERMITTED;
}

/* Receive one message. Close its descriptors, unless there is one for each run. */
static ssize_t receive(int fd, struct gd_share_reply *reply, int memfds[GD_RUNS])
{
	char control[CMSG_SPACE((GD_RUNS + 1) * sizeof(int))] __attribute__((aligned(8)));
	struct iovec iov = {reply, sizeof(*reply)};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = control,
			     .msg_controllen = sizeof(control)};
	int fds[GD_RUNS + 2]; /* maximum that fits into `control`, which is rounded up */
	size_t n_fds = 0;
	ssize_t n;

	do
		n = recvmsg(fd, &msg, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	for (struct cmsghdr *c = n < 0 ? NULL : CMSG_FIRSTHDR(&msg); c; c = CMSG_NXTHDR(&msg, c))
		if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS && n_fds == 0) {
			n_fds = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
			memcpy(fds, CMSG_DATA(c), n_fds * sizeof(int));
		}
	if (n == sizeof(*reply) && n_fds == reply->n_runs && n_fds <= GD_RUNS &&
	    (msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) == 0) {
		memcpy(memfds, fds, n_fds * sizeof(int));
		return n;
	}
	while (n_fds > 0)
		close(fds[--n_fds]);
	return n < 0 ? n : 0;
}

int gd_wire_read_word(int fd)
{
	struct word word;
	ssize_t n = recv(fd, &word, sizeof(word), MSG_DONTWAIT | MSG_TRUNC);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return -EAGAIN;
	return n == sizeof(word) && word.magic == GD_SHARE_MAGIC && word.word == GD_SHARE_REVOKE
		       ? GD_SHARE_REVOKE
		       : -ENOTCONN;
}

/* Check that the runs are consecutive whole pages from the first page of the range to its last. */
static bool are_runs(const struct gd_share_reply *reply)
{
	const uint64_t mask = (uint64_t)sysconf(_SC_PAGESIZE) - 1;
	uint64_t at = reply->addr & ~mask;

	if (reply->n_runs == 0 || reply->n_runs > GD_RUNS ||
	    reply->length > (uint64_t)INT64_MAX - reply->addr - mask)
		return false;
	for (uint32_t i = 0; i < reply->n_runs; i++) {
		if (reply->runs[i].from != at || reply->runs[i].to <= at ||
		    (reply->runs[i].to & mask) != 0)
			return false;
		at = reply->runs[i].to;
	}
	return at == ((reply->addr + reply->length + mask) & ~mask);
}

/* Check that the reply is for this memory, with at most the requested rights and a valid range. */
static bool is_answer(const struct gd_blob *blob, const struct gd_share_ask *ask,
		      const struct gd_share_reply *reply)
{
	return reply->addr == blob->addr && reply->length == blob->length &&
	       reply->addr <= INT64_MAX && reply->access != 0 &&
	       (reply->access & ~ask->access) == 0 && are_runs(reply);
}

static int check_pages(int memfd, uint64_t bytes, char why[WHY_BYTES])
{
	uint64_t present = 0;
	int rc = gantry_memfd_check_pages(memfd, bytes, &present);

	if (rc != 0)
		snprintf(why, WHY_BYTES, "the memory has holes (present=%llu, bytes=%llu)",
			 (unsigned long long)present, (unsigned long long)bytes);
	return rc;
}

static int check_memfds(const struct gd_share_reply *reply, const int memfds[GD_RUNS],
			char why[WHY_BYTES])
{
	const char *reason = "";
	int rc = 0;

	for (uint32_t i = 0; i < reply->n_runs && rc == 0; i++) {
		rc = gantry_memfd_check(memfds[i], reply->runs[i].to, INT64_MAX, NULL, &reason);
		if (rc != 0)
			snprintf(why, WHY_BYTES, "%s", reason);
		else
			rc = check_pages(memfds[i], reply->runs[i].to - reply->runs[i].from, why);
	}
	return rc;
}

static doca_error_t check_reply(const struct gd_blob *blob, const struct gd_share_ask *ask,
				const struct gd_share_reply *reply, const int memfds[GD_RUNS])
{
	char why[WHY_BYTES] = "protocol error: invalid reply of the owner";

	if (reply->magic == GD_SHARE_MAGIC && reply->status != 0)
		strcpy(why,
		       "rejected by the owner: the map does not exist, or its rights do not permit it");
	else if (reply->magic == GD_SHARE_MAGIC && is_answer(blob, ask, reply) &&
		 check_memfds(reply, memfds, why) == 0)
		return DOCA_SUCCESS;
	gd_log(DOCA_LOG_LEVEL_ERROR, "memory map cannot be imported: %s", why);
	return DOCA_ERROR_NOT_PERMITTED;
}

doca_error_t gd_wire_ask(const struct gd_blob *blob, const struct gd_share_ask *ask,
			 struct gd_share_reply *reply, int *conn_p, int memfds[GD_RUNS])
{
	doca_error_t result;
	ssize_t n;

	*conn_p = -1;
	for (uint32_t i = 0; i < GD_RUNS; i++)
		memfds[i] = -1;
	result = connect_owner(blob->path, conn_p);
	if (result != DOCA_SUCCESS)
		return result;
	n = send(*conn_p, ask, sizeof(*ask), MSG_NOSIGNAL);
	if (n == sizeof(*ask))
		n = receive(*conn_p, reply, memfds);
	if (n < 0)
		return no_owner(errno);
	if (n != sizeof(*reply))
		return no_owner(ECONNRESET);
	return check_reply(blob, ask, reply, memfds);
}
