/* SPDX-License-Identifier: BSD-3-Clause */
/* sha.h - digests by libcrypto. Without libcrypto the functions fail. */
#ifndef GD_SHA_H
#define GD_SHA_H

#include <doca_sha.h>

#include <stdbool.h>
#include <stddef.h>

#define GD_SHA_BYTES_MAX 64

struct gd_hash; /* an incomplete digest */

#ifdef HAVE_LIBCRYPTO
#define GD_HAVE_SHA true
#else
#define GD_HAVE_SHA false
#endif

/* Returns NULL if memory allocation fails. Freeing NULL has no effect. */
struct gd_hash *gd_hash_new(void);
void gd_hash_free(struct gd_hash *hash);
/* Return false if libcrypto fails. */
bool gd_hash_begin(struct gd_hash *hash, enum doca_sha_algorithm algorithm);
bool gd_hash_add(struct gd_hash *hash, const void *data, size_t length);
bool gd_hash_end(struct gd_hash *hash, uint8_t digest[GD_SHA_BYTES_MAX]);

#endif
