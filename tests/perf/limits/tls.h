/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tls.h - the sockets of tlsfloor: SSL_write() and SSL_read() of OpenSSL on the sockets of
 * tcpfloor, with TLS 1.3, a pre-shared key and AES-128-GCM. Each process has one connection.
 */
#ifndef PERF_TLS_H
#define PERF_TLS_H

#include <fcntl.h>
#include <openssl/ssl.h>

#define RECORD 16384u

static SSL *ssl;

static unsigned key_of_client(SSL *s, const char *hint, char *name, unsigned name_bytes,
			      unsigned char *key, unsigned key_bytes)
{
	(void)s;
	(void)hint;
	snprintf(name, name_bytes, "floor");
	memset(key, 7, key_bytes < 32 ? key_bytes : 32);
	return 32;
}

static unsigned key_of_server(SSL *s, const char *name, unsigned char *key, unsigned key_bytes)
{
	(void)s;
	(void)name;
	memset(key, 7, key_bytes < 32 ? key_bytes : 32);
	return 32;
}

static void must(int ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "tlsfloor: %s failed\n", what);
	exit(1);
}

/* Do the handshake. */
static void secure(int fd, int listens)
{
	SSL_CTX *ctx = SSL_CTX_new(listens ? TLS_server_method() : TLS_client_method());

	must(ctx && SSL_CTX_set_min_proto_version(ctx, TLS1_3_VERSION) &&
		     SSL_CTX_set_ciphersuites(ctx, "TLS_AES_128_GCM_SHA256") &&
		     SSL_CTX_set_num_tickets(ctx, 0),
	     "a context");
	SSL_CTX_set_psk_client_callback(ctx, key_of_client);
	SSL_CTX_set_psk_server_callback(ctx, key_of_server);
	SSL_CTX_set_read_ahead(ctx, 1);
	SSL_free(ssl);
	ssl = SSL_new(ctx);
	must(ssl && SSL_set_fd(ssl, fd), "a connection");
	must((listens ? SSL_accept(ssl) : SSL_connect(ssl)) == 1, "the handshake");
	must(!fcntl(fd, F_SETFL, O_NONBLOCK), "O_NONBLOCK");
	SSL_CTX_free(ctx);
}

/* Returns 0: the connection has ended; 1: a call that returned n <= 0 is to be repeated. */
static int again(int n)
{
	int error = SSL_get_error(ssl, n);

	return error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE;
}

/* Receive into the pieces what there is, by polling. Returns the number of bytes; 0: the end. */
static size_t receive(int fd, struct iovec *iov, int n)
{
	size_t all = 0, used = 0;

	(void)fd;
	for (int i = 0; i < n;) {
		int got = SSL_read(ssl, (char *)iov[i].iov_base + used,
				   (int)(iov[i].iov_len - used));

		if (got <= 0 && (all || !again(got)))
			break;
		if (got <= 0) {
			relax();
			continue;
		}
		all += (size_t)got;
		used += (size_t)got;
		if (used == iov[i].iov_len) {
			used = 0;
			i++;
		}
	}
	return all;
}

static void put(const void *bytes, size_t n)
{
	int sent;

	while ((sent = SSL_write(ssl, bytes, (int)n)) <= 0) {
		must(again(sent), "SSL_write()");
		relax();
	}
}

/* Small pieces go together in one record. */
static void transmit(int fd, struct iovec *iov, int n)
{
	static char record[RECORD];
	size_t used = 0;

	(void)fd;
	for (int i = 0; i < n; i++) {
		if (used && used + iov[i].iov_len > RECORD) {
			put(record, used);
			used = 0;
		}
		if (iov[i].iov_len > RECORD) {
			put(iov[i].iov_base, iov[i].iov_len);
		} else {
			memcpy(record + used, iov[i].iov_base, iov[i].iov_len);
			used += iov[i].iov_len;
		}
	}
	if (used)
		put(record, used);
}

#endif
