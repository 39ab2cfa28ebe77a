/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * identity.h - UUID and verifier of a volume (struct gantry_volume_info), for backends: the option
 * `uuid`, UUIDs derived from names (RFC 9562 version 5, in a namespace of gantry), and 64-bit
 * hashes.
 *
 * A UUID of all zeroes and a verifier of 0 mean "unknown". No function of this file returns these
 * values, except identity_option().
 */
#ifndef BACKEND_IDENTITY_H
#define BACKEND_IDENTITY_H

#include <gantry/backend.h>

#define IDENTITY_TEXT 37 /* bytes of a UUID as text, with the terminating 0 */

/* The option row `uuid` of a plugin whose conf struct is `type` and has `const char *uuid`. */
/* clang-format off */
#define IDENTITY_OPTION(type, otherwise) \
	{"uuid", GANTRY_OPT_STRING, offsetof(type, uuid), "", 0, 0, NULL, NULL, \
	 "UUID of the volume: clients resume a session only onto a volume with the same one. Empty: " otherwise}
/* clang-format on */

/* For a plugin's check(): add a fault unless `text` is empty or a UUID other than all zeroes. */
void identity_check(const char *text, const struct gantry_check *check);

/* Get the UUID of a text that identity_check() accepts; all zeroes if the text is empty. */
void identity_option(const char *text, uint8_t uuid[16]);

/* Parse a UUID. Returns 0; -EINVAL: the text is not a UUID, or all zeroes. */
int identity_parse(const char *text, uint8_t uuid[16]);

void identity_text(const uint8_t uuid[16], char text[IDENTITY_TEXT]);

/* Make a random UUID (version 4). */
void identity_random(uint8_t uuid[16]);

/* Derive a UUID from a globally unique name, such as the WWID of a disk. */
void identity_of_name(const char *name, uint8_t uuid[16]);

/*
 * Derive a UUID from a name that is unique on this machine, such as a path. Without a machine id
 * the UUID lasts only until the next reboot, and the function logs a warning.
 */
void identity_of_machine(const struct gantry_host *host, const char *name, uint8_t uuid[16]);

/*
 * Get the UUID of a volume without a store: the option `uuid`, else a UUID derived from the name of
 * the instance and the size.
 */
void identity_of_instance(const struct gantry_host *host, const char *option, uint64_t size,
			  uint8_t uuid[16]);

/* Returns a hash of n bytes; never 0. */
uint64_t identity_hash(const void *data, size_t n);

/* Returns a random number; never 0. */
uint64_t identity_nonce(void);

/*
 * Read the first line of a file, without the newline. Returns the length of the line; -EMSGSIZE:
 * the line does not fit; or another -errno.
 */
int identity_read_line(const char *path, char *line, size_t bytes);

/* Report the UUID as "uuid" and the verifier as "verifier". */
void identity_report(struct gantry_writer *w, const uint8_t uuid[16], uint64_t verifier);

#endif
