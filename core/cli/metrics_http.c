/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/metrics_http.h"

#include <errno.h>
#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "report/stat_metrics.h"

/* A connection beyond this number ends the oldest one, so that stalled clients keep out none. */
#define CONNECTIONS_MAX 16
/* Beyond this number the library accepts none: ended connections exist until its next turn. */
#define LIBRARY_CONNECTIONS_MAX (2 * CONNECTIONS_MAX)
#define IDLE_S 10 /* time without progress of a connection */
#define REQUEST_BYTES \
	((size_t)16 * 1024) /* memory for the header of a request, and of its response */
/* Requests within this time after a collection get the same text. */
#define FRESH_NS (250 * GN_NS_PER_MS)

struct connection {
	TAILQ_ENTRY(connection) link; /* in http->connections, while `listed` */
	bool listed;
	int fd;
};

struct gn_metrics_http {
	struct MHD_Daemon *daemon;
	const struct gn_stat_view *view;
	TAILQ_HEAD(, connection) connections; /* oldest first */
	unsigned n_connections;

	/* the last collection */
	uint64_t fresh_until_ns;
	json_t *list, *silent;
	int error;                                     /* errno of the directory; 0: none */
	struct MHD_Response *text[GN_METRICS_FORMATS]; /* NULL: not printed yet */
};

static const char *const content_types[GN_METRICS_FORMATS] = {
	[GN_METRICS_OPEN] = "application/openmetrics-text; version=1.0.0; charset=utf-8",
	[GN_METRICS_CLASSIC] = "text/plain; version=0.0.4; charset=utf-8",
};

/* -- connections -- */

static void forget(struct gn_metrics_http *http, struct connection *connection)
{
	if (!connection->listed)
		return;
	TAILQ_REMOVE(&http->connections, connection, link);
	connection->listed = false;
	http->n_connections--;
}

static void on_start(struct gn_metrics_http *http, struct MHD_Connection *handle, void **context)
{
	struct connection *connection = calloc(1, sizeof(*connection)), *oldest;

	*context = connection;
	if (!connection)
		return; /* the limit of the library applies to it */
	connection->fd =
		MHD_get_connection_info(handle, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
	connection->listed = true;
	TAILQ_INSERT_TAIL(&http->connections, connection, link);
	if (++http->n_connections <= CONNECTIONS_MAX)
		return;
	oldest = TAILQ_FIRST(&http->connections);
	forget(http, oldest);
	shutdown(oldest->fd, SHUT_RDWR); /* the library finds its end in the next turn */
}

static void on_connection(void *arg, struct MHD_Connection *handle, void **context,
			  enum MHD_ConnectionNotificationCode what)
{
	struct gn_metrics_http *http = arg;

	if (what == MHD_CONNECTION_NOTIFY_STARTED) {
		on_start(http, handle, context);
	} else if (*context) {
		forget(http, *context);
		free(*context);
	}
}

/* -- metrics -- */

static void discard(struct gn_metrics_http *http)
{
	for (int i = 0; i < GN_METRICS_FORMATS; i++) {
		if (http->text[i])
			MHD_destroy_response(http->text[i]); /* ends when its clients have it */
		http->text[i] = NULL;
	}
	json_decref(http->list);
	json_decref(http->silent);
	http->list = http->silent = NULL;
}

/* Request the reports of all processes, unless those of the last time are fresh. */
static void collect(struct gn_metrics_http *http)
{
	const int before = http->error;

	if (http->list && gn_now_ns() < http->fresh_until_ns)
		return;
	discard(http);
	http->silent = json_array();
	http->list = gn_stat_view_ask(http->view, http->silent, &http->error);
	http->fresh_until_ns = gn_now_ns() + FRESH_NS;
	if (http->error == ENOENT) /* no process has created the directory yet */
		http->error = 0;
	if (http->error && http->error != before)
		gn_log(GN_LOG_WARN, "metrics", "%s: cannot read the directory: %s", http->view->dir,
		       strerror(http->error));
}

/* Create a response from a text, of which it takes ownership. NULL: out of memory. */
static struct MHD_Response *response_of(char *text, size_t n, const char *type)
{
	struct MHD_Response *response =
		text ? MHD_create_response_from_buffer(n, text, MHD_RESPMEM_MUST_FREE) : NULL;

	if (!response)
		free(text);
	else
		MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
	return response;
}

static struct MHD_Response *print(const struct gn_metrics_http *http, enum gn_metrics_format format)
{
	char *text = NULL;
	size_t n = 0;
	FILE *out = open_memstream(&text, &n);

	if (!out)
		return NULL;
	gn_stat_print_metrics(out, format, http->list, http->silent, NULL);
	if (fclose(out)) {
		free(text);
		return NULL;
	}
	return response_of(text, n, content_types[format]);
}

/* A client that accepts the classic format and not OpenMetrics gets the classic format. */
static enum gn_metrics_format format_for(struct MHD_Connection *handle)
{
	const char *accept = MHD_lookup_connection_value(handle, MHD_HEADER_KIND,
							 MHD_HTTP_HEADER_ACCEPT);

	return accept && strstr(accept, "text/plain") &&
			       !strstr(accept, "application/openmetrics-text")
		       ? GN_METRICS_CLASSIC
		       : GN_METRICS_OPEN;
}

/* -- answers -- */

/* Answer with one line. Returns MHD_NO, which drops the client, when out of memory. */
static enum MHD_Result answer_line(struct MHD_Connection *handle, unsigned status, const char *type,
				   const char *line)
{
	struct MHD_Response *response = response_of(strdup(line), strlen(line), type);
	enum MHD_Result result;

	if (!response)
		return MHD_NO;
	if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
		MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
	result = MHD_queue_response(handle, status, response);
	MHD_destroy_response(response);
	return result;
}

static enum MHD_Result answer_metrics(struct gn_metrics_http *http, struct MHD_Connection *handle)
{
	const enum gn_metrics_format format = format_for(handle);
	char line[PATH_MAX + 128];

	collect(http);
	if (http->error) {
		snprintf(line, sizeof(line), "%s: cannot read the directory: %s\n", http->view->dir,
			 strerror(http->error));
		return answer_line(handle, MHD_HTTP_SERVICE_UNAVAILABLE, "text/plain", line);
	}
	if (!http->text[format])
		http->text[format] = print(http, format);
	if (!http->text[format])
		return answer_line(handle, MHD_HTTP_INTERNAL_SERVER_ERROR, "text/plain",
				   "out of memory\n");
	return MHD_queue_response(handle, MHD_HTTP_OK, http->text[format]);
}

static enum MHD_Result on_request(void *arg, struct MHD_Connection *handle, const char *url,
				  const char *method, const char *version, const char *body,
				  size_t *n_body, void **context)
{
	static char has_header; /* its address marks a request that this function has seen */

	(void)version;
	(void)body;
	if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
		return answer_line(handle, MHD_HTTP_METHOD_NOT_ALLOWED, "text/plain",
				   "only GET and HEAD are allowed\n");
	if (!*context) {
		*context = &has_header;
		return MHD_YES;
	}
	if (*n_body)
		return MHD_NO; /* a request with a body: drop the client */
	if (!strcmp(url, "/metrics"))
		return answer_metrics(arg, handle);
	if (!strcmp(url, "/"))
		return answer_line(handle, MHD_HTTP_OK, "text/html",
				   "<a href=\"/metrics\">metrics of gantry</a>\n");
	return answer_line(handle, MHD_HTTP_NOT_FOUND, "text/plain",
			   "not found: the metrics are at /metrics\n");
}

int gn_metrics_http_start(struct gn_metrics_http **http_p, int fd, const struct gn_stat_view *view)
{
	struct gn_metrics_http *http = calloc(1, sizeof(*http));

	*http_p = NULL;
	if (!http) {
		close(fd);
		return -ENOMEM;
	}
	http->view = view;
	TAILQ_INIT(&http->connections);
	errno = 0;
	http->daemon = MHD_start_daemon(
		MHD_USE_EPOLL_INTERNAL_THREAD, 0, NULL, NULL, on_request, http,
		MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_NOTIFY_CONNECTION, on_connection, http,
		MHD_OPTION_CONNECTION_LIMIT, (unsigned)LIBRARY_CONNECTIONS_MAX,
		MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_S, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
		REQUEST_BYTES, MHD_OPTION_END);
	if (!http->daemon) {
		const int rc = errno ? -errno : -EINVAL;

		close(fd);
		free(http);
		return rc;
	}
	*http_p = http;
	return 0;
}

void gn_metrics_http_stop(struct gn_metrics_http **http_p)
{
	struct gn_metrics_http *http = *http_p;

	*http_p = NULL;
	if (!http)
		return;
	MHD_stop_daemon(http->daemon);
	discard(http);
	free(http);
}
