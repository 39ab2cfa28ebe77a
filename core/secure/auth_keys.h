/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * auth_keys.h - file of pre-shared keys: lines "IDENTITY:KEY", the key in 64 hexadecimal digits.
 * Empty lines and lines that begin with '#' are ignored. psktool(1) writes this format.
 */
#ifndef GN_SECURE_AUTH_KEYS_H
#define GN_SECURE_AUTH_KEYS_H

#include <stddef.h>
#include <stdint.h>

#include "secure/auth.h"

#define GN_KEY_BYTES 32

struct gn_key {
	char identity[GN_IDENTITY_MAX + 1];
	uint8_t key[GN_KEY_BYTES];
	unsigned line; /* in the file */
};

/* A zeroed struct has no keys. */
struct gn_keys {
	struct gn_key *key; /* sorted by identity */
	size_t n, size;     /* keys; elements of the array */
};

/*
 * Read a key file.
 *
 * keys     out: the keys; no key after an error. gn_keys_fini() wipes and frees them
 * why      out, GN_PATH_WHY bytes: FILE:LINE, problem and remedy, never a key
 * returns  as gn_auth_open(), or -ENODATA: the file has no key
 */
int gn_keys_read(const char *path, struct gn_keys *keys, char *why);

/* As gn_keys_read(), from text. path: for messages. */
int gn_keys_parse(const char *path, const char *text, size_t bytes, struct gn_keys *keys,
		  char *why);

/* Wipe and free the keys. The struct has no keys afterwards. */
void gn_keys_fini(struct gn_keys *keys);

/* Find the key of an identity; NULL: none. The time does not depend on the result. */
const struct gn_key *gn_keys_find(const struct gn_keys *keys, const void *identity, size_t length);

#endif
