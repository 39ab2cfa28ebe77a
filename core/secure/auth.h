/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * auth.h - authentication of the peers of a device, and encryption of its control messages: the
 * record filter of a network transport (gantry/records.h) by TLS 1.3.
 *
 *     connecting end                          listening end
 *     ClientHello                    ->
 *                                    <-       ServerHello .. Finished
 *     Certificate (x509), Finished   ->
 *                                    <-       1 byte: this end has accepted the peer
 *     open                                    open
 *
 * After that each message is one record. The filter fails after a record that has no message, or is
 * longer than GANTRY_RECORDS_MAX.
 *
 * One struct gn_auth belongs to one device. Thread: the control thread, unless stated otherwise.
 */
#ifndef GN_SECURE_AUTH_H
#define GN_SECURE_AUTH_H

#include <stdbool.h>
#include <stdint.h>

#include <gantry/option.h>
#include <gantry/records.h>

#define GN_IDENTITY_MAX 63 /* letters, digits and . _ @ - */

enum gn_auth_mode {
	GN_AUTH_UNSET,
	GN_AUTH_NONE,
	GN_AUTH_PSK,
	GN_AUTH_X509,
};

/* A string that is NULL or "" is not set. */
struct gn_auth_conf {
	uint32_t mode; /* enum gn_auth_mode */
	/* psk: identity under which this device connects; not set: it only listens */
	const char *identity;
	const char *keys;        /* psk: key file */
	const char *certificate; /* x509: PEM file of this device, then of its issuers */
	const char *private_key; /* x509: PEM file without a passphrase */
	const char *authorities; /* x509: PEM file of the trusted issuers */
	const char *revoked;     /* x509: PEM file with a CRL of each issuer; not set: no CRL */
	/*
	 * x509: names or "sha256:HEX" fingerprints, comma-separated, of the certificates to which
	 * this device connects; not set: it only listens
	 */
	const char *peers;
	uint64_t rate; /* handshakes a second that listeners of the device begin; 0: no limit */
};

struct gn_auth; /* of one device */
struct gn_host;

extern const struct gantry_option gn_auth_options[]; /* they fill struct gn_auth_conf */
/* Names of the options of each device that belong to the core; the last is NULL. */
extern const char *const gn_device_keys[];

/* True for psk and x509. */
bool gn_auth_is_on(const struct gn_auth_conf *conf);
/*
 * Get the name of an option that the mode needs and that is not set. NULL: none. connects: a role
 * connects from the device.
 */
const char *gn_auth_missing(const struct gn_auth_conf *conf, bool connects);

/*
 * Open host->auth, and set the filter of the host if the mode is psk or x509. conf NULL: none. Logs
 * a failure. Returns as gn_auth_open().
 */
int gn_auth_use(struct gn_host *host, const struct gn_auth_conf *conf);

/*
 * Load the credentials of a device.
 *
 * auth_p   out; NULL if the mode is GN_AUTH_UNSET or GN_AUTH_NONE
 * why      out, GN_PATH_WHY bytes: object, problem and remedy; "" after success
 * returns  0
 *          -EPERM: another user can change a file, or can read a key
 *          -EINVAL: the content of a file, or the configuration, is wrong
 *          -ENOMEM
 *          another -errno of openat(2) or read(2)
 */
int gn_auth_open(const struct gn_auth_conf *conf, struct gn_auth **auth_p, char *why);

/*
 * Load the files again. Open connections continue, see gn_auth_knows(). A handshake that has begun
 * must match the new credentials. After an error the old credentials are in effect. Parameters and
 * errors as for gn_auth_open().
 */
int gn_auth_reload(struct gn_auth *auth, char *why);

/* Free and wipe the credentials, after all filters of the device. *auth_p NULL: no effect. */
void gn_auth_close(struct gn_auth **auth_p);

/*
 * Get the authenticated name of the peer of a connection: with psk, at the listening end, its
 * identity; with x509 the first DNS name of its certificate, or else its common name.
 *
 * conn     the `conn` that the transport has given to `open` of the filter
 * returns  the name, valid until the filter is closed; NULL: the filter is not open, or the peer
 *          has no name (psk, connecting end)
 */
const char *gn_auth_identity(const struct gn_auth *auth, const void *conn);

/*
 * Check whether the peer of an open connection would still be accepted, after gn_auth_reload():
 * with psk its identity has the same key, with x509 its certificate is valid now and not revoked.
 * Returns false for a connection without an open filter.
 */
bool gn_auth_knows(const struct gn_auth *auth, const void *conn);

/* Returns whether a text is an identity: 1 to GN_IDENTITY_MAX permitted characters. Any thread. */
bool gn_identity_ok(const char *text);

/* The filter. Its `host` is the `pub` of a struct gn_host whose `auth` is set. */
extern const struct gantry_records_ops gn_auth_records;

#endif
