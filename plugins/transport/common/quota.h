/* SPDX-License-Identifier: BSD-3-Clause */
/* quota.h - the option max_connections. Thread: any. */
#ifndef TRANSPORT_COMMON_QUOTA_H
#define TRANSPORT_COMMON_QUOTA_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

/*
 * tc_quota - whether a host may open another connection
 *
 *     max      max_connections; a quarter of it is reserved for other hosts
 *     n        accepted connections of the device
 *     n_host   those of the host
 *     host     its address
 *     text     buffer of `size` bytes for the reason
 *
 * Returns NULL: it may; `text`: it may not.
 */
const char *tc_quota(uint32_t max, uint32_t n, uint32_t n_host, const struct sockaddr *host,
		     char *text, size_t size);

#endif
