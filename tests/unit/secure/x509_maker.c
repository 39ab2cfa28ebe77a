/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit/secure/x509_maker.h"

#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "unit/secure/secure_rig.h"

/* Write a PEM file with a function of OpenSSL. */
static void write_pem(const char *name, mode_t mode, int (*put)(BIO *bio, const void *object),
		      const void *object)
{
	BIO *bio = BIO_new(BIO_s_mem());
	char *text;
	long n;

	TEST_ASSERT_EQUAL_INT(1, put(bio, object));
	BIO_write(bio, "", 1);
	n = BIO_get_mem_data(bio, &text);
	TEST_ASSERT_TRUE(n > 1);
	rig_file(name, text, mode);
	BIO_free(bio);
}

static int put_cert(BIO *bio, const void *object)
{
	return PEM_write_bio_X509(bio, object);
}

static int put_key(BIO *bio, const void *object)
{
	return PEM_write_bio_PrivateKey(bio, object, NULL, NULL, 0, NULL, NULL);
}

static int put_crl(BIO *bio, const void *object)
{
	return PEM_write_bio_X509_CRL(bio, object);
}

static void extend(X509 *cert, int nid, const char *value)
{
	X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, NULL, nid, value);

	TEST_ASSERT_NOT_NULL(extension);
	X509_add_ext(cert, extension, -1);
	X509_EXTENSION_free(extension);
}

static X509 *make(EVP_PKEY *key, const struct ca *issuer, const struct wish *wish)
{
	X509 *cert = X509_new();
	X509_NAME *name = X509_get_subject_name(cert);

	X509_set_version(cert, 2);
	ASN1_INTEGER_set(X509_get_serialNumber(cert), wish->serial ? wish->serial : 2);
	X509_gmtime_adj(X509_getm_notBefore(cert), wish->from_s ? wish->from_s : -3600);
	X509_gmtime_adj(X509_getm_notAfter(cert), wish->to_s ? wish->to_s : 86400);
	X509_set_pubkey(cert, key);
	if (wish->cn)
		X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8,
					   (const unsigned char *)wish->cn, -1, -1, 0);
	X509_set_issuer_name(cert, issuer ? X509_get_subject_name(issuer->cert) : name);
	if (!issuer)
		extend(cert, NID_basic_constraints, "critical,CA:TRUE");
	if (wish->dns)
		extend(cert, NID_subject_alt_name, wish->dns);
	if (wish->usage)
		extend(cert, NID_ext_key_usage, wish->usage);
	TEST_ASSERT_TRUE(X509_sign(cert, issuer ? issuer->key : key, EVP_sha256()) > 0);
	return cert;
}

void ca_make(struct ca *ca, const char *name)
{
	ca->key = EVP_EC_gen("P-256");
	ca->cert = make(ca->key, NULL, &(struct wish){.cn = name, .serial = 1});
}

void ca_free(struct ca *ca)
{
	X509_free(ca->cert);
	EVP_PKEY_free(ca->key);
	*ca = (struct ca){NULL, NULL};
}

X509 *cert_make(const struct ca *issuer, const char *name, const struct wish *wish)
{
	EVP_PKEY *key = EVP_EC_gen("P-256");
	X509 *cert = make(key, issuer, wish);
	char file[64];

	snprintf(file, sizeof(file), "%s.pem", name);
	write_pem(file, 0644, put_cert, cert);
	snprintf(file, sizeof(file), "%s.key", name);
	write_pem(file, 0600, put_key, key);
	EVP_PKEY_free(key);
	return cert;
}

void ca_write(const struct ca *ca, const char *file)
{
	write_pem(file, 0644, put_cert, ca->cert);
}

void crl_write(const struct ca *ca, const char *file, long serial)
{
	X509_CRL *crl = X509_CRL_new();
	ASN1_TIME *time = X509_gmtime_adj(NULL, -60), *next = X509_gmtime_adj(NULL, 86400);

	X509_CRL_set_version(crl, 1);
	X509_CRL_set_issuer_name(crl, X509_get_subject_name(ca->cert));
	X509_CRL_set1_lastUpdate(crl, time);
	X509_CRL_set1_nextUpdate(crl, next);
	if (serial) {
		X509_REVOKED *entry = X509_REVOKED_new();
		ASN1_INTEGER *number = ASN1_INTEGER_new();

		ASN1_INTEGER_set(number, serial);
		X509_REVOKED_set_serialNumber(entry, number);
		X509_REVOKED_set_revocationDate(entry, time);
		X509_CRL_add0_revoked(crl, entry);
		ASN1_INTEGER_free(number);
	}
	TEST_ASSERT_TRUE(X509_CRL_sign(crl, ca->key, EVP_sha256()) > 0);
	write_pem(file, 0644, put_crl, crl);
	ASN1_TIME_free(time);
	ASN1_TIME_free(next);
	X509_CRL_free(crl);
}
