/* SPDX-License-Identifier: BSD-3-Clause */
#include "control/control_socket.h"

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
#define TURN_NS (GN_NS_PER_S / GN_CONTROL_RATE)
#define BURST_NS (10 * TURN_NS) /* turns that are allowed at once after an idle period */

#define AGAIN_NS GN_NS_PER_S /* a process that cannot accept clients tries again after this time */

#define EARLY_SUFFIX ".new" /* name of a socket that does not listen yet */

TAILQ_HEAD(clients, client);

struct gn_control {
	struct gn_loop *loop;
	const struct gn_rpc_method *methods;
	void *arg;
	struct sockaddr_un address;
	int fd;
	/*
	 * a spare descriptor: closing it frees one for accept4() when the process has no others
	 * left. While it cannot be opened again, the process does not listen
	 */
	int reserve;
	bool listens;                 /* the loop watches fd */
	struct gn_timer listen_again; /* runs on_listen_again() while it does not listen */
	/* in the order of their last requests, the oldest first: also the order of their turns */
	struct clients clients;
	unsigned n_clients;
	struct gn_timer turn; /* runs on_turn() when the rate permits the next request */
	uint64_t turn_ns;     /* when the rate permits the next request */
};

/*
 * The state of a connection. RECEIVES: the control thread waits for bytes. WAITS: the client waits
 * for its turn. SENDS: a response waits for space in the socket buffer.
 */
enum client_state { RECEIVES, WAITS, SENDS };

struct client {
	TAILQ_ENTRY(client) link;
	struct gn_control *control;
	struct gn_timer deadline; /* of the state RECEIVES or SENDS */
	uint64_t since_ns; /* start of the time for a request, or for a response; 0: not yet */
	int fd;
	enum client_state state;
	bool closed; /* the client sends no more */
	char *in;    /* received bytes, GN_CONTROL_LINE_MAX at most; NULL: none yet */
	size_t n_in, size_in;
	size_t line; /* length of the first line with its newline; 0: incomplete */
	char *text;  /* the response */
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
static int open_reserve(struct gn_control *control)
{
	if (control->reserve < 0)
		control->reserve = open("/dev/null", O_RDONLY | O_CLOEXEC);
	return control->reserve < 0 ? -errno : 0;
}

static void on_readable(void *arg);

/* Watch for clients again, if the spare descriptor is open or can be opened. */
static void resume_listening(struct gn_control *control)
{
	if (!open_reserve(control) && !control->listens)
		control->listens = !gn_loop_add_fd(control->loop, control->fd, on_readable,
						   control);
	if (control->listens)
		gn_loop_clear_timer(control->loop, &control->listen_again);
}

static void on_listen_again(void *arg)
{
	struct gn_control *control = arg;

	resume_listening(control);
	if (!control->listens)
		gn_loop_set_timer(control->loop, &control->listen_again, gn_now_ns() + AGAIN_NS);
}

static void drop(struct client *client)
{
	struct gn_control *control = client->control;

	if (client->state == SENDS)
		gn_log(GN_LOG_DEBUG, "control", "the client did not read the whole response");
	TAILQ_REMOVE(&control->clients, client, link);
	control->n_clients--;
	gn_loop_clear_timer(control->loop, &client->deadline);
	if (client->state != WAITS)
		gn_loop_remove_fd(control->loop, client->fd);
	close(client->fd);
	free(client->text);
	free(client->in);
	free(client);
	resume_listening(control);
}

static void on_deadline(void *arg)
{
	drop(arg);
}

static void on_receivable(void *arg);
static void on_sendable(void *arg);

/* Enter a state. Returns false after it dropped the client, because the loop has no memory. */
static bool enter(struct client *client, enum client_state state)
{
	struct gn_loop *loop = client->control->loop;
	int rc = 0;

	if (client->state != WAITS)
		gn_loop_remove_fd(loop, client->fd);
	client->state = WAITS;
	gn_loop_clear_timer(loop, &client->deadline);
	if (state == WAITS)
		return true;
	rc = state == RECEIVES ? gn_loop_add_fd(loop, client->fd, on_receivable, client)
			       : gn_loop_add_writer(loop, client->fd, on_sendable, client);
	if (rc) {
		drop(client);
		return false;
	}
	client->state = state;
	if (state == SENDS || client->since_ns == 0)
		client->since_ns = gn_now_ns();
	gn_loop_set_timer(loop, &client->deadline, client->since_ns + GN_CONTROL_TIMEOUT_NS);
	return true;
}

/* Remove the first n received bytes. */
static void remove_bytes(struct client *client, size_t n)
{
	client->n_in -= n;
	memmove(client->in, client->in + n, client->n_in);
}

/* Find a complete request in the received bytes. Blank lines are skipped. */
static void find_line(struct client *client)
{
	const char *newline;
	size_t blank = 0;

	while (blank < client->n_in && client->in[blank] == '\n')
		blank++;
	if (blank)
		remove_bytes(client, blank);
	newline = client->n_in ? memchr(client->in, '\n', client->n_in) : NULL;
	client->line = newline ? (size_t)(newline - client->in) + 1 : 0;
}

/* The response was sent, or there was none: continue with the next request. */
static void next_request(struct client *client)
{
	free(client->text);
	client->text = NULL;
	find_line(client);
	if (client->line)
		enter(client, WAITS);
	else if (client->closed)
		drop(client);
	else
		enter(client, RECEIVES);
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

static void schedule(struct gn_control *control);

static void on_sendable(void *arg)
{
	struct client *client = arg;
	struct gn_control *control = client->control;
	int rc = send_on(client);

	if (rc == 0)
		next_request(client);
	else if (rc != -EAGAIN)
		drop(client);
	schedule(control);
}

/* Make space for more bytes of a request. Returns false if it is too long, or without memory. */
static bool grow(struct client *client)
{
	size_t size = client->size_in ? 4 * client->size_in : 4096;
	char *grown;

	if (client->n_in < client->size_in)
		return true;
	if (client->size_in >= GN_CONTROL_LINE_MAX)
		return false;
	grown = realloc(client->in, size);
	if (!grown)
		return false;
	client->in = grown;
	client->size_in = size;
	return true;
}

/* Receive once without blocking. Returns false if the client must be dropped. */
static bool receive(struct client *client)
{
	ssize_t got;

	if (!grow(client)) {
		gn_log(GN_LOG_DEBUG, "control", "a request is too long (limit=%u bytes)",
		       GN_CONTROL_LINE_MAX);
		return false;
	}
	got = recv(client->fd, client->in + client->n_in, client->size_in - client->n_in,
		   MSG_DONTWAIT);
	client->closed = got == 0 || (got < 0 && errno != EAGAIN);
	client->n_in += got > 0 ? (size_t)got : 0;
	find_line(client);
	return client->line || !client->closed;
}

/* Answer the first request of a client. */
static void answer(struct client *client)
{
	struct gn_control *control = client->control;
	size_t n;
	int rc;

	client->text = gn_rpc_answer(control->methods, control->arg, client->in, client->line, &n);
	if (n > 1) /* each request of a batch costs a turn; schedule() has paid one */
		control->turn_ns += (n - 1) * TURN_NS;
	remove_bytes(client, client->line);
	client->since_ns = 0; /* the next request has the whole time */
	client->sent = 0;
	client->length = client->text ? strlen(client->text) : 0;
	rc = send_on(client);
	if (rc == 0)
		next_request(client);
	else if (rc == -EAGAIN)
		enter(client, SENDS);
	else
		drop(client);
}

/* The turn of a client: receive if necessary, and answer a request if one is complete. */
static void serve(struct client *client)
{
	struct gn_control *control = client->control;

	TAILQ_REMOVE(&control->clients, client, link);
	TAILQ_INSERT_TAIL(&control->clients, client, link);
	if (!client->line && !receive(client))
		drop(client);
	else if (client->line)
		answer(client);
	else
		enter(client, RECEIVES);
}

/* Get the client whose last request is the oldest, without those whose turn is near. */
static struct client *oldest_idle(const struct gn_control *control)
{
	struct client *client;

	TAILQ_FOREACH (client, &control->clients, link)
		if (client->state != WAITS)
			return client;
	return NULL;
}

static struct client *first_waiting(const struct gn_control *control)
{
	struct client *client;

	TAILQ_FOREACH (client, &control->clients, link)
		if (client->state == WAITS)
			return client;
	return NULL;
}

/* Serve clients while the rate permits, and set the timer for those that wait. */
static void schedule(struct gn_control *control)
{
	uint64_t now_ns = gn_now_ns();
	struct client *client;

	if (control->turn_ns + BURST_NS < now_ns)
		control->turn_ns = now_ns - BURST_NS;
	while ((client = first_waiting(control)) && control->turn_ns <= now_ns) {
		control->turn_ns += TURN_NS;
		serve(client);
	}
	if (client)
		gn_loop_set_timer(control->loop, &control->turn, control->turn_ns);
	if (oldest_idle(control) || control->n_clients < GN_CONTROL_CLIENTS)
		resume_listening(control);
}

static void on_turn(void *arg)
{
	schedule(arg);
}

static void on_receivable(void *arg)
{
	struct client *client = arg;

	enter(client, WAITS);
	schedule(client->control);
}

/* Serve a client that has connected. Takes ownership of fd. */
static void add_client(struct gn_control *control, int fd)
{
	struct client *client = calloc(1, sizeof(*client));
	int buffer_bytes = SEND_BYTES;

	if (!client) {
		close(fd);
		return;
	}
	client->control = control;
	client->fd = fd;
	client->state = WAITS;
	client->deadline = (struct gn_timer){.fn = on_deadline, .arg = client};
	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &buffer_bytes, sizeof(buffer_bytes));
	TAILQ_INSERT_TAIL(&control->clients, client, link);
	control->n_clients++;
	schedule(control); /* most clients have sent their request already */
}

static int accept_client(const struct gn_control *control)
{
	return accept4(control->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
}

/*
 * Accept with the spare descriptor if the process has no other left. A client that is not accepted
 * would keep the loop awake.
 */
static int accept_with_reserve(struct gn_control *control)
{
	if ((errno != EMFILE && errno != ENFILE) || control->reserve < 0)
		return -1;
	close(control->reserve);
	control->reserve = -1;
	return accept_client(control);
}

static void stop_listening(struct gn_control *control)
{
	if (control->listens)
		gn_loop_remove_fd(control->loop, control->fd);
	control->listens = false;
	gn_loop_set_timer(control->loop, &control->listen_again, gn_now_ns() + AGAIN_NS);
}

/*
 * Accept a client. If all others wait for their turns, or a further client could be neither
 * accepted nor rejected, stop to listen for a while: a pending client would keep the loop awake.
 */
static void on_readable(void *arg)
{
	struct gn_control *control = arg;
	struct client *oldest = oldest_idle(control);
	int fd;

	if (control->n_clients == GN_CONTROL_CLIENTS && !oldest) {
		stop_listening(control);
		return;
	}
	fd = accept_client(control);
	if (fd < 0)
		fd = accept_with_reserve(control);
	if (fd >= 0 && is_allowed(fd)) {
		if (control->n_clients == GN_CONTROL_CLIENTS)
			drop(oldest);
		add_client(control, fd);
	} else if (fd >= 0) {
		close(fd);
	}
	while (open_reserve(control) && control->n_clients > 1)
		drop(TAILQ_FIRST(&control->clients));
	if ((fd < 0 && errno != EAGAIN && errno != ECONNABORTED) || control->reserve < 0)
		stop_listening(control);
}

/*
 * Bind the socket to a temporary name, and rename it when it listens. So a connection to the final
 * name is refused only if the process is dead.
 */
static int open_socket(struct gn_control *control)
{
	struct sockaddr_un early = control->address;
	char *suffix = early.sun_path + strlen(early.sun_path) - strlen(GN_CONTROL_SUFFIX);
	int rc = 0;

	memcpy(suffix, EARLY_SUFFIX, sizeof(EARLY_SUFFIX));
	control->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (control->fd < 0)
		return -errno;
	unlink(early.sun_path); /* an earlier process with this PID can have left the name */
	if (bind(control->fd, (const struct sockaddr *)&early, sizeof(early)))
		return -errno;
	if (chmod(early.sun_path, 0600) || listen(control->fd, GN_CONTROL_BACKLOG) ||
	    rename(early.sun_path, control->address.sun_path)) {
		rc = -errno;
		unlink(early.sun_path);
		return rc;
	}
	rc = gn_loop_add_fd(control->loop, control->fd, on_readable, control);
	control->listens = rc == 0;
	return rc;
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
		if ((ends_with(item->d_name, GN_CONTROL_SUFFIX) ||
		     ends_with(item->d_name, EARLY_SUFFIX)) &&
		    is_dead(dir, item->d_name))
			unlinkat(dirfd(d), item->d_name, 0);
	if (d)
		closedir(d);
}

int gn_control_open(struct gn_loop *loop, const char *dir, const struct gn_rpc_method *methods,
		    void *arg, struct gn_control **control_p)
{
	struct gn_control *control = calloc(1, sizeof(*control));
	char default_dir[PATH_MAX], why[GN_PATH_WHY] = "";
	int rc = -ENOMEM;

	*control_p = NULL;
	if (!dir[0]) {
		gantry_rundir(default_dir, sizeof(default_dir));
		dir = default_dir;
	}
	if (!control)
		goto out;
	control->loop = loop;
	control->methods = methods;
	control->arg = arg;
	TAILQ_INIT(&control->clients);
	control->turn = (struct gn_timer){.fn = on_turn, .arg = control};
	control->listen_again = (struct gn_timer){.fn = on_listen_again, .arg = control};
	control->fd = control->reserve = -1;
	control->address.sun_family = AF_UNIX;
	rc = -ENAMETOOLONG;
	if ((size_t)snprintf(control->address.sun_path, sizeof(control->address.sun_path),
			     "%s/%d" GN_CONTROL_SUFFIX, dir,
			     (int)getpid()) >= sizeof(control->address.sun_path))
		goto out_undo_control;
	rc = gn_path_claim_dir(dir, why);
	if (rc)
		goto out_undo_control;
	sweep(dir);
	rc = open_reserve(control);
	if (rc)
		goto out_undo_control;
	rc = open_socket(control);
	if (rc)
		goto out_undo_socket;
	*control_p = control;
	return 0;

out_undo_socket:
	if (control->fd >= 0) {
		unlink(control->address.sun_path);
		close(control->fd);
	}
	close(control->reserve);
out_undo_control:
	free(control);
out:
	if (why[0])
		gn_log(GN_LOG_WARN, "control", "cannot open the control socket: %s", why);
	else
		gn_log(GN_LOG_WARN, "control", "cannot open the control socket: %s: %s", dir,
		       strerror(-rc));
	return rc;
}

void gn_control_unlink(const struct gn_control *control)
{
	if (control)
		unlink(control->address.sun_path);
}

void gn_control_close(struct gn_control **control_p)
{
	struct gn_control *control = *control_p;

	*control_p = NULL;
	if (!control)
		return;
	while (!TAILQ_EMPTY(&control->clients))
		drop(TAILQ_FIRST(&control->clients));
	gn_loop_clear_timer(control->loop, &control->turn);
	gn_loop_clear_timer(control->loop, &control->listen_again);
	if (control->listens)
		gn_loop_remove_fd(control->loop, control->fd);
	unlink(control->address.sun_path);
	*strrchr(control->address.sun_path, '/') = '\0'; /* cut off the file name */
	sweep(control->address.sun_path);
	close(control->fd);
	if (control->reserve >= 0)
		close(control->reserve);
	free(control);
}
