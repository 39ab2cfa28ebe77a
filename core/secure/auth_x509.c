/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * auth_x509.c - certificates of both ends. The peer gets the same alert for each fault of its
 * certificate; the log of this end has the reason.
 */
#include "secure/auth_priv.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define HOST_FLAGS (X509_CHECK_FLAG_NO_WILDCARDS)

static const char fingerprint_prefix[] = "sha256:";

#define PREFIX (sizeof(fingerprint_prefix) - 1)

/* -- the option `peers` -- */

/* Get the next entry of the list. Returns its length; 0: no entry. */
static size_t next_peer(const char **at_p, const char **entry_p)
{
	const char *at = *at_p + strspn(*at_p, ", ");
	const size_t n = strcspn(at, ", ");

	*entry_p = at;
	*at_p = at + n;
	return n;
}

/* Format a fingerprint in lower case, without prefix. */
static bool fingerprint_of(const X509 *cert, char text[2 * AUTH_DIGEST + 1])
{
	uint8_t digest[AUTH_DIGEST];
	unsigned n = 0;

	if (X509_digest(cert, EVP_sha256(), digest, &n) != 1 || n != sizeof(digest))
		return false;
	for (size_t i = 0; i < sizeof(digest); i++)
		snprintf(text + 2 * i, 3, "%02x", digest[i]);
	return true;
}

static bool is_fingerprint(const char *entry, size_t n)
{
	return n >= PREFIX && strncmp(entry, fingerprint_prefix, PREFIX) == 0;
}

int auth_x509_check_peers(const char *peers, char *why)
{
	const char *at = peers ? peers : "", *entry;
	size_t n;

	while ((n = next_peer(&at, &entry)) > 0) {
		char text[GN_ESCAPE_BYTES];

		if (is_fingerprint(entry, n)
			    ? n == PREFIX + 2 * (size_t)AUTH_DIGEST &&
				      strspn(entry + PREFIX, "0123456789abcdefABCDEF") >=
					      2 * (size_t)AUTH_DIGEST
			    : n <= 253 && !memchr(entry, '*', n) && !memchr(entry, ':', n))
			continue;
		snprintf(
			why, GN_PATH_WHY,
			"authentication: peers: neither a name nor a fingerprint (value=%s): write "
			"NAME or sha256: and 64 hexadecimal digits",
			gn_escape(text, sizeof(text), entry, n));
		return -EINVAL;
	}
	return 0;
}

static bool has_name(X509 *cert, const char *entry, size_t n)
{
	return X509_check_host(cert, entry, n, HOST_FLAGS, NULL) == 1;
}

/* Returns whether a certificate is one of those to which this device connects. */
static bool is_expected(const char *peers, X509 *cert)
{
	char fingerprint[2 * AUTH_DIGEST + 1];
	const char *at = peers, *entry;
	size_t n;

	if (!fingerprint_of(cert, fingerprint))
		return false;
	while ((n = next_peer(&at, &entry)) > 0)
		if (is_fingerprint(entry, n)
			    ? strncasecmp(entry + PREFIX, fingerprint, 2 * (size_t)AUTH_DIGEST) == 0
			    : has_name(cert, entry, n))
			return true;
	return false;
}

/* -- the identity of a certificate -- */

/* Copy a name, escaped, to a text for the log; and to the identity, if it is one. */
static void take_name(const ASN1_STRING *name, char *stated, char identity[GN_IDENTITY_MAX + 1])
{
	const int n = name ? ASN1_STRING_length(name) : 0;
	const unsigned char *bytes = name ? ASN1_STRING_get0_data(name) : NULL;

	identity[0] = stated[0] = '\0';
	if (n <= 0)
		return;
	gn_escape(stated, GN_ESCAPE_BYTES, bytes, (size_t)n);
	if (n > GN_IDENTITY_MAX)
		return;
	memcpy(identity, bytes, (size_t)n);
	identity[n] = '\0';
	if (strlen(identity) != (size_t)n || !gn_identity_ok(identity))
		identity[0] = '\0';
}

/* Get the first DNS name of a certificate, else its last common name. */
static void name_of(const X509 *cert, char *stated, char identity[GN_IDENTITY_MAX + 1])
{
	GENERAL_NAMES *names = X509_get_ext_d2i(cert, NID_subject_alt_name, NULL, NULL);
	const X509_NAME *subject = X509_get_subject_name(cert);
	const int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
	const ASN1_STRING *name = NULL;

	for (int i = 0; i < sk_GENERAL_NAME_num(names) && !name; i++) {
		const GENERAL_NAME *entry = sk_GENERAL_NAME_value(names, i);

		if (entry->type == GEN_DNS)
			name = entry->d.dNSName;
	}
	if (!name && at >= 0)
		name = X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at));
	take_name(name, stated, identity);
	GENERAL_NAMES_free(names);
}

/* -- verification -- */

/* Check a certificate whose chain is verified. Returns NULL, or the reason to reject it. */
static const char *refusal(const struct auth_filter *f, X509 *cert, const char *identity)
{
	const struct gn_auth *auth = f->auth;

	if (!identity[0])
		return "the certificate has no DNS name or common name that is an identity";
	if (!f->listens)
		return is_expected(auth->conf.peers, cert)
			       ? NULL
			       : "the certificate is not one of `peers`";
	if (auth->has_connected && X509_cmp(cert, SSL_CTX_get0_certificate(auth->creds.ctx)) == 0)
		return "certificate of this device, which it uses to connect";
	return NULL;
}

/* Callback of TLS: verify the certificate of the peer. */
static int verify(X509_STORE_CTX *ctx, void *arg)
{
	const SSL *ssl = X509_STORE_CTX_get_ex_data(ctx, SSL_get_ex_data_X509_STORE_CTX_idx());
	struct auth_filter *f = auth_filter_of(ssl);
	X509 *cert = X509_STORE_CTX_get0_cert(ctx);

	(void)arg;
	name_of(cert, f->stated, f->identity);
	if (X509_verify_cert(ctx) == 1)
		f->fault = refusal(f, cert, f->identity);
	else
		f->fault = X509_verify_cert_error_string(X509_STORE_CTX_get_error(ctx));
	if (!f->fault)
		return 1;
	X509_STORE_CTX_set_error(ctx, X509_V_ERR_CERT_REJECTED); /* the alert: bad certificate */
	return 0;
}

bool auth_x509_knows(const struct auth_filter *f)
{
	X509_STORE *store = SSL_CTX_get_cert_store(f->auth->creds.ctx);
	X509_STORE_CTX *ctx = X509_STORE_CTX_new();
	X509 *cert = SSL_get0_peer_certificate(f->ssl);
	bool known = false;

	ERR_clear_error();
	if (ctx && cert &&
	    X509_STORE_CTX_init(ctx, store, cert, SSL_get_peer_cert_chain(f->ssl)) == 1 &&
	    X509_STORE_CTX_set_default(ctx, f->listens ? "ssl_client" : "ssl_server") == 1)
		known = X509_verify_cert(ctx) == 1 && !refusal(f, cert, f->identity);
	X509_STORE_CTX_free(ctx);
	ERR_clear_error();
	return known;
}

/* -- files -- */

/* A file, for messages about its content. */
struct source {
	const char *path;
	BIO *bio;
	char *text;
	long bytes;
};

static int open_source(struct source *in, const char *path, bool is_secret, char *why)
{
	*in = (struct source){.path = path};
	in->bytes = auth_file_read(path, is_secret, &in->text, why);
	if (in->bytes < 0)
		return (int)in->bytes;
	in->bio = BIO_new_mem_buf(in->text, (int)in->bytes);
	return in->bio ? 0 : -ENOMEM;
}

static void close_source(struct source *in)
{
	BIO_free(in->bio);
	auth_file_free(in->text, in->bytes);
}

static int complain(const struct source *in, const char *problem, char *why)
{
	snprintf(why, GN_PATH_WHY, "%.300s: %s", in->path, problem);
	return -EINVAL;
}

/* True if the last read of PEM has ended at the end of the file. */
static bool is_at_end(void)
{
	const unsigned long error = ERR_peek_last_error();
	const bool is_end = ERR_GET_LIB(error) == ERR_LIB_PEM &&
			    ERR_GET_REASON(error) == PEM_R_NO_START_LINE;

	ERR_clear_error();
	return is_end;
}

/* No passphrase: OpenSSL must not ask for one on the terminal. */
static int no_passphrase(char *buffer, int size, int is_write, void *arg)
{
	(void)buffer;
	(void)size;
	(void)is_write;
	(void)arg;
	return -1;
}

static int use_certificates(SSL_CTX *ctx, struct source *in, char *why)
{
	X509 *cert = PEM_read_bio_X509(in->bio, NULL, no_passphrase, NULL);
	char stated[GN_ESCAPE_BYTES], identity[GN_IDENTITY_MAX + 1];
	bool fits = cert && SSL_CTX_use_certificate(ctx, cert) == 1;

	if (!fits) {
		X509_free(cert);
		return complain(in, "no certificate that OpenSSL accepts: write a PEM file", why);
	}
	name_of(cert, stated, identity);
	X509_free(cert);
	if (!identity[0])
		return complain(
			in,
			"the certificate has no DNS name or common name that is an identity: "
			"issue another one",
			why);
	while ((cert = PEM_read_bio_X509(in->bio, NULL, no_passphrase, NULL)) != NULL) {
		fits = SSL_CTX_add1_chain_cert(ctx, cert) == 1;
		X509_free(cert);
		if (!fits)
			return complain(in, "OpenSSL rejects an issuer: write a PEM file", why);
	}
	return is_at_end() ? 0 : complain(in, "wrong certificate: write a PEM file", why);
}

static int use_private_key(SSL_CTX *ctx, struct source *in, char *why)
{
	EVP_PKEY *key = PEM_read_bio_PrivateKey(in->bio, NULL, no_passphrase, NULL);
	const char *problem = NULL;

	if (!key)
		problem = "no private key without a passphrase: write a PEM file";
	else if (SSL_CTX_use_PrivateKey(ctx, key) != 1 || SSL_CTX_check_private_key(ctx) != 1)
		problem = "the private key does not belong to the certificate: configure its key";
	EVP_PKEY_free(key);
	return problem ? complain(in, problem, why) : 0;
}

static int use_authorities(SSL_CTX *ctx, struct source *in, char *why)
{
	X509_STORE *store = SSL_CTX_get_cert_store(ctx);
	bool fits = true;
	unsigned n = 0;
	X509 *cert;

	while (fits && (cert = PEM_read_bio_X509(in->bio, NULL, no_passphrase, NULL)) != NULL) {
		fits = X509_STORE_add_cert(store, cert) == 1;
		X509_free(cert);
		n++;
	}
	return fits && is_at_end() && n
		       ? 0
		       : complain(in,
				  "no certificate, or a wrong one: write a PEM file "
				  "of issuers",
				  why);
}

static int use_revoked(SSL_CTX *ctx, struct source *in, char *why)
{
	X509_STORE *store = SSL_CTX_get_cert_store(ctx);
	bool fits = true;
	unsigned n = 0;
	X509_CRL *crl;

	while (fits && (crl = PEM_read_bio_X509_CRL(in->bio, NULL, no_passphrase, NULL)) != NULL) {
		fits = X509_STORE_add_crl(store, crl) == 1;
		X509_CRL_free(crl);
		n++;
	}
	if (!fits || !is_at_end() || !n)
		return complain(in, "no CRL, or a wrong one: write a PEM file of CRLs", why);
	X509_STORE_set_flags(store, X509_V_FLAG_CRL_CHECK | X509_V_FLAG_CRL_CHECK_ALL);
	return 0;
}

int auth_x509_load(const struct gn_auth_conf *conf, struct auth_creds *creds, char *why)
{
	const struct {
		const char *path;
		bool is_secret;
		int (*use)(SSL_CTX *ctx, struct source *in, char *why);
	} files[] = {
		{conf->certificate, false, use_certificates},
		{conf->private_key, true, use_private_key},
		{conf->authorities, false, use_authorities},
		{conf->revoked, false, use_revoked},
	};
	int rc = 0;

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]) && rc == 0; i++) {
		struct source in;

		if (!auth_is_set(files[i].path))
			continue;
		rc = open_source(&in, files[i].path, files[i].is_secret, why);
		if (rc == 0)
			rc = files[i].use(creds->ctx, &in, why);
		close_source(&in);
		ERR_clear_error();
	}
	SSL_CTX_set_cert_verify_callback(creds->ctx, verify, NULL);
	SSL_CTX_set_max_cert_list(creds->ctx, AUTH_HANDSHAKE_MAX);
	return rc;
}
