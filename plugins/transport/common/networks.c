/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * networks.c - a list of networks, such as the option direct_networks: the addresses that a peer
 * may name for this side to connect to.
 *
 * Addresses are compared in their form of 16 bytes, IPv4 as ::ffff:a.b.c.d. So an IPv4 address is
 * equal in both notations, and ::/0 does not include IPv4 addresses.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "networks.h"

#define MAPPED_BITS 96 /* length of the prefix ::ffff:0:0 of an IPv4 address */

static const uint8_t mapped[16] = {[10] = 0xff, [11] = 0xff};

static bool is_mapped(const uint8_t address[16])
{
	return memcmp(address, mapped, MAPPED_BITS / 8) == 0;
}

static bool same_prefix(const uint8_t a[16], const uint8_t b[16], unsigned bits)
{
	unsigned rest = bits % 8, mask = 0xff00u >> rest & 0xff;

	return memcmp(a, b, bits / 8) == 0 &&
	       (rest == 0 || ((a[bits / 8] ^ b[bits / 8]) & mask) == 0);
}

static bool ends_with_zeroes(const struct tc_network *network)
{
	uint8_t zeroes[16] = {0};

	memcpy(zeroes, network->address, network->bits / 8);
	if (network->bits % 8)
		zeroes[network->bits / 8] = network->address[network->bits / 8] &
					    (uint8_t)(0xff00u >> network->bits % 8);
	return memcmp(zeroes, network->address, sizeof(zeroes)) == 0;
}

/* Parse "ADDRESS" or "ADDRESS/BITS". Returns NULL, or the reason of a failure. */
static const char *parse_one(char *text, struct tc_network *network)
{
	char *bits = strchr(text, '/'), *end = bits;
	unsigned first = 0;
	long n;

	if (bits)
		*bits++ = 0;
	memcpy(network->address, mapped, sizeof(mapped));
	if (inet_pton(AF_INET, text, network->address + MAPPED_BITS / 8) == 1)
		first = MAPPED_BITS;
	else if (inet_pton(AF_INET6, text, network->address) != 1)
		return "is not a network; write such as 192.0.2.0/24 or 2001:db8::/32";
	n = bits && *bits >= '0' && *bits <= '9' ? strtol(bits, &end, 10)
	    : bits                               ? -1
						 : 128 - (long)first;
	if (n < 0 || n > 128 - (long)first || (bits && *end))
		return first ? "has no prefix length of 0 to 32 bits"
			     : "has no prefix length of 0 to 128 bits";
	network->bits = first + (unsigned)n;
	return ends_with_zeroes(network)
		       ? NULL
		       : "has bits after its prefix; write them as 0, or a longer prefix";
}

int tc_networks_parse(const char *text, struct tc_networks *networks, char *why, size_t size)
{
	static const char whitespace[] = " \t";

	networks->n = 0;
	while (text && text[strspn(text, whitespace)]) {
		const char *from = text + strspn(text, whitespace), *comma = strchr(from, ',');
		size_t n = comma ? (size_t)(comma - from) : strlen(from);
		const char *wrong = "is too long for a network";
		char word[64] = "";

		while (n && strchr(whitespace, from[n - 1]))
			n--;
		if (networks->n == TC_NETWORKS) {
			snprintf(why, size, "has more than %d networks", TC_NETWORKS);
			return -EINVAL;
		}
		if (n < sizeof(word)) {
			memcpy(word, from, n);
			wrong = parse_one(word, &networks->list[networks->n]);
		}
		if (wrong || (comma && !comma[1 + strspn(comma + 1, whitespace)])) {
			snprintf(why, size, "\"%.*s\" %s", (int)(n < 64 ? n : 64), from,
				 wrong ? wrong : "is followed by a comma, but by no network");
			return -EINVAL;
		}
		networks->n++;
		text = comma ? comma + 1 : NULL;
	}
	return 0;
}

bool tc_networks_have(const struct tc_networks *networks, const struct sockaddr *addr)
{
	uint8_t address[16];

	memcpy(address, mapped, sizeof(address));
	if (addr->sa_family == AF_INET)
		memcpy(address + MAPPED_BITS / 8, &((const struct sockaddr_in *)addr)->sin_addr, 4);
	else if (addr->sa_family == AF_INET6)
		memcpy(address, &((const struct sockaddr_in6 *)addr)->sin6_addr, sizeof(address));
	else
		return false;
	for (uint32_t i = 0; i < networks->n; i++) {
		const struct tc_network *network = &networks->list[i];

		if ((network->bits >= MAPPED_BITS || !is_mapped(address)) &&
		    same_prefix(network->address, address, network->bits))
			return true;
	}
	return false;
}
