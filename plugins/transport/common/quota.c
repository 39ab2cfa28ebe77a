/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>

#include "address.h"
#include "quota.h"

#define REMEDY "raise it or close connections"

const char *tc_quota(uint32_t max, uint32_t n, uint32_t n_host, const struct sockaddr *host,
		     char *text, size_t size)
{
	uint32_t one = max > 1 ? (uint32_t)(max * 3ull / 4) : 1;
	char peer[TC_ADDRESS_TEXT], *port;

	tc_address_print(host, peer, sizeof(peer));
	port = strrchr(peer, ':');
	if (port)
		*port = '\0';
	if (n >= max)
		snprintf(text, size,
			 "busy: max_connections=%u reached by all hosts together: " REMEDY, max);
	else if (n_host >= one)
		snprintf(text, size, "busy: max_connections=%u allows %u for host %.41s: " REMEDY,
			 max, one, peer);
	else
		return NULL;
	return text;
}
