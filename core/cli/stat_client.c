/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/stat_client.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/cli.h"
#include "control/control_socket.h"

#define ANSWER_MAX (64u * 1024 * 1024)
#define RETRY_MS 10 /* between attempts to connect to a process whose queue is full */

static int is_socket_name(const struct dirent *item)
{
	size_t n = strlen(item->d_name), m = strlen(GN_CONTROL_SUFFIX);

	return n > m && !strcmp(item->d_name + n - m, GN_CONTROL_SUFFIX);
}

/* Request to one process. */
struct question {
	struct sockaddr_un address;
	int pid;
	int fd; /* -1: finished */
	bool connected;
	char *text;
	size_t n, capacity;
	bool broken;  /* the process has sent an invalid report */
	json_t *tree; /* the report; NULL: none */
};

static void hang_up(struct question *q)
{
	if (q->fd >= 0)
		close(q->fd);
	q->fd = -1;
	free(q->text);
	q->text = NULL;
}

static void open_question(struct question *q, const char *dir, const char *name)
{
	q->address.sun_family = AF_UNIX;
	q->pid = atoi(name);
	q->fd = -1;
	if ((size_t)snprintf(q->address.sun_path, sizeof(q->address.sun_path), "%s/%s", dir, name) <
	    sizeof(q->address.sun_path))
		q->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

/*
 * Try to connect, and send the request. EAGAIN means a full queue, so try again later. After
 * another error the process is dead.
 */
static void try_connect(struct question *q)
{
	static const char request[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"stat\"}\n";

	q->connected = !connect(q->fd, (struct sockaddr *)&q->address, sizeof(q->address));
	if (q->connected ? send(q->fd, request, sizeof(request) - 1, MSG_NOSIGNAL) < 0 ||
				   shutdown(q->fd, SHUT_WR) != 0
			 : errno != EAGAIN)
		hang_up(q);
}

/* Take the report out of a response. Returns NULL for an invalid response. */
static json_t *parse_response(const char *text)
{
	json_t *response = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
	json_t *report = json_incref(json_object_get(response, "result"));

	json_decref(response);
	return report;
}

/* Read available data. At the end of file, parse the report. */
static void read_available(struct question *q)
{
	ssize_t got;

	if (q->n + 1 >= q->capacity) {
		size_t capacity = q->capacity ? 2 * q->capacity : 64 * 1024;
		char *grown = capacity <= ANSWER_MAX ? realloc(q->text, capacity) : NULL;

		if (!grown) {
			q->broken = true;
			hang_up(q);
			return;
		}
		q->text = grown;
		q->capacity = capacity;
	}
	got = read(q->fd, q->text + q->n, q->capacity - q->n - 1);
	if (got > 0) {
		q->n += (size_t)got;
	} else if (!got || errno != EAGAIN) {
		q->text[q->n] = '\0';
		q->tree = got ? NULL : parse_response(q->text);
		q->broken = q->n && !q->tree;
		hang_up(q);
	}
}

/* Poll all open requests once, at most timeout_ms. Returns the number of open requests. */
static unsigned turn(struct question *questions, struct pollfd *fds, unsigned n, int timeout_ms)
{
	unsigned n_open = 0;

	for (unsigned i = 0; i < n; i++) {
		struct question *q = &questions[i];

		if (q->fd >= 0 && !q->connected)
			try_connect(q);
		fds[i] = (struct pollfd){.fd = q->connected ? q->fd : -1, .events = POLLIN};
		n_open += q->fd >= 0;
		if (q->fd >= 0 && !q->connected && timeout_ms > RETRY_MS)
			timeout_ms = RETRY_MS;
	}
	if (!n_open || poll(fds, n, timeout_ms) <= 0)
		return n_open;
	for (unsigned i = 0; i < n; i++)
		if (fds[i].revents)
			read_available(&questions[i]);
	return n_open;
}

/* Send all requests in parallel, so that a stopped process does not delay the answers of others. */
static void ask(struct question *questions, unsigned n)
{
	uint64_t now = gn_now_ns(), end = now + GN_STAT_TIMEOUT_MS * GN_NS_PER_MS;
	struct pollfd *fds = calloc(n, sizeof(*fds));

	while (fds && now < end && turn(questions, fds, n, (int)((end - now) / GN_NS_PER_MS) + 1))
		now = gn_now_ns();
	free(fds);
}

json_t *gn_stat_ask(const char *dir, json_t *silent, int *error_p)
{
	struct dirent **items = NULL;
	json_t *list = json_array();
	int n = scandir(dir, &items, is_socket_name, alphasort);
	struct question *questions;

	*error_p = n < 0 ? errno : 0;
	questions = calloc(n > 0 ? (size_t)n : 1, sizeof(*questions));
	for (int i = 0; i < n && questions; i++)
		open_question(&questions[i], dir, items[i]->d_name);
	if (n > 0 && questions)
		ask(questions, (unsigned)n);
	for (int i = 0; i < n && questions; i++) {
		struct question *q = &questions[i];

		if (q->fd >= 0)
			json_array_append_new(silent, json_integer(q->pid));
		if (q->broken)
			gn_cli_fail(
				0,
				"the report of process %d is incomplete or invalid (size=%zu bytes)",
				q->pid, q->n);
		if (q->tree)
			json_array_append(list, q->tree);
		json_decref(q->tree);
		hang_up(q);
	}
	for (int i = 0; i < n; i++)
		free(items[i]);
	free(questions);
	free(items);
	return list;
}
