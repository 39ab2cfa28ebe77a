/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * auth_priv.h - credentials and filters of a device; private to core/secure and its tests.
 */
#ifndef GN_SECURE_AUTH_PRIV_H
#define GN_SECURE_AUTH_PRIV_H

#include <openssl/ssl.h>
#include <sys/queue.h>

#include "base/log.h"
#include "base/safe_path.h"
#include "secure/auth.h"
#include "secure/auth_keys.h"

#define AUTH_TEXT 200                              /* bytes of the reason of a failure */
#define AUTH_DIGEST 32                             /* SHA-256 */
#define AUTH_RECORD_MAX (GANTRY_RECORDS_MAX + 17)  /* content type and tag of TLS */
#define AUTH_HEAD 5                                /* header of a record */
#define AUTH_HANDSHAKE_MAX 16384                   /* bytes of a peer in a handshake */
#define AUTH_WAITING_MAX (16 * GANTRY_RECORDS_MAX) /* bytes of messages that wait */
#define AUTH_REKEY (1u << 22) /* records of one key; AES-GCM permits 2^24.5 (RFC 8446, 5.5) */

/* What is loaded from the files. */
struct auth_creds {
	SSL_CTX *ctx;
	struct gn_keys keys; /* psk */
};

struct gn_auth {
	struct gn_auth_conf conf; /* its strings are copies */
	struct auth_creds creds;
	uint64_t generation; /* of creds */
	bool has_connected;  /* refuse peers with the identity of this device, from now on */
	uint32_t rekey;      /* AUTH_REKEY */
	uint64_t tokens;     /* handshakes that can begin now, times 10^9 */
	uint64_t tokens_ns;  /* when tokens was right */
	uint64_t refused_ns; /* when refused handshakes were logged; 0: never */
	uint32_t n_refused;  /* since then */
	LIST_HEAD(, auth_filter) filters;
};

/* The filter of a connection. */
struct auth_filter {
	LIST_ENTRY(auth_filter) link;
	struct gn_auth *auth;
	const void *conn;
	SSL *ssl;
	BIO *in, *out; /* of ssl, which owns them */
	bool listens;
	bool shaken;         /* TLS has ended its handshake */
	bool hello;          /* the first record has arrived */
	bool refused;        /* a message of TLS that this end does not permit has arrived */
	bool rekeyed;        /* the record that is opened is a permitted KeyUpdate */
	int state;           /* enum gantry_records_state */
	uint64_t generation; /* of the credentials at the start */
	uint32_t n_sealed, n_opened;               /* records since the last change of the key */
	size_t n_handshake;                        /* bytes of the peer in the handshake */
	size_t n_part;                             /* bytes of `part` */
	uint8_t part[AUTH_HEAD + AUTH_RECORD_MAX]; /* a record that is not complete */
	/* messages that `message` has not returned: u16 length, bytes */
	uint8_t *waiting;
	size_t waiting_from, waiting_to, waiting_size;
	/*
	 * name for the log, escaped: the one that the peer states, psk: or states to the peer; "":
	 * none
	 */
	char stated[GN_ESCAPE_BYTES];
	char identity[GN_IDENTITY_MAX + 1]; /* authenticated when state is open */
	uint8_t key_digest[AUTH_DIGEST];    /* psk: identity and key */
	const char *fault;    /* reason that a callback of TLS has found; NULL: none */
	char text[AUTH_TEXT]; /* reason of a failure */
};

/* -- auth_file.c -- */

/*
 * Read a file that controls this process into memory.
 *
 * is_secret  refuse a file that other users can read
 * text_p     out: the bytes and a NUL; auth_file_free() wipes and frees them
 * why        as gn_auth_open()
 * returns    number of bytes, or as gn_auth_open()
 */
long auth_file_read(const char *path, bool is_secret, char **text_p, char *why);
void auth_file_free(char *text, long bytes); /* text NULL: no effect */

/* -- auth_psk.c -- */

int auth_psk_load(const struct gn_auth_conf *conf, struct auth_creds *creds, char *why);
/* Returns whether the peer, whose digest the filter has, has the same key now. */
bool auth_psk_knows(const struct auth_filter *f);

/* -- auth_x509.c -- */

int auth_x509_load(const struct gn_auth_conf *conf, struct auth_creds *creds, char *why);
/* Check the syntax of `peers`. Returns 0 or -EINVAL, with why. */
int auth_x509_check_peers(const char *peers, char *why);
bool auth_x509_knows(const struct auth_filter *f);

/* -- auth.c -- */

/* Take a token for a handshake. Returns false if there is none. */
bool auth_take_token(struct gn_auth *auth, uint64_t now_ns);
/* Returns whether the peer of the filter would be accepted now. */
bool auth_still_knows(const struct auth_filter *f);
/* True if text is not NULL and not "". */
bool auth_is_set(const char *text);
/* Get the filter of a callback of TLS. */
struct auth_filter *auth_filter_of(const SSL *ssl);

#endif
