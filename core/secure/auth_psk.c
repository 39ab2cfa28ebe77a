/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * auth_psk.c - pre-shared keys of TLS 1.3. An identity that is not accepted gets a random key, so
 * the peer cannot tell an unknown identity from a wrong key.
 */
#include "secure/auth_priv.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"

/* Create the session that stands for a key. NULL: out of memory. */
static SSL_SESSION *session_of(SSL *ssl, const uint8_t key[GN_KEY_BYTES])
{
	static const unsigned char aes128[] = {0x13, 0x01}; /* TLS_AES_128_GCM_SHA256 */
	static const unsigned char context[] = {'g'};
	SSL_SESSION *session = SSL_SESSION_new();

	if (session && SSL_SESSION_set1_master_key(session, key, GN_KEY_BYTES) == 1 &&
	    SSL_SESSION_set_cipher(session, SSL_CIPHER_find(ssl, aes128)) == 1 &&
	    SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION) == 1 &&
	    SSL_SESSION_set1_id_context(session, context, sizeof(context)) == 1)
		return session;
	SSL_SESSION_free(session);
	return NULL;
}

static bool digest_of(const struct gn_key *key, uint8_t digest[AUTH_DIGEST])
{
	uint8_t both[sizeof(key->identity) + sizeof(key->key)];
	bool done;

	memcpy(both, key->identity, sizeof(key->identity));
	memcpy(both + sizeof(key->identity), key->key, sizeof(key->key));
	done = EVP_Digest(both, sizeof(both), digest, NULL, EVP_sha256(), NULL) == 1;
	OPENSSL_cleanse(both, sizeof(both));
	return done;
}

/* Callback of TLS, end that connects: the identity and key of this device. */
static int use_key(SSL *ssl, const EVP_MD *md, const unsigned char **id, size_t *length,
		   SSL_SESSION **session)
{
	struct auth_filter *f = auth_filter_of(ssl);
	const char *identity = f->auth->conf.identity;
	const struct gn_key *key = gn_keys_find(&f->auth->creds.keys, identity, strlen(identity));

	(void)md;
	*session = NULL;
	if (!key || !digest_of(key, f->key_digest))
		return 0;
	*session = session_of(ssl, key->key);
	*id = (const unsigned char *)identity;
	*length = strlen(identity);
	return *session != NULL;
}

/* Returns NULL: a peer can state this identity; or the reason why not. */
static const char *refusal(const struct auth_filter *f, const struct gn_key *key)
{
	if (!key)
		return "unknown identity";
	if (f->auth->has_connected && strcmp(key->identity, f->auth->conf.identity) == 0)
		return "identity of this device, which it uses to connect";
	return NULL;
}

/* Callback of TLS, end that listens: the key of the identity of the peer. */
static int find_key(SSL *ssl, const unsigned char *id, size_t length, SSL_SESSION **session)
{
	struct auth_filter *f = auth_filter_of(ssl);
	const struct gn_key *key = gn_keys_find(&f->auth->creds.keys, id, length);
	uint8_t unknown[GN_KEY_BYTES];

	*session = NULL;
	gn_escape(f->stated, sizeof(f->stated), id, length);
	f->fault = refusal(f, key);
	f->identity[0] = '\0';
	if (RAND_bytes(unknown, sizeof(unknown)) != 1)
		return 0;
	if (!f->fault) {
		memcpy(f->identity, key->identity, sizeof(f->identity));
		if (!digest_of(key, f->key_digest))
			return 0;
	}
	*session = session_of(ssl, f->fault ? unknown : key->key);
	OPENSSL_cleanse(unknown, sizeof(unknown));
	return *session != NULL;
}

int auth_psk_load(const struct gn_auth_conf *conf, struct auth_creds *creds, char *why)
{
	int rc = gn_keys_read(conf->keys, &creds->keys, why);

	if (rc)
		return rc == -ENODATA ? -EINVAL : rc;
	if (conf->identity[0] &&
	    !gn_keys_find(&creds->keys, conf->identity, strlen(conf->identity))) {
		snprintf(why, GN_PATH_WHY,
			 "%.300s: no key for the identity of this device (identity=%s): add it",
			 conf->keys, conf->identity);
		return -EINVAL;
	}
	SSL_CTX_set_psk_use_session_callback(creds->ctx, use_key);
	SSL_CTX_set_psk_find_session_callback(creds->ctx, find_key);
	return 0;
}

bool auth_psk_knows(const struct auth_filter *f)
{
	const char *identity = f->listens ? f->identity : f->auth->conf.identity;
	const struct gn_key *key = gn_keys_find(&f->auth->creds.keys, identity, strlen(identity));
	uint8_t digest[AUTH_DIGEST];

	return key && digest_of(key, digest) &&
	       CRYPTO_memcmp(digest, f->key_digest, sizeof(digest)) == 0;
}
