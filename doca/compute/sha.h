/* SPDX-License-Identifier: BSD-3-Clause */
/* sha.h - digests by libcrypto; without it there are none. */
#ifndef GD_SHA_H
#define GD_SHA_H

#include <doca_sha.h>

#include <stdbool.h>
#include <stddef.h>

#define GD_SHA_BYTES_MAX 64

struct gd_hash; /* a digest in the making */

#ifdef HAVE_LIBCRYPTO
#define GD_HAVE_SHA true
#else
#define GD_HAVE_SHA false
#endif

/* NULL: no memory. Freeing NULL does nothing. */
struct gd_hash *gd_hash_new(void);
void gd_hash_free(struct gd_hash *hash);
/* Each false on failure of the library. */
bool gd_hash_begin(struct gd_hash *hash, enum doca_sha_algorithm algorithm);
bool gd_hash_add(struct gd_hash *hash, const void *data, size_t length);
bool gd_hash_end(struct gd_hash *hash, uint8_t digest[GD_SHA_BYTES_MAX]);

#endif
