/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tcp_secure_hostile.c - attacks on links with streams. The attacker sees and changes what the
 * honest peer sends: send of this file replaces that of libc. It does not have the key.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "conform/tcp_hostile.h"
#include "conform/tcp_secure.h"
#include "secure/stream.h"

#define EXPORT __attribute__((visibility("default")))
#define FLIGHT 4096u

static ssize_t (*real_send)(int, const void *, size_t, int);
static ssize_t (*real_sendmsg)(int, const struct msghdr *, int);
static int (*real_connect)(int, const struct sockaddr *, socklen_t);

/* What the attacker has seen of the last link that was opened, and looks for. */
static struct {
	int on, fd;   /* fd: socket of the link; -1: none yet */
	int withhold; /* the bytes of the link do not reach the listener */
	int divert;   /* socket to which new sockets connect instead; 0: none */
	struct tcp_hello hello;
	uint8_t flight[FLIGHT]; /* what the client has sent after the hello */
	size_t n;
	long change_at; /* byte of the socket to change; -1: none */
	uint8_t needle[16];
	unsigned n_found, n_sent, n_in_clear;
} spy = {.fd = -1, .change_at = -1};

static int is_link(const void *bytes, size_t n)
{
	const struct tcp_hello *hello = bytes;

	return n == sizeof(*hello) && hello->magic == TCP_MAGIC && hello->kind == TCP_LINK;
}

static void look(const void *bytes, size_t n)
{
	spy.n_sent++;
	if (memmem(bytes, n, spy.needle, sizeof(spy.needle)))
		spy.n_found++;
}

/* Returns the bytes that go on, perhaps changed. */
static const void *watch(int fd, const void *bytes, size_t n, uint8_t *copy)
{
	size_t at = fd == spy.fd ? sizeof(spy.hello) + spy.n : 0;

	look(bytes, n);
	if (is_link(bytes, n)) {
		spy.fd = fd;
		spy.n = 0;
		memcpy(&spy.hello, bytes, n);
	} else if (fd == spy.fd) {
		size_t fits = spy.n + n <= FLIGHT ? n : 0;

		memcpy(spy.flight + spy.n, bytes, fits);
		spy.n += fits;
	}
	if (fd != spy.fd || spy.change_at < (long)at || spy.change_at >= (long)(at + n))
		return bytes;
	memcpy(copy, bytes, n);
	copy[(size_t)spy.change_at - at] ^= 0x20;
	spy.change_at = -1;
	return copy;
}

EXPORT ssize_t send(int fd, const void *bytes, size_t n, int flags);
EXPORT ssize_t sendmsg(int fd, const struct msghdr *msg, int flags);
EXPORT int connect(int fd, const struct sockaddr *to, socklen_t bytes);

int connect(int fd, const struct sockaddr *to, socklen_t bytes)
{
	struct sockaddr_storage other;
	socklen_t n = sizeof(other);

	if (!spy.divert)
		return real_connect(fd, to, bytes);
	getsockname(spy.divert, (struct sockaddr *)&other, &n);
	return real_connect(fd, (struct sockaddr *)&other, n);
}

ssize_t send(int fd, const void *bytes, size_t n, int flags)
{
	uint8_t *copy = spy.on ? malloc(n) : NULL;
	const void *changed = spy.on ? watch(fd, bytes, n, copy) : bytes;
	ssize_t sent = (ssize_t)n;

	if (!spy.withhold || fd != spy.fd)
		sent = real_send(fd, changed, n, flags);
	free(copy);
	return sent;
}

ssize_t sendmsg(int fd, const struct msghdr *msg, int flags)
{
	for (size_t i = 0; spy.on && i < msg->msg_iovlen; i++)
		look(msg->msg_iov[i].iov_base, msg->msg_iov[i].iov_len);
	spy.n_in_clear += (unsigned)spy.on;
	return real_sendmsg(fd, msg, flags);
}

static void spy_begin(void)
{
	uint8_t bytes[4096];

	spy.fd = spy.change_at = -1;
	spy.withhold = 0;
	spy.n = 0;
	spy.n_found = spy.n_sent = spy.n_in_clear = 0;
	rig_fill(bytes, sizeof(bytes), 4321);
	memcpy(spy.needle, bytes + 2000, sizeof(spy.needle));
	spy.on = 1;
}

/* The honest peer is connected, and the attacker has seen its link, which is up. */
static void begin(const char *settings)
{
	spy_begin();
	honest_begin(settings);
	spy.on = 0;
	RIG_HOLDS(spy.fd >= 0 && spy.n > 300, "the link that the attacker has seen");
}

static unsigned first_record(void)
{
	return 5u + (unsigned)(spy.flight[3] << 8 | spy.flight[4]);
}

/* The queue of the withheld link, and what is withheld. */
static struct {
	struct rig_queue *q;
	int fd;
	struct tcp_hello hello;
	uint8_t flight[FLIGHT];
	size_t n;
} late;

/* The honest peer waits for its links for a long time. */
static void reopen_rig(void)
{
	rig_close();
	setenv("RIG_A_SETTINGS", "connect_timeout=60s", 1);
	rig_open();
	unsetenv("RIG_A_SETTINGS");
}

/* Wait until the attacker has seen the first bytes of a link. */
static void wait_for_link(void)
{
	uint64_t end = 0;

	while (spy.fd < 0 || spy.n < 5 || spy.n < first_record())
		rig_wait(&end, 0, "the first bytes of a link");
	spy.on = 0;
}

/* The honest peer opens another link. The attacker sees its first bytes, and withholds them. */
static void begin_late(const char *settings)
{
	reopen_rig();
	honest_begin(settings);
	spy_begin();
	spy.withhold = 1;
	late.q = rig_queue_open_lanes(&rig.b, 1, &rig.a, 1, 8, 0);
	wait_for_link();
	spy.withhold = 0;
	late.fd = spy.fd;
	late.hello = spy.hello;
	late.n = spy.n;
	memcpy(late.flight, spy.flight, spy.n);
	honest_count_fds();
	log_begin();
}

/* Let the withheld bytes arrive: the link works. */
static void release_late(void)
{
	honest_check();
	real_send(late.fd, &late.hello, sizeof(late.hello), 0);
	real_send(late.fd, late.flight, late.n, 0);
	rig_warm(late.q);
	rig_queue_close(late.q);
}

static void end_late(void)
{
	release_late();
	honest_count_fds();
	honest_end();
}

/* -- what leaves the process -- */

static void use_link(void)
{
	uint8_t *local = rig_local(EVIL_BYTES), imm[GANTRY_IMM_MAX];
	struct gantry_region *region;
	struct gantry_token token;
	struct rig_memory m;
	struct gantry_msg msg;
	struct rig_queue *q;
	struct rig_rma *rma;

	spy_begin();
	rig_connect();
	q = rig_queue_open(&rig.b, &rig.a, 8, 0);
	rig_memory_open(&m, EVIL_BYTES, EVIL_BOTH);
	RIG_OK(rig.ops->export_region(rig.b.conn, &m.region, EVIL_BOTH, 9, &token));
	rig_fence();
	RIG_OK(rig.ops->import_region(rig.a.conn, &token, 0, &region));
	rma = rig_rma_open(&rig.a, 4, 0);
	rig_fill(local, EVIL_BYTES, 4321);
	RIG_OK(rig_rma_move(rma, GANTRY_RMA_WRITE, local, region, 0, EVIL_BYTES));
	RIG_OK(rig_rma_move(rma, GANTRY_RMA_READ, local, region, 0, EVIL_BYTES));
	RIG_HOLDS(rig_filled(local, EVIL_BYTES, 4321), "data of the region");
	memset(imm, 0, sizeof(imm));
	memcpy(imm, spy.needle, sizeof(spy.needle));
	RIG_OK(rig.ops->post_recv(q->rx, 1));
	RIG_OK(rig_send(q, imm, sizeof(imm)));
	rig_take(q, &msg);
	RIG_SAME(imm, msg.imm, sizeof(imm), "a message");
	spy.on = 0;
	RIG_HOLDS(spy.n_sent > 10, "bytes that the attacker has seen");
	rig_rma_close(rma);
	rig.ops->release_region(rig.a.conn, region);
	rig_queue_close(q);
}

static void data_goes_in_clear_without_a_filter(void)
{
	secure_off = 1;
	rig_close();
	rig_open();
	use_link();
	secure_off = 0;
	RIG_HOLDS(spy.n_found >= 3, "a write, a read and a message in clear");
	RIG_HOLDS(spy.n_in_clear > 0, "calls of sendmsg");
}

static void no_data_goes_in_clear(void)
{
	use_link();
	RIG_NUM(0, spy.n_found, "writes, reads and messages in clear");
	RIG_NUM(0, spy.n_in_clear, "calls of sendmsg");
}

/* The socket of the stream lives on, so nothing else ends the connection. */
static void stream_that_cannot_send_ends_the_connection(void)
{
	struct gantry_msg msg;
	struct rig_queue *q;

	rig_connect();
	q = rig_queue_open(&rig.b, &rig.a, 8, 0);
	RIG_OK(rig.ops->post_recv(q->rx, 1));
	RIG_OK(rig_send(q, "first", 5));
	rig_take(q, &msg);
	RIG_OK(rig.ops->post_recv(q->rx, 2));
	rig_settle(); /* the credit arrives */
	secure_send_error = -EKEYEXPIRED;
	rig_send(q, "second", 6);
	rig_until(rig.a.n_closed, 1);
	rig_until(rig.b.n_closed, 1);
	secure_send_error = 0;
	RIG_HOLDS(fake_logged(&rig.a.host, "Key has expired"), "reason in the log");
	rig_queue_close(q);
}

/*
 * The first frames of a link arrive in one record. The transport reads one of them while the thread
 * of the lane sleeps, which must then read the others.
 */
static void sleeper_wakes_for_what_is_inside(void)
{
	const struct gantry_queue_attr attr = {.depth = 4};
	struct pollfd fd = {.events = POLLIN};
	struct gantry_msg msg;
	int n = 0, sent = -EAGAIN;
	uint64_t end = 0;
	void *rx, *tx;
	uint32_t id;

	rig_connect();
	RIG_OK(rig.ops->consumer_create(rig.a.conn, &attr, &id, &rx));
	rig_until(rig.b.n_up, 1);
	RIG_OK(rig.ops->post_recv(rx, 1));
	RIG_OK(rig.ops->consumer_arm(rx));
	fd.fd = rig.ops->consumer_fd(rx);
	RIG_OK(rig.ops->producer_create(rig.b.conn, id, &attr, &tx));
	while (n == 0) {
		if (sent)
			sent = rig.ops->send(tx, "message", 7, 0);
		if (poll(&fd, 1, 0) == 1) {
			rig.ops->consumer_disarm(rx);
			n = rig.ops->poll_recv(rx, &msg, 1);
			if (n == 0 && rig.ops->consumer_arm(rx))
				n = rig.ops->poll_recv(rx, &msg, 1);
		}
		rig_wait(&end, 0, "a message that wakes a sleeper");
	}
	rig.ops->producer_destroy(tx);
	rig.ops->consumer_destroy(rx);
}

/* -- changed bytes of an honest peer -- */

struct guest {
	struct gantry_queue_attr attr;
	uint32_t id;
	void *rx, *tx;
	int closed;
};

/* Connect once more, and open a queue, on the lanes of the withheld link. divert: of its link. */
static void guest_open(struct guest *g, int divert)
{
	int up = rig.a.n_connected, ups = rig.a.n_up;

	*g = (struct guest){.attr = {.depth = 8, .lane = 1}, .closed = rig.a.n_closed};
	rig_start_connect(rig_service(0));
	rig_until(rig.a.n_connected, up + 1);
	RIG_OK(rig.ops->consumer_create(rig.b.conn, &g->attr, &g->id, &g->rx));
	rig_until(rig.a.n_up, ups + 1);
	RIG_OK(rig.ops->post_recv(g->rx, 8));
	spy.divert = divert;
	RIG_OK(rig.ops->producer_create(rig.a.conn, g->id, &g->attr, &g->tx));
	spy.divert = 0;
}

static void guest_close(struct guest *g)
{
	rig.ops->producer_destroy(g->tx);
	rig.ops->consumer_destroy(g->rx);
	rig_disconnect(&rig.a);
	rig_disconnect(&rig.b);
	rig_settle();
}

/* Send messages until one arrives, or the connection ends. Returns the number that arrived. */
static int guest_send(struct guest *g)
{
	struct gantry_msg msgs[8];
	uint64_t end = 0;
	int n = 0;

	while (n == 0 && rig.a.n_closed == g->closed) {
		rig.ops->send(g->tx, "message", 7, 0);
		n = rig.ops->poll_recv(g->rx, msgs, 8);
		rig_wait(&end, 0, "a message, or the end of a connection");
	}
	return n > 0 ? n : 0;
}

/*
 * Bytes without a visible effect: TLS ignores the version of the first record; and after the
 * handshake, which is two records, a longer record waits for more bytes.
 */
static int is_skipped(const uint8_t *flight, size_t n, long change_at)
{
	size_t at = 0, wanted = (size_t)change_at - sizeof(struct tcp_hello);

	if (change_at < (long)sizeof(struct tcp_hello))
		return 0;
	for (unsigned i = 0; at + 5 <= n && wanted >= at; i++) {
		if (i == 0 && (wanted == 1 || wanted == 2))
			return 1;
		if (i >= 2 && (wanted == at + 3 || wanted == at + 4))
			return 1;
		at += 5u + (size_t)(flight[at + 3] << 8 | flight[at + 4]);
	}
	return 0;
}

static void each_changed_byte_ends_the_connection(void)
{
	static uint8_t flight[FLIGHT];
	void *good_a, *good_b;
	struct guest g;
	long n;

	begin("connect_timeout=1s");
	good_a = rig.a.conn;
	good_b = rig.b.conn;
	spy.on = 1;
	guest_open(&g, 0);
	RIG_HOLDS(guest_send(&g) > 0, "messages of a connection that is not attacked");
	n = (long)(sizeof(spy.hello) + spy.n);
	memcpy(flight, spy.flight, spy.n);
	guest_close(&g);
	for (long i = 0; i < n; i++) {
		if (is_skipped(flight, (size_t)n - sizeof(spy.hello), i))
			continue;
		spy.fd = -1;
		log_begin();
		spy.change_at = i;
		guest_open(&g, 0);
		RIG_NUM(0, (unsigned)guest_send(&g), "messages after a changed byte");
		RIG_NUM(UINT64_MAX, (uint64_t)spy.change_at, "the byte that was to change");
		guest_close(&g);
		rig.a.n_closed = 0;
	}
	spy.on = 0;
	rig.a.conn = good_a;
	rig.b.conn = good_b;
	log_begin();
	honest_end();
}

/* -- sockets of the attacker -- */

static int attack_with(const struct tcp_hello *hello, const void *bytes, size_t n)
{
	int fd = evil_socket();

	evil_send(fd, hello, sizeof(*hello));
	evil_send(fd, bytes, n);
	return fd;
}

static void refused(int fd, const char *what, const char *text)
{
	shutdown(fd, SHUT_WR);
	evil_until_end(fd);
	close(fd);
	log_check(what, 1, text);
	honest_check();
}

static void replays(void)
{
	struct tcp_hello other;

	begin_late("connect_timeout=60s");
	refused(attack_with(&spy.hello, spy.flight, spy.n), "all that the client has sent",
		"the handshake of a link fails");
	refused(attack_with(&spy.hello, "GET / HTTP/1.1\r\n\r\n", 18), "other bytes",
		"the handshake of a link fails");
	other = spy.hello;
	other.listens_lane++;
	refused(attack_with(&other, spy.flight, spy.n), "another lane", "no such session");
	other = spy.hello;
	other.ops++;
	refused(attack_with(&other, spy.flight, spy.n), "another hello",
		"the handshake of a link fails");
	other = spy.hello;
	other.session++;
	refused(attack_with(&other, spy.flight, spy.n), "another session", "no such session");
	other = spy.hello;
	other.kind = TCP_DIRECT;
	refused(attack_with(&other, spy.flight, spy.n), "a direct link", "no such session accepts");
	other = spy.hello;
	other.version = TCP_VERSION;
	refused(attack_with(&other, NULL, 0), "a link in clear", "only one end protects");
	end_late();
}

/* A lane that claims the session of another connection, whose hello the attacker has seen. */
static void lane_of_another_session(void)
{
	struct tcp_hello first, other;
	void *good_a, *good_b;
	struct guest g;

	begin_late("connect_timeout=60s");
	good_a = rig.a.conn;
	good_b = rig.b.conn;
	first = spy.hello;
	spy.on = 1;
	guest_open(&g, 0);
	RIG_HOLDS(guest_send(&g) > 0, "messages of the second connection");
	spy.on = 0;
	other = spy.hello;
	other.session = first.session;
	refused(attack_with(&other, spy.flight, spy.n), "the session of another connection",
		"no such session");
	memcpy(other.secret, first.secret, sizeof(other.secret));
	refused(attack_with(&other, spy.flight, spy.n), "its name as well",
		"the handshake of a link fails");
	RIG_HOLDS(guest_send(&g) > 0, "messages of the second connection");
	guest_close(&g);
	rig.a.n_closed = 0;
	rig.a.conn = good_a;
	rig.b.conn = good_b;
	log_begin();
	end_late();
}

/* An attacker that speaks TLS, with a secret of its own. */
static void wrong_secret(void)
{
	static const uint8_t secret[32] = "a secret of another session";
	uint64_t end = 0;
	void *stream;
	int fd, rc;

	begin_late("connect_timeout=60s");
	fd = attack_with(&spy.hello, NULL, 0);
	fcntl(fd, F_SETFL, O_NONBLOCK);
	RIG_OK(gn_stream_ops.open(NULL, fd, 0, secret, sizeof(secret), &spy.hello,
				  sizeof(spy.hello), &stream));
	while ((rc = gn_stream_ops.handshake(stream)) == -EAGAIN)
		rig_wait(&end, 0, "the end of a handshake");
	RIG_HOLDS(rc == -EACCES || rc == -ENOTCONN || rc == -ECONNRESET, "result of a handshake");
	gn_stream_ops.close(stream);
	refused(fd, "a wrong secret", "the handshake of a link fails");
	end_late();
}

/* Repeat the ClientHello of a link n times. Returns how many the victim has answered. */
static unsigned repeat_hello(unsigned n)
{
	unsigned n_answered = 0;

	for (unsigned i = 0; i < n; i++) {
		int fd = attack_with(&spy.hello, spy.flight, first_record());
		uint8_t byte;

		n_answered += evil_read(fd, &byte, 1) == 1;
		close(fd);
	}
	return n_answered;
}

static void hello_of_a_link_that_is_up_begins_no_handshake(void)
{
	begin(NULL);
	RIG_NUM(0, repeat_hello(100), "handshakes of a link that is up");
	RIG_HOLDS(fake_logged(&rig.b.host, "the session has this link already"), "text in the log");
	RIG_NUM(0, rig.b.host.n_logged[GANTRY_LOG_WARN], "warnings");
	log_begin();
	honest_end();
}

/*
 * The victim computes keys for each ClientHello of a link that is not up, also for a repeated one,
 * whose handshake then fails: such handshakes are limited.
 */
static void repeated_handshakes_are_limited(void)
{
	const unsigned free = 64; /* handshakes of a session that do not count */
	uint64_t start, passed_s;
	unsigned n_answered;

	begin_late("connect_timeout=60s");
	secure_limit(1);
	start = gn_now_ns();
	n_answered = repeat_hello(300);
	passed_s = (gn_now_ns() - start) / 1000000000u;
	secure_limit(1000000);
	RIG_HOLDS(n_answered >= free, "handshakes that do not count");
	/* each second, one handshake of the session and one of auth_rate */
	if (n_answered > free + 2 * (passed_s + 1))
		rig_fail_at(__FILE__, __LINE__, "%u handshakes in %llu s", n_answered,
			    (unsigned long long)passed_s);
	RIG_HOLDS(fake_logged(&rig.b.host, "too many handshakes"), "text in the log");
	rig_settle();
	log_begin();
	end_late();
}

/* After an attack, a session opens more links than it has free handshakes. */
static void links_of_a_session_that_was_attacked(void)
{
	begin_late("connect_timeout=60s");
	secure_closed = 1;
	rig.b.host.now_ns = rig_now_ns();
	rig.b.host.real_clock = 0;
	RIG_NUM(64, repeat_hello(80), "handshakes that do not count");
	rig.b.host.now_ns += 1000000000; /* the session has a free handshake again */
	release_late();
	for (uint32_t i = 0; i < 72; i++) {
		struct rig_queue *q = rig_queue_open_lanes(&rig.b, 2 + i / 9, &rig.a, 2 + i % 9, 4,
							   0);

		rig_warm(q);
		rig_queue_close(q);
	}
	secure_closed = 0;
	log_begin();
	honest_count_fds();
	honest_end();
}

static void handshake_that_stops_at_each_byte(void)
{
	int fds[1000];
	unsigned n;

	if (honest_raise_fds(3000) < 3000)
		TEST_IGNORE_MESSAGE("too few descriptors");
	begin_late("connect_timeout=3s");
	n = first_record();
	RIG_HOLDS(n > 105 && n < 805, "length of the first record");
	for (unsigned i = 0; i < n; i++)
		fds[i] = attack_with(&spy.hello, spy.flight, i);
	/* those with the whole record wait for the last one of the client */
	fds[n] = attack_with(&spy.hello, spy.flight, n);
	rig_settle();
	release_late();
	for (unsigned i = 0; i <= n; i++) {
		evil_until_end(fds[i]);
		close(fds[i]);
	}
	log_check("handshakes that stop", 0, NULL);
	honest_count_fds();
	honest_end();
}

/* The link of the attacked session is never up: its bytes go elsewhere. */
static void half_open_handshakes(void)
{
	unsigned all = honest_raise_fds(11500), n = all > 11400 ? 10000 : all - 1124, k;
	int *fds = calloc(n, sizeof(*fds));
	struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	void *good_a, *good_b;
	uint64_t end = 0;
	struct guest g;
	int elsewhere;

	reopen_rig();
	honest_begin("connect_timeout=60s");
	elsewhere = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	RIG_OK(bind(elsewhere, (struct sockaddr *)&any, sizeof(any)));
	RIG_OK(listen(elsewhere, 1));
	good_a = rig.a.conn;
	good_b = rig.b.conn;
	spy_begin();
	guest_open(&g, elsewhere);
	wait_for_link();
	k = first_record();
	for (unsigned i = 0; i < n; i++) {
		fds[i] = attack_with(&spy.hello, spy.flight, i & 1 ? k : k / 2);
		if (i % 100 == 0)
			rig_settle();
		if (i % 2000 == 0)
			honest_check();
	}
	rig_settle();
	honest_check();
	for (unsigned i = 0; i < n; i++)
		evil_reset(fds[i]);
	free(fds);
	/* the victim sees the end of each socket */
	while (rig_fds() > 200)
		rig_wait(&end, 0, "the end of half-open handshakes");
	guest_close(&g);
	close(elsewhere);
	rig.a.conn = good_a;
	rig.b.conn = good_b;
	log_begin();
	honest_end();
}

int main(void)
{
	*(void **)&real_send = dlsym(RTLD_NEXT, "send");
	*(void **)&real_connect = dlsym(RTLD_NEXT, "connect");
	*(void **)&real_sendmsg = dlsym(RTLD_NEXT, "sendmsg");
	UNITY_BEGIN();
	evil.control = evil.link = -1;
	RIG_CASE(data_goes_in_clear_without_a_filter);
	RIG_CASE(no_data_goes_in_clear);
	RIG_CASE(sleeper_wakes_for_what_is_inside);
	RIG_CASE(stream_that_cannot_send_ends_the_connection);
	RIG_CASE(each_changed_byte_ends_the_connection);
	RIG_CASE(replays);
	RIG_CASE(lane_of_another_session);
	RIG_CASE(wrong_secret);
	RIG_CASE(hello_of_a_link_that_is_up_begins_no_handshake);
	RIG_CASE(repeated_handshakes_are_limited);
	RIG_CASE(links_of_a_session_that_was_attacked);
	RIG_CASE(handshake_that_stops_at_each_byte);
	RIG_CASE(half_open_handshakes);
	return UNITY_END();
}
