/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tcp_secure.h - the record filter of gantry in the conformance suite: both ends of the rig have
 * auth = "psk", with keys that this file makes up.
 */
#ifndef CONFORM_TCP_SECURE_H
#define CONFORM_TCP_SECURE_H

#include <gantry/transport.h>

#define SECURE_PEER "RIG_PEER_SECURE" /* in the environment of conform/peer: it has the filter */

extern int secure_off;        /* devices that are opened from now on have no filter */
extern int secure_send_error; /* streams return it instead of sending; 0: they send */
extern int secure_closed;     /* `admit` permits no handshake of a stream */

/* Let the end that listens begin n handshakes a second; the next one can begin after 1/n s. */
void secure_limit(unsigned n);
/* Let devices of the transport have the filter. For rig_driver.wrap. */
void secure_wrap(struct gantry_transport_ops *ops);

#endif
