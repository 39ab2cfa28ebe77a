/* SPDX-License-Identifier: BSD-3-Clause */
/* ending.h - log why a connection of a network transport ends. Thread: control thread. */
#ifndef TRANSPORT_COMMON_ENDING_H
#define TRANSPORT_COMMON_ENDING_H

#include <stdbool.h>

struct gantry_host;

/*
 * tc_log_end - log the end of a connection whose peer was connected
 *
 *     host     of the device
 *     address  of the peer
 *     is_open  the record filter of the connection is open; ignored without a record filter
 *     reason   -errno. No line for -ENOTCONN: the peer has left; for -EPROTO: the transport has
 *              logged the fault of the peer
 */
void tc_log_end(const struct gantry_host *host, const char *address, bool is_open, int reason);

#endif
