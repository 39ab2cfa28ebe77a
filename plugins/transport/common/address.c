/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "address.h"

/* Split HOST:PORT or [HOST]:PORT in place. Returns 0 or -EINVAL. */
static int split(char *text, char **host_p, char **port_p)
{
	char *colon = strrchr(text, ':');

	if (!colon || colon == text)
		return -EINVAL;
	*colon = '\0';
	*port_p = colon + 1;
	*host_p = text;
	if (*text != '[')
		return 0;
	if (colon[-1] != ']')
		return -EINVAL;
	colon[-1] = '\0';
	*host_p = text + 1;
	return 0;
}

/* Parse a decimal port without other characters. Returns -EINVAL if it is not a port. */
static int parse_port(const char *text)
{
	size_t n = strspn(text, "0123456789");
	int port = n > 0 && n <= 5 && !text[n] ? atoi(text) : -1;

	return port >= 0 && port <= UINT16_MAX ? port : -EINVAL;
}

int tc_address_split(char *text, char **host_p)
{
	char *port;

	return split(text, host_p, &port) ? -EINVAL : parse_port(port);
}

static int parse_v4(const char *host, int port, struct sockaddr_storage *addr)
{
	struct sockaddr_in *sin = (void *)addr;

	*sin = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	return inet_pton(AF_INET, host, &sin->sin_addr) == 1 ? 0 : -EINVAL;
}

/* Uses getaddrinfo(), which supports %interface. */
static int parse_v6(const char *host, int port, struct sockaddr_storage *addr)
{
	const struct addrinfo hints = {
		.ai_flags = AI_NUMERICHOST, .ai_family = AF_INET6, .ai_socktype = SOCK_STREAM};
	struct addrinfo *info;

	if (getaddrinfo(host, NULL, &hints, &info))
		return -EINVAL;
	memcpy(addr, info->ai_addr, sizeof(struct sockaddr_in6));
	((struct sockaddr_in6 *)addr)->sin6_port = htons((uint16_t)port);
	freeaddrinfo(info);
	return 0;
}

int tc_address_parse(const char *text, struct sockaddr_storage *addr)
{
	char copy[TC_ADDRESS_TEXT], *host;
	int port;

	if (strlen(text) >= sizeof(copy))
		return -EINVAL;
	strcpy(copy, text);
	port = tc_address_split(copy, &host);
	if (port < 0)
		return -EINVAL;
	memset(addr, 0, sizeof(*addr));
	return *text == '[' ? parse_v6(host, port, addr) : parse_v4(host, port, addr);
}

socklen_t tc_address_bytes(const struct sockaddr *addr)
{
	return addr->sa_family == AF_INET6  ? sizeof(struct sockaddr_in6)
	       : addr->sa_family == AF_INET ? sizeof(struct sockaddr_in)
					    : 0;
}

void tc_address_print(const struct sockaddr *addr, char *text, size_t size)
{
	socklen_t bytes = tc_address_bytes(addr);
	char host[TC_ADDRESS_TEXT], port[8];

	if (!bytes || getnameinfo(addr, bytes, host, sizeof(host), port, sizeof(port),
				  NI_NUMERICHOST | NI_NUMERICSERV))
		snprintf(text, size, "unknown address");
	else
		snprintf(text, size, addr->sa_family == AF_INET6 ? "[%s]:%s" : "%s:%s", host, port);
}

void tc_address_put(const struct sockaddr_storage *addr, uint16_t *family, uint16_t *port,
		    uint8_t host[16])
{
	const struct sockaddr_in *sin = (const struct sockaddr_in *)addr;
	const struct sockaddr_in6 *sin6 = (const struct sockaddr_in6 *)addr;

	*family = addr->ss_family;
	/* sockaddr_in and sockaddr_in6 have the port at the same offset */
	*port = ntohs(sin->sin_port);
	if (addr->ss_family == AF_INET)
		memcpy(host, &sin->sin_addr, sizeof(sin->sin_addr));
	else
		memcpy(host, &sin6->sin6_addr, sizeof(sin6->sin6_addr));
}

int tc_address_get(struct sockaddr_storage *addr, uint16_t family, uint16_t port,
		   const uint8_t host[16])
{
	struct sockaddr_in *sin = (struct sockaddr_in *)addr;
	struct sockaddr_in6 *sin6 = (struct sockaddr_in6 *)addr;

	memset(addr, 0, sizeof(*addr));
	addr->ss_family = family;
	sin->sin_port = htons(port);
	if (family == AF_INET)
		memcpy(&sin->sin_addr, host, sizeof(sin->sin_addr));
	else if (family == AF_INET6)
		memcpy(&sin6->sin6_addr, host, sizeof(sin6->sin6_addr));
	else
		return -EINVAL;
	return port ? 0 : -EINVAL;
}

bool tc_address_same_host(const struct sockaddr *a, const struct sockaddr *b)
{
	if (a->sa_family != b->sa_family)
		return false;
	if (a->sa_family == AF_INET)
		return ((const struct sockaddr_in *)a)->sin_addr.s_addr ==
		       ((const struct sockaddr_in *)b)->sin_addr.s_addr;
	return memcmp(&((const struct sockaddr_in6 *)a)->sin6_addr,
		      &((const struct sockaddr_in6 *)b)->sin6_addr, sizeof(struct in6_addr)) == 0;
}
