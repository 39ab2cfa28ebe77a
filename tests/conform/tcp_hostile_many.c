/* SPDX-License-Identifier: BSD-3-Clause */
/* tcp_hostile_many.c - attacks by numbers: sockets without a hello, links, and descriptors. */
#include "conform/tcp_hostile.h"

#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define MAX_PENDING 1024 /* limit of the victim */

/* Returns whether the victim has ended the socket. */
static int has_ended(int fd)
{
	char byte;

	return recv(fd, &byte, 1, MSG_DONTWAIT | MSG_PEEK) >= 0 || errno != EAGAIN;
}

/* Open n sockets, each of which sends `bytes` bytes of a hello. */
static void open_halves(int *fds, unsigned n, unsigned bytes)
{
	struct evil from = {.session = 1};
	const struct tcp_hello hello = evil_hello(&from, TCP_CONTROL);

	for (unsigned i = 0; i < n; i++) {
		fds[i] = evil_socket();
		if (bytes)
			evil_send(fds[i], &hello, bytes);
		if (i % 100 == 0)
			rig_settle();
	}
	rig_settle();
}

static void close_all(const int *fds, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		evil_reset(fds[i]);
	rig_settle();
}

/*
 * 10,000 sockets send no hello, or half of one. The oldest make way, so that a new peer connects,
 * and the honest one works all the time.
 */
static void half_open_connections(void)
{
	unsigned all = honest_raise_fds(11500), n = all > 11400 ? 10000 : all - MAX_PENDING - 100;
	int *fds = calloc(n, sizeof(*fds)), up;
	void *good_a;

	honest_begin("connect_timeout=60s");
	good_a = rig.a.conn;
	for (unsigned i = 0; i < n; i += n / 10) {
		open_halves(fds + i, i + n / 10 <= n ? n / 10 : n - i, i & 1 ? 32 : 0);
		honest_check();
	}
	RIG_HOLDS(has_ended(fds[0]), "the oldest of many half-open connections");
	RIG_HOLDS(has_ended(fds[n - MAX_PENDING - 1]), "the oldest beyond the limit");
	RIG_HOLDS(!has_ended(fds[n - MAX_PENDING]), "the oldest within the limit");
	RIG_HOLDS(!has_ended(fds[n - 1]), "the youngest of many half-open connections");
	up = rig.a.n_connected;
	rig_start_connect(rig_service(0));
	rig_until(rig.a.n_connected, up + 1);
	rig_disconnect(&rig.a);
	rig_until(rig.b.n_closed, 1);
	rig_disconnect(&rig.b);
	rig.a.conn = good_a;
	log_check("half-open connections", 0, NULL);
	close_all(fds, n);
	free(fds);
	honest_end();
}

/* A pending socket that makes way has sent its hello in the same turn. */
static void guest_that_speaks_while_it_makes_way(void)
{
	struct evil from = {.session = 1};
	const struct tcp_hello hello = evil_hello(&from, TCP_CONTROL);
	int fds[MAX_PENDING + 8];

	if (honest_raise_fds(3 * MAX_PENDING) < 3 * MAX_PENDING)
		TEST_IGNORE_MESSAGE("too few descriptors");
	honest_begin("connect_timeout=60s");
	open_halves(fds, MAX_PENDING, 0);
	for (unsigned i = MAX_PENDING; i < MAX_PENDING + 8; i++)
		fds[i] = evil_socket();
	for (unsigned i = 0; i < 8; i++)
		evil_send(fds[i], &hello, sizeof(hello));
	rig_settle();
	honest_check();
	for (unsigned i = 0; i < 8; i++)
		RIG_HOLDS(has_ended(fds[i]), "a pending socket that has made way");
	close_all(fds, MAX_PENDING + 8);
	honest_end();
}

/* Guests that send nothing are dropped after connect_timeout. */
static void silent_guests(void)
{
	int fds[16];

	honest_begin("connect_timeout=100ms");
	open_halves(fds, 16, 63);
	for (unsigned i = 0; i < 16; i++)
		evil_until_end(fds[i]);
	close_all(fds, 16);
	log_check("silent pending sockets", 0, NULL);
	honest_end();
}

/*
 * The victim has no descriptor left. It evicts its oldest pending sockets. Without any, it neither
 * spins nor logs a line for each connection.
 */
static void run_out_of_descriptors(unsigned n_pending, unsigned n_lines, const char *log)
{
	struct rlimit limit, less;
	int fds[32], pending[4];
	uint64_t end = 0;
	unsigned n;

	honest_begin("connect_timeout=60s");
	for (unsigned i = 0; i < 32; i++)
		fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	open_halves(pending, n_pending, 0);
	getrlimit(RLIMIT_NOFILE, &limit);
	less = limit;
	less.rlim_cur = (rlim_t)dup(0);
	close((int)less.rlim_cur);
	setrlimit(RLIMIT_NOFILE, &less);
	for (unsigned i = 0; i < 32; i++)
		evil_connect_socket(fds[i]);
	rig_settle();
	n = rig.b.n_progress;
	for (int i = 0; i < 10; i++) {
		rig_turn();
		rig_stirs(1);
	}
	RIG_HOLDS(rig.b.n_progress - n < 10, "progress() of a listener without descriptors");
	setrlimit(RLIMIT_NOFILE, &limit);
	log_check("no descriptors", n_lines, log);
	honest_check();
	for (unsigned i = 0; i < n_pending; i++)
		RIG_HOLDS(has_ended(pending[i]), "pending sockets make way for younger ones");
	evil_reset(fds[0]);
	shutdown(fds[31], SHUT_WR);
	while (!has_ended(fds[31]))
		rig_wait(&end, 0, "the listener to accept again");
	close_all(fds + 1, 31);
	close_all(pending, n_pending);
	honest_end();
}

static void guests_without_descriptors(void)
{
	run_out_of_descriptors(4, 0, NULL);
}

static void no_descriptors(void)
{
	run_out_of_descriptors(0, 1, "cannot accept connections");
}

/* Links that the victim has not asked for have a limit, and one beyond it ends nothing else. */
static void too_many_links(void)
{
	static int fds[1025];
	struct tcp_frame ready;

	if (honest_raise_fds(3 * MAX_PENDING) < 3 * MAX_PENDING)
		TEST_IGNORE_MESSAGE("too few descriptors");
	honest_begin(NULL);
	evil_connect(&evil);
	for (uint16_t i = 0; i < 1025; i++) {
		struct tcp_hello hello = evil_hello(&evil, TCP_LINK);

		hello.connects_lane = i % 256;
		hello.listens_lane = i / 256;
		fds[i] = evil_socket();
		evil_send(fds[i], &hello, sizeof(hello));
		if (i == 1023)
			log_check("as many links as permitted", 0, NULL);
	}
	RIG_NUM(sizeof(ready), evil_read(fds[1023], &ready, sizeof(ready)), "bytes of READY");
	evil_until_end(fds[1024]);
	log_check("one link too many", 1, "no such link can be opened");
	evil_ctrl(&evil, TCP_CTRL_USER, "alive", 5);
	rig_until(rig.b.n_msgs, 1);
	honest_check();
	evil_leave(&evil);
	close_all(fds, 1025);
	honest_end();
}

/* A second socket for a link that is open. */
static void link_twice(void)
{
	struct tcp_hello hello;
	int fd;

	honest_begin(NULL);
	evil_connect(&evil);
	evil_link(&evil);
	hello = evil_hello(&evil, TCP_LINK);
	fd = evil_socket();
	evil_send(fd, &hello, sizeof(hello));
	evil_until_end(fd);
	close(fd);
	log_check("a link twice", 1, "the session has this link already");
	evil_leave(&evil);
	honest_end();
}

static void too_many_connections_of_one_host(void)
{
	static struct evil others[4];
	struct tcp_refused refused;
	struct tcp_hello hello;

	honest_begin("max_connections=6");
	for (unsigned i = 0; i < 3; i++)
		evil_connect(&others[i]);
	for (unsigned round = 0; round < 10; round++) {
		evil.session = 1;
		evil.control = evil_socket();
		hello = evil_hello(&evil, TCP_CONTROL);
		evil_send(evil.control, &hello, sizeof(hello));
		evil_expect(&evil, TCP_CTRL_REFUSED, &refused, sizeof(refused));
		RIG_NUM(EBUSY, refused.reason, "reason of the refusal");
		log_check("one too many", 1, "max_connections=6 allows 4 for host 127.");
		evil_leave(&evil);
	}
	for (unsigned i = 0; i < 3; i++)
		evil_leave(&others[i]);
	honest_end();
}

void many_attacks(void)
{
	RIG_CASE(half_open_connections);
	RIG_CASE(guest_that_speaks_while_it_makes_way);
	RIG_CASE(silent_guests);
	RIG_CASE(guests_without_descriptors);
	RIG_CASE(no_descriptors);
	RIG_CASE(too_many_links);
	RIG_CASE(link_twice);
	RIG_CASE(too_many_connections_of_one_host);
}
