/* SPDX-License-Identifier: BSD-3-Clause */
/* mapping.h - report a mapping to the owner of the memory. Thread: any. */
#ifndef TRANSPORT_COMMON_MAPPING_H
#define TRANSPORT_COMMON_MAPPING_H

#include <gantry/hold.h>
#include <gantry/plugin.h>

/*
 * tc_hold - gantry_hold(), without its error -ETOOMANYREFS
 *
 * An owner that does not read its socket can cause this error for all sessions of this user. They
 * must not fail, so the memory is then mapped without a report.
 *
 * Returns as gantry_hold(). After 0, *hold_p is -1 if there is no report.
 */
static inline int tc_hold(const struct gantry_host *host, int socket, int *hold_p)
{
	int rc = gantry_hold(socket, hold_p);

	if (rc != -ETOOMANYREFS)
		return rc;
	gantry_log_warn(host,
			"memory is mapped without a report to its owner, because processes of "
			"this user have sent too many descriptors that were not received "
			"(RLIMIT_NOFILE): if this process hangs, it can damage the memory of a "
			"session that resumes on another path");
	return 0;
}

#endif
