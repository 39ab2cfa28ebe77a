/* SPDX-License-Identifier: BSD-3-Clause */
/* networks.h - a list of networks of IPv4 and IPv6. Thread: any. */
#ifndef TRANSPORT_COMMON_NETWORKS_H
#define TRANSPORT_COMMON_NETWORKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#define TC_NETWORKS 16

struct tc_network {
	uint8_t address[16]; /* IPv4 as ::ffff:a.b.c.d; all bits after the prefix are 0 */
	unsigned bits;       /* length of the prefix of the 16 bytes */
};

struct tc_networks {
	uint32_t n;
	struct tc_network list[TC_NETWORKS];
};

/*
 * tc_networks_parse - parse the option direct_networks
 *
 *     text      "ADDRESS/BITS, ADDRESS"; "" or NULL: none
 *     networks  result
 *     why       buffer of `size` bytes for the reason of -EINVAL
 *
 * Returns 0; -EINVAL: the text is not a valid list.
 */
int tc_networks_parse(const char *text, struct tc_networks *networks, char *why, size_t size);
bool tc_networks_have(const struct tc_networks *networks, const struct sockaddr *addr);

#endif
