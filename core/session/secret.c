/* SPDX-License-Identifier: BSD-3-Clause */
#include "session/secret.h"

#include <errno.h>
#include <sys/random.h>

bool gn_secret_is_set(const uint8_t secret[GANTRY_SECRET_BYTES])
{
	static const uint8_t none[GANTRY_SECRET_BYTES];

	return !gn_secret_equal(secret, none);
}

bool gn_secret_equal(const uint8_t a[GANTRY_SECRET_BYTES], const uint8_t b[GANTRY_SECRET_BYTES])
{
	volatile uint8_t differences = 0; /* volatile: the compiler must not leave the loop early */

	for (unsigned i = 0; i < GANTRY_SECRET_BYTES; i++)
		differences = (uint8_t)(differences | (a[i] ^ b[i]));
	return differences == 0;
}

int gn_secret_make(uint8_t secret[GANTRY_SECRET_BYTES])
{
	return getrandom(secret, GANTRY_SECRET_BYTES, GRND_NONBLOCK) == GANTRY_SECRET_BYTES
		       ? 0
		       : -EAGAIN;
}
