/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * vhost_socket.c - the socket on which a front end connects, and its messages. Control thread.
 *
 *      IDLE --accept--> CONNECTED --end of the connection--> LEAVING --released--> IDLE
 *
 * A device has one front end at a time. The next one waits in the backlog.
 *
 * The connection stays open, and the socket keeps its path, until the queues are drained and the
 * memory is released. So no other process can serve the same ring before, and the front end that
 * notices the end of the connection finds all requests returned.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "vhost.h"

#define SOCKET_MODE 0600
#define ACCEPT_AGAIN_NS 1000000000ull /* pause after the listener has failed */

static void on_readable(void *arg);

/* -- the front end -- */

static void close_fds(int *fds, uint32_t *n_p)
{
	for (uint32_t i = 0; i < *n_p; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	*n_p = 0;
}

static void on_connect(void *arg);

static void listen_again(void *arg)
{
	struct vhost_role *role = arg;

	if (role->listen_fd < 0) /* closed since this call was posted */
		return;
	if (role->rh->fd_watch(role->rh, role->listen_fd, on_connect, role) == 0)
		return;
	gantry_log_warn(role->host,
			"out of memory: no front end can connect (socket=%s): trying again",
			role->conf->socket);
	if (role->rh->after(role->rh, ACCEPT_AGAIN_NS, listen_again, role) != 0)
		role->rh->post(role->rh, listen_again, role);
}

/*
 * A connection that cannot be accepted stays in the backlog, so the listener stays readable: do not
 * watch it for a while.
 */
static void pause_listener(struct vhost_role *role)
{
	gantry_log_warn(role->host, "front end cannot be accepted (socket=%s): %s: trying again",
			role->conf->socket, strerror(errno));
	if (role->rh->after(role->rh, ACCEPT_AGAIN_NS, listen_again, role) == 0)
		role->rh->fd_unwatch(role->rh, role->listen_fd);
}

/* Returns true if the peer of a socket has another uid than this process and root. */
static bool is_foreign(int fd)
{
	struct ucred peer;
	socklen_t bytes = sizeof(peer);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) != 0 ||
	       (peer.uid != 0 && peer.uid != geteuid());
}

static void on_connect(void *arg)
{
	struct vhost_role *role = arg;
	int fd = accept4(role->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0) {
		if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
			pause_listener(role);
		return;
	}
	if (role->rh->fd_watch(role->rh, fd, on_readable, role) != 0) {
		close(fd);
		return;
	}
	role->rh->fd_unwatch(role->rh, role->listen_fd);
	role->fd = fd;
	role->is_foreign = is_foreign(fd);
	role->phase = VHOST_CONNECTED;
	role->received = role->n_fds = 0;
	vhost_device_init(&role->device);
	gantry_count(role->connections, 1);
	gantry_log_info(role->host, "front end connected (socket=%s)", role->conf->socket);
}

void vhost_socket_hang_up(struct vhost_role *role)
{
	if (role->phase != VHOST_CONNECTED)
		return;
	if (!role->is_waiting)
		role->rh->fd_unwatch(role->rh, role->fd);
	role->is_waiting = false;
	close_fds(role->fds, &role->n_fds);
	role->phase = VHOST_LEAVING;
	vhost_regions_release_all(role);
}

void vhost_socket_check(struct vhost_role *role)
{
	struct pollfd p = {.fd = role->fd, .events = POLLRDHUP};

	if (role->phase == VHOST_CONNECTED && poll(&p, 1, 0) == 1)
		vhost_socket_hang_up(role);
}

void vhost_socket_released(struct vhost_role *role)
{
	const bool ends = role->is_stopping || role->is_closed;

	if (ends)
		vhost_socket_close(role);
	role->rh->after_cancel(role->rh, &role->reporter);
	close(role->fd);
	role->fd = -1;
	role->phase = VHOST_IDLE;
	for (uint32_t i = 0; i < role->n_queues; i++)
		role->queues[i].is_suspended = false;
	vhost_device_fini(&role->device);
	vhost_queue_drop_inflight(role);
	gantry_log_info(role->host, "front end disconnected (socket=%s)", role->conf->socket);
	if (ends)
		vhost_role_check_end(role);
	else
		listen_again(role);
}

/* -- messages -- */

/* Closes the descriptor of the reply. Returns the fault as text; NULL: sent. */
static const char *send_reply(const struct vhost_role *role, const struct vhost_reply *reply)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr header;
	} control = {.bytes = {0}};
	struct iovec iov = {(void *)(uintptr_t)reply->data, reply->bytes};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	ssize_t n;

	if (reply->bytes == 0)
		return NULL;
	if (reply->fd >= 0) {
		msg.msg_control = &control;
		msg.msg_controllen = sizeof(control);
		control.header = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof(int)),
						  .cmsg_level = SOL_SOCKET,
						  .cmsg_type = SCM_RIGHTS};
		memcpy(CMSG_DATA(&control.header), &reply->fd, sizeof(int));
	}
	n = sendmsg(role->fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (reply->fd >= 0)
		close(reply->fd);
	return n == (ssize_t)reply->bytes ? NULL : "replies cannot be sent: socket buffer is full";
}

const char *vhost_socket_config_changed(const struct vhost_role *role)
{
	uint8_t request[VHOST_HEADER_BYTES];

	if (role->phase != VHOST_CONNECTED)
		return NULL;
	if (role->device.backend_fd < 0)
		return "it has no channel for requests of the device";
	vhost_device_config_change(request);
	if (send(role->device.backend_fd, request, sizeof(request), MSG_NOSIGNAL | MSG_DONTWAIT) ==
	    (ssize_t)sizeof(request))
		return NULL;
	return strerror(errno);
}

static void reject(struct vhost_role *role, const char *fault)
{
	gantry_log_warn(role->host, "front end: %s (request=%s, type=%u): connection closed", fault,
			vhost_message_name(role->message.type), role->message.type);
	vhost_socket_hang_up(role);
}

/* The device has handled the message, with this result. */
static void handled(struct vhost_role *role, int rc, const struct vhost_reply *reply)
{
	const char *fault = rc != 0 ? role->device.fault : send_reply(role, reply);

	/* a monitor can ignore the failure, QEMU for example that of SET_MEM_TABLE */
	if (rc == 0 && reply->failure)
		gantry_log_warn(role->host, "front end: %s (request=%s, type=%u): request failed",
				reply->failure, vhost_message_name(role->message.type),
				role->message.type);
	if (fault)
		reject(role, fault);
}

void vhost_socket_continue(struct vhost_role *role, int rc)
{
	struct vhost_reply reply;

	if (role->phase != VHOST_CONNECTED || !role->is_waiting)
		return;
	rc = vhost_device_continue(&role->device, rc, &reply);
	if (role->rh->fd_watch(role->rh, role->fd, on_readable, role) != 0) {
		reject(role, "out of memory");
		return;
	}
	role->is_waiting = false;
	handled(role, rc, &reply);
}

static void take_message(struct vhost_role *role)
{
	struct vhost_message *m = &role->message;
	struct vhost_reply reply;
	const char *fault;
	int rc;

	role->received = 0;
	m->n_fds = role->n_fds;
	memcpy(m->fds, role->fds, sizeof(m->fds));
	fault = vhost_message_parse(m);
	if (fault) {
		reject(role, fault);
		return;
	}
	role->n_fds = 0;
	gantry_log_debug(role->host, "front end: %s (bytes=%u, descriptors=%u)",
			 vhost_message_name(m->type), m->size, m->n_fds);
	/* unwatch first: the action may complete in a later turn */
	role->is_waiting = true;
	role->rh->fd_unwatch(role->rh, role->fd);
	rc = vhost_device_handle(&role->device, m, &reply);
	close_fds(m->fds, &m->n_fds);
	if (rc == -EINPROGRESS)
		return;
	if (role->rh->fd_watch(role->rh, role->fd, on_readable, role) != 0) {
		if (reply.fd >= 0)
			close(reply.fd);
		reject(role, "out of memory");
		return;
	}
	role->is_waiting = false;
	handled(role, rc, &reply);
}

/* Keep the descriptors of a received part. Returns the fault as text; NULL: none. */
static const char *take_fds(struct vhost_role *role, struct msghdr *msg)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		const size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < n; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(fd), sizeof(fd));
			if (role->n_fds < VHOST_FDS_MAX)
				role->fds[role->n_fds++] = fd;
			else
				close(fd);
		}
	}
	return msg->msg_flags & MSG_CTRUNC ? "too many descriptors" : NULL;
}

/* Receive up to n bytes of the message. Returns the bytes; 0: end of the connection; -1: wait. */
static ssize_t receive(struct vhost_role *role, void *to, size_t n, const char **fault_p)
{
	union {
		char bytes[CMSG_SPACE(VHOST_FDS_MAX * sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec iov = {to, n};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = &control,
			     .msg_controllen = sizeof(control)};
	ssize_t got = recvmsg(role->fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

	if (got < 0)
		return errno == EAGAIN || errno == EINTR ? -1 : 0;
	*fault_p = take_fds(role, &msg);
	return got;
}

/* Receive a part of a message: first the header, then the payload. */
static void on_readable(void *arg)
{
	struct vhost_role *role = arg;
	struct vhost_message *m = &role->message;
	const char *fault = NULL;
	const bool has_header = role->received >= VHOST_HEADER_BYTES;
	const uint32_t at = has_header ? role->received - VHOST_HEADER_BYTES : role->received;
	ssize_t got = receive(role, (has_header ? m->payload.bytes : role->header) + at,
			      (has_header ? m->size : VHOST_HEADER_BYTES) - at, &fault);

	if (got < 0)
		return;
	if (got == 0) {
		vhost_socket_hang_up(role);
		return;
	}
	role->received += (uint32_t)got;
	if (!fault && role->received == VHOST_HEADER_BYTES)
		fault = vhost_message_header(role->header, m);
	if (fault)
		reject(role, fault);
	else if (role->received >= VHOST_HEADER_BYTES &&
		 role->received == VHOST_HEADER_BYTES + m->size)
		take_message(role);
}

/* -- the socket -- */

/* Remove a socket that no process listens on. Returns 0; -EADDRINUSE: a process does. */
static int remove_stale(const struct sockaddr_un *address)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), rc;
	struct stat st;

	if (fd < 0)
		return -errno;
	rc = connect(fd, (const struct sockaddr *)address, sizeof(*address)) ? -errno : 0;
	close(fd);
	if (rc != -ECONNREFUSED || lstat(address->sun_path, &st) || !S_ISSOCK(st.st_mode))
		return -EADDRINUSE;
	return unlink(address->sun_path) ? -errno : 0;
}

static int bind_socket(int fd, const struct sockaddr_un *address)
{
	int rc;

	/* a socket gets its mode at bind(2) from the descriptor, less the umask */
	if (fchmod(fd, SOCKET_MODE))
		return -errno;
	if (bind(fd, (const struct sockaddr *)address, sizeof(*address)) == 0)
		return 0;
	if (errno != EADDRINUSE)
		return -errno;
	rc = remove_stale(address);
	if (rc == 0 && bind(fd, (const struct sockaddr *)address, sizeof(*address)))
		rc = -errno;
	return rc;
}

int vhost_socket_open(struct vhost_role *role)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), rc;

	strncpy(address.sun_path, role->conf->socket, sizeof(address.sun_path) - 1);
	rc = fd < 0 ? -errno : bind_socket(fd, &address);
	if (rc == 0) {
		role->listen_fd = fd;
		rc = listen(fd, 1) ? -errno : role->rh->fd_watch(role->rh, fd, on_connect, role);
	}
	if (rc == 0) {
		gantry_log_info(role->host, "listening (socket=%s)", role->conf->socket);
		return 0;
	}
	if (fd >= 0 && role->listen_fd < 0)
		close(fd);
	gantry_log_error(
		role->host, "cannot listen (socket=%s): %s%s", role->conf->socket, strerror(-rc),
		rc == -EADDRINUSE ? ": stop the process that uses it, or choose another path" : "");
	return rc;
}

void vhost_socket_close(struct vhost_role *role)
{
	if (role->listen_fd < 0)
		return;
	role->rh->after_cancel(role->rh, role); /* of listen_again() */
	if (role->phase == VHOST_IDLE)
		role->rh->fd_unwatch(role->rh, role->listen_fd);
	unlink(role->conf->socket);
	close(role->listen_fd);
	role->listen_fd = -1;
}
