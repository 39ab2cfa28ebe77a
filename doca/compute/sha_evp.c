/* SPDX-License-Identifier: BSD-3-Clause */
/* sha_evp.c - digests by libcrypto */
#include "compute/sha.h"

#ifdef HAVE_LIBCRYPTO

#include <openssl/evp.h>

static const EVP_MD *algorithm_of(enum doca_sha_algorithm algorithm)
{
	switch (algorithm) {
	case DOCA_SHA_ALGORITHM_SHA1:
		return EVP_sha1();
	case DOCA_SHA_ALGORITHM_SHA256:
		return EVP_sha256();
	case DOCA_SHA_ALGORITHM_SHA512:
		return EVP_sha512();
	default:
		return NULL;
	}
}

static EVP_MD_CTX *evp(struct gd_hash *hash)
{
	return (EVP_MD_CTX *)hash;
}

struct gd_hash *gd_hash_new(void)
{
	return (struct gd_hash *)EVP_MD_CTX_new();
}

void gd_hash_free(struct gd_hash *hash)
{
	EVP_MD_CTX_free(evp(hash));
}

bool gd_hash_begin(struct gd_hash *hash, enum doca_sha_algorithm algorithm)
{
	const EVP_MD *md = algorithm_of(algorithm);

	return md && EVP_DigestInit_ex(evp(hash), md, NULL) == 1;
}

bool gd_hash_add(struct gd_hash *hash, const void *data, size_t length)
{
	return EVP_DigestUpdate(evp(hash), data, length) == 1;
}

bool gd_hash_end(struct gd_hash *hash, uint8_t digest[GD_SHA_BYTES_MAX])
{
	return EVP_DigestFinal_ex(evp(hash), digest, NULL) == 1;
}

#else

struct gd_hash *gd_hash_new(void)
{
	return NULL;
}

void gd_hash_free(struct gd_hash *hash)
{
	(void)hash;
}

bool gd_hash_begin(struct gd_hash *hash, enum doca_sha_algorithm algorithm)
{
	(void)hash, (void)algorithm;
	return false;
}

bool gd_hash_add(struct gd_hash *hash, const void *data, size_t length)
{
	(void)hash, (void)data, (void)length;
	return false;
}

bool gd_hash_end(struct gd_hash *hash, uint8_t digest[GD_SHA_BYTES_MAX])
{
	(void)hash, (void)digest;
	return false;
}

#endif
