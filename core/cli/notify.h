/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * notify.h - tells a service manager how far the process is, in the protocol of sd_notify(3): one
 * datagram to the socket that NOTIFY_SOCKET names.
 */
#ifndef GN_CLI_NOTIFY_H
#define GN_CLI_NOTIFY_H

#define GN_NOTIFY_READY "READY=1"       /* all servers listen, and all who work have begun */
#define GN_NOTIFY_STOPPING "STOPPING=1" /* it is about to end */

/*
 * Nothing where NOTIFY_SOCKET is not set. A message that cannot be sent is logged; it does not wait
 * for a manager that is slow.
 */
void gn_notify(const char *state);

#endif
