/* SPDX-License-Identifier: BSD-3-Clause */
/* nbd_server.c - an NBD server that can misbehave: see nbd_server.h. */
#include "nbd_server.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "fake/host.h"

#define OPTION_GO 7
#define OPTION_STRUCTURED 8
#define OPTION_META_LIST 9
#define OPTION_META 10
#define REPLY_ACK 1u
#define REPLY_INFO 3u
#define REPLY_META 4u
#define REPLY_UNSUPPORTED (1u << 31 | 1)
#define CONTEXT 7u
#define SIMPLE_MAGIC 0x67446698u
#define CHUNK_MAGIC 0x668e33efu
#define CHUNK_DONE 1u

struct peer {
	struct server *server;
	int fd;
	int structured;
	uint64_t left; /* bytes that it may still send */
};

struct request {
	uint32_t magic;
	uint16_t flags, type;
	uint64_t cookie, offset;
	uint32_t length;
} __attribute__((packed));

static int receive(const struct peer *peer, void *data, size_t n)
{
	return recv(peer->fd, data, n, MSG_WAITALL) == (ssize_t)n ? 0 : -1;
}

static int transmit(struct peer *peer, const void *data, size_t n)
{
	size_t may = n < peer->left ? n : (size_t)peer->left;
	const char *at = data;

	if (peer->left != SERVER_NEVER)
		peer->left -= may;
	for (size_t left = may; left;) {
		ssize_t rc = send(peer->fd, at, left, MSG_NOSIGNAL);

		if (rc <= 0)
			return -1;
		at += rc;
		left -= (size_t)rc;
	}
	return may == n ? 0 : -1;
}

/* -- negotiation -- */

static int answer(struct peer *peer, uint32_t option, uint32_t type, const void *data, uint32_t n)
{
	struct {
		uint64_t magic;
		uint32_t option, type, length;
	} __attribute__((packed))
	head = {htobe64(0x3e889045565a9), htonl(option), htonl(type), htonl(n)};

	return transmit(peer, &head, sizeof head) || transmit(peer, data, n) ? -1 : 0;
}

static int answer_go(struct peer *peer, uint32_t option)
{
	struct server *server = peer->server;
	struct {
		uint16_t type;
		uint64_t size;
		uint16_t flags;
	} __attribute__((packed)) info = {0, 0, 0};

	pthread_mutex_lock(&server->lock);
	info.size = htobe64(server->size);
	info.flags = htons((uint16_t)(server->flags | 1));
	pthread_mutex_unlock(&server->lock);
	return answer(peer, option, REPLY_INFO, &info, sizeof info) ||
	       answer(peer, option, REPLY_ACK, NULL, 0);
}

static int answer_meta(struct peer *peer, uint32_t option)
{
	static const char name[] = "base:allocation";
	char data[4 + sizeof name - 1];
	uint32_t id = htonl(CONTEXT);

	memcpy(data, &id, 4);
	memcpy(data + 4, name, sizeof name - 1);
	return answer(peer, option, REPLY_META, data, sizeof data) ||
	       answer(peer, option, REPLY_ACK, NULL, 0);
}

static int negotiate(struct peer *peer)
{
	struct {
		uint64_t magic, option;
		uint16_t flags;
	} __attribute__((packed))
	hello = {htobe64(0x4e42444d41474943), htobe64(0x49484156454f5054), htons(3)};
	struct {
		uint64_t magic;
		uint32_t option, length;
	} __attribute__((packed)) head;
	char data[4096];
	uint32_t flags;

	if (transmit(peer, &hello, sizeof hello) || receive(peer, &flags, sizeof flags))
		return -1;
	for (;;) {
		uint32_t option, n;
		int rc;

		if (receive(peer, &head, sizeof head))
			return -1;
		option = ntohl(head.option);
		n = ntohl(head.length);
		if (n > sizeof data || (n && receive(peer, data, n)))
			return -1;
		if (option == OPTION_GO)
			return answer_go(peer, option);
		if (option == OPTION_STRUCTURED && !peer->server->no_structured) {
			peer->structured = 1;
			rc = answer(peer, option, REPLY_ACK, NULL, 0);
		} else if (option == OPTION_META && peer->structured) {
			rc = answer_meta(peer, option);
		} else {
			rc = answer(peer, option, REPLY_UNSUPPORTED, NULL, 0);
		}
		if (rc)
			return rc;
	}
}

/* -- commands -- */

static int reply_simple(struct peer *peer, const struct request *request, uint32_t error,
			const void *data, uint32_t n)
{
	struct {
		uint32_t magic, error;
		uint64_t cookie;
	} __attribute__((packed)) head = {htonl(SIMPLE_MAGIC), htonl(error), request->cookie};

	if (peer->server->wrong_magic)
		head.magic = htonl(17);
	if (peer->server->wrong_cookie)
		head.cookie = ~head.cookie;
	return transmit(peer, &head, sizeof head) || (n && transmit(peer, data, n)) ? -1 : 0;
}

static int reply_chunk(struct peer *peer, const struct request *request, uint16_t type,
		       const void *first, uint32_t n_first, const void *data, uint32_t n)
{
	struct {
		uint32_t magic;
		uint16_t flags, type;
		uint64_t cookie;
		uint32_t length;
	} __attribute__((packed)) head = {htonl(CHUNK_MAGIC), htons(CHUNK_DONE), htons(type),
					  request->cookie, htonl(n_first + n)};

	if (peer->server->wrong_magic)
		head.magic = htonl(17);
	if (peer->server->wrong_cookie)
		head.cookie = ~head.cookie;
	return transmit(peer, &head, sizeof head) || transmit(peer, first, n_first) ||
	       transmit(peer, data, n);
}

/* Three extents of 768 bytes (data), 512 bytes (hole and zero), and the remainder (hole). */
static int reply_status(struct peer *peer, const struct request *request)
{
	const uint32_t entries[] = {htonl(CONTEXT), htonl(768),      htonl(0), htonl(1280),
				    htonl(3),       htonl(1u << 30), htonl(1)};

	return reply_chunk(peer, request, 5, entries, sizeof entries, NULL, 0);
}

static void execute(struct server *server, const struct request *request, const void *data)
{
	uint64_t offset = be64toh(request->offset);
	uint32_t length = ntohl(request->length);
	unsigned type = ntohs(request->type);

	server->executed[type]++;
	if (type == SERVER_WRITE)
		memcpy(server->volume + offset, data, length);
	else if (type == SERVER_TRIM || type == SERVER_ZERO)
		memset(server->volume + offset, 0, length);
	else if (type == SERVER_FLUSH)
		memcpy(server->stable, server->volume, SERVER_BYTES);
	if (type != SERVER_FLUSH && ntohs(request->flags) & 1)
		memcpy(server->stable + offset, server->volume + offset, length);
}

static int reply_error(struct peer *peer, const struct request *request, uint32_t error)
{
	const struct {
		uint32_t error;
		uint16_t length;
	} __attribute__((packed)) body = {htonl(error), 0};

	return reply_chunk(peer, request, 0x8001, &body, sizeof body, NULL, 0);
}

static int serve_one(struct peer *peer, uint8_t *data)
{
	struct server *server = peer->server;
	struct request request;
	uint64_t offset;
	uint32_t length, error;
	unsigned type;

	if (receive(peer, &request, sizeof request))
		return -1;
	type = ntohs(request.type);
	length = ntohl(request.length);
	offset = be64toh(request.offset);
	if (type >= SERVER_COMMANDS || type == SERVER_CLOSE || offset + length > SERVER_BYTES ||
	    (type == SERVER_WRITE && receive(peer, data, length)))
		return -1;
	pthread_mutex_lock(&server->lock);
	server->seen[type]++;
	pthread_cond_broadcast(&server->changed);
	while (server->hold_before >> type & 1)
		pthread_cond_wait(&server->changed, &server->lock);
	error = server->error;
	if (!error)
		execute(server, &request, data);
	if (type == SERVER_READ)
		memcpy(data, server->volume + offset, length);
	while (server->hold >> type & 1)
		pthread_cond_wait(&server->changed, &server->lock);
	if (server->short_read && type == SERVER_READ)
		length -= 512;
	pthread_mutex_unlock(&server->lock);
	if (!peer->structured || (type != SERVER_READ && type != SERVER_STATUS))
		return reply_simple(peer, &request, error, data,
				    type == SERVER_READ && !error ? length : 0);
	if (error)
		return reply_error(peer, &request, error);
	if (type == SERVER_STATUS)
		return reply_status(peer, &request);
	return reply_chunk(peer, &request, 1, &request.offset, sizeof request.offset, data, length);
}

static void *serve(void *arg)
{
	struct peer *peer = arg;
	struct server *server = peer->server;
	uint8_t *data = malloc(SERVER_BYTES);

	pthread_mutex_lock(&server->lock);
	while (server->deaf)
		pthread_cond_wait(&server->changed, &server->lock);
	pthread_mutex_unlock(&server->lock);
	if (data && negotiate(peer) == 0) {
		pthread_mutex_lock(&server->lock);
		peer->left = server->close_after;
		server->close_after = SERVER_NEVER;
		pthread_mutex_unlock(&server->lock);
		while (serve_one(peer, data) == 0)
			;
	}
	shutdown(peer->fd, SHUT_RDWR); /* server_stop() closes it */
	free(data);
	free(peer);
	return NULL;
}

static void *run(void *arg)
{
	struct server *server = arg;

	for (;;) {
		int fd = accept(server->listen_fd, NULL, NULL);
		struct peer *peer;

		if (fd < 0)
			return NULL;
		peer = calloc(1, sizeof *peer);
		if (!peer)
			fake_fail("out of memory");
		*peer = (struct peer){.server = server, .fd = fd, .left = SERVER_NEVER};
		pthread_mutex_lock(&server->lock);
		if (server->n_conns == SERVER_CONNS)
			fake_fail("too many connections");
		server->fds[server->n_conns] = fd;
		if (pthread_create(&server->threads[server->n_conns++], NULL, serve, peer))
			fake_fail("no thread");
		pthread_mutex_unlock(&server->lock);
	}
}

void server_start(struct server *server, const char *path)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};

	memset(server, 0, sizeof *server);
	pthread_mutex_init(&server->lock, NULL);
	pthread_cond_init(&server->changed, NULL);
	server->size = SERVER_BYTES;
	server->flags = SERVER_FLAG_FLUSH | SERVER_FLAG_FUA | SERVER_FLAG_TRIM | SERVER_FLAG_ZERO;
	server->close_after = SERVER_NEVER;
	strncpy(name.sun_path, path, sizeof name.sun_path - 1);
	server->listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (server->listen_fd < 0 ||
	    bind(server->listen_fd, (struct sockaddr *)&name, sizeof name) ||
	    listen(server->listen_fd, 64))
		fake_fail("%s: %s", path, strerror(errno));
	if (pthread_create(&server->listener, NULL, run, server))
		fake_fail("no thread");
}

void server_crash(struct server *server, int loses)
{
	pthread_mutex_lock(&server->lock);
	for (unsigned i = 0; i < server->n_conns; i++)
		shutdown(server->fds[i], SHUT_RDWR);
	if (loses)
		memcpy(server->volume, server->stable, SERVER_BYTES);
	pthread_mutex_unlock(&server->lock);
}

void server_stop(struct server *server)
{
	shutdown(server->listen_fd, SHUT_RDWR);
	pthread_join(server->listener, NULL);
	close(server->listen_fd);
	server_crash(server, 0);
	pthread_mutex_lock(&server->lock);
	server->deaf = server->hold = server->hold_before = 0;
	pthread_cond_broadcast(&server->changed);
	pthread_mutex_unlock(&server->lock);
	for (unsigned i = 0; i < server->n_conns; i++) {
		pthread_join(server->threads[i], NULL);
		close(server->fds[i]);
	}
	pthread_cond_destroy(&server->changed);
	pthread_mutex_destroy(&server->lock);
}

void server_set(struct server *server, unsigned *member, unsigned value)
{
	pthread_mutex_lock(&server->lock);
	*member = value;
	pthread_cond_broadcast(&server->changed);
	pthread_mutex_unlock(&server->lock);
}

unsigned server_get(struct server *server, const unsigned *member)
{
	unsigned value;

	pthread_mutex_lock(&server->lock);
	value = *member;
	pthread_mutex_unlock(&server->lock);
	return value;
}
