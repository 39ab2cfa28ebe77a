/* SPDX-License-Identifier: BSD-3-Clause */
/* address.h - addresses of IPv4 and IPv6 as text. Thread: any. */
#ifndef TRANSPORT_COMMON_ADDRESS_H
#define TRANSPORT_COMMON_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#define TC_ADDRESS_TEXT 80 /* [HOST%interface]:PORT */

/*
 * Split HOST:PORT or [HOST]:PORT in place. Returns the port; -EINVAL: the text has no host, or no
 * decimal port of 0 to 65535.
 */
int tc_address_split(char *text, char **host_p);
/*
 * Parse "192.0.2.7:4791" or "[2001:db8::7]:4791". Numeric only, because a name server could block.
 * Returns 0 or -EINVAL.
 */
int tc_address_parse(const char *text, struct sockaddr_storage *addr);
void tc_address_print(const struct sockaddr *addr, char *text, size_t size);
/* Returns the bytes of the address of its family; 0: neither IPv4 nor IPv6. */
socklen_t tc_address_bytes(const struct sockaddr *addr);
/*
 * Split an address for a message: `host` has 4 bytes of IPv4 or 16 of IPv6, in network order; the
 * port is in host order.
 */
void tc_address_put(const struct sockaddr_storage *addr, uint16_t *family, uint16_t *port,
		    uint8_t host[16]);
/*
 * Join an address of a message. Returns 0; -EINVAL: another family than AF_INET or AF_INET6, or
 * port 0.
 */
int tc_address_get(struct sockaddr_storage *addr, uint16_t family, uint16_t port,
		   const uint8_t host[16]);
/* Returns true if both addresses have the same host. */
bool tc_address_same_host(const struct sockaddr *a, const struct sockaddr *b);

#endif
