/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * notify.h - report the state of the process to a service manager by the protocol of sd_notify(3):
 * one datagram to the socket that NOTIFY_SOCKET names.
 */
#ifndef GN_CLI_NOTIFY_H
#define GN_CLI_NOTIFY_H

#include <stdint.h>

/* all servers listen, and all roles that end by themselves have started */
#define GN_NOTIFY_READY "READY=1"
#define GN_NOTIFY_STOPPING "STOPPING=1" /* the process starts to end */

#define GN_NOTIFY_WATCHDOG "WATCHDOG=1" /* the control thread works */

/* Send a state. No operation if NOTIFY_SOCKET is not set. Never blocks; a failure is logged. */
void gn_notify(const char *state);
/* Report the start of a reload. GN_NOTIFY_READY reports its end. */
void gn_notify_reload(void);
/*
 * Get the time, in ns, within which the manager expects the next GN_NOTIFY_WATCHDOG: WATCHDOG_USEC,
 * if WATCHDOG_PID is this process or is not set. 0: it expects none.
 */
uint64_t gn_notify_watchdog_ns(void);

#endif
