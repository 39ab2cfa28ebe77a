/* SPDX-License-Identifier: BSD-3-Clause */
#include "secure/auth_priv.h"

#include <errno.h>
#include <openssl/err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/host.h"

bool auth_is_set(const char *text)
{
	return text && *text;
}

/* -- configuration -- */

/* The strings of the configuration. */
static const size_t strings[] = {
	offsetof(struct gn_auth_conf, identity),    offsetof(struct gn_auth_conf, keys),
	offsetof(struct gn_auth_conf, certificate), offsetof(struct gn_auth_conf, private_key),
	offsetof(struct gn_auth_conf, authorities), offsetof(struct gn_auth_conf, revoked),
	offsetof(struct gn_auth_conf, peers),
};

#define N_STRINGS (sizeof(strings) / sizeof(strings[0]))

static const char **string_at(struct gn_auth_conf *conf, size_t offset)
{
	return (const char **)((char *)conf + offset);
}

static void free_conf(struct gn_auth_conf *conf)
{
	for (size_t i = 0; i < N_STRINGS; i++)
		free((char *)*string_at(conf, strings[i]));
}

static int copy_conf(struct gn_auth_conf *to, const struct gn_auth_conf *from)
{
	int rc = 0;

	*to = *from;
	for (size_t i = 0; i < N_STRINGS; i++) {
		const char **text = string_at(to, strings[i]);

		*text = strdup(*text ? *text : "");
		if (!*text)
			rc = -ENOMEM;
	}
	if (rc)
		free_conf(to);
	return rc;
}

static int check_conf(const struct gn_auth_conf *conf, char *why)
{
	const bool is_psk = conf->mode == GN_AUTH_PSK;
	const char *missing = gn_auth_missing(conf, false);

	if (missing) {
		snprintf(why, GN_PATH_WHY, "authentication: no file is set: set %s", missing);
		return -EINVAL;
	}
	if (is_psk && auth_is_set(conf->identity) && !gn_identity_ok(conf->identity)) {
		snprintf(why, GN_PATH_WHY,
			 "authentication: not an identity (limit=%d): write letters, digits and "
			 ". _ @ -",
			 GN_IDENTITY_MAX);
		return -EINVAL;
	}
	return is_psk ? 0 : auth_x509_check_peers(conf->peers, why);
}

/* -- credentials -- */

static void free_creds(struct auth_creds *creds)
{
	SSL_CTX_free(creds->ctx);
	gn_keys_fini(&creds->keys);
	creds->ctx = NULL;
}

/* Settings of both modes. They override those of openssl.cnf. */
static int restrict_tls(SSL_CTX *ctx)
{
	static const unsigned char context[] = {'g'};

	SSL_CTX_clear_options(ctx, SSL_OP_ENABLE_MIDDLEBOX_COMPAT | SSL_OP_ALLOW_NO_DHE_KEX |
					   SSL_OP_NO_ANTI_REPLAY);
	SSL_CTX_set_options(ctx,
			    SSL_OP_NO_TICKET | SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION);
	SSL_CTX_set_mode(ctx, SSL_MODE_NO_AUTO_CHAIN);
	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_security_level(ctx, 2);
	SSL_CTX_set_read_ahead(ctx, 0);
	if (SSL_CTX_set_min_proto_version(ctx, TLS1_3_VERSION) != 1 ||
	    SSL_CTX_set_max_proto_version(ctx, TLS1_3_VERSION) != 1 ||
	    SSL_CTX_set_ciphersuites(ctx, "TLS_AES_128_GCM_SHA256") != 1 ||
	    SSL_CTX_set1_groups_list(ctx, "X25519") != 1 ||
	    SSL_CTX_set_session_id_context(ctx, context, sizeof(context)) != 1 ||
	    SSL_CTX_set_num_tickets(ctx, 0) != 1 || SSL_CTX_set_max_early_data(ctx, 0) != 1 ||
	    SSL_CTX_set_max_send_fragment(ctx, GANTRY_RECORDS_MAX) != 1)
		return -EINVAL;
	/*
	 * psk: an end that connects verifies as well, so a server that ignores the key does not get
	 * through with a certificate
	 */
	SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
	return 0;
}

static int load(const struct gn_auth_conf *conf, struct auth_creds *creds, char *why)
{
	int rc = -ENOMEM;

	why[0] = '\0';
	ERR_clear_error();
	*creds = (struct auth_creds){.ctx = SSL_CTX_new(TLS_method())};
	if (creds->ctx)
		rc = restrict_tls(creds->ctx);
	if (rc == 0)
		rc = (conf->mode == GN_AUTH_PSK ? auth_psk_load : auth_x509_load)(conf, creds, why);
	ERR_clear_error();
	if (rc)
		free_creds(creds);
	if (rc && !why[0])
		snprintf(why, GN_PATH_WHY,
			 rc == -ENOMEM ? "authentication: out of memory: free memory"
				       : "authentication: OpenSSL has no TLS 1.3 with "
					 "TLS_AES_128_GCM_SHA256 and X25519: change openssl.cnf");
	return rc;
}

int gn_auth_open(const struct gn_auth_conf *conf, struct gn_auth **auth_p, char *why)
{
	struct gn_auth *auth;
	int rc;

	*auth_p = NULL;
	why[0] = '\0';
	if (!gn_auth_is_on(conf))
		return 0;
	rc = check_conf(conf, why);
	if (rc)
		return rc;
	auth = calloc(1, sizeof(*auth));
	rc = auth ? copy_conf(&auth->conf, conf) : -ENOMEM;
	if (rc) {
		free(auth);
		snprintf(why, GN_PATH_WHY, "authentication: out of memory: free memory");
		return rc;
	}
	rc = load(&auth->conf, &auth->creds, why);
	if (rc) {
		free_conf(&auth->conf);
		free(auth);
		return rc;
	}
	LIST_INIT(&auth->filters);
	auth->rekey = AUTH_REKEY;
	auth->tokens = auth->conf.rate * GN_NS_PER_S;
	auth->tokens_ns = gn_now_ns();
	*auth_p = auth;
	return 0;
}

int gn_auth_use(struct gn_host *host, const struct gn_auth_conf *conf)
{
	char why[GN_PATH_WHY];
	int rc = conf ? gn_auth_open(conf, &host->auth, why) : 0;

	if (rc)
		gn_log(GN_LOG_ERROR, host->name, "%s", why);
	else if (host->auth)
		host->pub.records = &gn_auth_records;
	return rc;
}

int gn_auth_reload(struct gn_auth *auth, char *why)
{
	struct auth_creds creds;
	int rc = load(&auth->conf, &creds, why);

	if (rc)
		return rc;
	free_creds(&auth->creds);
	auth->creds = creds;
	auth->generation++;
	return 0;
}

void gn_auth_close(struct gn_auth **auth_p)
{
	struct gn_auth *auth = *auth_p;

	*auth_p = NULL;
	if (!auth)
		return;
	free_creds(&auth->creds);
	free_conf(&auth->conf);
	free(auth);
}

/* -- peers -- */

static struct auth_filter *find_open(const struct gn_auth *auth, const void *conn)
{
	struct auth_filter *f;

	LIST_FOREACH (f, &auth->filters, link)
		if (f->conn == conn && f->state == GANTRY_RECORDS_OPEN)
			return f;
	return NULL;
}

const char *gn_auth_identity(const struct gn_auth *auth, const void *conn)
{
	const struct auth_filter *f = find_open(auth, conn);

	return f && f->identity[0] ? f->identity : NULL;
}

bool auth_still_knows(const struct auth_filter *f)
{
	return f->auth->conf.mode == GN_AUTH_PSK ? auth_psk_knows(f) : auth_x509_knows(f);
}

bool gn_auth_knows(const struct gn_auth *auth, const void *conn)
{
	const struct auth_filter *f = find_open(auth, conn);

	return f && auth_still_knows(f);
}

/* Fill the bucket, which holds the tokens of one second, and take a token. */
bool auth_take_token(struct gn_auth *auth, uint64_t now_ns)
{
	const uint64_t rate = auth->conf.rate, full = rate * GN_NS_PER_S;
	const uint64_t passed = now_ns - auth->tokens_ns;

	if (rate == 0)
		return true;
	auth->tokens_ns = now_ns;
	auth->tokens = passed >= GN_NS_PER_S || auth->tokens + passed * rate > full
			       ? full
			       : auth->tokens + passed * rate;
	if (auth->tokens < GN_NS_PER_S)
		return false;
	auth->tokens -= GN_NS_PER_S;
	return true;
}
