/* SPDX-License-Identifier: BSD-3-Clause */
/* ending.c - see ending.h */
#include "ending.h"

#include <errno.h>
#include <string.h>

#include <gantry/plugin.h>

void tc_log_end(const struct gantry_host *host, const char *address, bool is_open, int reason)
{
	if (reason == -ENOTCONN || reason == -EPROTO)
		return;
	if (!host->records || is_open)
		gantry_log_warn(host, "connection with %s ends: %s", address, strerror(-reason));
	else if (reason == -ETIMEDOUT)
		gantry_log_warn(host,
				"no connection with %s: the handshake of the record filter did not "
				"end in time (connect_timeout)",
				address);
	else if (reason != -EBUSY) /* the host has logged that there are too many handshakes */
		gantry_log_warn(host, "no connection with %s: the record filter: %s", address,
				strerror(-reason));
}
