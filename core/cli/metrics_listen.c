/* SPDX-License-Identifier: BSD-3-Clause */
#include "cli/metrics_listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli.h"

#define BACKLOG 64 /* clients that wait while the reports of all processes are collected */
#define UNIX "unix:"

union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

/* Parse a port. Returns -1 if the text is not a number from 0 to 65535. */
static int parse_port(const char *text)
{
	char *end;
	const unsigned long port = strtoul(text, &end, 10);

	return *text >= '0' && *text <= '9' && !*end && port <= 65535 ? (int)port : -1;
}

/* Parse A.B.C.D:PORT or [IPv6]:PORT. Returns the length of the address; 0: it is neither. */
static socklen_t parse_address(const char *where, union address *address)
{
	const char *colon = strrchr(where, ':');
	const int port = colon ? parse_port(colon + 1) : -1;
	char host[64];
	size_t n = port < 0 ? 0 : (size_t)(colon - where);

	*address = (union address){0};
	if (!n || n >= sizeof(host))
		return 0;
	memcpy(host, where, n);
	host[n] = '\0';
	if (inet_pton(AF_INET, host, &address->v4.sin_addr) == 1) {
		address->v4.sin_family = AF_INET;
		address->v4.sin_port = htons((uint16_t)port);
		return sizeof(address->v4);
	}
	if (host[0] != '[' || host[n - 1] != ']')
		return 0;
	host[n - 1] = '\0';
	if (inet_pton(AF_INET6, host + 1, &address->v6.sin6_addr) != 1)
		return 0;
	address->v6.sin6_family = AF_INET6;
	address->v6.sin6_port = htons((uint16_t)port);
	return sizeof(address->v6);
}

static bool is_loopback(const union address *address)
{
	if (address->any.sa_family == AF_INET)
		return ntohl(address->v4.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
	return IN6_IS_ADDR_LOOPBACK(&address->v6.sin6_addr);
}

/* Print why the socket cannot be used, and close it. */
static int fail(struct gn_metrics_listener *listener, const char *where)
{
	const int reason = errno;

	if (listener->fd >= 0)
		close(listener->fd);
	listener->fd = -1;
	return gn_cli_fail(GN_EXIT_FAILED,
			   "%s: cannot listen: %s: use --listen with another address", where,
			   strerror(reason));
}

static int listen_at(struct gn_metrics_listener *listener, const char *where,
		     const union address *address, socklen_t length)
{
	const bool is_v4 = address->any.sa_family == AF_INET;
	union address bound = {0};
	socklen_t n = sizeof(bound);
	char host[INET6_ADDRSTRLEN] = "";
	const int on = 1;

	listener->fd = socket(address->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
			      0);
	if (listener->fd < 0 ||
	    setsockopt(listener->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) ||
	    bind(listener->fd, &address->any, length) || listen(listener->fd, BACKLOG) ||
	    getsockname(listener->fd, &bound.any, &n))
		return fail(listener, where);
	inet_ntop(address->any.sa_family,
		  is_v4 ? (void *)&bound.v4.sin_addr : (void *)&bound.v6.sin6_addr, host,
		  sizeof(host));
	snprintf(listener->name, sizeof(listener->name),
		 is_v4 ? "http://%s:%u/" : "http://[%s]:%u/", host,
		 ntohs(is_v4 ? bound.v4.sin_port : bound.v6.sin6_port));
	return GN_EXIT_OK;
}

/* True if the path is a socket at which no process listens. */
static bool is_abandoned(const struct sockaddr_un *address)
{
	struct stat st;
	bool abandoned;
	int fd;

	if (lstat(address->sun_path, &st) || !S_ISSOCK(st.st_mode))
		return false;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return false;
	abandoned = connect(fd, (const struct sockaddr *)address, sizeof(*address)) &&
		    errno == ECONNREFUSED;
	close(fd);
	return abandoned;
}

static int try_bind(const struct gn_metrics_listener *listener)
{
	return bind(listener->fd, (const struct sockaddr *)&listener->address,
		    sizeof(listener->address));
}

static int listen_at_path(struct gn_metrics_listener *listener, const char *where)
{
	const char *path = where + strlen(UNIX);
	int rc;

	if (!*path || strlen(path) >= sizeof(listener->address.sun_path))
		return gn_cli_fail(GN_EXIT_USAGE,
				   "--listen: path of the socket is empty or too long (length=%zu, "
				   "limit length=%zu): use a shorter path",
				   strlen(path), sizeof(listener->address.sun_path) - 1);
	listener->address.sun_family = AF_UNIX;
	strcpy(listener->address.sun_path, path);
	snprintf(listener->name, sizeof(listener->name), "%s", where);
	listener->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	rc = listener->fd < 0 ? -1 : try_bind(listener);
	if (rc && errno == EADDRINUSE) {
		if (is_abandoned(&listener->address) && !unlink(path))
			rc = try_bind(listener);
		else
			errno = EADDRINUSE;
	}
	if (rc)
		return fail(listener, where);
	if (!listen(listener->fd, BACKLOG))
		return GN_EXIT_OK;
	rc = fail(listener, where);
	unlink(path);
	return rc;
}

int gn_metrics_listen(struct gn_metrics_listener *listener, const char *where)
{
	union address address;
	socklen_t length;

	*listener = (struct gn_metrics_listener){.fd = -1};
	if (!strncmp(where, UNIX, strlen(UNIX)))
		return listen_at_path(listener, where);
	length = parse_address(where, &address);
	if (!length)
		return gn_cli_fail(
			GN_EXIT_USAGE,
			"--listen: not an address (value=%s): use 127.0.0.1:PORT, [::1]:PORT "
			"or unix:PATH",
			where);
	if (!is_loopback(&address))
		return gn_cli_fail(
			GN_EXIT_USAGE,
			"--listen: not a loopback address (value=%s): use 127.0.0.1:PORT, and "
			"put a reverse proxy with authentication in front of it for other hosts",
			where);
	return listen_at(listener, where, &address, length);
}

void gn_metrics_unlink(const struct gn_metrics_listener *listener)
{
	if (listener->address.sun_path[0])
		unlink(listener->address.sun_path);
}
