/* SPDX-License-Identifier: BSD-3-Clause */
/* tcp_hostile.c - the honest peer, the attacker, and the checks after each attack. */
#include "conform/tcp_hostile.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define SEED 77

struct evil evil;

static struct rig_queue *good;
static struct rig_rma *good_rma;
static struct rig_memory good_memory, memory;
static uint8_t *good_local;
static struct gantry_region *good_region, middle;
static void *good_b;
static int n_fds;

/* -- the honest peer -- */

static void take(void)
{
	struct gantry_msg msgs[8];
	int n = evil.consumer ? rig.ops->poll_recv(evil.consumer, msgs, 8) : 0;

	for (int i = 0; i < n; i++)
		evil.taken += msgs[i].status == 0;
}

/* Twice: the first poll after a poll that received data can return 0. */
static void turn(void)
{
	take();
	take();
}

void honest_begin(const char *settings)
{
	struct gantry_token token;

	rig_driver.turn = turn;
	if (settings) {
		rig.ops->close(rig.b.dev);
		free(rig.b.conf);
		setenv("RIG_B_SETTINGS", settings, 1);
		rig_open_end(&rig.b, NULL);
		unsetenv("RIG_B_SETTINGS");
	}
	rig_connect();
	good_b = rig.b.conn;
	good = rig_queue_open(&rig.b, &rig.a, 8, 0);
	rig_memory_open(&good_memory, EVIL_BYTES, EVIL_BOTH);
	RIG_OK(rig.ops->export_region(good_b, &good_memory.region, EVIL_BOTH, 9, &token));
	rig_fence();
	RIG_OK(rig.ops->import_region(rig.a.conn, &token, 0, &good_region));
	good_rma = rig_rma_open(&rig.a, 4, 0);
	rig_memory_open(&memory, 3 * EVIL_BYTES, EVIL_BOTH);
	rig_fill(memory.bytes, 3 * EVIL_BYTES, SEED);
	good_local = rig_local(EVIL_BYTES);
	middle = memory.region;
	middle.addr = memory.bytes + EVIL_BYTES;
	middle.length = EVIL_BYTES;
	rig_warm(good);
	honest_check();
	honest_count_fds();
	log_begin();
}

void honest_count_fds(void)
{
	n_fds = rig_fds();
}

void honest_check(void)
{
	static uint32_t seed;
	struct gantry_msg msg;
	uint8_t *local = good_local;

	seed++;
	RIG_NUM(0, (uint64_t)rig.a.n_closed, "connections of the honest peer that have ended");
	RIG_OK(rig.ops->post_recv(good->rx, 1));
	RIG_OK(rig_send_imm(good, 4711));
	rig_take(good, &msg);
	RIG_OK(msg.status);
	rig_fill(local, EVIL_BYTES, seed);
	RIG_OK(rig_rma_move(good_rma, GANTRY_RMA_WRITE, local, good_region, 0, EVIL_BYTES));
	RIG_HOLDS(rig_filled(good_memory.bytes, EVIL_BYTES, seed), "data of the honest peer");
	memset(local, 0, EVIL_BYTES);
	RIG_OK(rig_rma_move(good_rma, GANTRY_RMA_READ, local, good_region, 0, EVIL_BYTES));
	RIG_HOLDS(rig_filled(local, EVIL_BYTES, seed), "data that the honest peer reads");
	RIG_HOLDS(rig_filled(memory.bytes, 3 * EVIL_BYTES, SEED), "memory of the victim");
}

void honest_end(void)
{
	rig.b.conn = good_b;
	honest_check();
	RIG_NUM((uint64_t)n_fds, (uint64_t)rig_fds(), "descriptors after the attack");
	rig_rma_close(good_rma);
	rig.ops->release_region(rig.a.conn, good_region);
	rig_queue_close(good);
}

unsigned honest_raise_fds(unsigned n)
{
	struct rlimit limit;

	getrlimit(RLIMIT_NOFILE, &limit);
	if (limit.rlim_cur < n) {
		limit.rlim_cur = n < limit.rlim_max ? n : limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
	return limit.rlim_cur < n ? (unsigned)limit.rlim_cur : n;
}

/* -- the attacker -- */

struct sockaddr_in evil_address(uint16_t port)
{
	struct sockaddr_in to = {.sin_family = AF_INET};
	char host[64];
	const char *service = rig_service(0), *colon = strchr(service, ':');

	snprintf(host, sizeof(host), "%.*s", (int)(colon - service), service);
	inet_pton(AF_INET, host, &to.sin_addr);
	to.sin_port = htons(port ? port : (uint16_t)atoi(colon + 1));
	return to;
}

void evil_connect_socket(int fd)
{
	struct sockaddr_in to = evil_address(0);
	int one = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	RIG_OK(connect(fd, (struct sockaddr *)&to, sizeof(to)));
}

int evil_socket(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	RIG_HOLDS(fd >= 0, "a socket of the attacker");
	evil_connect_socket(fd);
	return fd;
}

/* The victim may have ended the socket already. */
void evil_send(int fd, const void *bytes, size_t n)
{
	const char *from = bytes;
	uint64_t end = 0;

	while (n) {
		ssize_t k = send(fd, from, n, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (k < 0 && errno != EAGAIN)
			return;
		if (k > 0) {
			from += k;
			n -= (size_t)k;
		}
		if (n)
			rig_wait(&end, k > 0, "the victim to read");
	}
}

size_t evil_read(int fd, void *bytes, size_t n)
{
	size_t got = 0;
	uint64_t end = 0;

	while (got < n) {
		ssize_t k = recv(fd, (char *)bytes + got, n - got, MSG_DONTWAIT);

		if (k == 0 || (k < 0 && errno != EAGAIN))
			break;
		if (k > 0)
			got += (size_t)k;
		if (got < n)
			rig_wait(&end, k > 0, "bytes of the victim");
	}
	return got;
}

void evil_until_end(int fd)
{
	char bytes[4096];

	while (evil_read(fd, bytes, sizeof(bytes)) == sizeof(bytes))
		;
}

void evil_reset(int fd)
{
	struct linger linger = {.l_onoff = 1};

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
	close(fd);
}

struct tcp_hello evil_hello(const struct evil *from, enum tcp_hello_kind kind)
{
	struct tcp_hello hello = {.magic = TCP_MAGIC,
				  .version = TCP_VERSION,
				  .kind = (uint8_t)kind,
				  .session = from->session,
				  .ops = 256};

	memcpy(hello.secret, from->secret, sizeof(hello.secret));
	return hello;
}

void evil_ctrl(const struct evil *from, unsigned kind, const void *body, size_t n)
{
	struct {
		struct tcp_ctrl head;
		uint8_t body[GANTRY_CTRL_MAX];
	} msg = {.head = {.kind = (uint8_t)kind, .length = (uint16_t)n}};

	if (n)
		memcpy(msg.body, body, n);
	evil_send(from->control, &msg, sizeof(msg.head) + n);
}

size_t evil_expect(const struct evil *from, enum tcp_ctrl_kind kind, void *body, size_t max)
{
	uint8_t bytes[GANTRY_CTRL_MAX];
	struct tcp_ctrl head;

	do {
		if (evil_read(from->control, &head, sizeof(head)) != sizeof(head) ||
		    evil_read(from->control, bytes, head.length) != head.length)
			rig_fail_at(__FILE__, __LINE__, "no control message of kind %d", kind);
	} while (head.kind != kind);
	memcpy(body, bytes, head.length < max ? head.length : max);
	return head.length;
}

void evil_connect(struct evil *peer)
{
	static uint64_t session = 1000;
	int n = rig.b.n_accept;
	struct tcp_hello hello;
	struct tcp_welcome welcome;

	if (!peer->session)
		peer->session = ++session;
	peer->link = -1;
	peer->control = evil_socket();
	hello = evil_hello(peer, TCP_CONTROL);
	evil_send(peer->control, &hello, sizeof(hello));
	rig_until(rig.b.n_accept, n + 1);
	peer->conn = rig.b.conn;
	RIG_NUM(sizeof(welcome), evil_expect(peer, TCP_CTRL_WELCOME, &welcome, sizeof(welcome)),
		"length of WELCOME");
	memcpy(peer->secret, welcome.secret, sizeof(peer->secret));
}

void evil_link(struct evil *peer)
{
	const struct tcp_hello hello = evil_hello(peer, TCP_LINK);
	struct tcp_frame ready;

	peer->link = evil_socket();
	evil_send(peer->link, &hello, sizeof(hello));
	RIG_NUM(sizeof(ready), evil_read(peer->link, &ready, sizeof(ready)), "bytes of READY");
	RIG_NUM(TCP_READY, ready.kind, "kind of the first frame");
}

void evil_export(struct evil *peer, uint32_t rights, uint32_t handle)
{
	struct gantry_token token;

	RIG_OK(rig.ops->export_region(peer->conn, &middle, rights, handle, &token));
}

void evil_consumer(struct evil *peer, uint32_t depth, uint32_t n)
{
	const struct gantry_queue_attr attr = {.depth = depth};

	RIG_OK(rig.ops->consumer_create(peer->conn, &attr, &peer->consumer_id, &peer->consumer));
	if (n)
		RIG_OK(rig.ops->post_recv(peer->consumer, n));
}

void evil_leave(struct evil *peer)
{
	if (peer->conn) {
		if (peer->consumer)
			rig.ops->consumer_destroy(peer->consumer);
		rig.b.conn = peer->conn;
		rig_disconnect(&rig.b);
	}
	if (peer->link >= 0)
		close(peer->link);
	if (peer->control >= 0)
		close(peer->control);
	*peer = (struct evil){.control = -1, .link = -1};
	rig_settle();
}

/* -- the log of the victim -- */

static unsigned n_lines(void)
{
	unsigned n = 0;

	for (unsigned i = 0; i <= GANTRY_LOG_INFO; i++)
		n += rig.b.host.n_logged[i];
	return n;
}

void log_begin(void)
{
	rig.b.n_closed = 0;
	memset(rig.b.host.n_logged, 0, sizeof(rig.b.host.n_logged));
	rig.b.host.log[0] = '\0';
	rig.b.host.log_used = 0;
}

void log_check(const char *what, unsigned lines, const char *text)
{
	rig_settle();
	if (n_lines() != lines || (text && !fake_logged(&rig.b.host, text)))
		rig_fail_at(__FILE__, __LINE__, "%s: expected %u lines with '%s', got %u: %s", what,
			    lines, text ? text : "", n_lines(), rig.b.host.log);
	log_begin();
}

void log_dropped(struct evil *peer, const char *what, const char *text)
{
	uint64_t end = 0;

	while (rig.b.n_closed == 0)
		rig_wait(&end, 0, what);
	log_check(what, 1, text);
	RIG_RC(-EPROTO, rig.b.reason, what);
	log_begin();
	evil_leave(peer);
}

#ifndef RIG_SECURE /* else tcp_secure_hostile.c has the cases */
int main(void)
{
	UNITY_BEGIN();
	evil.control = evil.link = -1;
	control_attacks();
	frame_attacks();
	cut_attacks();
	data_attacks();
	many_attacks();
	server_attacks();
	relay_attacks();
	return UNITY_END();
}
#endif
