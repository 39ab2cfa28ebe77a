/* SPDX-License-Identifier: BSD-3-Clause */
/* aes_gcm_evp.c - authenticated encryption by libcrypto */
#include "compute/aes_gcm.h"

#ifdef HAVE_LIBCRYPTO

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdlib.h>

/* Both contexts hold the expanded key; each message sets its initialization vector. */
struct gd_gcm {
	EVP_CIPHER_CTX *encrypt, *decrypt;
};

static EVP_CIPHER_CTX *context_new(const void *key, bool is_256, int encrypts)
{
	EVP_CIPHER_CTX *evp = EVP_CIPHER_CTX_new();

	if (evp && EVP_CipherInit_ex(evp, is_256 ? EVP_aes_256_gcm() : EVP_aes_128_gcm(), NULL, key,
				     NULL, encrypts) == 1)
		return evp;
	EVP_CIPHER_CTX_free(evp);
	return NULL;
}

struct gd_gcm *gd_gcm_new(const void *key, bool is_256)
{
	struct gd_gcm *gcm = calloc(1, sizeof(*gcm));

	if (!gcm)
		return NULL;
	gcm->encrypt = context_new(key, is_256, 1);
	gcm->decrypt = context_new(key, is_256, 0);
	if (gcm->encrypt && gcm->decrypt)
		return gcm;
	gd_gcm_free(gcm);
	return NULL;
}

void gd_gcm_free(struct gd_gcm *gcm)
{
	if (!gcm)
		return;
	EVP_CIPHER_CTX_free(gcm->encrypt); /* overwrites the key */
	EVP_CIPHER_CTX_free(gcm->decrypt);
	free(gcm);
}

/* Process all of a message but its tag. Returns false if libcrypto fails. */
static bool process(EVP_CIPHER_CTX *evp, const struct gd_gcm_message *m)
{
	int n;

	if (EVP_CIPHER_CTX_ctrl(evp, EVP_CTRL_AEAD_SET_IVLEN, (int)m->iv_length, NULL) != 1 ||
	    EVP_CipherInit_ex(evp, NULL, NULL, NULL, m->iv, -1) != 1)
		return false;
	if (m->aad_length > 0 && EVP_CipherUpdate(evp, NULL, &n, m->aad, (int)m->aad_length) != 1)
		return false;
	return m->length == 0 || EVP_CipherUpdate(evp, m->out, &n, m->in, (int)m->length) == 1;
}

doca_error_t gd_gcm_encrypt(struct gd_gcm *gcm, const struct gd_gcm_message *m)
{
	EVP_CIPHER_CTX *evp = gcm->encrypt;
	uint8_t none[16];
	int n;

	if (!process(evp, m) || EVP_CipherFinal_ex(evp, none, &n) != 1 ||
	    EVP_CIPHER_CTX_ctrl(evp, EVP_CTRL_AEAD_GET_TAG, (int)m->tag_length, m->tag) != 1)
		return DOCA_ERROR_DRIVER;
	return DOCA_SUCCESS;
}

doca_error_t gd_gcm_decrypt(struct gd_gcm *gcm, const struct gd_gcm_message *m)
{
	EVP_CIPHER_CTX *evp = gcm->decrypt;
	doca_error_t result = DOCA_ERROR_DRIVER;
	uint8_t none[16];
	int n;

	if (process(evp, m) &&
	    EVP_CIPHER_CTX_ctrl(evp, EVP_CTRL_AEAD_SET_TAG, (int)m->tag_length, m->tag) == 1)
		result = EVP_CipherFinal_ex(evp, none, &n) == 1 ? DOCA_SUCCESS
								: DOCA_ERROR_IO_FAILED;
	if (result != DOCA_SUCCESS && m->length > 0)
		OPENSSL_cleanse(m->out, m->length);
	return result;
}

#else

struct gd_gcm *gd_gcm_new(const void *key, bool is_256)
{
	(void)key, (void)is_256;
	return NULL;
}

void gd_gcm_free(struct gd_gcm *gcm)
{
	(void)gcm;
}

doca_error_t gd_gcm_encrypt(struct gd_gcm *gcm, const struct gd_gcm_message *m)
{
	(void)gcm, (void)m;
	return DOCA_ERROR_NOT_SUPPORTED;
}

doca_error_t gd_gcm_decrypt(struct gd_gcm *gcm, const struct gd_gcm_message *m)
{
	(void)gcm, (void)m;
	return DOCA_ERROR_NOT_SUPPORTED;
}

#endif
