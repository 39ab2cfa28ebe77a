/* SPDX-License-Identifier: BSD-3-Clause */
/* aes_gcm.h - authenticated encryption by libcrypto. Without libcrypto the functions fail. */
#ifndef GD_AES_GCM_H
#define GD_AES_GCM_H

#include <doca_error.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GD_GCM_TAG_MAX 16 /* bytes */

struct gd_gcm; /* a key */

#ifdef HAVE_LIBCRYPTO
#define GD_HAVE_GCM true
#else
#define GD_HAVE_GCM false
#endif

/* One message. `out` is `in`, or does not overlap it. */
struct gd_gcm_message {
	const uint8_t *iv;
	uint32_t iv_length; /* 1 or more */
	const uint8_t *aad;
	size_t aad_length;
	const uint8_t *in;
	uint8_t *out;
	size_t length; /* of in, and of out */
	uint8_t *tag;
	uint32_t tag_length;
};

/*
 * The key has 32 bytes, or 16. NULL: memory allocation failed, or libcrypto rejected the key.
 * Freeing NULL has no effect.
 */
struct gd_gcm *gd_gcm_new(const void *key, bool is_256);
void gd_gcm_free(struct gd_gcm *gcm);
/* Encrypt, and store the tag. DRIVER: libcrypto failed. */
doca_error_t gd_gcm_encrypt(struct gd_gcm *gcm, const struct gd_gcm_message *message);
/* Decrypt. IO_FAILED: the tag does not match, and `out` is zeroed. DRIVER: libcrypto failed. */
doca_error_t gd_gcm_decrypt(struct gd_gcm *gcm, const struct gd_gcm_message *message);

#endif
