/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kernel_tls.c - streams whose sending direction the kernel encrypts. The functions setsockopt and
 * sendmsg of this file replace those of libc: a model of kernel TLS that makes real records, which
 * OpenSSL decrypts at the other end. With GANTRY_KERNEL_TLS=real in the environment the kernel of
 * this machine makes them, over TCP on loopback.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/tls.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/evp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "secure/stream.h"
#include "unity.h"

#ifndef SOL_TLS
#define SOL_TLS 282
#endif
#ifndef TCP_ULP
#define TCP_ULP 31
#endif
#define RECORD 16384u
#define BIG (1u << 20)
#define MAX_FD 64

static const uint8_t secret[32] = "a secret that both ends have....";
static const char name[] = "name of the stream";
static const struct gantry_stream_ops *const ops = &gn_stream_ops;

/* Kernel TLS of a socket, as the model has it. */
struct model {
	bool ulp, has_key;
	uint8_t key[16], nonce[12];
	uint64_t sequence;
	unsigned n_keys;
};

struct end {
	int fd;
	void *stream;
};

static bool real;                      /* the kernel of this machine, not the model */
static bool no_ulp, no_key, keeps_key; /* what the kernel of the model cannot do */
static size_t room;                    /* bytes until a socket of the model is full */
static struct model models[MAX_FD];
static struct end a, b; /* a connects, b listens */
static uint8_t *big, *got;

/* -- the model -- */

int setsockopt(int fd, int level, int option, const void *value, socklen_t bytes)
{
	const struct tls12_crypto_info_aes_gcm_128 *info = value;
	struct model *m = &models[fd];

	if (real)
		return (int)syscall(SYS_setsockopt, fd, level, option, value, bytes);
	errno = ENOENT;
	if (level == IPPROTO_TCP && option == TCP_ULP && !no_ulp) {
		m->ulp = true;
		return 0;
	}
	if (level != SOL_TLS || option != TLS_TX || !m->ulp)
		return -1;
	errno = no_key ? EINVAL : EBUSY;
	if (no_key || (m->has_key && keeps_key))
		return -1;
	TEST_ASSERT_EQUAL_size_t(sizeof(*info), bytes);
	TEST_ASSERT_EQUAL_UINT(TLS_1_3_VERSION, info->info.version);
	TEST_ASSERT_EQUAL_UINT(TLS_CIPHER_AES_GCM_128, info->info.cipher_type);
	memcpy(m->key, info->key, sizeof(m->key));
	memcpy(m->nonce, info->salt, 4);
	memcpy(m->nonce + 4, info->iv, 8);
	m->sequence = 0; /* rec_seq of each key is 0 */
	for (size_t i = 0; i < sizeof(info->rec_seq); i++)
		TEST_ASSERT_EQUAL_UINT8(0, info->rec_seq[i]);
	m->has_key = true;
	m->n_keys++;
	return 0;
}

/* Send one record as the kernel makes it. */
static void send_record(int fd, uint8_t type, const uint8_t *bytes, size_t n)
{
	struct model *m = &models[fd];
	EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
	uint8_t record[5 + RECORD + 1 + 16] = {23, 3, 3}, nonce[12], inner[RECORD + 1];
	int len;

	memcpy(inner, bytes, n);
	inner[n++] = type;
	record[3] = (uint8_t)((n + 16) >> 8);
	record[4] = (uint8_t)(n + 16);
	memcpy(nonce, m->nonce, sizeof(nonce));
	for (unsigned i = 0; i < 8; i++)
		nonce[4 + i] ^= (uint8_t)(m->sequence >> (56 - 8 * i));
	m->sequence++;
	EVP_EncryptInit_ex(ctx, EVP_aes_128_gcm(), NULL, m->key, nonce);
	EVP_EncryptUpdate(ctx, NULL, &len, record, 5);
	EVP_EncryptUpdate(ctx, record + 5, &len, inner, (int)n);
	EVP_EncryptFinal_ex(ctx, record + 5 + n, &len);
	EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_GCM_GET_TAG, 16, record + 5 + n);
	EVP_CIPHER_CTX_free(ctx);
	TEST_ASSERT_EQUAL_INT((int)n + 21, (int)send(fd, record, n + 21, MSG_NOSIGNAL));
}

static ssize_t send_by_model(int fd, const struct msghdr *msg)
{
	const struct cmsghdr *header = CMSG_FIRSTHDR(msg);
	uint8_t type = 23, *bytes = malloc(2 * BIG);
	size_t n = 0, most = room;

	if (header) {
		TEST_ASSERT_EQUAL_INT(SOL_TLS, header->cmsg_level);
		TEST_ASSERT_EQUAL_INT(TLS_SET_RECORD_TYPE, header->cmsg_type);
		memcpy(&type, CMSG_DATA(header), 1);
	}
	for (size_t i = 0; i < msg->msg_iovlen; i++) {
		if (msg->msg_iov[i].iov_len)
			memcpy(bytes + n, msg->msg_iov[i].iov_base, msg->msg_iov[i].iov_len);
		n += msg->msg_iov[i].iov_len;
	}
	n = n < most ? n : most;
	room -= n;
	for (size_t at = 0; at < n; at += RECORD)
		send_record(fd, type, bytes + at, n - at < RECORD ? n - at : RECORD);
	free(bytes);
	errno = EAGAIN;
	return n ? (ssize_t)n : -1;
}

ssize_t sendmsg(int fd, const struct msghdr *msg, int flags)
{
	TEST_ASSERT_TRUE(flags & MSG_NOSIGNAL);
	return real ? syscall(SYS_sendmsg, fd, msg, flags) : send_by_model(fd, msg);
}

/* -- two ends -- */

static void connect_tcp(int fds[2])
{
	struct sockaddr_in at = {.sin_family = AF_INET};
	socklen_t len = sizeof(at);
	int listener = socket(AF_INET, SOCK_STREAM, 0);

	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	TEST_ASSERT_EQUAL_INT(0, bind(listener, (struct sockaddr *)&at, len));
	TEST_ASSERT_EQUAL_INT(0, listen(listener, 1));
	TEST_ASSERT_EQUAL_INT(0, getsockname(listener, (struct sockaddr *)&at, &len));
	fds[0] = socket(AF_INET, SOCK_STREAM, 0);
	TEST_ASSERT_EQUAL_INT(0, connect(fds[0], (struct sockaddr *)&at, len));
	fds[1] = accept(listener, NULL, NULL);
	close(listener);
	fcntl(fds[0], F_SETFL, O_NONBLOCK);
	fcntl(fds[1], F_SETFL, O_NONBLOCK);
}

static void open_end(struct end *e, int fd, unsigned flags)
{
	TEST_ASSERT_TRUE(fd >= 0 && fd < MAX_FD);
	e->fd = fd;
	models[fd] = (struct model){0};
	TEST_ASSERT_EQUAL_INT(0, ops->open(NULL, fd, flags, secret, sizeof(secret), name,
					   sizeof(name), &e->stream));
}

/* Open both ends with these flags, and do the handshake. */
static void start(unsigned flags_of_a, unsigned flags_of_b)
{
	int fds[2], rc[2] = {-EAGAIN, -EAGAIN};

	if (real)
		connect_tcp(fds);
	else
		TEST_ASSERT_EQUAL_INT(0, socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds));
	open_end(&a, fds[0], flags_of_a);
	open_end(&b, fds[1], flags_of_b | GANTRY_STREAM_LISTENS);
	for (int i = 0; i < 100000 && (rc[0] == -EAGAIN || rc[1] == -EAGAIN); i++) {
		if (rc[0] == -EAGAIN)
			rc[0] = ops->handshake(a.stream);
		if (rc[1] == -EAGAIN)
			rc[1] = ops->handshake(b.stream);
	}
	TEST_ASSERT_EQUAL_INT(0, rc[0]);
	TEST_ASSERT_EQUAL_INT(0, rc[1]);
}

static void close_end(struct end *e)
{
	if (e->stream)
		ops->close(e->stream);
	if (e->fd >= 0)
		close(e->fd);
	*e = (struct end){.fd = -1};
}

void setUp(void)
{
	a.fd = b.fd = -1;
	no_ulp = no_key = keeps_key = false;
	room = SIZE_MAX;
	if (big)
		return;
	big = malloc(BIG);
	got = malloc(BIG);
	for (size_t i = 0; i < BIG; i++)
		big[i] = (uint8_t)(i * 0x9e3779b1u >> 13);
}

void tearDown(void)
{
	close_end(&a);
	close_end(&b);
}

static bool by_kernel(const struct end *e)
{
	return ops->pending(e->stream) & GANTRY_STREAM_KERNEL;
}

static ssize_t put(struct end *e, const void *bytes, size_t n)
{
	const struct iovec iov = {.iov_base = (void *)bytes, .iov_len = n};

	return ops->send(e->stream, &iov, 1);
}

/* Receive, waiting for the bytes. */
static ssize_t get(struct end *e, void *to, size_t n)
{
	const struct iovec iov = {.iov_base = to, .iov_len = n};
	struct pollfd fd = {.fd = e->fd, .events = POLLIN};
	ssize_t k = ops->receive(e->stream, &iov, 1);

	while (k == -EAGAIN && poll(&fd, 1, real ? 20000 : 0) == 1)
		k = ops->receive(e->stream, &iov, 1);
	return k;
}

/* Send bytes from one end to the other, in pieces of at most `piece`. */
static void move(struct end *from, struct end *to, size_t bytes, size_t piece)
{
	size_t sent = 0, n_got = 0;

	memset(got, 0, bytes);
	while (n_got < bytes) {
		size_t n = bytes - sent < piece ? bytes - sent : piece;
		ssize_t k = n ? put(from, big + sent, n) : 0;

		TEST_ASSERT_TRUE(k >= 0 || k == -EAGAIN);
		sent += k > 0 ? (size_t)k : 0;
		while (n_got < sent) {
			k = get(to, got + n_got, sent - n_got);
			TEST_ASSERT_GREATER_THAN_INT(0, (int)k);
			n_got += (size_t)k;
		}
	}
	TEST_ASSERT_EQUAL_MEMORY(big, got, bytes);
}

/* -- cases -- */

static void bytes_arrive(unsigned flags_of_a, unsigned flags_of_b)
{
	start(flags_of_a, flags_of_b);
	TEST_ASSERT_EQUAL_INT(flags_of_a != 0, by_kernel(&a));
	TEST_ASSERT_EQUAL_INT(flags_of_b != 0, by_kernel(&b));
	for (size_t piece = 1; piece < 120000; piece = piece * 5 + 3) {
		move(&a, &b, 3 * piece, piece);
		move(&b, &a, 2 * piece, piece);
	}
	tearDown();
}

static void bytes_arrive_with_the_kernel_at_either_end(void)
{
	bytes_arrive(GANTRY_STREAM_KERNEL, 0);
	bytes_arrive(0, GANTRY_STREAM_KERNEL);
	bytes_arrive(GANTRY_STREAM_KERNEL, GANTRY_STREAM_KERNEL);
}

static void a_vector_is_sent_as_it_is(void)
{
	const struct iovec iov[] = {{big, 64}, {NULL, 0}, {big + 64, 40000}};

	start(GANTRY_STREAM_KERNEL, 0);
	TEST_ASSERT_EQUAL_INT(40064, (int)ops->send(a.stream, iov, 3));
	for (size_t n = 0; n < 40064;)
		n += (size_t)get(&b, got + n, 40064 - n);
	TEST_ASSERT_EQUAL_MEMORY(big, got, 40064);
	TEST_ASSERT_EQUAL_INT(0, (int)ops->send(a.stream, NULL, 0));
}

static void finish_ends_the_stream(void)
{
	start(GANTRY_STREAM_KERNEL, 0);
	TEST_ASSERT_EQUAL_INT(3, (int)put(&a, "end", 3));
	TEST_ASSERT_EQUAL_INT(0, ops->finish(a.stream));
	TEST_ASSERT_EQUAL_INT(0, ops->finish(a.stream));
	TEST_ASSERT_EQUAL_INT(-EPIPE, (int)put(&a, "more", 4));
	TEST_ASSERT_EQUAL_INT(3, (int)get(&b, got, 10));
	TEST_ASSERT_EQUAL_INT(0, (int)get(&b, got, 10));
}

static void a_stream_that_ends_without_finish_is_reset(void)
{
	start(GANTRY_STREAM_KERNEL, 0);
	close_end(&a);
	TEST_ASSERT_EQUAL_INT(-ECONNRESET, (int)get(&b, got, 10));
}

/* The kernel of this machine decides whether keys can be replaced. */
static void keys_are_replaced_or_expire(void)
{
	ssize_t rc = 0;

	start(GANTRY_STREAM_KERNEL, 0);
	gn_stream_rekey_after(a.stream, 100000);
	for (unsigned i = 0; i < 40 && rc >= 0; i++) {
		rc = put(&a, big + (size_t)i * 10000, 10000);
		if (rc > 0)
			TEST_ASSERT_EQUAL_INT(10000, (int)get(&b, got, 10000));
	}
	if (rc < 0) {
		TEST_ASSERT_EQUAL_INT(-EKEYEXPIRED, (int)rc);
		TEST_ASSERT_EQUAL_UINT(0, gn_stream_rekeyed(a.stream));
		TEST_ASSERT_EQUAL_INT(-EPIPE, (int)put(&a, big, 1));
		TEST_ASSERT_TRUE(real || keeps_key);
		return;
	}
	TEST_ASSERT_EQUAL_UINT(3, gn_stream_rekeyed(a.stream));
	TEST_ASSERT_FALSE(keeps_key);
	move(&b, &a, 100000, 7000);
}

static void a_kernel_that_keeps_its_key_ends_the_stream(void)
{
	keeps_key = true;
	keys_are_replaced_or_expire();
}

static void without_kernel_tls_the_process_encrypts(void)
{
	for (int i = 0; i < 2; i++) {
		no_ulp = i == 0;
		no_key = i == 1;
		start(GANTRY_STREAM_KERNEL, GANTRY_STREAM_KERNEL);
		TEST_ASSERT_FALSE(by_kernel(&a));
		move(&a, &b, 100000, 7000);
		move(&b, &a, 100000, 7000);
		tearDown();
	}
}

static void the_key_of_the_model_is_not_set_without_the_flag(void)
{
	start(0, 0);
	TEST_ASSERT_EQUAL_UINT(0, models[a.fd].n_keys + models[b.fd].n_keys);
	TEST_ASSERT_FALSE(models[a.fd].ulp || models[b.fd].ulp);
}

static void a_full_socket_is_reported(void)
{
	start(GANTRY_STREAM_KERNEL, 0);
	room = 20000;
	TEST_ASSERT_EQUAL_INT(20000, (int)put(&a, big, 30000));
	TEST_ASSERT_EQUAL_INT(-EAGAIN, (int)put(&a, big + 20000, 10000));
	TEST_ASSERT_EQUAL_INT(-EAGAIN, ops->finish(a.stream));
	gn_stream_rekey_after(a.stream, 1);
	TEST_ASSERT_EQUAL_INT(-EAGAIN, (int)put(&a, big + 20000, 10000));
	TEST_ASSERT_EQUAL_UINT(0, gn_stream_rekeyed(a.stream));
	room = SIZE_MAX;
	TEST_ASSERT_EQUAL_INT(10000, (int)put(&a, big + 20000, 10000));
	TEST_ASSERT_EQUAL_UINT(1, gn_stream_rekeyed(a.stream));
	TEST_ASSERT_EQUAL_INT(0, ops->finish(a.stream));
	for (size_t n = 0; n < 30000;)
		n += (size_t)get(&b, got + n, 30000 - n);
	TEST_ASSERT_EQUAL_MEMORY(big, got, 30000);
	TEST_ASSERT_EQUAL_INT(0, (int)get(&b, got, 10));
}

/* A record that OpenSSL would send with its own key, after the kernel has used the key. */
static void openssl_sends_nothing_when_the_kernel_sends(void)
{
	static const uint8_t garbage[] = {23, 3,  3,  0,  20, 1,  2,  3,  4,  5,  6,  7, 8,
					  9,  10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20};

	start(GANTRY_STREAM_KERNEL, 0);
	TEST_ASSERT_EQUAL_INT(sizeof(garbage), (int)write(b.fd, garbage, sizeof(garbage)));
	TEST_ASSERT_EQUAL_INT(-EPROTO, (int)get(&a, got, 10)); /* and OpenSSL sends an alert */
	TEST_ASSERT_EQUAL_INT(-1, (int)recv(b.fd, got, 10, MSG_DONTWAIT));
	TEST_ASSERT_EQUAL_INT(EAGAIN, errno);
	TEST_ASSERT_EQUAL_INT(-EPIPE, (int)put(&a, "x", 1));
}

int main(void)
{
	const char *kernel = getenv("GANTRY_KERNEL_TLS");

	real = kernel && strcmp(kernel, "real") == 0;
	UNITY_BEGIN();
	RUN_TEST(bytes_arrive_with_the_kernel_at_either_end);
	RUN_TEST(a_vector_is_sent_as_it_is);
	RUN_TEST(finish_ends_the_stream);
	RUN_TEST(a_stream_that_ends_without_finish_is_reset);
	RUN_TEST(keys_are_replaced_or_expire);
	RUN_TEST(openssl_sends_nothing_when_the_kernel_sends);
	if (!real) {
		RUN_TEST(a_kernel_that_keeps_its_key_ends_the_stream);
		RUN_TEST(without_kernel_tls_the_process_encrypts);
		RUN_TEST(the_key_of_the_model_is_not_set_without_the_flag);
		RUN_TEST(a_full_socket_is_reported);
	}
	return UNITY_END();
}
