/* SPDX-License-Identifier: BSD-3-Clause */
/* auth_options.c - the options of a device that say how its peers are authenticated. */
#include "secure/auth_priv.h"

#include <stddef.h>

static const char *const mode_words[] = {"unset", "none", "psk", "x509", NULL};

#define AT(field) offsetof(struct gn_auth_conf, field)

const struct gantry_option gn_auth_options[] = {
	{"auth", GANTRY_OPT_CHOICE, AT(mode), "unset", 0, 0, mode_words, NULL,
	 "How the peers on a network prove who they are: by a key (psk), by certificates (x509), or not at all (none). "
	 "Must be set on a network, and left out elsewhere."},
	{"auth_identity", GANTRY_OPT_STRING, AT(identity), "", 0, 0, NULL, NULL,
	 "psk: the identity under which roles connect from this device."},
	{"auth_keys", GANTRY_OPT_STRING, AT(keys), "", 0, 0, NULL, NULL,
	 "psk: file of keys, a line IDENTITY:KEY for each peer, see gantry-key(1)."},
	{"auth_certificate", GANTRY_OPT_STRING, AT(certificate), "", 0, 0, NULL, NULL,
	 "x509: PEM file with the certificate of this end, and those of its issuers."},
	{"auth_private_key", GANTRY_OPT_STRING, AT(private_key), "", 0, 0, NULL, NULL,
	 "x509: PEM file with the private key of the certificate."},
	{"auth_authorities", GANTRY_OPT_STRING, AT(authorities), "", 0, 0, NULL, NULL,
	 "x509: PEM file with the authorities that sign certificates of peers."},
	{"auth_revoked", GANTRY_OPT_STRING, AT(revoked), "", 0, 0, NULL, NULL,
	 "x509: PEM file with the revocation lists of the authorities; empty: none."},
	{"auth_peers", GANTRY_OPT_STRING, AT(peers), "", 0, 0, NULL, NULL,
	 "x509: names, or SHA-256 fingerprints as sha256:HEX, of the peers to which roles connect from this device, "
	 "separated by commas."},
	{"auth_rate", GANTRY_OPT_INT, AT(rate), "500", 1, 1000000, NULL, NULL,
	 "Handshakes that listeners of this device begin in a second; further peers are refused and connect again, and a "
	 "session over tcp whose link is refused ends."},
	GANTRY_OPTION_END,
};

const char *const gn_device_keys[] = {"transport",        "services",         "auth",
				      "auth_identity",    "auth_keys",        "auth_certificate",
				      "auth_private_key", "auth_authorities", "auth_revoked",
				      "auth_peers",       "auth_rate",        NULL};

bool gn_auth_is_on(const struct gn_auth_conf *conf)
{
	return conf->mode == GN_AUTH_PSK || conf->mode == GN_AUTH_X509;
}

const char *gn_auth_missing(const struct gn_auth_conf *conf, bool connects)
{
	const struct {
		uint32_t mode;
		bool connects; /* needed only to connect */
		const char *value, *option;
	} rows[] = {
		{GN_AUTH_PSK, false, conf->keys, "auth_keys"},
		{GN_AUTH_PSK, true, conf->identity, "auth_identity"},
		{GN_AUTH_X509, false, conf->certificate, "auth_certificate"},
		{GN_AUTH_X509, false, conf->private_key, "auth_private_key"},
		{GN_AUTH_X509, false, conf->authorities, "auth_authorities"},
		{GN_AUTH_X509, true, conf->peers, "auth_peers"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].mode == conf->mode && (connects || !rows[i].connects) &&
		    !auth_is_set(rows[i].value))
			return rows[i].option;
	return NULL;
}
