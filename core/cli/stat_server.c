/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/stat_server.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <gantry/rundir.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/safe_path.h"

/* send buffer: large enough to send most reports with one send(2), if the system permits */
#define SEND_BYTES (4 * 1024 * 1024)
/* limit of clients with a partly sent report: the text of each report stays in memory */
#define SLOW_MAX 8
#define SLOW_NS (2 * GN_NS_PER_S) /* the timeout of gantry stat */

#define EARLY_SUFFIX ".new" /* name of a socket that does not listen yet */

struct gn_stat_server {
	struct gn_loop *loop;
	json_t *(*write)(void *arg, struct gn_report *report);
	void *arg;
	struct sockaddr_un address;
	int fd;
	/* a spare descriptor, closed to accept a client when the process has no others left */
	int reserve;
	LIST_HEAD(, client) slow;
	unsigned n_slow;
};

/* A client that has not read the whole report. The loop calls back when the socket is writable. */
struct client {
	LIST_ENTRY(client) link; /* in server->slow */
	struct gn_stat_server *server;
	struct gn_timer deadline;
	int fd;
	char *text;
	size_t sent, length;
};

static int is_allowed(int fd)
{
	struct ucred peer;
	socklen_t n = sizeof(peer);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n))
		return 0;
	return peer.uid == geteuid() || peer.uid == 0;
}

/* Open the spare descriptor if necessary. Returns 0 or -errno. */
static int open_reserve(struct gn_stat_server *server)
{
	if (server->reserve < 0)
		server->reserve = open("/dev/null", O_RDONLY | O_CLOEXEC);
	return server->reserve < 0 ? -errno : 0;
}

/*
 * Send without blocking. Returns 0: all was sent; -EAGAIN: the socket buffer is full; or another
 * -errno.
 */
static int send_on(struct client *client)
{
	while (client->sent < client->length) {
		ssize_t n = send(client->fd, client->text + client->sent,
				 client->length - client->sent, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0)
			return -errno;
		client->sent += (size_t)n;
	}
	return 0;
}

static void hang_up(struct client *client)
{
	close(client->fd);
	free(client->text);
	free(client);
}

static void drop(struct client *client)
{
	struct gn_stat_server *server = client->server;

	LIST_REMOVE(client, link);
	server->n_slow--;
	if (client->sent < client->length)
		gn_log(GN_LOG_DEBUG, "stat", "the client did not read the whole report");
	gn_loop_clear_timer(server->loop, &client->deadline);
	gn_loop_remove_fd(server->loop, client->fd);
	hang_up(client);
	open_reserve(server);
}

static void on_deadline(void *arg)
{
	drop(arg);
}

static void on_writable(void *arg)
{
	if (send_on(arg) != -EAGAIN)
		drop(arg);
}

/* Keep a client, to send the remaining text when the socket is writable. */
static int keep_client(struct gn_stat_server *server, struct client *client)
{
	int rc = server->n_slow < SLOW_MAX
			 ? gn_loop_add_writer(server->loop, client->fd, on_writable, client)
			 : -EBUSY;

	if (rc)
		return rc;
	LIST_INSERT_HEAD(&server->slow, client, link);
	server->n_slow++;
	gn_loop_set_timer(server->loop, &client->deadline, gn_now_ns() + SLOW_NS);
	return 0;
}

/* Create the text of a report; NULL: failed. */
static char *report_text(struct gn_stat_server *server)
{
	struct gn_report report;
	json_t *tree = server->write(server->arg, &report);
	char *text = tree ? json_dumps(tree, JSON_INDENT(2) | JSON_REAL_PRECISION(12)) : NULL;

	gn_report_fini(&report);
	return text;
}

/* Send a report to a client. Takes ownership of fd. */
static void answer(struct gn_stat_server *server, int fd)
{
	struct client *client = calloc(1, sizeof(*client));
	int buffer_bytes = SEND_BYTES;

	if (!client) {
		close(fd);
		return;
	}
	*client = (struct client){.server = server, .fd = fd, .text = report_text(server)};
	client->deadline = (struct gn_timer){.fn = on_deadline, .arg = client};
	client->length = client->text ? strlen(client->text) : 0;
	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &buffer_bytes, sizeof(buffer_bytes));
	if (send_on(client) == -EAGAIN && !keep_client(server, client))
		return;
	if (client->sent < client->length)
		gn_log(GN_LOG_DEBUG, "stat", "the client did not read the report");
	hang_up(client);
}

static int accept_client(const struct gn_stat_server *server)
{
	return accept4(server->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
}

/*
 * Accept with the spare descriptor if the process has no other left. A client that is not accepted
 * would keep the loop awake.
 */
static int accept_with_reserve(struct gn_stat_server *server)
{
	if ((errno != EMFILE && errno != ENFILE) || server->reserve < 0)
		return -1;
	close(server->reserve);
	server->reserve = -1;
	return accept_client(server);
}

static void on_readable(void *arg)
{
	struct gn_stat_server *server = arg;
	int fd = accept_client(server);

	if (fd < 0)
		fd = accept_with_reserve(server);
	if (fd >= 0) {
		if (is_allowed(fd))
			answer(server, fd);
		else
			close(fd);
	}
	/* without the spare descriptor the next client could be neither accepted nor rejected */
	while (open_reserve(server) && !LIST_EMPTY(&server->slow))
		drop(LIST_FIRST(&server->slow));
}

/*
 * Bind the socket to a temporary name, and rename it when it listens. So a connection to the final
 * name is refused only if the process is dead.
 */
static int open_socket(struct gn_stat_server *server)
{
	struct sockaddr_un early = server->address;
	char *suffix = early.sun_path + strlen(early.sun_path) - strlen(GN_STAT_SUFFIX);
	int rc = 0;

	memcpy(suffix, EARLY_SUFFIX, sizeof(EARLY_SUFFIX));
	server->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (server->fd < 0)
		return -errno;
	unlink(early.sun_path); /* an earlier process with this PID can have left the name */
	if (bind(server->fd, (const struct sockaddr *)&early, sizeof(early)))
		return -errno;
	if (chmod(early.sun_path, 0600) || listen(server->fd, GN_STAT_BACKLOG) ||
	    rename(early.sun_path, server->address.sun_path)) {
		rc = -errno;
		unlink(early.sun_path);
		return rc;
	}
	return gn_loop_add_fd(server->loop, server->fd, on_readable, server);
}

static int is_dead(const char *dir, const char *name)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int pid = atoi(name), fd, dead;

	if (pid <= 0 || kill(pid, 0) == 0 || errno != ESRCH)
		return 0;
	if ((size_t)snprintf(address.sun_path, sizeof(address.sun_path), "%s/%s", dir, name) >=
	    sizeof(address.sun_path))
		return 0;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	dead = fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address)) &&
	       errno == ECONNREFUSED;
	if (fd >= 0)
		close(fd);
	return dead;
}

static int ends_with(const char *name, const char *suffix)
{
	size_t n = strlen(name), m = strlen(suffix);

	return n > m && !strcmp(name + n - m, suffix);
}

/* Remove the sockets of processes that were killed. Each process calls it at its start and end. */
static void sweep(const char *dir)
{
	DIR *d = opendir(dir);
	struct dirent *item;

	while (d && (item = readdir(d)))
		if ((ends_with(item->d_name, GN_STAT_SUFFIX) ||
		     ends_with(item->d_name, EARLY_SUFFIX)) &&
		    is_dead(dir, item->d_name))
			unlinkat(dirfd(d), item->d_name, 0);
	if (d)
		closedir(d);
}

int gn_stat_server_open(struct gn_loop *loop, const char *dir,
			json_t *(*write)(void *arg, struct gn_report *report), void *arg,
			struct gn_stat_server **server_p)
{
	struct gn_stat_server *server = calloc(1, sizeof(*server));
	char default_dir[PATH_MAX], why[GN_PATH_WHY] = "";
	int rc = -ENOMEM;

	*server_p = NULL;
	if (!dir[0]) {
		gantry_rundir(default_dir, sizeof(default_dir));
		dir = default_dir;
	}
	if (!server)
		goto out;
	server->loop = loop;
	server->write = write;
	server->arg = arg;
	server->fd = server->reserve = -1;
	server->address.sun_family = AF_UNIX;
	rc = -ENAMETOOLONG;
	if ((size_t)snprintf(server->address.sun_path, sizeof(server->address.sun_path),
			     "%s/%d" GN_STAT_SUFFIX, dir,
			     (int)getpid()) >= sizeof(server->address.sun_path))
		goto out_undo_server;
	rc = gn_path_claim_dir(dir, why);
	if (rc)
		goto out_undo_server;
	sweep(dir);
	rc = open_reserve(server);
	if (rc)
		goto out_undo_server;
	rc = open_socket(server);
	if (rc)
		goto out_undo_socket;
	*server_p = server;
	return 0;

out_undo_socket:
	if (server->fd >= 0) {
		unlink(server->address.sun_path);
		close(server->fd);
	}
	close(server->reserve);
out_undo_server:
	free(server);
out:
	if (why[0])
		gn_log(GN_LOG_WARN, "stat", "cannot serve gantry stat: %s", why);
	else
		gn_log(GN_LOG_WARN, "stat", "cannot serve gantry stat: %s: %s", dir, strerror(-rc));
	return rc;
}

void gn_stat_server_unlink(const struct gn_stat_server *server)
{
	if (server)
		unlink(server->address.sun_path);
}

void gn_stat_server_close(struct gn_stat_server **server_p)
{
	struct gn_stat_server *server = *server_p;

	*server_p = NULL;
	if (!server)
		return;
	while (!LIST_EMPTY(&server->slow))
		drop(LIST_FIRST(&server->slow));
	gn_loop_remove_fd(server->loop, server->fd);
	unlink(server->address.sun_path);
	*strrchr(server->address.sun_path, '/') = '\0'; /* cut off the file name */
	sweep(server->address.sun_path);
	close(server->fd);
	if (server->reserve >= 0)
		close(server->reserve);
	free(server);
}
