/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * secure_rig.h - both ends of a record filter in one process, and files of credentials. A failed
 * check ends the case.
 */
#ifndef UNIT_SECURE_SECURE_RIG_H
#define UNIT_SECURE_SECURE_RIG_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/host.h"
#include "base/safe_path.h"
#include "secure/auth_priv.h"
#include "unity.h"

#define KEY_A "a0a1a2a3a4a5a6a7a8a9aaabacadaeafb0b1b2b3b4b5b6b7b8b9babbbcbdbebf"
#define KEY_B "00112233445566778899aabbccddeeff0123456789ABCDEF0123456789abcdef"
#define WIRE 65536

/* A device: its host, with the credentials. */
struct device {
	struct gn_host host;
};

/* An end of a connection. Its address is the connection of the transport. */
struct end {
	struct device *device;
	void *records;
	uint8_t sent[WIRE]; /* all bytes that it has sent since end_open() */
	size_t n_sent;
};

extern char why[GN_PATH_WHY];
extern struct device left, right; /* `left` connects, `right` listens */
extern struct end a, b;           /* connection of both */

void rig_setup(void);    /* temporary directory */
void rig_teardown(void); /* closes ends and devices, checks that nothing is left */

/* Write a file below the temporary directory. Returns its path, in one of eight buffers. */
const char *rig_file(const char *name, const char *text, mode_t mode);
const char *rig_path(const char *name);

/* Open a device; a failure ends the case. */
void device_open(struct device *device, const struct gn_auth_conf *conf);
void device_psk(struct device *device, const char *identity, const char *keys_file);
/* Load credentials that are rejected: why must have the text. Returns the -errno. */
int rejected(const struct gn_auth_conf *conf, const char *text);

int end_open(struct end *end, struct device *device, int listens); /* returns 0 or -errno */
void end_close(struct end *end);
int end_state(const struct end *end);
const char *end_text(const struct end *end);
/* Append the output of an end to `sent`. Returns the new bytes. */
size_t end_output(struct end *end);
/* Pass bytes to an end. Returns what `receive` returns. */
int end_input(struct end *end, const void *bytes, size_t n);
/* Pass the output of each end to the other one, until there is none or an end has failed. */
void exchange(struct end *x, struct end *y);

/* Open both ends, with their devices open, and exchange. */
void start(void);
void start_and_open(void); /* both ends must be open */
/* Send a message from one end to the other, which must get the same bytes. */
void send_message(struct end *from, struct end *to, const void *msg, size_t len);
/* Both ends have failed, or one has and the other one is not open. */
void failed(const char *left_text, const char *right_text); /* NULL: any */
/* Copy the output of an end for `bytes`. */
size_t captured(struct end *end, uint8_t *bytes);

#endif
