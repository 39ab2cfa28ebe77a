/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/stat_server.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/safe_path.h"

/* a report goes out in one send where the system allows a socket that much */
#define SEND_BYTES (4 * 1024 * 1024)
/* askers who have a part of their report: each holds the text of it */
#define SLOW_MAX 8
#define SLOW_NS (2 * GN_NS_PER_S) /* as long as gantry stat waits */

#define EARLY_SUFFIX ".new" /* of a socket that does not listen yet */

struct gn_stat_server {
	struct gn_loop *loop;
	json_t *(*write)(void *arg, struct gn_report *report);
	void *arg;
	struct sockaddr_un address;
	int fd;
	int reserve; /* a descriptor that can be given up for one who asks */
	struct asker *slow;
	unsigned n_slow;
};

/*
 * Somebody who has not taken all of the report yet: the loop goes on, and tells when there is room
 * for more.
 */
struct asker {
	struct asker *next;
	struct gn_stat_server *server;
	struct gn_timer deadline;
	int fd;
	char *text;
	size_t sent, length;
};

void gn_stat_dir(char *dst)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");

	if (runtime && runtime[0] == '/')
		snprintf(dst, PATH_MAX, "%s/gantry", runtime);
	else if (geteuid() == 0)
		snprintf(dst, PATH_MAX, "/run/gantry");
	else
		snprintf(dst, PATH_MAX, "/tmp/gantry-%u", (unsigned)geteuid());
}

/* Make the directory, or check that no other user can put anything into the one that is there. */
static int claim_dir(const char *dir)
{
	char why[GN_PATH_WHY];
	int rc = gn_path_claim_dir(dir, why);

	if (rc && why[0])
		gn_log(GN_LOG_WARN, "stat", "%s", why);
	return rc;
}

static int may_ask(int fd)
{
	struct ucred peer;
	socklen_t n = sizeof(peer);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n))
		return 0;
	return peer.uid == geteuid() || peer.uid == 0;
}

/* 0 or -errno. */
static int open_reserve(struct gn_stat_server *server)
{
	if (server->reserve < 0)
		server->reserve = open("/dev/null", O_RDONLY | O_CLOEXEC);
	return server->reserve < 0 ? -errno : 0;
}

/* 0, -EAGAIN when there is no room for all of it, or -errno. Never waits. */
static int send_on(struct asker *asker)
{
	while (asker->sent < asker->length) {
		ssize_t n = send(asker->fd, asker->text + asker->sent, asker->length - asker->sent,
				 MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0)
			return -errno;
		asker->sent += (size_t)n;
	}
	return 0;
}

static void hang_up(struct asker *asker)
{
	close(asker->fd);
	free(asker->text);
	free(asker);
}

static void drop(struct asker *asker)
{
	struct gn_stat_server *server = asker->server;
	struct asker **p = &server->slow;

	while (*p != asker)
		p = &(*p)->next;
	*p = asker->next;
	server->n_slow--;
	if (asker->sent < asker->length)
		gn_log(GN_LOG_DEBUG, "stat", "nobody took the whole report");
	gn_loop_clear_timer(server->loop, &asker->deadline);
	gn_loop_remove_fd(server->loop, asker->fd);
	hang_up(asker);
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

/* The rest is for later. */
static int keep(struct gn_stat_server *server, struct asker *asker)
{
	int rc = server->n_slow < SLOW_MAX
			 ? gn_loop_add_writer(server->loop, asker->fd, on_writable, asker)
			 : -EBUSY;

	if (rc)
		return rc;
	asker->next = server->slow;
	server->slow = asker;
	server->n_slow++;
	gn_loop_set_timer(server->loop, &asker->deadline, gn_now_ns() + SLOW_NS);
	return 0;
}

/* NULL: there is none to give. */
static char *report_text(struct gn_stat_server *server)
{
	struct gn_report report;
	json_t *tree = server->write(server->arg, &report);
	char *text = tree ? json_dumps(tree, JSON_INDENT(2) | JSON_REAL_PRECISION(12)) : NULL;

	gn_report_fini(&report);
	return text;
}

/* Takes over fd. */
static void answer(struct gn_stat_server *server, int fd)
{
	struct asker *asker = calloc(1, sizeof(*asker));
	int room = SEND_BYTES;

	if (!asker) {
		close(fd);
		return;
	}
	*asker = (struct asker){.server = server, .fd = fd, .text = report_text(server)};
	asker->deadline = (struct gn_timer){.fn = on_deadline, .arg = asker};
	asker->length = asker->text ? strlen(asker->text) : 0;
	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
	if (send_on(asker) == -EAGAIN && !keep(server, asker))
		return;
	if (asker->sent < asker->length)
		gn_log(GN_LOG_DEBUG, "stat", "nobody took the report");
	hang_up(asker);
}

static int take_one(const struct gn_stat_server *server)
{
	return accept4(server->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
}

/*
 * Of a process that may open no more files, too, one wants to know what it does; and who is left
 * waiting keeps the loop awake.
 */
static int take_by_reserve(struct gn_stat_server *server)
{
	if ((errno != EMFILE && errno != ENFILE) || server->reserve < 0)
		return -1;
	close(server->reserve);
	server->reserve = -1;
	return take_one(server);
}

static void on_readable(void *arg)
{
	struct gn_stat_server *server = arg;
	int fd = take_one(server);

	if (fd < 0)
		fd = take_by_reserve(server);
	if (fd >= 0) {
		if (may_ask(fd))
			answer(server, fd);
		else
			close(fd);
	}
	/* without the reserve, who asks next could neither be taken nor sent away */
	while (open_reserve(server) && server->slow)
		drop(server->slow);
}

/*
 * The socket gets its name when it listens: who connects to that name and is refused has found a
 * dead one.
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
	unlink(early.sun_path); /* left behind by a process that had our number */
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

/*
 * Processes that were killed leave their sockets: the next one that comes or goes takes them away.
 */
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
	char usual[PATH_MAX];
	int rc = -ENOMEM;

	*server_p = NULL;
	if (!dir[0]) {
		gn_stat_dir(usual);
		dir = usual;
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
	rc = claim_dir(dir);
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
	gn_log(GN_LOG_WARN, "stat", "no answers to gantry stat: %s: %s%s", dir, strerror(-rc),
	       rc == -EPERM ? " (the directory must belong to this user alone)" : "");
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
	while (server->slow)
		drop(server->slow);
	gn_loop_remove_fd(server->loop, server->fd);
	unlink(server->address.sun_path);
	*strrchr(server->address.sun_path, '/') = '\0'; /* the directory is left */
	sweep(server->address.sun_path);
	close(server->fd);
	if (server->reserve >= 0)
		close(server->reserve);
	free(server);
}
