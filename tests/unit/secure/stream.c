/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stream.c - streams: both ends in this process, over a pair of sockets. The functions send and
 * recv of this file replace those of libc for the streams, to cut, change and record the bytes.
 */
#include <errno.h>
#include <malloc.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "secure/stream.h"
#include "unity.h"

#define WIRE (1u << 20)
#define BIG (1u << 20)

static const uint8_t secret[32] = "a secret that both ends have....";
static const char name[] = "name of the stream";
static const struct gantry_stream_ops *const ops = &gn_stream_ops;

struct end {
	int fd;
	void *stream;
};

static struct end a, b; /* a connects, b listens */
static uint8_t *wire;   /* what a has sent, then b */
static size_t n_wire, n_wire_of[2];
static long send_budget, change_at; /* bytes until a socket is full; -1: no limit, no change */
static bool stays_full;             /* only the socket of a, always; else once */
static size_t recv_most;
static uint8_t *big, *got;

ssize_t send(int fd, const void *bytes, size_t n, int flags)
{
	uint8_t copy[20000];
	ssize_t sent;

	TEST_ASSERT_TRUE(flags & MSG_NOSIGNAL);
	TEST_ASSERT_TRUE(n <= sizeof(copy));
	if (send_budget >= 0 && (!stays_full || fd == a.fd)) {
		size_t most = (size_t)send_budget;

		send_budget = most < n && !stays_full ? -1
						      : send_budget - (long)(most < n ? most : n);
		n = most < n ? most : n;
		if (n == 0) {
			errno = EAGAIN;
			return -1;
		}
	}
	memcpy(copy, bytes, n);
	if (change_at >= 0 && (size_t)change_at >= n_wire && (size_t)change_at < n_wire + n)
		copy[(size_t)change_at - n_wire] ^= 0x10;
	sent = sendto(fd, copy, n, flags, NULL, 0);
	if (sent <= 0)
		return sent;
	if (n_wire + (size_t)sent <= WIRE)
		memcpy(wire + n_wire, copy, (size_t)sent);
	n_wire += (size_t)sent;
	n_wire_of[fd == b.fd] += (size_t)sent;
	return sent;
}

ssize_t recv(int fd, void *to, size_t n, int flags)
{
	return recvfrom(fd, to, n < recv_most ? n : recv_most, flags, NULL, NULL);
}

static void open_end(struct end *e, int fd, int listens, const void *key, const char *stated)
{
	e->fd = fd;
	TEST_ASSERT_EQUAL_INT(
		0, ops->open(NULL, fd, listens, key, 32, stated, strlen(stated), &e->stream));
}

static void open_pair(const void *key_of_b, const char *name_of_b)
{
	int fds[2];

	TEST_ASSERT_EQUAL_INT(
		0, socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds));
	n_wire = n_wire_of[0] = n_wire_of[1] = 0;
	open_end(&a, fds[0], 0, secret, name);
	open_end(&b, fds[1], 1, key_of_b, name_of_b);
}

static void close_end(struct end *e)
{
	if (e->stream)
		ops->close(e->stream);
	if (e->fd >= 0)
		close(e->fd);
	e->stream = NULL;
	e->fd = -1;
}

static void close_pair(void)
{
	close_end(&a);
	close_end(&b);
}

void setUp(void)
{
	a.fd = b.fd = -1;
	a.stream = b.stream = NULL;
	send_budget = change_at = -1;
	stays_full = false;
	recv_most = SIZE_MAX;
	if (wire)
		return;
	wire = malloc(WIRE);
	big = malloc(BIG);
	got = malloc(BIG);
	for (size_t i = 0; i < BIG; i++)
		big[i] = (uint8_t)(i * 0x9e3779b1u >> 13);
}

void tearDown(void)
{
	close_pair();
}

/* Continue both handshakes until they end, or nothing moves. Stores the results of both. */
static void shake(int rc[2])
{
	rc[0] = rc[1] = -EAGAIN;
	for (int i = 0; i < 2000 && (rc[0] == -EAGAIN || rc[1] == -EAGAIN); i++) {
		if (rc[0] == -EAGAIN)
			rc[0] = ops->handshake(a.stream);
		if (rc[1] == -EAGAIN)
			rc[1] = ops->handshake(b.stream);
	}
}

static void shake_well(void)
{
	int rc[2];

	shake(rc);
	TEST_ASSERT_EQUAL_INT(0, rc[0]);
	TEST_ASSERT_EQUAL_INT(0, rc[1]);
}

static void start(void)
{
	open_pair(secret, name);
	shake_well();
}

static ssize_t put(struct end *e, const void *bytes, size_t n)
{
	const struct iovec iov = {.iov_base = (void *)bytes, .iov_len = n};

	return ops->send(e->stream, &iov, 1);
}

static ssize_t get(struct end *e, void *to, size_t n)
{
	const struct iovec iov = {.iov_base = to, .iov_len = n};

	return ops->receive(e->stream, &iov, 1);
}

/* Receive until nothing is left. Returns the bytes in `got`. */
static size_t get_all(struct end *e)
{
	size_t n = 0;
	ssize_t k;

	while ((k = get(e, got + n, BIG - n)) > 0)
		n += (size_t)k;
	TEST_ASSERT_EQUAL_INT(-EAGAIN, (int)k);
	return n;
}

/* Send a vector to the other end, which reads whenever the socket is full. */
static void move(struct end *from, struct end *to, struct iovec *iov, size_t n, size_t bytes)
{
	size_t n_got = 0, sent = 0;

	while (n_got < bytes) {
		ssize_t k = sent < bytes ? ops->send(from->stream, iov, n)
					 : ops->send(from->stream, NULL, 0);

		TEST_ASSERT_TRUE(k >= 0 || k == -EAGAIN);
		for (sent += k > 0 ? (size_t)k : 0; k > 0;) {
			size_t step = (size_t)k < iov->iov_len ? (size_t)k : iov->iov_len;

			/* what counts as sent is not read again */
			memset(iov->iov_base, 0xee, step);
			iov->iov_base = (uint8_t *)iov->iov_base + step;
			iov->iov_len -= step;
			k -= (ssize_t)step;
			if (iov->iov_len == 0 && n > 1) {
				iov++;
				n--;
			}
		}
		k = get(to, got + n_got, BIG - n_got);
		TEST_ASSERT_TRUE(k > 0 || k == -EAGAIN);
		n_got += k > 0 ? (size_t)k : 0;
	}
	TEST_ASSERT_EQUAL_size_t(bytes, sent);
	TEST_ASSERT_EQUAL_size_t(bytes, n_got);
}

static void move_cut(size_t piece, size_t bytes)
{
	static struct iovec iov[4096];
	uint8_t *copy = malloc(bytes);
	size_t n = 0;

	memcpy(copy, big, bytes);
	for (size_t at = 0; at < bytes; at += iov[n++].iov_len) {
		iov[n].iov_base = copy + at;
		iov[n].iov_len = bytes - at < piece ? bytes - at : piece;
	}
	move(&a, &b, iov, n, bytes);
	TEST_ASSERT_EQUAL_MEMORY(big, got, bytes);
	free(copy);
}

static void bytes_arrive_in_both_directions(void)
{
	start();
	TEST_ASSERT_EQUAL_INT(5, (int)put(&a, "hello", 5));
	TEST_ASSERT_EQUAL_INT(5, (int)get(&b, got, 100));
	TEST_ASSERT_EQUAL_MEMORY("hello", got, 5);
	TEST_ASSERT_EQUAL_INT(4, (int)put(&b, "back", 4));
	TEST_ASSERT_EQUAL_INT(4, (int)get(&a, got, 100));
	TEST_ASSERT_EQUAL_MEMORY("back", got, 4);
	TEST_ASSERT_EQUAL_INT(-EAGAIN, (int)get(&a, got, 100));
}

static void vectors_of_all_shapes_arrive(void)
{
	static const size_t pieces[] = {1, 3, 64, 100, 4160, 16383, 16384, 16385, 100000, BIG};
	static const size_t sizes[] = {1, 63, 3000, 16384, 16385, 70000, 131136, BIG};

	start();
	for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++)
		for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++)
			if (sizes[k] / pieces[i] < 4096)
				move_cut(pieces[i], sizes[k]);
}

static void frames_and_data_are_gathered(void)
{
	struct iovec iov[3];
	uint8_t *copy = malloc(BIG);

	start();
	memcpy(copy, big, BIG);
	iov[0] = (struct iovec){.iov_base = copy, .iov_len = 64};
	iov[1] = (struct iovec){.iov_base = copy + 64, .iov_len = 0};
	iov[2] = (struct iovec){.iov_base = copy + 64, .iov_len = 4096};
	n_wire = 0;
	TEST_ASSERT_EQUAL_INT(4160, (int)ops->send(a.stream, iov, 3));
	TEST_ASSERT_EQUAL_size_t(4160 + 22, n_wire); /* one record */
	TEST_ASSERT_EQUAL_size_t(4160, get_all(&b));
	TEST_ASSERT_EQUAL_MEMORY(big, got, 4160);
	free(copy);
}

static void received_bytes_fill_a_vector(void)
{
	uint8_t to[3][8];
	const struct iovec iov[3] = {{to[0], 3}, {to[1], 0}, {to[2], 8}};

	start();
	put(&a, big, 6);
	put(&a, big + 6, 20);
	TEST_ASSERT_EQUAL_INT(11, (int)ops->receive(b.stream, iov, 3));
	TEST_ASSERT_EQUAL_MEMORY(big, to[0], 3);
	TEST_ASSERT_EQUAL_MEMORY(big + 3, to[2], 8);
	TEST_ASSERT_TRUE(ops->pending(b.stream) & GANTRY_STREAM_INPUT);
	TEST_ASSERT_EQUAL_size_t(15, get_all(&b));
	TEST_ASSERT_EQUAL_UINT(0, ops->pending(b.stream));
}

static void pending_input_is_a_whole_record(void)
{
	start();
	put(&a, big, 10);
	put(&a, big, 10);
	TEST_ASSERT_EQUAL_INT(10, (int)get(&b, got, 10));
	TEST_ASSERT_TRUE(ops->pending(b.stream) & GANTRY_STREAM_INPUT);
	TEST_ASSERT_EQUAL_INT(10, (int)get(&b, got, 11));
	TEST_ASSERT_EQUAL_UINT(0, ops->pending(b.stream));
	send_budget = 15; /* a part of a record: the socket reports the rest */
	put(&a, big, 10);
	TEST_ASSERT_EQUAL_INT(-EAGAIN, (int)get(&b, got, 10));
	TEST_ASSERT_EQUAL_UINT(0, ops->pending(b.stream));
	TEST_ASSERT_EQUAL_INT(0, (int)ops->send(a.stream, NULL, 0));
	TEST_ASSERT_EQUAL_INT(10, (int)get(&b, got, 10));
}

static void data_sent_with_the_handshake_is_pending(void)
{
	int rc = -EAGAIN;

	open_pair(secret, name);
	ops->handshake(a.stream);
	ops->handshake(b.stream);
	TEST_ASSERT_EQUAL_INT(0, ops->handshake(a.stream));
	put(&a, "early", 5);
	while (rc == -EAGAIN)
		rc = ops->handshake(b.stream);
	TEST_ASSERT_EQUAL_INT(0, rc);
	TEST_ASSERT_TRUE(ops->pending(b.stream) & GANTRY_STREAM_INPUT);
	TEST_ASSERT_EQUAL_INT(5, (int)get(&b, got, 100));
}

static void handshake_continues_at_each_byte(void)
{
	for (long k = 0; k < 700; k++) {
		open_pair(secret, name);
		send_budget = k;
		shake_well();
		send_budget = -1;
		TEST_ASSERT_EQUAL_INT(3, (int)put(&a, "abc", 3));
		TEST_ASSERT_EQUAL_INT(3, (int)get(&b, got, 100));
		close_pair();
	}
	recv_most = 1;
	start();
	move_cut(700, 3000);
}

/* The socket takes k bytes of the record, then nothing; the sender changes its memory. */
static void record_continues_at_each_byte(void)
{
	uint8_t bytes[300];

	start();
	for (long k = 0; k < 300 + 22; k++) {
		memcpy(bytes, big + k, sizeof(bytes));
		send_budget = k;
		TEST_ASSERT_EQUAL_INT(300, (int)put(&a, bytes, sizeof(bytes)));
		TEST_ASSERT_TRUE(ops->pending(a.stream) & GANTRY_STREAM_OUTPUT);
		memset(bytes, 0, sizeof(bytes));
		TEST_ASSERT_EQUAL_INT(-EAGAIN, (int)get(&b, got, 1000));
		TEST_ASSERT_EQUAL_INT(0, (int)ops->send(a.stream, NULL, 0));
		TEST_ASSERT_EQUAL_UINT(0, ops->pending(a.stream));
		TEST_ASSERT_EQUAL_INT(300, (int)get(&b, got, 1000));
		TEST_ASSERT_EQUAL_MEMORY(big + k, got, 300);
	}
}

static void full_socket_takes_nothing_twice(void)
{
	size_t sent = 0;
	ssize_t n;

	start();
	while ((n = put(&a, big + sent, BIG - sent)) > 0)
		sent += (size_t)n;
	TEST_ASSERT_EQUAL_INT(-EAGAIN, (int)n);
	TEST_ASSERT_TRUE(ops->pending(a.stream) & GANTRY_STREAM_OUTPUT);
	TEST_ASSERT_EQUAL_INT(-EAGAIN, (int)put(&a, big, 1));
	TEST_ASSERT_EQUAL_INT(-EAGAIN, (int)ops->send(a.stream, NULL, 0));
	n = (ssize_t)get_all(&b);
	TEST_ASSERT_TRUE((size_t)n < sent);
	TEST_ASSERT_EQUAL_INT(0, (int)ops->send(a.stream, NULL, 0));
	TEST_ASSERT_EQUAL_size_t(sent - (size_t)n, get_all(&b));
	TEST_ASSERT_EQUAL_MEMORY(big + n, got, sent - (size_t)n);
}

static void keys_are_replaced_by_volume(void)
{
	start();
	gn_stream_rekey_after(a.stream, 50000);
	for (int i = 0; i < 20; i++)
		move_cut(64, 200000);
	TEST_ASSERT_TRUE(gn_stream_rekeyed(a.stream) > 20 * 3);
	TEST_ASSERT_EQUAL_UINT(0, gn_stream_rekeyed(b.stream));
}

static void keys_are_replaced_at_each_byte(void)
{
	start();
	gn_stream_rekey_after(a.stream, 1);
	for (long k = 0; k < 200; k++) {
		size_t n = 0;

		put(&a, big, 100);
		get_all(&b);
		send_budget = k;
		for (int i = 0; i < 3 && n == 0; i++)
			n = put(&a, big + k, 100) == 100;
		TEST_ASSERT_EQUAL_size_t(1, n);
		ops->send(a.stream, NULL, 0);
		TEST_ASSERT_EQUAL_size_t(100, get_all(&b));
		TEST_ASSERT_EQUAL_MEMORY(big + k, got, 100);
		send_budget = -1;
	}
}

static void finish_ends_the_stream(void)
{
	start();
	put(&a, "last", 4);
	send_budget = 3;
	stays_full = true;
	TEST_ASSERT_EQUAL_INT(-EAGAIN, ops->finish(a.stream));
	TEST_ASSERT_EQUAL_INT(-EAGAIN, ops->finish(a.stream));
	send_budget = -1;
	TEST_ASSERT_EQUAL_INT(4, (int)get(&b, got, 100));
	TEST_ASSERT_EQUAL_INT(-EAGAIN, (int)get(&b, got, 100));
	TEST_ASSERT_EQUAL_INT(0, ops->finish(a.stream));
	TEST_ASSERT_EQUAL_INT(0, (int)get(&b, got, 100));
	TEST_ASSERT_EQUAL_INT(-EPIPE, (int)put(&a, "more", 4));
	TEST_ASSERT_EQUAL_INT(4, (int)put(&b, "back", 4));
	TEST_ASSERT_EQUAL_INT(4, (int)get(&a, got, 100));
}

static void socket_that_ends_is_an_error(void)
{
	start();
	put(&a, "last", 4);
	shutdown(a.fd, SHUT_WR);
	TEST_ASSERT_EQUAL_INT(4, (int)get(&b, got, 100));
	TEST_ASSERT_EQUAL_INT(-ECONNRESET, (int)get(&b, got, 100));
	TEST_ASSERT_EQUAL_INT(-EPROTO, (int)get(&b, got, 100));
	close_end(&b);
	TEST_ASSERT_EQUAL_INT(-EPIPE, (int)put(&a, "more", 4)); /* and no signal */
}

static void wrong_secret_and_wrong_name_are_rejected(void)
{
	uint8_t wrong[32];
	size_t of_b[2];
	int rc[2];

	memcpy(wrong, secret, sizeof(wrong));
	wrong[31] ^= 1;
	open_pair(wrong, name);
	shake(rc);
	TEST_ASSERT_EQUAL_INT(-EACCES, rc[0]);
	TEST_ASSERT_EQUAL_INT(-EACCES, rc[1]);
	of_b[0] = n_wire_of[1];
	close_pair();
	open_pair(secret, "name of the Stream");
	shake(rc);
	TEST_ASSERT_EQUAL_INT(-EACCES, rc[0]);
	TEST_ASSERT_EQUAL_INT(-EACCES, rc[1]);
	of_b[1] = n_wire_of[1];
	TEST_ASSERT_EQUAL_size_t(of_b[0], of_b[1]); /* the peer cannot tell which was wrong */
	TEST_ASSERT_EQUAL_INT(-EPIPE, (int)put(&a, "data", 4));
	TEST_ASSERT_EQUAL_INT(-EPROTO, (int)get(&a, got, 4));
}

/* Returns true if the byte is the version of a plaintext record. */
static bool is_version(size_t i)
{
	for (size_t at = 0; at + 5 < n_wire; at += 5 + (size_t)(wire[at + 3] << 8 | wire[at + 4]))
		if (wire[at] == 22 && (i == at + 1 || i == at + 2))
			return true;
	return false;
}

static void each_changed_byte_of_the_handshake_is_detected(void)
{
	size_t n;
	int rc[2];

	start();
	n = n_wire;
	for (size_t i = 0; i < n; i++) {
		bool arrived;

		if (is_version(i)) /* TLS 1.3 ignores it */
			continue;
		close_pair();
		open_pair(secret, name);
		change_at = (long)i;
		shake(rc);
		/* the end that completes last can see a change that the other cannot */
		arrived = rc[0] == 0 && rc[1] == 0 && put(&a, "x", 1) == 1 && get(&b, got, 1) == 1;
		TEST_ASSERT_FALSE(arrived);
		change_at = -1;
	}
}

static void changed_record_ends_the_stream(void)
{
	for (size_t i = 0; i < 100 + 22; i++) {
		start();
		change_at = (long)(n_wire + i);
		put(&a, big, 100);
		change_at = -1;
		if (i == 3 || i == 4) /* the length: perhaps the rest is missing */
			put(&a, big, 16384);
		TEST_ASSERT_EQUAL_INT(-EPROTO, (int)get(&b, got, BIG));
		close_pair();
	}
}

static void send_raw(int fd, const void *bytes, size_t n)
{
	TEST_ASSERT_EQUAL_size_t(n, (size_t)write(fd, bytes, n));
}

/* What a client has sent, again to a new server, as whole flights. */
static void replayed_handshake_is_not_accepted(void)
{
	size_t hello, all;
	uint8_t *copy;

	open_pair(secret, name);
	ops->handshake(a.stream);
	hello = n_wire;
	ops->handshake(b.stream);
	copy = malloc(WIRE);
	memcpy(copy, wire, hello);
	all = n_wire;
	TEST_ASSERT_EQUAL_INT(0, ops->handshake(a.stream));
	put(&a, "replay", 6);
	memcpy(copy + hello, wire + all, n_wire - all);
	all = hello + n_wire - all;
	close_pair();
	open_pair(secret, name);
	send_raw(a.fd, copy, hello);
	TEST_ASSERT_EQUAL_INT(-EAGAIN, ops->handshake(b.stream));
	send_raw(a.fd, copy + hello, all - hello);
	TEST_ASSERT_TRUE(ops->handshake(b.stream) < 0);
	TEST_ASSERT_EQUAL_INT(-EPROTO, (int)get(&b, got, 10));
	free(copy);
}

static void handshake_cut_at_each_byte_never_completes(void)
{
	size_t n;

	start();
	n = n_wire_of[0];
	close_pair();
	stays_full = true;
	for (size_t i = 0; i < n; i++) {
		int rc[2];

		open_pair(secret, name);
		send_budget = (long)i;
		shake(rc);
		TEST_ASSERT_EQUAL_INT(-EAGAIN, rc[1]);
		shutdown(a.fd, SHUT_WR);
		TEST_ASSERT_EQUAL_INT(-ENOTCONN, ops->handshake(b.stream));
		close_pair();
	}
}

static void handshake_of_others_fails(void)
{
	static const char http[] = "GET / HTTP/1.1\r\nHost: gantry\r\n\r\n";
	static const uint8_t tls12[] = {22, 3,  1,  0,  47, 1,  0,  0,    43,   3,  3,    1,  2,
					3,  4,  5,  6,  7,  8,  9,  10,   11,   12, 13,   14, 15,
					16, 17, 18, 19, 20, 21, 22, 23,   24,   25, 26,   27, 28,
					29, 30, 31, 32, 0,  0,  4,  0xc0, 0x2f, 0,  0xff, 1,  0};

	open_pair(secret, name);
	send_raw(a.fd, http, sizeof(http) - 1);
	TEST_ASSERT_EQUAL_INT(-EPROTO, ops->handshake(b.stream));
	TEST_ASSERT_EQUAL_INT(-EPROTO, ops->handshake(b.stream));
	close_pair();
	open_pair(secret, name);
	send_raw(a.fd, tls12, sizeof(tls12));
	TEST_ASSERT_EQUAL_INT(-EPROTO, ops->handshake(b.stream));
	close_pair();
	open_pair(secret, name);
	close_end(&a);
	TEST_ASSERT_EQUAL_INT(-ENOTCONN, ops->handshake(b.stream));
}

/* A hello that never ends: empty records, or a long message. */
static void handshake_has_a_limit_of_bytes(void)
{
	uint8_t piece[1029] = {22, 3, 3, 4, 0, 1, 0, 0x20, 0};
	int rc = -EAGAIN, i;

	open_pair(secret, name);
	for (i = 0; i < 100 && rc == -EAGAIN; i++) {
		if (i == 1)
			memset(piece + 5, 0, 4);
		send_raw(a.fd, piece, sizeof(piece));
		rc = ops->handshake(b.stream);
	}
	TEST_ASSERT_EQUAL_INT(-EPROTO, rc);
	TEST_ASSERT_TRUE(i <= 9);
}

/* A hello that claims 128 KiB, byte by byte and in records that divide its header. */
static void hello_that_claims_much_gets_no_memory(void)
{
	static const uint8_t whole[] = {22, 3, 1, 0, 100, 1, 1, 0xff, 0xff, 3, 3},
			     divided[] = {22, 3, 1, 0, 1, 1, 22, 3, 1, 0, 100, 1, 0xff, 0xff, 3};
	const struct {
		const uint8_t *bytes;
		size_t n;
	} hellos[] = {{whole, sizeof(whole)}, {divided, sizeof(divided)}};

	for (size_t i = 0; i < 2; i++)
		for (unsigned most = 1; most < 20; most += 9) {
			size_t before;
			int rc = -EAGAIN;

			open_pair(secret, name);
			before = mallinfo2().uordblks + mallinfo2().hblkhd;
			recv_most = most;
			send_raw(a.fd, hellos[i].bytes, hellos[i].n);
			for (int k = 0; k < 20 && rc == -EAGAIN; k++)
				rc = ops->handshake(b.stream);
			TEST_ASSERT_EQUAL_INT(-EPROTO, rc);
			TEST_ASSERT_TRUE(mallinfo2().uordblks + mallinfo2().hblkhd - before <
					 65536);
			close_pair();
		}
}

/* -- a server with a certificate, which ignores the key -- */

static SSL_CTX *other_server(void)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
	EVP_PKEY *key = EVP_EC_gen("P-256");
	X509 *cert = X509_new();

	X509_gmtime_adj(X509_getm_notBefore(cert), -60);
	X509_gmtime_adj(X509_getm_notAfter(cert), 86400);
	X509_set_pubkey(cert, key);
	X509_sign(cert, key, EVP_sha256());
	SSL_CTX_use_certificate(ctx, cert);
	SSL_CTX_use_PrivateKey(ctx, key);
	X509_free(cert);
	EVP_PKEY_free(key);
	return ctx;
}

static void server_that_ignores_the_key_is_rejected(void)
{
	SSL_CTX *ctx = other_server();
	SSL *ssl = SSL_new(ctx);
	int rc = -EAGAIN;

	open_pair(secret, name);
	SSL_set_fd(ssl, b.fd);
	SSL_set_accept_state(ssl);
	for (int i = 0; i < 10 && rc == -EAGAIN; i++) {
		rc = ops->handshake(a.stream);
		SSL_do_handshake(ssl);
	}
	TEST_ASSERT_TRUE(rc < 0 && rc != -EAGAIN);
	SSL_free(ssl);
	SSL_CTX_free(ctx);
}

static void nothing_is_sent_in_clear(void)
{
	static const char text[] = "a known pattern that is written";

	start();
	for (int i = 0; i < 100; i++)
		put(&a, text, sizeof(text));
	get_all(&b);
	TEST_ASSERT_NOT_NULL(memmem(wire, n_wire, name, strlen(name)));
	TEST_ASSERT_NULL(memmem(wire, n_wire, "known", 5));
	TEST_ASSERT_NULL(memmem(wire, n_wire, secret, 8));
}

static void arguments_are_checked(void)
{
	void *stream;

	TEST_ASSERT_EQUAL_INT(-EINVAL, ops->open(NULL, 0, 0, secret, 15, name, 5, &stream));
	TEST_ASSERT_EQUAL_INT(-EINVAL, ops->open(NULL, 0, 0, big, 49, name, 5, &stream));
	TEST_ASSERT_EQUAL_INT(-EINVAL, ops->open(NULL, 0, 0, secret, 32, name, 0, &stream));
	TEST_ASSERT_EQUAL_INT(-EINVAL, ops->open(NULL, 0, 0, secret, 32, big, 129, &stream));
}

static void memory_is_as_stated(void)
{
	size_t before, after;

	start(); /* what OpenSSL allocates once */
	close_pair();
	before = mallinfo2().uordblks + mallinfo2().hblkhd;
	start();
	move_cut(BIG, BIG);
	put(&b, big, BIG);
	after = mallinfo2().uordblks + mallinfo2().hblkhd;
	if (after != before) /* else a sanitizer has another allocator */
		printf("a stream has %zu bytes\n", (after - before) / 2);
	TEST_ASSERT_TRUE(after - before <= 2 * ops->stream_bytes);
}

int main(void)
{
	UNITY_BEGIN();
	RUN_TEST(bytes_arrive_in_both_directions);
	RUN_TEST(vectors_of_all_shapes_arrive);
	RUN_TEST(frames_and_data_are_gathered);
	RUN_TEST(received_bytes_fill_a_vector);
	RUN_TEST(pending_input_is_a_whole_record);
	RUN_TEST(data_sent_with_the_handshake_is_pending);
	RUN_TEST(handshake_continues_at_each_byte);
	RUN_TEST(record_continues_at_each_byte);
	RUN_TEST(full_socket_takes_nothing_twice);
	RUN_TEST(keys_are_replaced_by_volume);
	RUN_TEST(keys_are_replaced_at_each_byte);
	RUN_TEST(finish_ends_the_stream);
	RUN_TEST(socket_that_ends_is_an_error);
	RUN_TEST(wrong_secret_and_wrong_name_are_rejected);
	RUN_TEST(each_changed_byte_of_the_handshake_is_detected);
	RUN_TEST(changed_record_ends_the_stream);
	RUN_TEST(replayed_handshake_is_not_accepted);
	RUN_TEST(handshake_cut_at_each_byte_never_completes);
	RUN_TEST(handshake_of_others_fails);
	RUN_TEST(handshake_has_a_limit_of_bytes);
	RUN_TEST(hello_that_claims_much_gets_no_memory);
	RUN_TEST(server_that_ignores_the_key_is_rejected);
	RUN_TEST(nothing_is_sent_in_clear);
	RUN_TEST(arguments_are_checked);
	RUN_TEST(memory_is_as_stated);
	free(wire);
	free(big);
	free(got);
	return UNITY_END();
}
