/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nbd_relay JOURNAL-FD SOCKET SERVER - relays NBD connections from the socket SOCKET to the socket
 * SERVER, and breaks replies in ways that the protocol shows
 *
 * Two threads per connection: one passes on what the client sends, the other what the server sends.
 * The first 4 bytes of a message determine its format, so the threads need no state of the
 * handshake. While soak_journal.lies_on is set, one reply is broken from time to time: enum
 * soak_lie. The relay never acknowledges what the server has not done, and never changes data
 * unnoticed, except as a seeded bug.
 */
#include <endian.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "soak/soak.h"

#define OPTION_MAGIC 0x49484156u /* the first half of IHAVEOPT */
#define REQUEST_MAGIC 0x25609513u
#define GREETING_MAGIC 0x4e42444du     /* the first half of NBDMAGIC */
#define OPTION_REPLY_MAGIC 0x0003e889u /* the first half */
#define SIMPLE_MAGIC 0x67446698u
#define CHUNK_MAGIC 0x668e33efu
#define CHUNK_DATA 1u /* type of a chunk: 8 bytes of the offset, then data */
#define COMMAND_WRITE 1u
#define MAX_BODY (64u << 10) /* longest reply that can be broken, and longest write kept */
#define CHANGED_LENGTH 512u  /* bytes that a chunk has too many or too few */
/*
 * Age of a connection at which a reply is broken. After connections that were lost within 1 s, the
 * target waits for up to 2 s before it connects. Too many of them would let no IO succeed.
 */
#define YOUNG_MS 300u
#define OLD_MIN_MS 1000u
#define OLD_MAX_MS 1800u
#define OWN_COOKIE (UINT64_C(1) << 63) /* libnbd does not use these cookies */

struct connection {
	int client, server;
	atomic_int users;
	pthread_mutex_t sending; /* to the client */
	uint64_t since;          /* ms */
	unsigned writes, replies;
	/* seeded bug relay-late: a write that is done again later */
	unsigned char kept[28 + MAX_BODY];
	size_t n_kept;
	unsigned kept_at;
};

static struct soak_journal *journal;
static const char *server_path;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t rng, lie_age_ms; /* age of the connection at the next lie */
static unsigned next_lie;

static int bug(const char *name)
{
	return !strcmp(journal->bug, name);
}

static void on_term(int sig)
{
	(void)sig;
	_exit(0);
}

/* A signal that stops the relay ends recv() early, in spite of MSG_WAITALL. */
static int receive(int fd, void *data, size_t n)
{
	char *at = data;
	ssize_t rc;

	for (; n; n -= (size_t)rc, at += rc) {
		do
			rc = recv(fd, at, n, MSG_WAITALL);
		while (rc < 0 && errno == EINTR);
		if (rc <= 0)
			return -1;
	}
	return 0;
}

static int transmit(int fd, const void *data, size_t n)
{
	const char *at = data;
	ssize_t rc;

	for (; n; n -= (size_t)rc, at += rc) {
		rc = send(fd, at, n, MSG_NOSIGNAL);
		if (rc <= 0)
			return -1;
	}
	return 0;
}

/* Pass on n bytes. */
static int pass(int from, int to, uint64_t n)
{
	char buf[1 << 14];
	size_t part;

	for (; n; n -= part) {
		part = n < sizeof(buf) ? (size_t)n : sizeof(buf);
		if (receive(from, buf, part) || transmit(to, buf, part))
			return -1;
	}
	return 0;
}

static uint32_t get32(const unsigned char *at)
{
	uint32_t value;

	memcpy(&value, at, sizeof(value));
	return be32toh(value);
}

static void put32(unsigned char *at, uint32_t value)
{
	value = htobe32(value);
	memcpy(at, &value, sizeof(value));
}

/* -- from the client to the server -- */

/* Acknowledge a write that the server does not get: a seeded bug. */
static int swallow(struct connection *c, const unsigned char head[28], uint32_t length)
{
	unsigned char data[1024], reply[16] = {0};
	uint32_t part;
	int rc;

	for (; length; length -= part) {
		part = length < sizeof(data) ? length : (uint32_t)sizeof(data);
		if (receive(c->client, data, part))
			return -1;
	}
	put32(reply, SIMPLE_MAGIC);
	memcpy(reply + 8, head + 8, 8);
	pthread_mutex_lock(&c->sending);
	rc = transmit(c->client, reply, sizeof(reply));
	pthread_mutex_unlock(&c->sending);
	return rc;
}

/* Let the server do a write a second time, long after the first: a seeded bug. */
static int repeat(struct connection *c, const unsigned char head[28], uint32_t length)
{
	if (c->n_kept && c->writes > c->kept_at + 300) {
		c->kept[8] |= 0x80; /* OWN_COOKIE: the client does not get the reply */
		if (transmit(c->server, c->kept, c->n_kept))
			return -1;
		c->n_kept = 0;
	}
	if (c->n_kept || length > MAX_BODY)
		return transmit(c->server, head, 28) || pass(c->client, c->server, length);
	memcpy(c->kept, head, 28);
	if (receive(c->client, c->kept + 28, length))
		return -1;
	c->n_kept = 28 + length;
	c->kept_at = c->writes;
	return transmit(c->server, c->kept, c->n_kept);
}

/* Pass on one message. Returns non-zero when the connection has ended. */
static int from_client(struct connection *c)
{
	unsigned char head[28];
	uint32_t length;

	if (receive(c->client, head, 4))
		return -1;
	if (get32(head) == OPTION_MAGIC)
		return receive(c->client, head + 4, 12) || transmit(c->server, head, 16) ||
		       pass(c->client, c->server, get32(head + 12));
	if (get32(head) != REQUEST_MAGIC) /* the flags of the client, before all options */
		return transmit(c->server, head, 4);
	if (receive(c->client, head + 4, 24))
		return -1;
	if (get32(head + 4) % (1u << 16) != COMMAND_WRITE)
		return transmit(c->server, head, 28);
	length = get32(head + 24);
	c->writes++;
	if (bug("relay-lose") && c->writes % 300 == 0)
		return swallow(c, head, length);
	if (bug("relay-late"))
		return repeat(c, head, length);
	return transmit(c->server, head, 28) || pass(c->client, c->server, length);
}

/* -- from the server to the client -- */

/* A reply: its header, and its body if it has one. */
struct reply {
	unsigned char bytes[20 + MAX_BODY + CHANGED_LENGTH];
	size_t n_head, n;
};

static int is_data(const struct reply *r)
{
	return get32(r->bytes) == CHUNK_MAGIC && get32(r->bytes + 4) % (1u << 16) == CHUNK_DATA &&
	       r->n > r->n_head + 8 + CHANGED_LENGTH;
}

static void draw_lie(void)
{
	next_lie = (next_lie + 1) % SOAK_LIES;
	lie_age_ms = soak_random(&rng) % 4 == 0
			     ? soak_random(&rng) % YOUNG_MS
			     : OLD_MIN_MS + soak_random(&rng) % (OLD_MAX_MS - OLD_MIN_MS);
}

/* Returns the lie to tell with this reply, or SOAK_LIES. */
static unsigned choose(struct connection *c, const struct reply *r)
{
	unsigned lie = SOAK_LIES;

	if (!atomic_load(&journal->lies_on))
		return lie;
	pthread_mutex_lock(&lock);
	if (soak_ms() >= c->since + lie_age_ms &&
	    (is_data(r) || (next_lie != SOAK_LIE_SHORT && next_lie != SOAK_LIE_LONG))) {
		lie = next_lie;
		c->since = soak_ms(); /* the target keeps the connection after some lies */
		draw_lie();
	}
	pthread_mutex_unlock(&lock);
	if (lie == SOAK_LIE_SHORT)
		atomic_store(&journal->short_at, soak_ms());
	if (lie != SOAK_LIES)
		atomic_fetch_add(&journal->lies[lie], 1);
	return lie;
}

static void change_length(struct reply *r, int longer)
{
	if (longer)
		memset(r->bytes + r->n, 0, CHANGED_LENGTH);
	r->n = longer ? r->n + CHANGED_LENGTH : r->n - CHANGED_LENGTH;
	put32(r->bytes + 16, (uint32_t)(r->n - r->n_head));
}

static int tell(struct connection *c, struct reply *r)
{
	switch (choose(c, r)) {
	case SOAK_LIE_SHORT:
		change_length(r, 0);
		break;
	case SOAK_LIE_LONG:
		change_length(r, 1);
		break;
	case SOAK_LIE_COOKIE:
		r->bytes[8] ^= 0x80; /* OWN_COOKIE */
		break;
	case SOAK_LIE_MAGIC:
		r->bytes[3] ^= 1;
		break;
	case SOAK_LIE_CUT:
		(void)!transmit(c->client, r->bytes, r->n / 2);
		return -1;
	case SOAK_LIE_TWICE:
		if (transmit(c->client, r->bytes, r->n))
			return -1;
		break;
	case SOAK_LIE_NEVER:
		return 0;
	default:
		break;
	}
	return transmit(c->client, r->bytes, r->n);
}

/* Seeded bugs. Returns whether the client must not get the reply. */
static int falsify(struct connection *c, struct reply *r)
{
	c->replies++;
	if (bug("relay-mute") && c->replies > 300)
		return 1;
	if (bug("relay-late") && r->bytes[8] & 0x80)
		return 1;
	if (bug("relay-flip") && is_data(r) && c->replies % 50 == 0)
		r->bytes[r->n - 1] ^= 1;
	if (bug("relay-error") && get32(r->bytes) == SIMPLE_MAGIC && c->replies % 100 == 0)
		put32(r->bytes + 4, EIO);
	return 0;
}

static int pass_reply(struct connection *c, struct reply *r)
{
	int rc;

	r->n_head = get32(r->bytes) == CHUNK_MAGIC ? 20 : 16;
	if (receive(c->server, r->bytes + 4, r->n_head - 4))
		return -1;
	r->n = r->n_head;
	if (r->n_head == 20) {
		if (get32(r->bytes + 16) > MAX_BODY)
			return transmit(c->client, r->bytes, r->n_head) ||
			       pass(c->server, c->client, get32(r->bytes + 16));
		r->n += get32(r->bytes + 16);
		if (receive(c->server, r->bytes + 20, r->n - 20))
			return -1;
	}
	if (journal->bug[0] && falsify(c, r))
		return 0;
	pthread_mutex_lock(&c->sending);
	rc = tell(c, r);
	pthread_mutex_unlock(&c->sending);
	return rc;
}

/* As from_client(). libnbd gets structured replies to all reads, so a simple one has no body. */
static int from_server(struct connection *c, struct reply *r)
{
	if (receive(c->server, r->bytes, 4))
		return -1;
	switch (get32(r->bytes)) {
	case GREETING_MAGIC:
		return receive(c->server, r->bytes + 4, 14) || transmit(c->client, r->bytes, 18);
	case OPTION_REPLY_MAGIC:
		return receive(c->server, r->bytes + 4, 16) || transmit(c->client, r->bytes, 20) ||
		       pass(c->server, c->client, get32(r->bytes + 16));
	case SIMPLE_MAGIC:
	case CHUNK_MAGIC:
		return pass_reply(c, r);
	default:
		fprintf(stderr, "nbd_relay: unknown message %08x\n", get32(r->bytes));
		return -1;
	}
}

/* -- connections -- */

static void release(struct connection *c)
{
	shutdown(c->client, SHUT_RDWR);
	shutdown(c->server, SHUT_RDWR);
	if (atomic_fetch_sub(&c->users, 1) > 1)
		return;
	close(c->client);
	close(c->server);
	pthread_mutex_destroy(&c->sending);
	free(c);
}

static void *run_client(void *arg)
{
	while (!from_client(arg))
		;
	release(arg);
	return NULL;
}

static void *run_server(void *arg)
{
	struct reply *reply = malloc(sizeof(*reply));

	while (reply && !from_server(arg, reply))
		;
	free(reply);
	release(arg);
	return NULL;
}

static int open_socket(const char *path, struct sockaddr_un *address)
{
	*address = (struct sockaddr_un){.sun_family = AF_UNIX};
	snprintf(address->sun_path, sizeof(address->sun_path), "%s", path);
	return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
}

static void relay(int client)
{
	struct connection *c = calloc(1, sizeof(*c));
	struct sockaddr_un address;
	pthread_t thread;

	if (!c) {
		close(client);
		return;
	}
	c->client = client;
	c->since = soak_ms();
	c->server = open_socket(server_path, &address);
	if (c->server < 0 || connect(c->server, (struct sockaddr *)&address, sizeof(address))) {
		close(c->server);
		close(client);
		free(c);
		return;
	}
	pthread_mutex_init(&c->sending, NULL);
	atomic_store(&c->users, 2);
	if (pthread_create(&thread, NULL, run_client, c))
		release(c);
	else
		pthread_detach(thread);
	if (pthread_create(&thread, NULL, run_server, c))
		release(c);
	else
		pthread_detach(thread);
}

int main(int argc, char **argv)
{
	struct sigaction sa = {.sa_handler = on_term};
	struct sockaddr_un address;
	char temporary[104];
	int fd, client;

	if (argc != 4) {
		fprintf(stderr, "usage: nbd_relay JOURNAL-FD SOCKET SERVER\n");
		return 2;
	}
	sigaction(SIGTERM, &sa, NULL);
	journal = mmap(NULL, sizeof(*journal), PROT_READ | PROT_WRITE, MAP_SHARED,
		       (int)strtol(argv[1], NULL, 10), 0);
	if (journal == MAP_FAILED) {
		perror("journal");
		return 2;
	}
	server_path = argv[3];
	/* each start of the relay continues with other numbers */
	rng = journal->run;
	for (unsigned i = 0; i < SOAK_LIES; i++)
		rng += atomic_load(&journal->lies[i]);
	next_lie = (unsigned)(rng % SOAK_LIES);
	draw_lie();
	/* the socket has its name only when it listens */
	snprintf(temporary, sizeof(temporary), "%s.new", argv[2]);
	unlink(temporary);
	fd = open_socket(temporary, &address);
	if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) || listen(fd, 16) ||
	    rename(temporary, argv[2])) {
		perror("nbd_relay");
		return 2;
	}
	for (;;) {
		client = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
		if (client >= 0)
			relay(client);
	}
}
