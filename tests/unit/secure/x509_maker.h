/* SPDX-License-Identifier: BSD-3-Clause */
/* x509_maker.h - authorities, certificates and CRLs, made by a test. */
#ifndef UNIT_SECURE_X509_MAKER_H
#define UNIT_SECURE_X509_MAKER_H

#include <openssl/x509.h>

struct ca {
	X509 *cert;
	EVP_PKEY *key;
};

/* What a certificate has. A zeroed struct: a valid one without names. */
struct wish {
	const char *cn, *dns; /* NULL: none; dns as in "DNS:a,DNS:b" */
	const char *usage;    /* extended key usage; NULL: none */
	long from_s, to_s;    /* relative to now; 0: an hour before, a day after */
	long serial;          /* 0: 2 */
};

void ca_make(struct ca *ca, const char *name);
void ca_free(struct ca *ca);
/*
 * Make a certificate, and write NAME.pem, NAME.key and, with `issuer`, nothing more. The caller
 * frees it.
 */
X509 *cert_make(const struct ca *issuer, const char *name, const struct wish *wish);
void ca_write(const struct ca *ca, const char *file);
/* Write a CRL with one serial number; 0: none. */
void crl_write(const struct ca *ca, const char *file, long serial);

#endif
