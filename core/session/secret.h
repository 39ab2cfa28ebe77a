/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * secret.h - the secret of a session, which proves that a peer is the client that opened the
 * session. Any thread.
 */
#ifndef GN_SESSION_SECRET_H
#define GN_SESSION_SECRET_H

#include <gantry/role.h>

#include <stdbool.h>

/* Returns false for all zeroes, which the HELLO of a new client contains. */
bool gn_secret_is_set(const uint8_t secret[GANTRY_SECRET_BYTES]);
/* Compare in a time that does not depend on the content. */
bool gn_secret_equal(const uint8_t a[GANTRY_SECRET_BYTES], const uint8_t b[GANTRY_SECRET_BYTES]);
/*
 * gn_secret_make - create a secret from random numbers of the kernel.
 *
 * Returns 0, or -EAGAIN: the kernel has no random numbers yet, soon after boot.
 */
int gn_secret_make(uint8_t secret[GANTRY_SECRET_BYTES]);

#endif
