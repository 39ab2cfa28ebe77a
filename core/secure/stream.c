/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stream.c - TLS 1.3 on a connected socket, with a pre-shared key (psk_dhe_ke).
 *
 * OpenSSL reads and writes the socket by a BIO of this file, for three reasons: it sends with
 * MSG_NOSIGNAL; it keeps what the socket does not take of a record, so that OpenSSL never waits in
 * the middle of a record and its caller need not repeat a write with the same bytes; and it does
 * not read a socket again that had fewer bytes than it was asked for.
 *
 * Name and key. The name that both ends state is the identity of the PSK, which the handshake
 * authenticates. An end that expects another name uses a random key, so that a wrong name and a
 * wrong secret look the same to the peer.
 *
 * Memory of a stream: OpenSSL holds a record of each direction and its own state, and this file a
 * record that the socket has not taken and a buffer to gather small pieces: STREAM_BYTES.
 *
 * Kernel TLS. With GANTRY_STREAM_KERNEL the kernel encrypts what is sent after the handshake, where
 * it can: see kernel_tls.c. OpenSSL still decrypts what is received. OpenSSL 3.0 cannot replace the
 * key of a socket with kernel TLS, so its own kernel TLS is not used. This file takes the secret of
 * the sending direction from the key log of OpenSSL. OpenSSL then cannot send records: an alert, or
 * the answer to a request for another key, which ends of this file do not send.
 */
#include <errno.h>
#include <openssl/err.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "secure/kernel_tls.h"
#include "secure/stream.h"

#define RECORD 16384u               /* largest data of a record */
#define RECORD_ROOM (RECORD + 512u) /* largest record, with an alert or a change of the key */
#define MIN_SECRET 16u
#define MAX_SECRET 48u
#define MAX_NAME 128u
#define HANDSHAKE_BYTES 8192u /* limit of bytes of the peer in a handshake, which has 600 */
#define STREAM_BYTES 81920u   /* measured: tests/unit/secure/stream.c */

/*
 * Bytes after which the key of a direction is replaced. AES-GCM with records of 16 KiB permits
 * 2^38.5 (RFC 8446, 5.5). Each record counts 64 bytes more than its data, for small records.
 */
#define REKEY_BYTES (1ull << 34)
#define RECORD_COST 64u
/* bytes after which a stream ends whose key the kernel cannot replace */
#define KEY_BYTES (1ull << 38)

struct stream {
	SSL *ssl;
	int fd;
	bool listens, open, finished;
	bool wants_kernel; /* the caller permits kernel TLS */
	bool has_secret;   /* `tls` has the secret of the sending direction */
	bool kernel;       /* the kernel encrypts what is sent */
	bool failed;       /* nothing more can be sent or received */
	bool dry;          /* the last call of receive has left no complete record */
	bool drained;      /* in a call: the socket has no more bytes now */
	bool more;         /* in a call: more records follow at once */
	bool ended;        /* the peer has ended the socket */
	int error;         /* errno of the socket; 0: none */
	uint32_t n_secret, n_name;
	uint32_t from, to; /* bytes of `left` that the socket has not taken */
	uint64_t n_in;     /* bytes of the handshake */
	uint8_t head[9];   /* header of the first record, and of the message in it */
	uint32_t n_head;   /* bytes of it that have arrived */
	uint64_t cost, rekey_after;
	unsigned n_rekeyed;
	struct gn_kernel_tls tls;
	uint8_t secret[MAX_SECRET], name[MAX_NAME];
	uint8_t left[RECORD_ROOM];
	uint8_t gather[RECORD];
};

/* -- the socket -- */

/* Send what is left of a record. Returns true if nothing is left. */
static bool send_left(struct stream *s)
{
	while (s->from != s->to) {
		ssize_t n = send(s->fd, s->left + s->from, s->to - s->from, MSG_NOSIGNAL);

		if (n < 0 && errno != EAGAIN && errno != EINTR)
			s->error = errno;
		if (n <= 0)
			return false;
		s->from += (uint32_t)n;
	}
	s->from = s->to = 0;
	return true;
}

static int bio_write(BIO *bio, const char *bytes, int len)
{
	struct stream *s = BIO_get_data(bio);
	ssize_t n = 0;

	BIO_clear_retry_flags(bio);
	if (s->kernel) /* OpenSSL has no key of what is sent */
		return -1;
	if (send_left(s))
		n = send(s->fd, bytes, (size_t)len, MSG_NOSIGNAL | (s->more ? MSG_MORE : 0));
	if (n < 0 && errno != EAGAIN && errno != EINTR)
		s->error = errno;
	if (s->error)
		return -1;
	n = n < 0 ? 0 : n;
	if ((size_t)(len - n) > sizeof(s->left) - s->to) {
		/* only answers to a peer that replaces keys again and again get here */
		BIO_set_retry_write(bio);
		return n ? (int)n : -1;
	}
	memcpy(s->left + s->to, bytes + n, (size_t)(len - n));
	s->to += (uint32_t)(len - n);
	return len;
}

/*
 * OpenSSL allocates what the header of a message claims, up to 128 KiB. Returns true if the first
 * message claims too much, or if its header is not in the first record.
 */
static bool claims_too_much(struct stream *s, const char *bytes, size_t n)
{
	const uint8_t *head = s->head;

	for (size_t i = 0; i < n && s->n_head < sizeof(s->head); i++)
		s->head[s->n_head++] = (uint8_t)bytes[i];
	return s->n_head == sizeof(s->head) &&
	       ((head[3] << 8 | head[4]) < 4 ||
		(unsigned)(head[6] << 16 | head[7] << 8 | head[8]) > HANDSHAKE_BYTES);
}

static int bio_read(BIO *bio, char *bytes, int len)
{
	struct stream *s = BIO_get_data(bio);
	ssize_t n;

	BIO_clear_retry_flags(bio);
	if (s->drained) {
		BIO_set_retry_read(bio);
		return -1;
	}
	n = recv(s->fd, bytes, (size_t)len, 0);
	if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
		s->drained = true;
		BIO_set_retry_read(bio);
	} else if (n < 0) {
		s->error = errno;
	} else if (n == 0) {
		s->ended = true;
	} else {
		s->drained = n < len;
	}
	if (n > 0 && !s->open) {
		s->n_in += (uint64_t)n;
		if (s->n_in > HANDSHAKE_BYTES || claims_too_much(s, bytes, (size_t)n))
			return -1;
	}
	return (int)n;
}

static long bio_ctrl(BIO *bio, int cmd, long num, void *ptr)
{
	(void)num;
	(void)ptr;
	if (cmd == BIO_CTRL_EOF)
		return ((struct stream *)BIO_get_data(bio))->ended;
	return cmd == BIO_CTRL_FLUSH;
}

/* -- what all streams share -- */

/* Not freed: OpenSSL frees its own memory at exit, before or after this library. */
static struct {
	pthread_once_t once;
	BIO_METHOD *bio;
	SSL_CTX *ctx[2]; /* of the end that connects, and of the one that listens */
} shared = {.once = PTHREAD_ONCE_INIT};

static const uint8_t session_context[] = {'g', 'n'};

/* Make the session of a key; NULL: the random key of an end that must fail. */
static SSL_SESSION *session_of(SSL *ssl, const uint8_t *key, size_t bytes)
{
	static const uint8_t aes128[] = {0x13, 0x01}; /* TLS_AES_128_GCM_SHA256 */
	SSL_SESSION *session = SSL_SESSION_new();
	uint8_t random[32];
	int ok = session != NULL;

	if (!key) {
		ok = ok && RAND_bytes(random, sizeof(random)) == 1;
		key = random;
		bytes = sizeof(random);
	}
	ok = ok && SSL_SESSION_set1_master_key(session, key, bytes) &&
	     SSL_SESSION_set_cipher(session, SSL_CIPHER_find(ssl, aes128)) &&
	     SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION) &&
	     SSL_SESSION_set1_id_context(session, session_context, sizeof(session_context));
	OPENSSL_cleanse(random, sizeof(random));
	if (ok)
		return session;
	SSL_SESSION_free(session);
	return NULL;
}

static int use_key(SSL *ssl, const EVP_MD *md, const unsigned char **name, size_t *bytes,
		   SSL_SESSION **session)
{
	const struct stream *s = SSL_get_app_data(ssl);

	*session = NULL;
	if (md && EVP_MD_get_type(md) != NID_sha256)
		return 1; /* a retry for another hash: without the key, the handshake fails */
	*session = session_of(ssl, s->secret, s->n_secret);
	*name = s->name;
	*bytes = s->n_name;
	return *session != NULL;
}

static int find_key(SSL *ssl, const unsigned char *name, size_t bytes, SSL_SESSION **session)
{
	const struct stream *s = SSL_get_app_data(ssl);
	bool same = bytes == s->n_name && memcmp(name, s->name, bytes) == 0;

	*session = session_of(ssl, same ? s->secret : NULL, s->n_secret);
	return *session != NULL;
}

/* Keep the secret of the sending direction, which OpenSSL logs: "LABEL RANDOM SECRET". */
static void keep_secret(const SSL *ssl, const char *line)
{
	struct stream *s = SSL_get_app_data(ssl);
	const char *label = s->listens ? "SERVER_TRAFFIC_SECRET_0 " : "CLIENT_TRAFFIC_SECRET_0 ";
	const char *hex = strrchr(line, ' ');
	size_t n = 0;

	if (!s->wants_kernel || !hex || strncmp(line, label, strlen(label)) != 0)
		return;
	s->has_secret = OPENSSL_hexstr2buf_ex(s->tls.secret, sizeof(s->tls.secret), &n, hex + 1,
					      '\0') == 1 &&
			n == sizeof(s->tls.secret);
}

static SSL_CTX *context(int listens)
{
	SSL_CTX *ctx = SSL_CTX_new(listens ? TLS_server_method() : TLS_client_method());

	if (!ctx)
		return NULL;
	if (!SSL_CTX_set_min_proto_version(ctx, TLS1_3_VERSION) ||
	    !SSL_CTX_set_ciphersuites(ctx, "TLS_AES_128_GCM_SHA256") ||
	    !SSL_CTX_set1_groups_list(ctx, "X25519") || !SSL_CTX_set_num_tickets(ctx, 0) ||
	    !SSL_CTX_set_session_id_context(ctx, session_context, sizeof(session_context))) {
		SSL_CTX_free(ctx);
		return NULL;
	}
	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
	SSL_CTX_clear_options(ctx, SSL_OP_ENABLE_MIDDLEBOX_COMPAT);
	SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	SSL_CTX_set_read_ahead(ctx, 1);
	SSL_CTX_set_keylog_callback(ctx, keep_secret);
	/* a peer that ignores the key has no certificate that this end accepts */
	SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
	if (listens)
		SSL_CTX_set_psk_find_session_callback(ctx, find_key);
	else
		SSL_CTX_set_psk_use_session_callback(ctx, use_key);
	return ctx;
}

static void make_shared(void)
{
	shared.bio = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "gantry stream");
	if (!shared.bio || !BIO_meth_set_write(shared.bio, bio_write) ||
	    !BIO_meth_set_read(shared.bio, bio_read) || !BIO_meth_set_ctrl(shared.bio, bio_ctrl))
		return;
	shared.ctx[1] = context(1);
	if (shared.ctx[1])
		shared.ctx[0] = context(0);
}

/* -- a stream -- */

static void stream_close(void *stream)
{
	struct stream *s = stream;

	SSL_free(s->ssl);
	gn_kernel_tls_end(&s->tls);
	OPENSSL_cleanse(s->secret, sizeof(s->secret));
	OPENSSL_cleanse(s->gather, sizeof(s->gather));
	free(s);
	ERR_clear_error();
}

static int make_ssl(struct stream *s)
{
	BIO *bio;

	pthread_once(&shared.once, make_shared);
	if (!shared.ctx[0])
		return -ENOMEM;
	s->ssl = SSL_new(shared.ctx[s->listens]);
	bio = s->ssl ? BIO_new(shared.bio) : NULL;
	if (!bio)
		return -ENOMEM;
	BIO_set_data(bio, s);
	BIO_set_init(bio, 1);
	SSL_set_bio(s->ssl, bio, bio);
	SSL_set_app_data(s->ssl, s);
	if (s->listens)
		SSL_set_accept_state(s->ssl);
	else
		SSL_set_connect_state(s->ssl);
	return 0;
}

static int stream_open(const struct gantry_host *host, int fd, unsigned flags, const void *secret,
		       size_t secret_bytes, const void *name, size_t name_bytes, void **stream_p)
{
	struct stream *s;
	int rc;

	(void)host;
	if (secret_bytes < MIN_SECRET || secret_bytes > MAX_SECRET || name_bytes == 0 ||
	    name_bytes > MAX_NAME || flags & ~(GANTRY_STREAM_LISTENS | GANTRY_STREAM_KERNEL))
		return -EINVAL;
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->fd = fd;
	s->listens = flags & GANTRY_STREAM_LISTENS;
	s->wants_kernel = flags & GANTRY_STREAM_KERNEL;
	s->rekey_after = REKEY_BYTES;
	s->n_secret = (uint32_t)secret_bytes;
	s->n_name = (uint32_t)name_bytes;
	memcpy(s->secret, secret, secret_bytes);
	memcpy(s->name, name, name_bytes);
	rc = make_ssl(s);
	if (rc) {
		stream_close(s);
		return rc;
	}
	*stream_p = s;
	return 0;
}

/* Begin a call: errors of other uses of OpenSSL in this thread must not look like ours. */
static void begin(struct stream *s)
{
	s->drained = false;
	s->more = false;
	ERR_clear_error();
}

/* Returns what an operation that did not succeed means, as -errno; 0: end of the stream. */
static int failure(struct stream *s, int result)
{
	int error = SSL_get_error(s->ssl, result), reason;

	if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE)
		return -EAGAIN;
	if (error == SSL_ERROR_ZERO_RETURN)
		return 0;
	s->failed = true;
	reason = ERR_GET_REASON(ERR_peek_error());
	ERR_clear_error();
	if (s->ended && (reason == 0 || reason == SSL_R_UNEXPECTED_EOF_WHILE_READING))
		return -ECONNRESET;
	return s->error ? -s->error : -EPROTO;
}

static int handshake_failure(struct stream *s, int result)
{
	int reason = ERR_GET_REASON(ERR_peek_error()), rc = failure(s, result);

	if (rc == -ECONNRESET)
		return -ENOTCONN;
	if (rc != -EPROTO)
		return rc == 0 ? -EPROTO : rc;
	/* the last two: the alert of a peer that has found the same */
	return reason == SSL_R_BINDER_DOES_NOT_VERIFY || reason == SSL_R_BAD_PSK ||
			       reason == SSL_R_SSLV3_ALERT_ILLEGAL_PARAMETER ||
			       reason == SSL_R_TLSV1_ALERT_DECRYPT_ERROR
		       ? -EACCES
		       : -EPROTO;
}

/* All bytes of the handshake are sent, and no other: let the kernel send the next ones. */
static void start_kernel(struct stream *s)
{
	s->wants_kernel = false;
	if (!s->has_secret)
		return;
	s->kernel = gn_kernel_tls_start(&s->tls, s->fd) == 0;
	if (s->kernel && !s->tls.replaces_keys)
		s->rekey_after = KEY_BYTES;
	if (!s->kernel)
		gn_kernel_tls_end(&s->tls);
}

static int stream_handshake(void *stream)
{
	struct stream *s = stream;
	int n;

	begin(s);
	if (s->failed)
		return -EPROTO;
	if (!s->open) {
		n = SSL_do_handshake(s->ssl);
		if (n != 1) {
			n = handshake_failure(s, n);
			send_left(s);
			return n;
		}
		if (!SSL_session_reused(s->ssl)) { /* without the key */
			s->failed = true;
			return -EACCES;
		}
		s->open = true;
		OPENSSL_cleanse(s->secret, sizeof(s->secret));
	}
	if (!send_left(s))
		return s->error ? -s->error : -EAGAIN;
	if (s->wants_kernel)
		start_kernel(s);
	return 0;
}

/* -- sending -- */

/* Replace the key of the sending direction. Returns 0 or -errno. */
static int replace_key(struct stream *s)
{
	int rc = 0;

	if (s->kernel)
		rc = gn_kernel_tls_replace_key(&s->tls);
	else if (!SSL_key_update(s->ssl, SSL_KEY_UPDATE_NOT_REQUESTED) ||
		 SSL_do_handshake(s->ssl) != 1)
		rc = s->error ? -s->error : -EPIPE;
	if (rc) {
		s->failed = rc != -EAGAIN;
		ERR_clear_error();
		return rc;
	}
	s->cost = 0;
	s->n_rekeyed++;
	return 0;
}

/* Send what is inside, and replace the key if it is time. Returns 0 or -errno. */
static int prepare(struct stream *s)
{
	if (s->failed || !s->open || s->finished)
		return -EPIPE;
	if (!send_left(s))
		return s->error ? -s->error : -EAGAIN;
	return s->cost < s->rekey_after ? 0 : replace_key(s);
}

/* Make a record and give it to the socket. Returns 0 or -errno: nothing of it counts as sent. */
static int put_record(struct stream *s, const void *bytes, size_t len)
{
	int n, rc;

	rc = prepare(s);
	if (rc)
		return rc;
	n = SSL_write(s->ssl, bytes, (int)len);
	if (n == (int)len) {
		s->cost += len + RECORD_COST;
		return 0;
	}
	rc = n > 0 ? -EPROTO : failure(s, n);
	s->failed = s->failed || rc != -EAGAIN;
	return rc ? rc : -EPIPE;
}

/* A place in a vector. */
struct place {
	const struct iovec *iov;
	size_t n, skip; /* iovecs that are left; bytes of the first that are done */
};

static void step(struct place *at, size_t bytes)
{
	at->skip += bytes;
	while (at->n && at->skip == at->iov->iov_len) {
		at->iov++;
		at->n--;
		at->skip = 0;
	}
}

/* Collect the next record. Returns its bytes, which are in place if they are a whole record. */
static const uint8_t *next_record(struct stream *s, struct place *at, size_t *len_p)
{
	const uint8_t *first = (const uint8_t *)at->iov->iov_base + at->skip;
	size_t len = at->iov->iov_len - at->skip, used = 0;

	if (len >= RECORD || at->n == 1) {
		*len_p = len < RECORD ? len : RECORD;
		step(at, *len_p);
		return first;
	}
	while (at->n && used < RECORD) {
		len = at->iov->iov_len - at->skip;
		len = len < RECORD - used ? len : RECORD - used;
		memcpy(s->gather + used, (const uint8_t *)at->iov->iov_base + at->skip, len);
		used += len;
		step(at, len);
	}
	*len_p = used;
	return s->gather;
}

static ssize_t send_by_kernel(struct stream *s, const struct iovec *iov, size_t n)
{
	ssize_t sent = gn_kernel_tls_send(&s->tls, iov, n);

	if (sent == -EINTR)
		return -EAGAIN;
	if (sent < 0)
		s->failed = sent != -EAGAIN;
	else
		s->cost += (uint64_t)sent + ((uint64_t)sent / RECORD + 1) * RECORD_COST;
	return sent;
}

static ssize_t stream_send(void *stream, const struct iovec *iov, size_t n)
{
	struct stream *s = stream;
	struct place at = {.iov = iov, .n = n};
	ssize_t sent = 0;
	int rc = 0;

	begin(s);
	step(&at, 0);
	if (!at.n || s->kernel)
		rc = prepare(s);
	if (at.n && s->kernel)
		return rc ? rc : send_by_kernel(s, iov, n);
	while (at.n && !rc) {
		size_t len;
		const uint8_t *bytes = next_record(s, &at, &len);

		s->more = at.n > 0;
		rc = put_record(s, bytes, len);
		if (!rc)
			sent += (ssize_t)len;
	}
	return sent ? sent : rc;
}

/* -- receiving -- */

static ssize_t stream_receive(void *stream, const struct iovec *iov, size_t n)
{
	struct stream *s = stream;
	struct place at = {.iov = iov, .n = n};
	ssize_t got = 0;

	begin(s);
	if (s->failed || !s->open)
		return -EPROTO;
	s->dry = false;
	for (step(&at, 0); at.n;) {
		size_t max = at.iov->iov_len - at.skip;
		int k = SSL_read(s->ssl, (uint8_t *)at.iov->iov_base + at.skip,
				 max < INT32_MAX ? (int)max : INT32_MAX);

		if (k <= 0) {
			k = failure(s, k);
			s->dry = k == -EAGAIN;
			return got ? got : k;
		}
		got += k;
		step(&at, (size_t)k);
	}
	return got;
}

static unsigned stream_pending(void *stream)
{
	struct stream *s = stream;

	/* SSL_has_pending() also reports a part of a record, of which the socket has the rest */
	return (s->open && !s->dry && SSL_has_pending(s->ssl) ? GANTRY_STREAM_INPUT : 0) |
	       (s->from != s->to ? GANTRY_STREAM_OUTPUT : 0) |
	       (s->kernel ? GANTRY_STREAM_KERNEL : 0);
}

static int stream_finish(void *stream)
{
	struct stream *s = stream;

	begin(s);
	if (!s->finished) {
		int rc = prepare(s);

		if (!rc && s->kernel)
			rc = gn_kernel_tls_close_notify(&s->tls);
		if (rc)
			return rc;
		if (!s->kernel)
			SSL_shutdown(s->ssl); /* the alert fits in `left` */
		ERR_clear_error();
		s->finished = true;
	}
	if (send_left(s))
		return 0;
	return s->error ? -s->error : -EAGAIN;
}

const struct gantry_stream_ops gn_stream_ops = {
	.struct_size = sizeof(gn_stream_ops),
	.stream_bytes = STREAM_BYTES,
	.open = stream_open,
	.close = stream_close,
	.handshake = stream_handshake,
	.send = stream_send,
	.receive = stream_receive,
	.pending = stream_pending,
	.finish = stream_finish,
};

void gn_stream_rekey_after(void *stream, uint64_t bytes)
{
	((struct stream *)stream)->rekey_after = bytes;
}

unsigned gn_stream_rekeyed(const void *stream)
{
	return ((const struct stream *)stream)->n_rekeyed;
}
