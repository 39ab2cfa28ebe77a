/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * auth_records.c - the record filter by OpenSSL, which reads and writes memory. The filter cuts the
 * bytes of the peer to records and checks their lengths. OpenSSL gets one whole record at a time.
 */
#include "secure/auth_priv.h"
#include "secure/stream.h"

#include <errno.h>
#include <limits.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/container_of.h"
#include "base/host.h"
#include "base/log.h"

#define HELLO_HEAD 4                      /* of the message ClientHello: type, u24 length */
#define REFUSED_LOG_NS (10 * GN_NS_PER_S) /* interval of warnings of refused handshakes */

enum {
	TYPE_ALERT = 21,
	TYPE_HANDSHAKE = 22,
	TYPE_DATA = 23,
	MESSAGE_CLIENT_HELLO = 1,
	MESSAGE_KEY_UPDATE = 24,
};

/* What the end that listens sends after it has accepted the peer. */
static const uint8_t confirmation[1] = {1};

struct auth_filter *auth_filter_of(const SSL *ssl)
{
	return SSL_get_app_data(ssl);
}

/* -- failure -- */

static int fail(struct auth_filter *f, const char *reason)
{
	f->state = GANTRY_RECORDS_FAILED;
	if (f->stated[0])
		snprintf(f->text, sizeof(f->text), "identity=%.70s, reason=%s", f->stated, reason);
	else
		snprintf(f->text, sizeof(f->text), "reason=%s", reason);
	return -EPROTO;
}

/* Reasons of OpenSSL that have another name here. */
static const struct {
	int reason;
	const char *text;
} reasons[] = {
	{SSL_R_BINDER_DOES_NOT_VERIFY, "wrong key"},
	{SSL_R_BAD_PSK, "wrong key"},
	/* psk only: with x509 a callback has the reason */
	{SSL_R_CERTIFICATE_VERIFY_FAILED, "the peer does not use the key"},
	{SSL_R_NO_SHARED_CIPHER, "the peer offers no key"},
	{SSL_R_NO_SUITABLE_SIGNATURE_ALGORITHM, "the peer offers no key"},
	{SSL_R_UNSUPPORTED_PROTOCOL, "the peer does not offer TLS 1.3"},
	{SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE, "the peer has no certificate"},
	{SSL_R_DECRYPTION_FAILED_OR_BAD_RECORD_MAC, "a record was changed, repeated or reordered"},
};

/* Fail for the reason that a callback or OpenSSL has found. */
static int fail_tls(struct auth_filter *f)
{
	const unsigned long error = ERR_peek_error();
	const int reason = ERR_GET_LIB(error) == ERR_LIB_SSL ? ERR_GET_REASON(error) : 0;
	const char *text = ERR_reason_error_string(error);
	char alert[100];

	if (f->fault)
		return fail(f, f->fault);
	if (reason > SSL_AD_REASON_OFFSET) {
		snprintf(alert, sizeof(alert), "the peer rejects this end (alert=%s)",
			 SSL_alert_desc_string_long(reason - SSL_AD_REASON_OFFSET));
		return fail(f, alert);
	}
	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
		if (reasons[i].reason == reason)
			text = reasons[i].text;
	return fail(f, text ? text : "the peer has ended TLS");
}

/* -- messages that wait -- */

static int keep(struct auth_filter *f, const uint8_t *msg, size_t len)
{
	const uint16_t head = (uint16_t)len;
	size_t needed = f->waiting_to + sizeof(head) + len;

	if (needed > f->waiting_size) {
		/* malloc: realloc() would leave a copy of the messages in free memory */
		size_t size = 2 * needed;
		uint8_t *more = malloc(size);

		if (!more)
			return fail(f, "out of memory");
		if (f->waiting_to)
			memcpy(more, f->waiting, f->waiting_to);
		if (f->waiting)
			OPENSSL_cleanse(f->waiting, f->waiting_size);
		free(f->waiting);
		f->waiting = more;
		f->waiting_size = size;
	}
	memcpy(f->waiting + f->waiting_to, &head, sizeof(head));
	memcpy(f->waiting + f->waiting_to + sizeof(head), msg, len);
	f->waiting_to = needed;
	return 0;
}

static size_t take_message(void *records, void *msg, size_t max)
{
	struct auth_filter *f = records;
	uint16_t len;

	if (f->state != GANTRY_RECORDS_OPEN || f->waiting_from == f->waiting_to)
		return 0;
	memcpy(&len, f->waiting + f->waiting_from, sizeof(len));
	if (len > max)
		return 0;
	memcpy(msg, f->waiting + f->waiting_from + sizeof(len), len);
	f->waiting_from += sizeof(len) + len;
	if (f->waiting_from == f->waiting_to)
		f->waiting_from = f->waiting_to = 0;
	return len;
}

/* -- handshake -- */

/* TLS has ended its handshake. */
static int end_handshake(struct auth_filter *f)
{
	f->shaken = true;
	if (f->auth->conf.mode == GN_AUTH_PSK && !SSL_session_reused(f->ssl))
		return fail(f, "the peer does not use the key");
	if (f->generation != f->auth->generation && !auth_still_knows(f))
		return fail(f, "the credentials changed during the handshake");
	if (!f->listens)
		return 0;
	if (SSL_write(f->ssl, confirmation, sizeof(confirmation)) != sizeof(confirmation))
		return fail_tls(f);
	f->state = GANTRY_RECORDS_OPEN;
	return 0;
}

static int shake(struct auth_filter *f)
{
	int rc = SSL_do_handshake(f->ssl);

	if (rc == 1)
		return end_handshake(f);
	return SSL_get_error(f->ssl, rc) == SSL_ERROR_WANT_READ ? 0 : fail_tls(f);
}

/* Callback of TLS: after the handshake only a rare change of the key of the peer is permitted. */
static void watch_message(int is_sent, int version, int type, const void *bytes, size_t len,
			  SSL *ssl, void *arg)
{
	struct auth_filter *f = auth_filter_of(ssl);
	const uint8_t *msg = bytes;

	(void)version;
	(void)arg;
	if (is_sent || !f->shaken || type != SSL3_RT_HANDSHAKE)
		return;
	if (len == HELLO_HEAD + 1 && msg[0] == MESSAGE_KEY_UPDATE &&
	    msg[HELLO_HEAD] == SSL_KEY_UPDATE_NOT_REQUESTED && f->n_opened >= f->auth->rekey / 2) {
		f->rekeyed = true;
		f->n_opened = 0;
	} else {
		f->refused = true;
	}
}

/* -- records -- */

static int read_record(struct auth_filter *f)
{
	uint8_t plain[GANTRY_RECORDS_MAX + 1];
	int n = SSL_read(f->ssl, plain, sizeof(plain)), rc = 0;

	if (f->refused)
		rc = fail(f, "unexpected message of TLS");
	else if (n <= 0 && SSL_get_error(f->ssl, n) != SSL_ERROR_WANT_READ)
		rc = fail_tls(f);
	else if (n <= 0 && !f->rekeyed)
		rc = fail(f, "a record has no message");
	else if (n > GANTRY_RECORDS_MAX)
		rc = fail(f, "a message is too long");
	else if (n > 0 && f->state == GANTRY_RECORDS_OPEN)
		rc = keep(f, plain, (size_t)n);
	else if (n == sizeof(confirmation) &&
		 memcmp(plain, confirmation, sizeof(confirmation)) == 0)
		f->state = GANTRY_RECORDS_OPEN;
	else if (n > 0)
		rc = fail(f, "the peer does not confirm the handshake");
	f->rekeyed = false;
	f->n_opened += n > 0;
	OPENSSL_cleanse(plain, n > 0 ? (size_t)n : 0);
	return rc;
}

static size_t record_length(const struct auth_filter *f)
{
	return (size_t)(f->part[3] << 8 | f->part[4]);
}

/* Check the header of a record. */
static int check_head(struct auth_filter *f)
{
	const unsigned type = f->part[0];
	const size_t len = record_length(f);
	/* the version of TLS 1.0, in the first record of OpenSSL, and of TLS 1.2 */
	const uint8_t version = f->listens && !f->hello ? 1 : 3;

	if (f->part[1] != 3 || f->part[2] != version ||
	    (f->shaken ? type != TYPE_DATA : type < TYPE_ALERT || type > TYPE_DATA))
		return fail(f, "not a record of TLS 1.3");
	if (len == 0 || len > AUTH_RECORD_MAX)
		return fail(f, "length of a record");
	f->n_handshake += f->shaken ? 0 : len;
	if (f->n_handshake > AUTH_HANDSHAKE_MAX)
		return fail(f, "the handshake is too long");
	return 0;
}

/* The first record of a peer that connects has a whole ClientHello, and nothing else. */
static bool is_hello(const struct auth_filter *f)
{
	const uint8_t *msg = f->part + AUTH_HEAD;
	const size_t len = record_length(f);

	return f->part[0] == TYPE_HANDSHAKE && len > HELLO_HEAD && msg[0] == MESSAGE_CLIENT_HELLO &&
	       (size_t)(msg[1] << 16 | msg[2] << 8 | msg[3]) + HELLO_HEAD == len;
}

/* Give TLS the record in `part`. */
static int take_record(struct auth_filter *f)
{
	const size_t n = f->n_part;

	f->n_part = 0;
	if (f->listens && !f->hello && !is_hello(f))
		return fail(f, "not a ClientHello");
	f->hello = true;
	if (BIO_write(f->in, f->part, (int)n) != (int)n)
		return fail(f, "out of memory");
	return f->shaken ? read_record(f) : shake(f);
}

static int take_bytes(void *records, const void *bytes, size_t len)
{
	struct auth_filter *f = records;
	const uint8_t *at = bytes;
	int rc = 0;

	if (f->state == GANTRY_RECORDS_FAILED)
		return -EPROTO;
	if (f->waiting_to - f->waiting_from > AUTH_WAITING_MAX)
		return fail(f, "messages are not taken");
	ERR_clear_error();
	while (len && rc == 0) {
		const size_t whole = AUTH_HEAD + (f->n_part < AUTH_HEAD ? 0 : record_length(f));
		const size_t n = len < whole - f->n_part ? len : whole - f->n_part;

		memcpy(f->part + f->n_part, at, n);
		f->n_part += n;
		at += n;
		len -= n;
		if (f->n_part < whole)
			break;
		rc = whole == AUTH_HEAD ? check_head(f) : take_record(f);
	}
	ERR_clear_error();
	return rc;
}

static int seal(void *records, const void *msg, size_t len)
{
	struct auth_filter *f = records;
	int n;

	if (f->state != GANTRY_RECORDS_OPEN || len == 0 || len > GANTRY_RECORDS_MAX)
		return -EINVAL;
	ERR_clear_error();
	if (f->n_sealed >= f->auth->rekey &&
	    SSL_key_update(f->ssl, SSL_KEY_UPDATE_NOT_REQUESTED) == 1)
		f->n_sealed = 0;
	n = SSL_write(f->ssl, msg, (int)len);
	f->n_sealed++;
	ERR_clear_error();
	if (n == (int)len)
		return 0;
	fail(f, "out of memory");
	return -ENOMEM;
}

static size_t output(void *records, void *bytes, size_t max)
{
	struct auth_filter *f = records;
	int n = 0;

	if (max > INT_MAX)
		max = INT_MAX;
	if (BIO_pending(f->out) > 0)
		n = BIO_read(f->out, bytes, (int)max);
	return n > 0 ? (size_t)n : 0;
}

static int get_state(void *records, const char **text_p)
{
	const struct auth_filter *f = records;

	*text_p = f->text;
	return f->state;
}

static int export_secret(void *records, const char *label, const void *context,
			 size_t context_bytes, void *secret, size_t bytes)
{
	const struct auth_filter *f = records;
	int rc;

	if (f->state != GANTRY_RECORDS_OPEN)
		return -EINVAL;
	ERR_clear_error();
	rc = SSL_export_keying_material(f->ssl, secret, bytes, label, strlen(label), context,
					context_bytes, context != NULL);
	ERR_clear_error();
	return rc == 1 ? 0 : -ENOMEM;
}

/* -- open and close -- */

static void close_filter(void *records)
{
	struct auth_filter *f = records;

	LIST_REMOVE(f, link);
	SSL_free(f->ssl);
	if (f->waiting)
		OPENSSL_cleanse(f->waiting, f->waiting_size);
	free(f->waiting);
	OPENSSL_cleanse(f, sizeof(*f));
	free(f);
}

/* Create TLS and its memory. */
static int start_tls(struct auth_filter *f)
{
	f->ssl = SSL_new(f->auth->creds.ctx);
	f->in = BIO_new(BIO_s_mem());
	f->out = BIO_new(BIO_s_mem());
	if (!f->ssl || !f->in || !f->out) {
		BIO_free(f->in);
		BIO_free(f->out);
		return -ENOMEM;
	}
	SSL_set_bio(f->ssl, f->in, f->out);
	SSL_set_msg_callback(f->ssl, watch_message);
	if (SSL_set_app_data(f->ssl, f) != 1)
		return -ENOMEM;
	if (f->listens)
		SSL_set_accept_state(f->ssl);
	else
		SSL_set_connect_state(f->ssl);
	return f->listens ? 0 : shake(f);
}

/* A flood of handshakes makes one warning per interval, with the number of those refused. */
static void log_refused(const struct gantry_host *host, struct gn_auth *auth, uint64_t now_ns)
{
	auth->n_refused++;
	if (auth->refused_ns && now_ns - auth->refused_ns < REFUSED_LOG_NS)
		return;
	gantry_log_warn(
		host,
		"too many handshakes (refused=%u, limit auth_rate=%llu): raise auth_rate if "
		"permitted peers connect this often",
		auth->n_refused, (unsigned long long)auth->conf.rate);
	auth->refused_ns = now_ns;
	auth->n_refused = 0;
}

static int admit(const struct gantry_host *host)
{
	struct gn_auth *auth = gn_container_of(host, const struct gn_host, pub)->auth;
	uint64_t now_ns = gn_now_ns();

	if (auth_take_token(auth, now_ns))
		return 0;
	log_refused(host, auth, now_ns);
	return -EBUSY;
}

static int open_filter(const struct gantry_host *host, const void *conn, int listens,
		       const struct gantry_peer *peer, void **records_p)
{
	struct gn_auth *auth = gn_container_of(host, const struct gn_host, pub)->auth;
	const char *missing;
	struct auth_filter *f;
	int rc;

	(void)peer;
	if (listens && admit(host))
		return -EBUSY;
	missing = listens ? NULL : gn_auth_missing(&auth->conf, true);
	if (missing) {
		gantry_log_error(host, "cannot connect: this device only listens: set %s", missing);
		return -EINVAL;
	}
	f = calloc(1, sizeof(*f));
	if (!f)
		return -ENOMEM;
	f->auth = auth;
	f->conn = conn;
	f->listens = listens != 0;
	f->generation = auth->generation;
	if (!listens) {
		auth->has_connected = true;
		snprintf(f->stated, sizeof(f->stated), "%s", auth->conf.identity);
	}
	LIST_INSERT_HEAD(&auth->filters, f, link);
	ERR_clear_error();
	rc = start_tls(f);
	ERR_clear_error();
	if (rc) {
		close_filter(f);
		return rc;
	}
	*records_p = f;
	return 0;
}

static int mac(const void *key, size_t key_bytes, const void *data, size_t bytes, uint8_t *out)
{
	unsigned n = GANTRY_RECORDS_MAC;

	return HMAC(EVP_sha256(), key, (int)key_bytes, data, bytes, out, &n) ? 0 : -ENOMEM;
}

const struct gantry_records_ops gn_auth_records = {
	.struct_size = sizeof(gn_auth_records),
	.open = open_filter,
	.close = close_filter,
	.seal = seal,
	.output = output,
	.receive = take_bytes,
	.message = take_message,
	.state = get_state,
	.export_secret = export_secret,
	.mac = mac,
	.streams = &gn_stream_ops,
	.admit = admit,
};
